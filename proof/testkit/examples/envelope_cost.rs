//! Measures what envelopes, decoders and routes cost: microseconds and allocations for each message.
//!
//! ```text
//! cargo run --release -p claimant-testkit --example envelope_cost
//! ```

use std::hint::black_box;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claimant_core::decode::{Bytes, Json, Text, decode_json};
use claimant_core::{
    AttributeValue, Consumer, Context, Decoder, Envelope, HandlerError, InvocationTime, MemoryStore, Message, NoQueue,
    Router, Routes,
};
use claimant_decode::{Avro, Base64, Gzip, Protobuf};
use claimant_events::{CloudEvents, EventBridge, S3, Sns, detect};
use serde_json::{Value, json};

/// How often each is opened; the best of many short rounds counts: nothing else ran then.
const TIMES: u32 = 1_000;
const ROUNDS: usize = 200;

/// The event of [`event`] in gzip, in Base64.
const GZIP: &str = "H4sIAAAAAAACA33QvQrCMBSG4Xv55iimf0Mm70NEQnqGQNJomkKl5N4NVgpnMGd6h+dbzgazzCl4ilBHni77ySut2j8dnU3wEHB2ohnqtkHHZI2jsvnVPpEFvRY9JZveUDKLv7JhsqnIlsm2Ijsmu4rsmewrcmByyHeBEEeKDzsW+s3jW8gfkKHg9k4BAAA=";

const SCHEMA: &str = r#"{"type": "record", "name": "Order", "fields": [
    {"name": "order_id", "type": "string"},
    {"name": "customer", "type": "string"},
    {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line", "fields": [
        {"name": "article", "type": "string"}, {"name": "quantity", "type": "int"}]}}}]}"#;

/// In a batch through the routes.
const MESSAGES: usize = 1_000;

#[derive(Clone, PartialEq, prost::Message, serde::Deserialize)]
struct Order {
    #[prost(string, tag = "1")]
    order_id: String,
    #[prost(string, tag = "2")]
    customer: String,
    #[prost(message, repeated, tag = "3")]
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, prost::Message, serde::Deserialize)]
struct Line {
    #[prost(string, tag = "1")]
    article: String,
    #[prost(uint32, tag = "2")]
    quantity: u32,
}

/// Of about 300 bytes.
fn event() -> Value {
    let line = |n: u32| json!({ "article": format!("article-{n:06}"), "quantity": n });
    let lines: Vec<_> = (1..=6).map(line).collect();
    json!({ "order_id": "order-00000001", "customer": "customer-00000001@example.com", "lines": lines })
}

fn sns(message: &Value) -> Value {
    json!({
        "Type": "Notification", "MessageId": "da41e39f-ea4d-435a-b922-c6aae3915ebe",
        "TopicArn": "arn:aws:sns:us-west-2:123456789012:orders", "Message": message.to_string(),
        "Timestamp": "2012-04-25T21:49:25.719Z", "SignatureVersion": "1", "Signature": "x".repeat(344),
        "SigningCertURL": "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem",
        "UnsubscribeURL": "https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=arn",
    })
}

fn put(detail: &Value) -> Value {
    json!({
        "version": "0", "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718", "detail-type": "OrderPaid", "source": "shop.orders",
        "account": "111122223333", "time": "2017-12-22T18:43:48Z", "region": "us-west-1", "resources": [], "detail": detail,
    })
}

fn notification(records: usize) -> Value {
    let object = json!({ "key": "red+flower.jpg", "size": 1024, "eTag": "d41d8cd98f00b204e9800998ecf8427e", "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko", "sequencer": "0055AED6DCD90281E5" });
    let record = json!({
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "us-west-2", "eventTime": "1970-01-01T00:00:00.000Z",
        "eventName": "ObjectCreated:Put", "userIdentity": { "principalId": "AIDAJDPLRKLG7UEXAMPLE" },
        "requestParameters": { "sourceIPAddress": "172.16.0.1" },
        "responseElements": { "x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMyUVURIY8/IgAtTv8xRjskZQpcIZ9KG4V5Wp6S7S" },
        "s3": { "bucket": { "name": "bucket", "arn": "arn:aws:s3:::bucket" }, "object": object },
    });
    json!({ "Records": vec![record; records] })
}

/// Prints what this costs: the time of the best round, and the allocations, which are always the same.
fn measure(what: &str, bytes: usize, work: impl FnMut()) {
    measure_each(what, bytes, 1, TIMES, work);
}

/// The same, of work on so many messages.
fn measure_each(what: &str, bytes: usize, messages: usize, times: u32, mut work: impl FnMut()) {
    let allocated = allocation_counter::measure(&mut work);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..times).for_each(|_| work());
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
    }
    let each = messages as f64;
    println!("| {what} | {bytes} | {:.1} | {:.0} |", best / each, allocated.count_total as f64 / each);
}

/// Returns the order as a datum of [`SCHEMA`].
fn datum(order: &Order) -> Vec<u8> {
    let length = |length: usize| u8::try_from(2 * length).expect("all is short here, so its length is one byte");
    let text = |text: &str| [&[length(text.len())], text.as_bytes()].concat();
    let mut datum = [text(&order.order_id), text(&order.customer), vec![length(order.lines.len())]].concat();
    for line in &order.lines {
        datum.extend(text(&line.article));
        datum.push(length(line.quantity as usize));
    }
    datum.push(0);
    datum
}

