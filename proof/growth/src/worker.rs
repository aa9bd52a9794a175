//! The process that is measured: a service as a function has it, whose events come in on standard input.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::SqsEvent;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use claimant_bench::process::{cpu_time, say};
use claimant_core::{Clock as _, Conflicts, Consumer, Context, Error, HandlerError, SystemClock, Variables};
use claimant_dynamodb::LockTable;
use claimant_lambda::{Service, Settings};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::process::peak_kb;

/// The lock table of all workers.
pub(crate) const TABLE: &str = "locks";

/// What the ids of the records begin with.
pub(crate) const PREFIX: &str = "growth#";

/// The time that Lambda gives at most, which every invocation has here.
const REMAINING_MS: u64 = 900_000;

/// What a worker is to do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Task {
    /// One invocation.
    Event(Box<SqsEvent>),
    /// A bare read, and a bare write, of each of these records.
    Probe(Vec<String>),
}

/// What came of one invocation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) wall_ns: u64,
    /// Of the whole process.
    pub(crate) cpu_ns: u64,
    pub(crate) allocations: u64,
    /// The most that the process has had in memory so far.
    pub(crate) peak_kb: u64,
    /// The keys whose handlers ran, in the order in which they began.
    pub(crate) ran: Vec<String>,
    /// The ids of the messages that were reported failed.
    pub(crate) failed: Vec<String>,
}

/// What the store takes for requests without claimant: medians.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Bare {
    pub(crate) get_us: f64,
    pub(crate) update_us: f64,
}

#[derive(Debug, Deserialize)]
struct Purchase {
    order_id: String,
}

static RAN: Mutex<Vec<String>> = Mutex::new(Vec::new());

async fn handle(purchase: Purchase, _: Context) -> Result<(), HandlerError> {
    RAN.lock().unwrap_or_else(PoisonError::into_inner).push(purchase.order_id);
    Ok(())
}

/// Does what comes in on standard input, until it ends. All is done on one thread, whose allocations are counted.
///
/// # Errors
/// When it is not spoken to as it should, or the store refuses something.
pub fn run() -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::new("the worker's runtime did not start").caused_by(e);
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let client = Client::new(runtime.block_on(claimant_aws::config())?);
    let settings = Settings::from_variables(Variables::new([("CLAIMANT_CONCURRENCY", "10")]))?;
    let table = LockTable::new(client.clone(), TABLE);
    // By the key alone: records that are copied have each the payload of another.
    let consumer = Consumer::new("growth", table, handle).key(|purchase: &Purchase| &purchase.order_id);
    let consumer = consumer.conflicts(Conflicts::Ignore);
    let service = Service::with_aws(&settings, consumer, None)?.metrics(|_| {});
    for line in std::io::stdin().lines() {
        let broken = |e: serde_json::Error| Error::new("a task is no JSON").caused_by(e);
        let line = line.map_err(|e| Error::new("standard input broke").caused_by(e))?;
        match serde_json::from_str(&line).map_err(broken)? {
            Task::Event(event) => say(&invoke(&runtime, &service, *event)?)?,
            Task::Probe(ids) => say(&runtime.block_on(probe(&client, &ids))?)?,
        }
    }
    Ok(())
}

fn invoke(runtime: &Runtime, service: &Service, event: SqsEvent) -> Result<Done, Error> {
    let deadline_ms = SystemClock.now().as_millis() + REMAINING_MS;
    let (cpu, wall) = (cpu_time(), Instant::now());
    let mut report = None;
    let allocated = allocation_counter::measure(|| {
        report = Some(runtime.block_on(service.invoke(event, deadline_ms, "")));
    });
    let (wall, cpu) = (wall.elapsed(), cpu_time().saturating_sub(cpu));
    let report = report.expect("it was made above")?;
    // OK because both are far below 500 years.
    let nanos = |d: Duration| d.as_nanos() as u64;
    Ok(Done {
        wall_ns: nanos(wall),
        cpu_ns: nanos(cpu),
        allocations: allocated.count_total,
        peak_kb: peak_kb("self"),
        ran: std::mem::take(&mut *RAN.lock().unwrap_or_else(PoisonError::into_inner)),
        failed: report.0.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect(),
    })
}

async fn probe(client: &Client, ids: &[String]) -> Result<Bare, Error> {
    let failed = |e| Error::new(format!("a bare request failed: {e}"));
    let (mut gets, mut updates) = (Vec::new(), Vec::new());
    for id in ids {
        let id = AttributeValue::S(id.clone());
        let since = Instant::now();
        let get = client.get_item().table_name(TABLE).key("id", id.clone()).consistent_read(true).send().await;
        get.map_err(|e| failed(e.to_string()))?;
        gets.push(since.elapsed());
        let since = Instant::now();
        let update = client.update_item().table_name(TABLE).key("id", id).update_expression("SET probed = :true");
        let update = update.expression_attribute_values(":true", AttributeValue::Bool(true)).send().await;
        update.map_err(|e| failed(e.to_string()))?;
        updates.push(since.elapsed());
    }
    Ok(Bare { get_us: median_us(&mut gets), update_us: median_us(&mut updates) })
}

/// The middle one, in microseconds.
pub(crate) fn median_us(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}
