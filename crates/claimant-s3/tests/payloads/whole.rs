//! From the producer through SQS and S3 to the handler, and back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::PayloadSink as _;
use claimant_core::{
    AttributeValue, BoxFuture, Confirmation, Consumer, Context, Engine, HandlerError, HideAnswer, InvocationTime, Key,
    MemoryStore, Message, Queue, Report,
};
use claimant_events::{EventBridge, Sns};
use claimant_local::s3::S3;
use claimant_local::sqs::{QueueSettings, Received, Sqs};
use claimant_producer::{Outgoing, Producer};
use claimant_s3::S3Payloads;
use serde_json::json;
use tokio::net::TcpListener;

use super::{BUCKET, started};

const QUEUE: &str = "orders";

#[derive(Debug, serde::Deserialize)]
struct Order {
    id: String,
    note: String,
}

/// The queue of a batch, which deletes.
struct Deleting<'a>(&'a Sqs, &'a [Received]);

impl Queue for Deleting<'_> {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        for index in indexes {
            self.0.delete(QUEUE, &self.1[*index].receipt_handle).unwrap();
        }
        Box::pin(std::future::ready(Confirmation::Confirmed))
    }
}

/// An SQS, an S3, and a producer for both.
async fn world() -> (Sqs, S3, S3Payloads, Producer) {
    world_of(QueueSettings::default()).await
}