fn decoders(event: &Value) {
    let text = event.to_string();
    let order: Order = decode_json(&text).expect("it is one");
    let avro = Avro::datum(SCHEMA).expect("it is a schema");
    let message = Message::new("m", "").expect("the id is one");
    println!("\n| decoder or packing | bytes | µs | allocations |\n| --- | ---: | ---: | ---: |");
    let decode = |what: &str, decoder: &dyn Decoder<Order>, content: &[u8]| {
        assert!(decoder.decode(content, &message) == Ok(order.clone()), "{what}");
        measure(what, content.len(), || drop(black_box(decoder.decode(content, &message))));
    };
    decode("`Json`", &Json, text.as_bytes());
    decode("`Protobuf`", &Protobuf, &prost::Message::encode_to_vec(&order));
    decode("`Avro`", &avro, &datum(&order));
    measure("`Text`", text.len(), || {
        let decoded: Result<String, _> = Text.decode(text.as_bytes(), &message);
        drop(black_box(decoded));
    });
    measure("`Bytes`", text.len(), || {
        let decoded: Result<Vec<u8>, _> = Bytes.decode(text.as_bytes(), &message);
        drop(black_box(decoded));
    });
    let open = |what: &str, envelope: &dyn Envelope, message: &Message| {
        let opened = envelope.open(message.clone()).expect("it is packed");
        measure(what, message.content().len(), || drop(black_box(envelope.open(message.clone()))));
        opened.into_iter().next().expect("it holds one")
    };
    let opened =
        open("`Base64`", &Base64::standard(), &Message::new("m", STANDARD.encode(&text)).expect("the id is one"));
    assert_eq!(opened.content(), text.as_bytes());
    let packed = Message::new("m", GZIP).expect("the id is one");
    let packed = Base64::standard().open(packed).expect("it is Base64").remove(0);
    assert_eq!(open("`Gzip`", &Gzip::new(), &packed).content(), text.as_bytes());
}

/// Messages that no route takes: nothing of them is decoded or claimed, so what is left is finding that out, and their reports.
fn routes(event: &Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a thread");
    let (text, put) = (event.to_string(), put(event).to_string());
    let message = |number: usize, body: &str| Message::new(number.to_string(), body).expect("the id is one");
    println!("\n| by | bytes | µs | allocations |\n| --- | ---: | ---: | ---: |");
    let route = |what: &str, routes: Routes, body: &str| {
        async fn never(_: Value, _: Context) -> Result<(), HandlerError> {
            Ok(())
        }
        let routes = routes.on("another", Consumer::new("c", MemoryStore::new(), never)).acknowledge_unknown();
        let router = Router::new(routes, 1).expect("they are usable");
        let typed = |number| message(number, body).with_attribute("type", AttributeValue::text("order"));
        let batch: Vec<_> = (0..MESSAGES).map(typed).collect();
        let once = || {
            let now = router.now();
            let time = InvocationTime::new(now, now.plus(Duration::from_secs(60)), Duration::from_millis(500));
            let report = runtime.block_on(router.process(&batch, time, &NoQueue));
            assert_eq!(report.all().counts().get("ignored"), Some(&MESSAGES));
        };
        measure_each(what, body.len(), MESSAGES, 2, once);
    };
    route("nothing: a rule that returns a constant", Routes::by(|_| Some("order".to_owned())), &text);
    route("`by_attribute(\"type\")`", Routes::by_attribute("type"), &text);
    route("`by_field(\"customer\")`", Routes::by_field("customer"), &text);
    route("`by_kind()`, with `EventBridge` opened", Routes::by_kind().envelope(EventBridge), &put);
    route("`by_field(\"detail.customer\")`", Routes::by_field("detail.customer"), &put);
}

fn main() {
    let event = event();
    envelopes(&event);
    decoders(&event);
    routes(&event);
}

fn envelopes(event: &Value) {
    let cloud_event = json!({ "specversion": "1.0", "id": "C234", "source": "/shop", "type": "paid", "time": "2018-04-05T17:31:00Z", "data": event });
    let (named, found): (&[(&str, &dyn Envelope, Value)], _) = (
        &[
            ("`Sns`", &Sns, sns(event)),
            ("`EventBridge`", &EventBridge, put(event)),
            ("`CloudEvents`", &CloudEvents, cloud_event.clone()),
            ("`S3`, one record", &S3, notification(1)),
            ("`S3`, ten records", &S3, notification(10)),
        ],
        [
            ("no envelope", event.clone()),
            ("SNS", sns(event)),
            ("EventBridge", put(event)),
            ("EventBridge in SNS", sns(&put(event))),
            ("CloudEvents", cloud_event),
            ("S3, one record", notification(1)),
        ],
    );
    println!("| what | bytes | µs | allocations |\n| --- | ---: | ---: | ---: |");
    let text = event.to_string();
    measure("decoding the event, for comparison", text.len(), || {
        black_box(decode_json::<Order>(&text)).expect("it is one");
    });
    let open = |what: &str, envelope: &dyn Envelope, body: &Value| {
        let message = Message::new("m", body.to_string()).expect("the id is one");
        measure(what, message.body().len(), || {
            black_box(envelope.open(message.clone())).expect("it is one");
        });
    };
    for (what, envelope, body) in named {
        open(what, *envelope, body);
    }
    for (what, body) in found {
        open(&format!("`detect()`: {what}"), &detect(), &body);
    }
}
