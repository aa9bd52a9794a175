//! `claimant cost` computes what the engine asks: its model is held to real requests, units and records of the embedded DynamoDB.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{Consumer, Context, Engine, HandlerError, NoQueue, Schedule, TransactionGuard, Usage};
use claimant_cost::{Guarantee, Load, RECORD_BYTES, Runs, Traffic, Units, Work as Costs, duration_ms};
use claimant_dynamodb::{LockTable, Transaction};
use claimant_testkit::MovableClock;
use claimant_testkit::outcomes::{Work, message};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::wire::Wire;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Longer than any backoff here.
const LATER: Duration = Duration::from_secs(1_000);

async fn act(work: Work, cx: Context) -> Result<(), HandlerError> {
    if work.action == "fail" && cx.attempt() == 1 { Err(HandlerError::retry("no luck")) } else { Ok(()) }
}

async fn write(work: Work, mut tx: TransactionGuard<Transaction>, cx: Context) -> Result<(), HandlerError> {
    let effect = Put::builder().table_name("effects").item("id", AttributeValue::S(work.id.clone()));
    tx.put(effect.build()?);
    act(work, cx).await
}

struct World {
    engine: Engine,
    clock: MovableClock,
    wire: Wire,
    dynamodb: DynamoDb,
}

impl World {
    async fn new(guarantee: Guarantee) -> Self {
        let (dynamodb, wire, clock) = (DynamoDb::embedded().await, Wire::default(), MovableClock::start());
        for table in ["locks", "effects"] {
            dynamodb.lock_table(table).await;
        }
        let table = LockTable::new(dynamodb.client_over(&wire), "locks");
        let engine = match guarantee {
            Guarantee::AtLeastOnce => Engine::with_defaults(Consumer::new("orders", table, act).key(|w| &w.id)),
            Guarantee::AtMostOnce => {
                Engine::with_defaults(Consumer::new("orders", table, act).key(|w| &w.id).at_most_once())
            }
            Guarantee::Transactional => {
                Engine::with_defaults(Consumer::transactional("orders", table.transactions(), write).key(|w| &w.id))
            }
            Guarantee::Optimistic => Engine::with_defaults(
                Consumer::transactional("orders", table.optimistic_transactions(), write).key(|w| &w.id),
            ),
        };
        Self { engine: engine.unwrap().clock(Arc::new(clock.clone())), clock, wire, dynamodb }
    }

    /// Delivers a batch, and returns what it asked of the table.
    async fn deliver(&self, texts: &[String], receive_count: u32, wanted: &str) -> Usage {
        let now = self.engine.now();
        let schedule = Schedule::new(now, now.plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
        let messages = texts.iter().enumerate().map(|(place, text)| message(place, text, receive_count));
        let _ = self.wire.take_requests();
        let report = self.engine.process(&messages.collect::<Vec<_>>(), schedule, &NoQueue).await;
        let words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
        assert!(words.iter().all(|word| wanted.split(' ').any(|one| one == *word)), "{words:?}");
        assert_eq!(self.wire.take_requests().len() as u64, report.usage.requests);
        report.usage
    }
}

fn texts(prefix: &str, count: usize, action: &str) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n} {action} @{prefix}{n}-{action}")).collect()
}

/// What the model says of so many messages, all in one batch.
fn model(guarantee: Guarantee, count: usize, duplicates: f64, retries: f64) -> Units {
    let traffic = Traffic { per_second: count as f64, duplicates, retries, ..Traffic::default() };
    Units::a_second(guarantee, &Load { traffic, ..Load::default() }, count as f64)
}

