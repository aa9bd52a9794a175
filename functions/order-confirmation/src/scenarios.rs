//! Everything that can happen to a message, played on the consumer, with a mailbox in place of SES.

use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::config::{Builder, Credentials, Region};
use claimant::aws::Later;
use claimant::memory::MemoryStore;
use claimant_test::cloud::Mailbox;
use claimant_test::{Scenario, TestMessage, TestQueue};
use serde_json::json;
use tokio::net::TcpListener;

use crate::consumer;
use crate::handler::Mailer;

/// A mailbox of its own, and what sends mail to it.
async fn mailbox() -> (Mailbox, Mailer) {
    let (mailbox, listener) = (Mailbox::new(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(mailbox.clone().serve(listener, std::future::pending()));
    let config = Builder::from(claimant::aws::config_without_retries().await.unwrap())
        .endpoint_url(url)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .build();
    (mailbox, Mailer::new(Later::new(|| Client::from_conf(config)), "orders@example.com".into()))
}

/// SES knows no keys, so a process that dies, or stands still, between the mail and its completion repeats the mail, with the same
/// key in its header. Nothing else does.
#[tokio::test]
async fn an_order_is_mailed_once_unless_its_process_dies_on_it() {
    let items = json!([{ "sku": "tea", "quantity": 1, "unit_price_cents": 100 }]);
    let order = json!({ "order_id": "ord-1", "customer_email": "ada@example.com", "items": items, "currency": "EUR" });
    for scenario in Scenario::all() {
        let (mailbox, mailer) = mailbox().await;
        let queue = TestQueue::new(consumer(MemoryStore::new(), mailer));
        queue.play(&scenario, &[TestMessage::json(&order)]).await.assert_done();
        let mails = mailbox.mails();
        let most = if scenario.halts() { 2 } else { 1 };
        assert!((1..=most).contains(&mails.len()), "{scenario}: {} mails", mails.len());
        assert!(mails.iter().all(|mail| mail.header("X-Claimant-Key") == Some("ord-1")), "{scenario}");
    }
}
