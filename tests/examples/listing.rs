//! Measures what finding stuck work costs: fills a lock table and lists what is stuck, parked and rejected in it.
//!
//! `cargo run --release -p claimant-tests --example listing -- 1000000 embedded` (or `local`, for DynamoDB Local). The figures are
//! in `docs/operating.md`.
#![allow(clippy::unwrap_used, reason = "a step that fails ends the measurement")]

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use claimant_core::{Clock as _, State, SystemClock, Timestamp};
use claimant_operate::keys::{Keys, Query};
use claimant_tests::dynamodb::DynamoDb;
use futures_util::{StreamExt as _, stream};

/// Of so many records one is stuck, one parked and one rejected.
const PART: usize = 10_000;

/// The most items of a `BatchWriteItem`.
const BATCH: usize = 25;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let records: usize = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let embedded = arguments.next().is_none_or(|which| which == "embedded");
    let dynamodb = if embedded { DynamoDb::embedded().await } else { DynamoDb::local() };
    let table = dynamodb.lock_table("listing").await;
    let began = Instant::now();
    fill(&dynamodb.client(), records).await;
    println!("{records} records in {:.0} s", began.elapsed().as_secs_f64());

    let keys = Keys::new(Arc::new(table));
    match keys.cost().await {
        Ok(cost) => println!("told before: {}", cost.in_words()),
        Err(error) => println!("the cost cannot be told: {error}"),
    }
    let query = Query {
        states: vec![State::Stuck, State::Parked, State::Rejected],
        consumer: None,
        older_than: None,
        text: None,
        limit: 10_000,
    };
    let began = Instant::now();
    let listed = keys.list(&query, |_| ControlFlow::Continue(())).await.unwrap();
    let usage = keys.usage();
    println!(
        "{} found among {} in {:.1} s, {} requests, {:.1} read units",
        listed.found.len(),
        listed.looked_at,
        began.elapsed().as_secs_f64(),
        usage.requests,
        usage.read_units
    );
    assert_eq!(listed.found.len(), records.div_ceil(PART) * 3);
    // The embedded DynamoDB counts the record that a page has no room for, too.
    let twice = if embedded { usage.requests } else { 0 };
    assert!((records as u64..=records as u64 + twice).contains(&listed.looked_at));
}

async fn fill(client: &Client, records: usize) {
    let now = SystemClock.now();
    let batches = (0..records).step_by(BATCH).map(|first| async move {
        let items = (first..records.min(first + BATCH)).map(|n| {
            let put = PutRequest::builder().set_item(Some(item(n, now))).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        });
        let written = client.batch_write_item().request_items("listing", items.collect()).send().await.unwrap();
        assert!(written.unprocessed_items().is_none_or(HashMap::is_empty));
    });
    stream::iter(batches).buffer_unordered(8).collect::<Vec<()>>().await;
}

fn item(n: usize, now: Timestamp) -> HashMap<String, AttributeValue> {
    let (text, number) = (|s: &str| AttributeValue::S(s.to_owned()), |n: u64| AttributeValue::N(n.to_string()));
    let status = match n % PART {
        0 => "IN_PROGRESS",
        1 => "PARKED",
        2 => "REJECTED",
        _ => "COMPLETED",
    };
    let ago = now.minus(Duration::from_secs(3_600)).as_millis();
    let mut item = HashMap::from([
        ("id".into(), text(&format!("order-confirmation#ord-{n:012}"))),
        ("status".into(), text(status)),
        ("owner".into(), text("0123456789abcdef0123456789abcdef")),
        ("fence".into(), number(1)),
        ("lease_until".into(), number(ago + 30_000)),
        ("attempts".into(), number(1)),
        ("message_id".into(), text("2e1424d4-f796-459a-8184-9c92662be6da")),
        ("fingerprint".into(), AttributeValue::B(Blob::new([7; 32]))),
        ("created_at".into(), number(ago)),
        ("updated_at".into(), number(ago)),
        ("expires_at".into(), number(now.as_secs_rounded_up() + 15 * 86_400)),
    ]);
    if status == "COMPLETED" {
        item.insert("completed_at".into(), number(ago));
    }
    item
}
