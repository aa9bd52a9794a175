//! Measures what opening an envelope costs: microseconds and allocations for each message, beside decoding the event in it.
//!
//! ```text
//! cargo run --release -p claimant-testkit --example envelope_cost
//! ```

use std::hint::black_box;
use std::time::Instant;

use claimant_core::decode::decode_json;
use claimant_core::{Envelope, Message};
use claimant_events::{CloudEvents, EventBridge, S3, Sns, detect};
use serde_json::{Value, json};

/// How often each is opened; the best of many short rounds counts: nothing else ran then.
const TIMES: u32 = 1_000;
const ROUNDS: usize = 200;

#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only its decoding is measured")]
struct Order {
    order_id: String,
    customer: String,
    lines: Vec<Line>,
}

#[derive(serde::Deserialize)]
#[allow(dead_code, reason = "only its decoding is measured")]
struct Line {
    article: String,
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
fn measure(what: &str, bytes: usize, mut work: impl FnMut()) {
    let allocated = allocation_counter::measure(&mut work);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        (0..TIMES).for_each(|_| work());
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES));
    }
    println!("| {what} | {bytes} | {best:.1} | {} |", allocated.count_total);
}

fn main() {
    let event = event();
    let cloud_event = json!({ "specversion": "1.0", "id": "C234", "source": "/shop", "type": "paid", "time": "2018-04-05T17:31:00Z", "data": event });
    let (named, found): (&[(&str, &dyn Envelope, Value)], _) = (
        &[
            ("`Sns`", &Sns, sns(&event)),
            ("`EventBridge`", &EventBridge, put(&event)),
            ("`CloudEvents`", &CloudEvents, cloud_event.clone()),
            ("`S3`, one record", &S3, notification(1)),
            ("`S3`, ten records", &S3, notification(10)),
        ],
        [
            ("no envelope", event.clone()),
            ("SNS", sns(&event)),
            ("EventBridge", put(&event)),
            ("EventBridge in SNS", sns(&put(&event))),
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
