//! The mailbox as the SES SDK sees it.

use std::time::Duration;

use aws_sdk_sesv2::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sesv2::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sesv2::operation::send_email::SendEmailError;
use aws_sdk_sesv2::primitives::Blob;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message, MessageHeader, MessageTag, RawMessage};
use aws_sdk_sesv2::{Client, Config};
use claimant_local::faults::{Act, FaultSpec, Faults, Target};
use claimant_local::journal::{Journal, What};
use claimant_local::mailbox::Mailbox;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::support::http;

struct Post {
    mailbox: Mailbox,
    address: std::net::SocketAddr,
    client: Client,
}

async fn post(mailbox: Mailbox) -> Post {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(mailbox.clone().serve(listener, std::future::pending()));
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .http_client(claimant_aws::http_client())
        .endpoint_url(format!("http://{address}"))
        .build();
    Post { mailbox, address, client: Client::from_conf(config) }
}

fn text(text: &str) -> Content {
    Content::builder().data(text).build().unwrap()
}

fn confirmation() -> EmailContent {
    let key = MessageHeader::builder().name("X-Claimant-Key").value("ord-1001").build();
    let message = Message::builder()
        .subject(text("Your order"))
        .body(Body::builder().text(text("Thank you, Åsa ✓")).build())
        .headers(key.unwrap());
    EmailContent::builder().simple(message.build()).build()
}

impl Post {
    async fn send(&self, to: &str, content: EmailContent) -> Result<String, SdkError<SendEmailError>> {
        let tag = MessageTag::builder().name("consumer").value("order-confirmation").build();
        let request = self.client.send_email().from_email_address("shop@example.com").email_tags(tag.unwrap());
        let request = request.destination(Destination::builder().to_addresses(to).build());
        let answer = request.content(content).send().await?;
        Ok(answer.message_id.expect("an accepted mail has an id"))
    }

    async fn refused(&self, to: &str) -> SendEmailError {
        self.send(to, confirmation()).await.unwrap_err().into_service_error()
    }
}

#[tokio::test]
async fn what_was_sent_is_kept() {
    let post = post(Mailbox::new()).await;
    let id = post.send("Ada <ada@example.com>", confirmation()).await.unwrap();
    let mails = post.mailbox.mails();
    assert_eq!(mails.len(), 1);
    let mail = &mails[0];
    assert_eq!(mail.message_id, id);
    assert_eq!((mail.from.as_str(), mail.subject.as_str()), ("shop@example.com", "Your order"));
    assert_eq!(mail.to, ["Ada <ada@example.com>"]);
    assert_eq!(mail.header("x-claimant-key"), Some("ord-1001"));
    assert_eq!(mail.tags[0].value, "order-confirmation");
    assert_eq!(mail.text, "Thank you, Åsa ✓");

    let raw = "Subject: raw one\r\nX-Claimant-Key: ord-2\r\n\r\nhello\r\n";
    let raw = RawMessage::builder().data(Blob::new(raw)).build().unwrap();
    post.send("bob@example.com", EmailContent::builder().raw(raw).build()).await.unwrap();
    let raw = &post.mailbox.mails()[1];
    assert_eq!((raw.subject.as_str(), raw.header("X-Claimant-Key")), ("raw one", Some("ord-2")));
    assert_eq!((post.mailbox.received(), post.mailbox.attempts()), (2, 2));
}

#[tokio::test]
async fn refusals_are_the_sdks_own_variants_and_not_retried_by_it() {
    let post = post(Mailbox::new()).await;
    let first = post.refused("flaky-1@example.com").await;
    assert!(first.is_sending_paused_exception(), "{first:?}");
    assert!(first.message().is_some_and(|message| message.contains("flaky")));
    assert_eq!(post.mailbox.attempts(), 1);
    post.send("flaky-1@example.com", confirmation()).await.unwrap();

    for attempts in [3, 4] {
        let rejected = post.refused("reject-me@example.com").await;
        assert!(rejected.is_message_rejected(), "{rejected:?}");
        assert_eq!(post.mailbox.attempts(), attempts);
    }
    assert_eq!(post.mailbox.received(), 1);
}

