//! `claimant cost` computes what the engine asks: its model is held to real requests, units and records of the embedded DynamoDB.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Put};
use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{
    BoxFuture, Consumer, Context, Engine, HandlerError, HideAnswer, InvocationTime, Lease, Queue, TransactionGuard,
    Usage,
};
use claimant_cost::{Guarantee, Load, RECORD_BYTES, Runs, Traffic, Units, Work as Costs, duration_ms};
use claimant_dynamodb::{LockTable, Transaction};
use claimant_testkit::MovableClock;
use claimant_testkit::outcomes::{Work, message};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::wire::Wire;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Longer than any backoff here.
const LATER: Duration = Duration::from_secs(1_000);

/// A lease that is renewed after a second, and a handler that it is renewed for once.
const LEASE: Duration = Duration::from_secs(3);
const SLOW: Duration = Duration::from_millis(1_500);

async fn act(work: Work, cx: Context) -> Result<(), HandlerError> {
    if work.id.starts_with("slow") {
        tokio::time::sleep(SLOW).await;
    }
    if work.action == "fail" && cx.attempt() == 1 { Err(HandlerError::retry("no luck")) } else { Ok(()) }
}

async fn write(work: Work, mut tx: TransactionGuard<Transaction>, cx: Context) -> Result<(), HandlerError> {
    let effect = Put::builder().table_name("effects").item("id", AttributeValue::S(work.id.clone()));
    tx.put(effect.build()?);
    act(work, cx).await
}

/// A queue that counts the messages that it hides.
#[derive(Default)]
struct Hiding(AtomicU64);

impl Queue for Hiding {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }
}

struct World {
    engine: Engine,
    queue: Hiding,
    clock: MovableClock,
    wire: Wire,
    dynamodb: DynamoDb,
}

impl World {
    async fn new(guarantee: Guarantee, lease: Lease) -> Self {
        let (dynamodb, wire, clock) = (DynamoDb::embedded().await, Wire::default(), MovableClock::start());
        for table in ["locks", "effects"] {
            dynamodb.lock_table(table).await;
        }
        let table = LockTable::new(dynamodb.client_over(&wire), "locks");
        let engine = match guarantee {
            Guarantee::AtLeastOnce => {
                Engine::with_defaults(Consumer::new("orders", table, act).key(|w| &w.id).lease(lease))
            }
            Guarantee::AtMostOnce => {
                Engine::with_defaults(Consumer::new("orders", table, act).key(|w| &w.id).lease(lease).at_most_once())
            }
            Guarantee::Transactional => Engine::with_defaults(
                Consumer::transactional("orders", table.transactions(), write).key(|w| &w.id).lease(lease),
            ),
            Guarantee::Optimistic => Engine::with_defaults(
                Consumer::transactional("orders", table.optimistic_transactions(), write).key(|w| &w.id).lease(lease),
            ),
        };
        let engine = engine.unwrap().clock(Arc::new(clock.clone()));
        Self { engine, queue: Hiding::default(), clock, wire, dynamodb }
    }