fn same(what: &str, usage: Usage, model: Units) {
    println!("{what}: {usage:?} {model:?}");
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    assert!(near(usage.write_units, model.writes), "{what}: {usage:?}, and the model says {model:?}");
    assert!(near(usage.read_units, model.reads), "{what}: {usage:?}, and the model says {model:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_messages_and_failed_runs_cost_what_the_model_says() {
    for guarantee in Guarantee::ALL {
        let world = World::new(guarantee).await;
        for count in [1, 2, 10, 25, 60] {
            let what = format!("{}, {count} fresh", guarantee.name());
            let usage = world.deliver(&texts(&format!("fresh{count}-"), count, "ok"), 1, "completed").await;
            let model = model(guarantee, count, 0.0, 0.0);
            same(&what, usage, model);
            // At least: claims and settlements share requests only where they are made together.
            assert!(usage.requests as f64 >= model.requests - 1e-6, "{what}: {} < {}", usage.requests, model.requests);
            if count <= 10 && guarantee == Guarantee::AtLeastOnce {
                assert_eq!(usage.requests as f64, model.requests.round(), "{what}");
            }
        }
        let (mut all, name) = (Usage::default(), format!("{}, 4 that fail once", guarantee.name()));
        for (receive_count, wanted) in [(1, "retry"), (2, "completed")] {
            let usage = world.deliver(&texts("failing", 4, "fail"), receive_count, wanted).await;
            all.write_units += usage.write_units;
            all.read_units += usage.read_units;
            world.clock.advance(LATER);
        }
        same(&name, all, model(guarantee, 4, 0.0, 1.0));
    }
}

/// How likely so many of `count` are, each with this chance.
fn binomial(count: usize, some: usize, chance: f64) -> f64 {
    let ways = (0..some).fold(1.0, |ways, n| ways * (count - n) as f64 / (n + 1) as f64);
    ways * chance.powi(some as i32) * (1.0 - chance).powi((count - some) as i32)
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_completed_work_cost_what_the_model_says() {
    const BATCH: usize = 5;
    const CHANCE: f64 = 0.3;
    for guarantee in Guarantee::ALL {
        let world = World::new(guarantee).await;
        let (mut mean, mut alone) = (Usage::default(), Usage::default());
        for copies in 0..=BATCH {
            let first = texts(&format!("{copies}-"), copies, "ok");
            if copies > 0 {
                world.deliver(&first, 1, "completed").await;
            }
            let mut batch: Vec<_> = first.iter().map(|text| format!("{text}-copy")).collect();
            batch.extend(texts(&format!("new{copies}-"), BATCH - copies, "ok"));
            let mut usage = world.deliver(&batch, 1, "completed duplicate").await;
            let weight = binomial(BATCH, copies, CHANCE);
            println!("{copies} of {BATCH}: {usage:?}");
            // Nothing tells the capacity of a request all of whose statements were refused, nor of a transaction that was
            // cancelled: the model counts both as charged, as what they attempted.
            let untold = match guarantee {
                Guarantee::Optimistic => 4 * copies,
                _ if copies == BATCH => BATCH,
                _ => 0,
            };
            usage.write_units += untold as f64;
            mean.write_units += weight * usage.write_units;
            mean.read_units += weight * usage.read_units;
            if copies == 1 {
                alone = world.deliver(&[format!("{}-again", first[0])], 1, "duplicate").await;
                alone.write_units += if guarantee == Guarantee::Optimistic { 4.0 } else { 0.0 };
            }
        }
        same(&format!("{}, batches with copies", guarantee.name()), mean, model(guarantee, BATCH, CHANCE, 0.0));
        same(&format!("{}, a copy alone", guarantee.name()), alone, model(guarantee, 1, 1.0, 0.0));
    }
}

/// What DynamoDB counts as the bytes of a value of a record.
fn bytes(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len().div_ceil(2) + 1,
        AttributeValue::B(blob) => blob.as_ref().len(),
        other => panic!("a record has no {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_has_about_the_bytes_of_the_model() {
    let world = World::new(Guarantee::AtLeastOnce).await;
    let uuid = "3f0c2d8e-5b1a-4a57-9a94-0c6d7a1be001";
    world.deliver(&[format!("{uuid} ok @{uuid}")], 1, "completed").await;
    let items = world.dynamodb.client().scan().table_name("locks").send().await.unwrap().items.unwrap();
    let size: usize = items[0].iter().map(|(name, value)| name.len() + bytes(value)).sum();
    println!("a record has {size} bytes");
    assert!((0.75 * RECORD_BYTES..=RECORD_BYTES).contains(&(size as f64)), "{size}");
}

/// The duration of a batch is that of the benchmark, whose numbers are in the book.
#[test]
fn batches_take_what_was_measured() {
    let book = claimant_servers::repository().unwrap().join("docs/performance.md");
    let book = std::fs::read_to_string(book).unwrap();
    let figures = book.split("## Figures").nth(1).unwrap().split("### 5 ms, fresh messages").nth(1).unwrap();
    let rows = figures.lines().skip(2).take_while(|line| !line.starts_with('#'));
    let work = Costs { handler_ms: 0.0, store_ms: 5.0, ..Costs::default() };
    let load = Load { work, ..Load::default() };
    let whole = Runs { memory_mb: 1_769.0, arm64: false, at_once: 10.0, metrics: true, message_lines: false };
    let mut seen = 0;
    for row in rows.filter(|row| row.contains("| claimant | 10 |")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (batch, measured): (f64, f64) = (cells[1].parse().unwrap(), cells[9].parse().unwrap());
        let model = duration_ms(&whole, &load, Guarantee::AtLeastOnce, batch);
        assert!((0.8..1.25).contains(&(model / measured)), "batch of {batch}: {model} ms, measured {measured} ms");
        seen += 1;
    }
    assert_eq!(seen, 5, "the book has batches of 1 to 10,000");
}