#[tokio::test]
async fn bad_requests_say_why_and_are_no_attempts() {
    let post = post(Mailbox::new()).await;
    let bad = post.refused("not an address").await;
    assert!(bad.is_bad_request_exception(), "{bad:?}");
    assert!(bad.message().is_some_and(|message| message.contains("Destination")), "{bad:?}");

    let other = post.client.get_account().send().await.unwrap_err().into_service_error();
    assert_eq!(other.code(), Some("UnknownOperationException"));
    assert!(other.message().is_some_and(|message| message.contains("GetAccount")), "{other:?}");
    assert_eq!(post.mailbox.attempts(), 0);
}

#[tokio::test]
async fn a_slow_mail_whose_client_has_left_is_a_mail() {
    let forever = Duration::from_secs(3_600);
    let post = post(Mailbox::new().with_slow_delay(forever)).await;
    let sending = post.send("slow@example.com", confirmation());
    let attempted = async {
        while post.mailbox.attempts() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answer = sending => panic!("answered before its time: {answer:?}"),
        done = tokio::time::timeout(Duration::from_secs(30), attempted) => done.expect("an attempt is counted at once"),
    }
    assert_eq!(post.mailbox.received(), 1);
}

#[tokio::test]
async fn the_mail_of_a_sender_that_dies_while_it_waits_is_sent_twice_by_the_next() {
    let post = post(Mailbox::new().with_slow_delay(Duration::from_secs(1))).await;
    let body = r#"{"FromEmailAddress":"shop@example.com","Destination":{"ToAddresses":["slow-1@example.com"]},
        "Content":{"Simple":{"Subject":{"Data":"s"},"Body":{"Text":{"Data":"t"}}}}}"#;
    let head =
        format!("POST /v2/email/outbound-emails HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    let mut stream = TcpStream::connect(post.address).await.unwrap();
    stream.write_all((head + body).as_bytes()).await.unwrap();
    while post.mailbox.attempts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stream);
    post.send("slow-1@example.com", confirmation()).await.unwrap();
    let to: Vec<_> = post.mailbox.mails().into_iter().map(|mail| mail.to.join(", ")).collect();
    assert_eq!(to, ["slow-1@example.com", "slow-1@example.com"]);
}

#[tokio::test]
async fn people_can_list_the_mails() {
    let post = post(Mailbox::new()).await;
    post.send("ada@example.com", confirmation()).await.unwrap();
    let (status, list) = http::json(&http::asked(post.address, "GET /_claimant/mails", "", "").await);
    assert_eq!(status, 200, "{list}");
    assert_eq!(list["received"], 1);
    assert_eq!(list["attempts"], 1);
    assert_eq!(list["mails"][0]["to"][0], "ada@example.com");
    assert_eq!(list["mails"][0]["headers"][0]["name"], "X-Claimant-Key");
    assert_eq!(list["mails"][0]["subject"], "Your order");
}

#[tokio::test]
async fn faults_meet_mails_and_the_journal_has_each_answer() {
    let (journal, faults) = (Journal::new(), Faults::default());
    let post = post(Mailbox::new().observed(&journal, &faults)).await;
    let once = |act| FaultSpec { of: Some(Target::Mail), times: Some(1), ..FaultSpec::new(act) };
    faults.begin(once(Act::Refuse)).unwrap();
    assert!(post.refused("ada@example.com").await.is_sending_paused_exception());
    assert_eq!(post.mailbox.received(), 0);
    faults.begin(once(Act::Lose)).unwrap();
    // The SDK may ask again where it got no answer, and that is what would send a mail twice.
    drop(post.send("ada@example.com", confirmation()).await);
    assert!(post.mailbox.received() >= 1);
    let answers: Vec<_> = journal.effects_of("ord-1001").into_iter().map(|event| event.what).take(2).collect();
    let mail = |answer| What::Mail { key: Some("ord-1001".into()), answer };
    assert_eq!(answers, [mail("refused"), mail("answer_lost")]);
}