    /// Delivers a batch, and returns what it asked of the table.
    async fn deliver(&self, texts: &[String], receive_count: u32, wanted: &str) -> Usage {
        let now = self.engine.now();
        let time = InvocationTime::new(now, now.plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
        let messages = texts.iter().enumerate().map(|(place, text)| message(place, text, receive_count));
        let _ = self.wire.take_requests();
        let report = self.engine.process(&messages.collect::<Vec<_>>(), time, &self.queue).await;
        let words: Vec<_> = report.entries().iter().map(|entry| entry.outcome.word()).collect();
        assert!(words.iter().all(|word| wanted.split(' ').any(|one| one == *word)), "{words:?}");
        assert_eq!(self.wire.take_requests().len() as u64, report.totals.usage.requests);
        report.totals.usage
    }

    /// Finishes so many messages; returns them, and a batch of their copies with fresh ones.
    async fn with_copies(&self, copies: usize, count: usize) -> (Vec<String>, Vec<String>) {
        let first = texts(&format!("{copies}-"), copies, "ok");
        if copies > 0 {
            self.deliver(&first, 1, "completed").await;
        }
        let mut batch: Vec<_> = first.iter().map(|text| format!("{text}-copy")).collect();
        batch.extend(texts(&format!("new{copies}-"), count - copies, "ok"));
        (first, batch)
    }

    /// Delivers copies of finished work until they are what is usual.
    async fn deliver_copies(&self, count: usize) {
        let known = texts("known", 20, "ok");
        for batch in 0..count {
            let copies: Vec<_> = known.iter().map(|text| format!("{text}-{batch}")).collect();
            self.deliver(&copies, 1, "completed duplicate").await;
        }
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
        let world = World::new(guarantee, Lease::UntilDeadline).await;
        for count in [1, 2, 10, 25, 60] {
            let what = format!("{}, {count} fresh", guarantee.name());
            let usage = world.deliver(&texts(&format!("fresh{count}-"), count, "ok"), 1, "completed").await;
            same(&what, usage, model(guarantee, count, 0.0, 0.0));
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
        let world = World::new(guarantee, Lease::UntilDeadline).await;
        let (mut mean, mut alone) = (Usage::default(), Usage::default());
        for copies in 0..=BATCH {
            let (first, batch) = world.with_copies(copies, BATCH).await;
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
        // Where each second message is a copy: it is what a fresh one leaves of two.
        let (two, fresh) = (model(guarantee, 1, 0.5, 0.0), model(guarantee, 1, 0.0, 0.0));
        let copy = Units { writes: 2.0 * two.writes - fresh.writes, reads: 2.0 * two.reads - fresh.reads };
        same(&format!("{}, a copy alone", guarantee.name()), alone, copy);
    }
}

/// Where most messages are copies, records are read before they are claimed.
#[tokio::test(flavor = "multi_thread")]
async fn copies_that_are_usual_cost_what_the_model_says() {
    const BATCH: usize = 5;
    const CHANCE: f64 = 0.9;
    for guarantee in Guarantee::ALL {
        let world = World::new(guarantee, Lease::UntilDeadline).await;
        let (mut mean, mut alone) = (Usage::default(), [Usage::default(); 2]);
        // As above: its transactions are cancelled. No answer to a claim says what is usual.
        let untold = if guarantee == Guarantee::Optimistic { 4.0 } else { 0.0 };
        for copies in 0..=BATCH {
            let (_, batch) = world.with_copies(copies, BATCH).await;
            world.deliver_copies(5).await;
            let mut usage = world.deliver(&batch, 1, "completed duplicate").await;
            usage.write_units += untold * copies as f64;
            let weight = binomial(BATCH, copies, CHANCE);
            mean.write_units += weight * usage.write_units;
            mean.read_units += weight * usage.read_units;
        }
        same(&format!("{}, mostly copies", guarantee.name()), mean, model(guarantee, BATCH, CHANCE, 0.0));
        world.deliver_copies(5).await;
        for (usage, text) in alone.iter_mut().zip(["known0 ok @known0-again", "fresh ok @fresh"]) {
            *usage = world.deliver(&[text.to_owned()], 1, "completed duplicate").await;
        }
        let mut mean = Usage::default();
        mean.write_units = CHANCE * (alone[0].write_units + untold) + (1.0 - CHANCE) * alone[1].write_units;
        mean.read_units = CHANCE * alone[0].read_units + (1.0 - CHANCE) * alone[1].read_units;
        same(&format!("{}, mostly copies, alone", guarantee.name()), mean, model(guarantee, 1, CHANCE, 0.0));
    }
}

/// And that is what `make growth` has measured.
#[test]
fn copies_cost_what_was_measured() {
    let book = claimant_servers::repository().unwrap().join("docs/growth.md");
    let book = std::fs::read_to_string(book).unwrap();
    let rows = book.split("### Records in the table: copies of finished work").nth(1).unwrap();
    let row = rows.lines().find(|line| line.starts_with("| 1,000,000 |")).unwrap();
    let cells: Vec<f64> = row.split('|').skip(3).take(2).map(|cell| cell.trim().parse().unwrap()).collect();
    let of_ten = model(Guarantee::AtLeastOnce, 10, 1.0, 0.0);
    assert_eq!(cells, [of_ten.writes / 10.0, of_ten.reads / 10.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_leases_cost_what_the_model_says() {
    async fn check(guarantee: Guarantee) {
        let world = World::new(guarantee, Lease::Renewed(LEASE)).await;
        let (mut all, name) = (Usage::default(), format!("{}, 2 that fail once, slow", guarantee.name()));
        for (receive_count, wanted) in [(1, "retry"), (2, "completed")] {
            let usage = world.deliver(&texts("slow", 2, "fail"), receive_count, wanted).await;
            all.write_units += usage.write_units;
            all.read_units += usage.read_units;
            world.clock.advance(LATER);
        }
        let (handler_ms, lease_s) = (SLOW.as_secs_f64() * 1_000.0, Some(LEASE.as_secs_f64()));
        let work = Costs { handler_ms, lease_s, ..Costs::default() };
        let runs = 4.0;
        // Once with each renewal, and once more at the end of the run.
        assert_eq!(world.queue.0.load(Ordering::SeqCst) as f64, runs * (work.renewals() + 1.0), "{name}");
        let traffic = Traffic { per_second: 2.0, duplicates: 0.0, retries: 1.0, ..Traffic::default() };
        same(&name, all, Units::a_second(guarantee, &Load { traffic, work, ..Load::default() }, 2.0));
    }
    tokio::join!(check(Guarantee::AtLeastOnce), check(Guarantee::Transactional), check(Guarantee::Optimistic));
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
    let world = World::new(Guarantee::AtLeastOnce, Lease::UntilDeadline).await;
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
    let whole = Runs {
        memory_mb: 1_769.0,
        arm64: false,
        at_once: 10.0,
        metrics: true,
        message_lines: false,
        hides: true,
        reserved: None,
    };
    let mut seen = 0;
    for row in rows.filter(|row| row.contains("| claimant | 10 |")) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (batch, measured): (f64, f64) = (cells[1].parse().unwrap(), cells[9].parse().unwrap());
        let model = duration_ms(&whole, &load, Guarantee::AtLeastOnce, batch, 1.0);
        assert!((0.8..1.25).contains(&(model / measured)), "batch of {batch}: {model} ms, measured {measured} ms");
        seen += 1;
    }
    assert_eq!(seen, 5, "the book has batches of 1 to 10,000");
}
