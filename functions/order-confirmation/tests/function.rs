//! The built function, behind the Lambda runtime API, with the embedded DynamoDB and a mailbox.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant::{Clock as _, SystemClock};
use claimant_test::cloud::{Invocation, LOCK_TABLE, Mailbox, Stage, StageConfig};
use claimant_test::{TestMessage, event, event_from, message_ids};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stage with a mailbox where these variables differ from the usual ones; an empty value removes one.
async fn set_up(overrides: &[(&str, &str)]) -> (Stage, Mailbox) {
    set_up_with(Mailbox::new(), overrides).await
}

async fn set_up_with(mailbox: Mailbox, overrides: &[(&str, &str)]) -> (Stage, Mailbox) {
    let ses = mailbox.clone();
    let config = StageConfig::new(env!("CARGO_BIN_EXE_order-confirmation"))
        .endpoint("AWS_ENDPOINT_URL_SESV2", |listener| ses.serve(listener, std::future::pending()))
        .variables(&[("SENDER_ADDRESS", "orders@example.com")])
        .variables(overrides);
    (Stage::start(config).await.unwrap(), mailbox)
}

/// The mails so far, by the key in their header.
fn mails(mailbox: &Mailbox) -> Vec<String> {
    let mut keys: Vec<_> = mailbox.mails().iter().map(|m| m.header("X-Claimant-Key").unwrap().to_owned()).collect();
    keys.sort();
    keys
}