async fn world_of(settings: QueueSettings) -> (Sqs, S3, S3Payloads, Producer) {
    let (s3, payloads) = started().await;
    let sqs = Sqs::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    sqs.set_endpoint(&url);
    sqs.create_queue(QUEUE, settings).unwrap();
    tokio::spawn(sqs.clone().serve(listener, std::future::pending()));
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
        .region(aws_sdk_sqs::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_sqs::config::Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(&url)
        .http_client(claimant_aws::http_client());
    let producer = Producer::new(aws_sdk_sqs::Client::from_conf(config.build()), sqs.queue_url(QUEUE));
    (sqs, s3, payloads.clone(), producer.large_payloads(payloads))
}

fn body(id: &str, bytes: usize) -> String {
    format!(r#"{{"id":"{id}","note":"{}"}}"#, "n".repeat(bytes))
}

fn outgoing(id: &str, body: String) -> Outgoing {
    Outgoing::new(Key::new(id).unwrap(), body)
}

/// One batch of what is in the queue, as Lambda delivers it.
async fn deliver(sqs: &Sqs, engine: &Engine) -> Report {
    let received = sqs.receive(QUEUE, 10, Duration::ZERO).await.unwrap();
    let message = |received: &Received| {
        let message = Message::new(&received.message_id, &received.body).unwrap();
        received.message_attributes.iter().fold(message, |message, (name, attribute)| {
            let sent = String::from_utf8(attribute.value.as_bytes().to_vec()).unwrap();
            message.with_attribute(name, AttributeValue::number(sent))
        })
    };
    let batch: Vec<_> = received.iter().map(message).collect();
    let time =
        InvocationTime::new(engine.now(), engine.now().plus(Duration::from_secs(60)), Duration::from_millis(500));
    engine.process(&batch, time, &Deleting(sqs, &received)).await
}

fn engine(payloads: S3Payloads, runs: &Arc<Mutex<Vec<(String, usize)>>>) -> Engine {
    let runs = Arc::clone(runs);
    let pack = move |order: Order, _: Context| {
        runs.lock().unwrap().push((order.id, order.note.len()));
        std::future::ready(Ok::<_, HandlerError>(()))
    };
    let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order: &Order| &order.id);
    Engine::with_defaults(consumer.large_payloads(payloads)).unwrap()
}

#[tokio::test]
async fn large_messages_go_through_the_bucket_and_leave_nothing() {
    let (sqs, s3, payloads, producer) = world().await;
    let runs = Arc::default();
    let engine = engine(payloads.remove_when_done(), &runs);
    let two_mib = 2 * 1024 * 1024;
    let orders = [
        outgoing("small", body("small", 10)),
        outgoing("large", body("large", two_mib)),
        outgoing("large", body("large", two_mib)),
    ];
    assert!(producer.send_all(orders).await.iter().all(Result::is_ok));
    assert_eq!(s3.keys(BUCKET).len(), 2, "each message has a payload of its own");
    let report = deliver(&sqs, &engine).await;
    let mut words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
    words.sort_unstable();
    assert_eq!(words, ["completed", "completed", "duplicate"]);
    let mut ran = runs.lock().unwrap().clone();
    ran.sort();
    assert_eq!(ran, [("large".to_owned(), two_mib), ("small".to_owned(), 10)]);
    assert!(s3.keys(BUCKET).is_empty());
    // The messages with payloads are deleted already; the others are the mapping's to delete.
    let depth = sqs.depth(QUEUE).unwrap();
    assert_eq!(depth.visible + depth.in_flight, 1);
}

#[tokio::test]
async fn the_threshold_is_the_producers_and_what_s3_refuses_fails_alone() {
    let (sqs, s3, payloads, producer) = world().await;
    let producer = producer.large_over_bytes(100);
    // A control character that SQS refuses, an attribute too many beside the pointer's, and an empty body.
    let attributes = |message: Outgoing, count: usize| {
        (0..count).fold(message, |message, n| message.attribute(format!("a{n}"), AttributeValue::number(n)))
    };
    let sent = producer
        .send_all([
            outgoing("a", body("a", 10)),
            outgoing("b", body("b", 200)),
            outgoing("c", format!("{}\u{1}", "c".repeat(200))),
            attributes(outgoing("d", body("d", 200)), 9),
            attributes(outgoing("e", body("e", 200)), 10),
            outgoing("f", String::new()),
        ])
        .await;
    let said: Vec<_> =
        sent.iter().map(|sent| sent.as_ref().err().map(ToString::to_string).unwrap_or_default()).collect();
    assert_eq!(said[..4], ["", "", "", ""]);
    assert!(said[4].contains("10 attributes, and SQS takes 9 beside that of a large payload"), "{said:?}");
    assert!(said[5].contains("empty"), "{said:?}");
    assert_eq!((s3.keys(BUCKET).len(), sqs.depth(QUEUE).unwrap().visible), (3, 4));
    // The same in the other order.
    let before = producer.clone().large_over_bytes(100).large_payloads(payloads.clone());
    assert!(before.send(outgoing("i", body("i", 200))).await.is_ok());
    assert_eq!(s3.keys(BUCKET).len(), 4);
    // A bucket that refuses fails the large message alone, at once.
    let refusing = producer.clone().large_payloads(payloads.owned_by("111111111111")).large_over_bytes(100);
    let sent = refusing.send_all([outgoing("g", body("g", 200)), outgoing("h", body("h", 10))]).await;
    assert_eq!(sent[0].as_ref().unwrap_err().kind(), claimant_producer::SendErrorKind::Refused);
    assert!(sent[0].as_ref().unwrap_err().to_string().contains("AccessDenied") && sent[1].is_ok());
}

/// As a handler passes on what it received.
#[tokio::test]
async fn a_pointer_is_sent_on_as_it_is() {
    let (sqs, s3, payloads, producer) = world().await;
    let runs = Arc::default();
    let engine = engine(payloads.clone(), &runs);
    let written = payloads.write(body("a", 400_000).as_bytes()).await.unwrap();
    let pointer = outgoing("a", written.body).attribute(written.attribute, written.value);
    producer.large_over_bytes(0).send(pointer).await.unwrap();
    assert_eq!(deliver(&sqs, &engine).await.entries()[0].outcome.word(), "completed");
    assert_eq!((s3.keys(BUCKET).len(), runs.lock().unwrap().as_slice()), (1, &[("a".to_owned(), 400_000)][..]));
}

#[tokio::test]
async fn what_a_queue_is_too_small_for_says_so_and_goes_through_the_bucket() {
    let small = QueueSettings { max_message_bytes: 1_024, ..QueueSettings::default() };
    let (_sqs, s3, _, producer) = world_of(small).await;
    let message = || outgoing("a", body("a", 1_024));
    let refused = producer.send(message()).await.unwrap_err().to_string();
    assert!(refused.contains("the queue's MaximumMessageSize") && s3.keys(BUCKET).is_empty(), "{refused}");
    producer.large_over_bytes(1_024).send(message()).await.unwrap();
    assert_eq!(s3.keys(BUCKET).len(), 1);
}

#[tokio::test]
async fn a_pointer_in_a_notification_of_sns_leads_to_what_is_in_its_own_envelope() {
    let (_, payloads) = started().await;
    let note = "n".repeat(300_000);
    let event = json!({
        "version": "0", "id": "e-1", "detail-type": "order", "source": "shop", "account": "000000000000",
        "time": "2026-11-22T12:00:00Z", "region": "us-east-1", "resources": [], "detail": { "id": "o-1", "note": note }
    });
    let event = event.to_string();
    let written = payloads.write(event.as_bytes()).await.unwrap();
    let notification = |size: usize| {
        json!({
            "Type": "Notification", "MessageId": "n-1", "TopicArn": "arn:aws:sns:us-east-1:000000000000:orders",
            "Message": written.body, "Timestamp": "2026-11-22T12:00:00.000Z",
            "MessageAttributes": { "ExtendedPayloadSize": { "Type": "Number", "Value": size.to_string() } }
        })
        .to_string()
    };
    let runs: Arc<Mutex<Vec<(String, usize)>>> = Arc::default();
    let ran = Arc::clone(&runs);
    let pack = move |order: Order, _: Context| {
        ran.lock().unwrap().push((order.id, order.note.len()));
        std::future::ready(Ok::<_, HandlerError>(()))
    };
    let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order: &Order| &order.id);
    let consumer = consumer.envelope(Sns).large_payloads(payloads).envelope(EventBridge);
    let engine = Engine::with_defaults(consumer).unwrap();
    // The second one's attribute says a gigabyte.
    let batch =
        [Message::new("m-1", notification(event.len())).unwrap(), Message::new("m-2", notification(1 << 30)).unwrap()];
    let time =
        InvocationTime::new(engine.now(), engine.now().plus(Duration::from_secs(60)), Duration::from_millis(500));
    let report = engine.process(&batch, time, &claimant_core::NoQueue).await;
    let words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
    assert_eq!(words, ["completed", "rejected"]);
    assert_eq!(*runs.lock().unwrap(), [("o-1".to_owned(), 300_000)]);
}