fn sample(name: &str) -> Value {
    event_from(format!("{}/../../tests/events/{name}", env!("CARGO_MANIFEST_DIR")))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_order_gets_one_mail_however_often_it_comes() {
    let (stage, mailbox) = set_up(&[]).await;
    for _ in 0..3 {
        assert!(stage.failures(&sample("order.json")).await.unwrap().is_empty());
        assert!(stage.failures(&sample("batch.json")).await.unwrap().is_empty());
    }
    assert_eq!(mails(&mailbox), ["ord-1001", "ord-2001", "ord-2002", "ord-2003", "ord-2004"]);
    assert_eq!(mailbox.attempts(), 5);
    let records = stage.dynamodb.items(LOCK_TABLE).unwrap();
    let done = records.iter().filter(|r| r.text("status") == Some("COMPLETED") && r.number("attempts") == Some(1));
    assert_eq!(done.count(), 5);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_body_is_rejected_alone_and_never_logged() {
    let (stage, mailbox) = set_up(&[]).await;
    let mut event = sample("broken.json");
    let wanted = message_ids(&event);
    // One good order among them, and the largest body that SQS takes.
    let records = event["Records"].as_array_mut().unwrap();
    records.push(sample("order.json")["Records"][0].clone());
    let mut largest = records[0].clone();
    largest["messageId"] = json!("largest");
    largest["body"] = json!(format!("{{\"order_id\":\"{}", "secret ".repeat(149_790)));
    records.push(largest);
    let failures = stage.failures(&event).await.unwrap();
    assert_eq!(failures, [&wanted[..], &["largest".to_owned()]].concat());
    assert_eq!(mails(&mailbox), ["ord-1001"]);
    let logged = stage.stop().await;
    for id in failures {
        assert!(logged.contains(&id), "the log names {id}");
    }
    assert!(
        logged.contains("\"consumer\":\"order-confirmation\"") && logged.contains("JSON path items[0].quantity"),
        "{logged}"
    );
    for secret in ["example.com", "secret", "TEA-GREEN", "AQEB"] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
}

/// SES has the request, and its answer is lost: the mail may be sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_mail_whose_answer_is_lost_is_asked_for_once_in_a_run() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let config = StageConfig::new(env!("CARGO_BIN_EXE_order-confirmation"))
        .variables(&[("SENDER_ADDRESS", "orders@example.com")])
        .endpoint("AWS_ENDPOINT_URL_SESV2", |listener| async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                if connection.read(&mut [0; 16_384]).await.is_ok_and(|length| length > 0) {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
    let stage = Stage::start(config).await.unwrap();
    let event = sample("order.json");
    assert_eq!(stage.failures(&event).await.unwrap(), message_ids(&event));
    let record = stage.dynamodb.items(LOCK_TABLE).unwrap().pop().unwrap();
    assert_eq!((record.text("status"), record.number("attempts")), (Some("FAILED"), Some(1)));
    assert_eq!(requests.load(Ordering::SeqCst), 1, "a run sends one request");
    stage.stop().await;
}

/// Under a lease until the deadline, the order would wait for half a minute.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_process_died_is_taken_over_within_seconds() {
    // Longer than a third of the lease, so the second owner renews it.
    let (stage, mailbox) = set_up_with(Mailbox::new().with_slow_delay(Duration::from_secs(3)), &[]).await;
    let items = json!([{ "sku": "tea", "quantity": 1, "unit_price_cents": 100 }]);
    let order = json!({ "order_id": "a", "customer_email": "slow@example.com", "items": items, "currency": "EUR" });
    let first = event(&[TestMessage::json(&order).id("m")]);
    let kill = async {
        while mailbox.attempts() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stage.kill();
    };
    let (killed, ()) = tokio::join!(stage.invoke(&first), kill);
    assert!(matches!(killed, Invocation::Crashed { .. }), "{killed:?}");
    let in_four_seconds = SystemClock.now().plus(Duration::from_secs(4)).as_millis();
    let record = stage.dynamodb.items(LOCK_TABLE).unwrap().pop().unwrap();
    let lease_until = record.number("lease_until").unwrap();
    assert!(u64::try_from(lease_until).unwrap() <= in_four_seconds, "{lease_until} {in_four_seconds}");
    let again = event(&[TestMessage::json(&order).id("m").received(2)]);
    stage.deliver_until_done(&again, PATIENCE).await.unwrap();
    assert_eq!((mails(&mailbox), mailbox.attempts()), (vec!["a".to_owned(); 2], 2), "SES knows no keys");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_message_id_fails_the_invocation() {
    let (stage, mailbox) = set_up(&[]).await;
    let event = sample("missing-message-id.json");
    let answer = stage.invoke(&event).await;
    let Invocation::FunctionError { message, .. } = answer else { panic!("{answer:?}") };
    assert!(message.contains("has no messageId"), "{message}");
    assert!(mails(&mailbox).is_empty(), "nothing of a batch that fails as a whole is worked on");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_a_fifo_group_blocks_the_rest_of_it() {
    let (stage, mailbox) = set_up(&[]).await;
    let event = sample("fifo.json");
    let ids = message_ids(&event);
    assert_eq!(stage.failures(&event).await.unwrap(), [ids[1].clone(), ids[2].clone()]);
    assert_eq!(mails(&mailbox), ["ord-5001", "ord-5003"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_mailer_refuses_is_retried_or_rejected() {
    let (stage, mailbox) = set_up(&[]).await;
    let mut event = sample("order.json");
    let order = |id: &str, address: &str| {
        let items = json!([{ "sku": "tea", "quantity": 1, "unit_price_cents": 100 }]);
        json!({ "order_id": id, "customer_email": address, "items": items, "currency": "EUR" }).to_string()
    };
    let record = event["Records"][0].clone();
    let of = |id: &str, address: &str| {
        let mut record = record.clone();
        record["messageId"] = json!(id);
        record["body"] = json!(order(id, address));
        record
    };
    event["Records"] = json!([
        of("a", "flaky@example.com"),
        of("b", "reject@example.com"),
        of("c", "nobody"),
        of("d", "ada@example.com")
    ]);
    assert_eq!(stage.failures(&event).await.unwrap(), ["a", "b", "c"]);
    assert_eq!(stage.failures(&event).await.unwrap(), ["b", "c"]);
    assert_eq!(mails(&mailbox), ["a", "d"]);
    assert_eq!(mailbox.attempts(), 5, "two each for a and b, one for d, none for c");
    let logged = stage.stop().await;
    assert!(!logged.contains("example.com"), "{logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_set_up_loses_nothing_and_says_how_to_mend_it() {
    let (stage, mailbox) = set_up(&[("CLAIMANT_TABLE", "no-such-table")]).await;
    let event = sample("order.json");
    assert_eq!(stage.failures(&event).await.unwrap(), message_ids(&event));
    assert!(mails(&mailbox).is_empty());
    let logged = stage.stop().await;
    for wanted in ["no-such-table", "ResourceNotFoundException", "CLAIMANT_TABLE"] {
        assert!(logged.contains(wanted), "{wanted} in {logged}");
    }

    let (stage, _) = set_up(&[("CLAIMANT_TABLE", ""), ("SENDER_ADDRESS", " "), ("CLAIMANT_MARGIN_MS", "x")]).await;
    let answer = stage.invoke(&event).await;
    assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
    let logged = stage.stop().await;
    for wanted in
        ["3 faults", "CLAIMANT_TABLE is set but empty", "SENDER_ADDRESS is set but empty", "CLAIMANT_MARGIN_MS"]
    {
        assert!(logged.contains(wanted), "{wanted} in {logged}");
    }
}
