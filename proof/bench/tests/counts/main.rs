//! What a function asks of its table and of its allocator for each message, held to bounds by count: no clock decides anything here.
//!
//! Whoever needs more than a bound raises it here, and says why. Whoever needs less lowers it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

// The bounds are those of one instruction set.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instructions;
mod memory;

use std::fmt;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedCredentialsProvider};
use claimant_core::{Clock as _, Consumer, Context, Error, HandlerError, MemoryStore, Store, SystemClock, Variables};
use claimant_dynamodb::LockTable;
use claimant_lambda::{QueueBatch, Service, Settings};
use claimant_local::dynamodb::DynamoDb;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// Longer than anything here takes on a busy machine: no request is tried twice.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(serde::Deserialize)]
struct Order {
    order_id: String,
}

async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> {
    Ok(())
}

/// A batch of orders, as JSON. A message sent again has the same order and another id.
fn event(orders: std::ops::Range<usize>, copy: &str, receive_count: u32) -> Vec<u8> {
    let record = |n: usize| {
        json!({
            "messageId": format!("00000000-0000-4000-8{copy:0>3}-{n:012}"),
            "receiptHandle": "AQEB".repeat(90),
            "body": format!(r#"{{"order_id": "order-{n:08}", "note": "{}"}}"#, "n".repeat(450)),
            "attributes": {
                "ApproximateReceiveCount": receive_count.to_string(),
                "SentTimestamp": "1700000000000",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": "1700000000001",
            },
            "messageAttributes": {},
            "md5OfBody": "00000000000000000000000000000000",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:orders",
            "awsRegion": "us-east-1",
        })
    };
    json!({ "Records": orders.map(record).collect::<Vec<_>>() }).to_string().into_bytes()
}

/// What one batch took, for each of its messages.
struct Counts {
    allocations: f64,
    bytes: f64,
    /// Of the whole batch.
    requests: f64,
    write_units: f64,
    read_units: f64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { allocations, bytes, requests, write_units, read_units } = self;
        write!(f, "{allocations:.1} allocations and {bytes:.0} bytes a message; {requests} requests; ")?;
        write!(f, "{write_units} write and {read_units} read units a message")
    }
}

/// A function without Lambda: its service, the metrics that it wrote last, and the one thread that it runs on.
struct Function {
    service: Service,
    metrics: Arc<Mutex<String>>,
    runtime: Runtime,
}

impl Function {
    fn new(runtime: Runtime, store: impl Store, concurrency: usize) -> Self {
        let variables = Variables::new([("CLAIMANT_CONCURRENCY", concurrency.to_string())]);
        let settings = Settings::from_variables(variables).unwrap();
        let consumer = Consumer::new("orders", store, confirm).key(|order| &order.order_id);
        let metrics = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&metrics);
        let service = Service::with_aws(&settings, consumer, None).unwrap();
        let service = service.metrics(move |line| line.clone_into(&mut sink.lock().unwrap()));
        Self { service, metrics, runtime }
    }

    /// Runs one invocation, from the event's bytes to those of the answer.
    fn run(&self, event: &[u8]) -> Vec<u8> {
        let deadline_ms = SystemClock.now().plus(PATIENCE).as_millis();
        let QueueBatch(event) = serde_json::from_slice(event).unwrap();
        let report: Result<_, Error> = self.runtime.block_on(self.service.invoke(event, deadline_ms, ""));
        serde_json::to_vec(&report.unwrap()).unwrap()
    }

    /// Runs one invocation, and counts.
    fn invoke(&self, event: &[u8]) -> Counts {
        let mut answer = Vec::new();
        let allocated = allocation_counter::measure(|| answer = self.run(event));
        assert_eq!(String::from_utf8(answer).unwrap(), r#"{"batchItemFailures":[]}"#);
        let metrics: Value = serde_json::from_str(&self.metrics.lock().unwrap()).unwrap();
        let metric = |name: &str| metrics[name].as_f64().unwrap_or_default();
        let received = metric("received");
        assert!(received > 0.0, "{metrics}");
        Counts {
            allocations: allocated.count_total as f64 / received,
            bytes: allocated.bytes_total as f64 / received,
            requests: metric("store_requests"),
            write_units: metric("write_units") / received,
            read_units: metric("read_units") / received,
        }
    }
}

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// An embedded DynamoDB on a thread of its own, whose allocations are not counted. It ends when this is dropped.
struct Database {
    endpoint: String,
    _ends: mpsc::Sender<()>,
}

impl Database {
    fn start() -> Self {
        let (ends, ended) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            one_thread().block_on(async {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(format!("http://{}", listener.local_addr().unwrap())).unwrap();
                let dropped = tokio::task::spawn_blocking(move || ended.recv().is_err());
                let end = async move { assert!(dropped.await.unwrap(), "nothing is sent") };
                DynamoDb::in_memory().unwrap().serve(listener, end).await.unwrap();
            });
        });
        Self { endpoint: told.recv().unwrap(), _ends: ends }
    }

    fn lock_table(&self, runtime: &Runtime) -> LockTable {
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(Credentials::for_tests()))
            .http_client(claimant_aws::http_client())
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::builder().operation_attempt_timeout(PATIENCE).build())
            .endpoint_url(&self.endpoint)
            .build();
        let table = LockTable::new(Client::new(&config), "locks");
        runtime.block_on(table.create()).unwrap();
        table
    }
}

/// What a batch consists of.
#[derive(Debug, Clone, Copy)]
enum Load {
    Fresh,
    SentAgain,
    Redelivered,
}

/// The most that a batch may take.
struct Bound {
    allocations: f64,
    bytes: f64,
    requests: f64,
    write_units: f64,
    read_units: f64,
}

/// Returns each count that is over its bound.
fn over(what: &str, counts: &Counts, most: &Bound) -> Vec<String> {
    println!("{what}: {counts}");
    let pairs = [
        ("allocations", counts.allocations, most.allocations),
        ("bytes", counts.bytes, most.bytes),
        ("requests", counts.requests, most.requests),
        ("write units", counts.write_units, most.write_units),
        ("read units", counts.read_units, most.read_units),
    ];
    let over = pairs.into_iter().filter(|(_, counted, bound)| counted > bound);
    over.map(|(name, counted, bound)| format!("{what}: {counted:.1} {name}, at most {bound} wanted")).collect()
}

#[test]
fn the_engine_alone() {
    let bound =
        |allocations, bytes, requests| Bound { allocations, bytes, requests, write_units: 0.0, read_units: 0.0 };
    // 2,200 bytes of a batch are the future that drives it, in a box.
    // On a machine with other work a batch can have one allocation of 1,100 bytes more: each bound has room for it.
    let bounds =
        [(1, bound(119.0, 39_800.0, 2.0)), (10, bound(56.0, 21_900.0, 20.0)), (1_000, bound(47.0, 17_700.0, 2_000.0))];
    let mut faults = Vec::new();
    for (size, bound) in bounds {
        let function = Function::new(one_thread(), MemoryStore::new(), 10);
        function.invoke(&event(0..size, "1", 1));
        let counts = function.invoke(&event(size..2 * size, "1", 1));
        faults.extend(over(&format!("{size} fresh, in memory"), &counts, &bound));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn with_a_lock_table() {
    let fresh =
        |allocations, bytes, requests| Bound { allocations, bytes, requests, write_units: 2.0, read_units: 0.0 };
    let done = |allocations, bytes, requests| Bound { allocations, bytes, requests, write_units: 0.0, read_units: 1.0 };
    let bounds = [
        (1, 10, Load::Fresh, fresh(950.0, 161_500.0, 2.0)),
        (10, 10, Load::Fresh, fresh(166.0, 41_000.0, 2.0)),
        // Every other batch is one of copies: they are claimed first, and read when that is refused.
        (10, 10, Load::SentAgain, done(183.0, 32_000.0, 2.0)),
        // What was delivered before is read first.
        (10, 10, Load::Redelivered, done(124.0, 20_700.0, 1.0)),
        // 80 requests and 108 allocations, where nothing holds the function up. Endings wait for others by the clock, so on a machine with a
        // twentieth of its time for this they go in a few requests more: the bound is above what that came to, and far below what it is
        // without waiting.
        (1_000, 10, Load::Fresh, fresh(120.0, 33_000.0, 100.0)),
    ];
    let mut faults = Vec::new();
    for (size, concurrency, load, bound) in bounds {
        let (database, runtime) = (Database::start(), one_thread());
        let table = database.lock_table(&runtime);
        let function = Function::new(runtime, table, concurrency);
        // The first rounds open connections, and teach the function how many messages are duplicates. A thread that does not run for
        // some milliseconds may send in two requests what goes into one: one round within the bounds is enough.
        let round = |round: usize| {
            let orders = round * size..(round + 1) * size;
            let first = function.invoke(&event(orders.clone(), "1", 1));
            match load {
                Load::Fresh => first,
                Load::SentAgain => function.invoke(&event(orders, "2", 1)),
                Load::Redelivered => function.invoke(&event(orders, "1", 2)),
            }
        };
        for warming in 0..2 {
            round(warming);
        }
        let what = format!("{size} {load:?}, concurrency {concurrency}, lock table");
        let mut tries = (2..5).map(|number| over(&what, &round(number), &bound));
        let first = tries.next().unwrap();
        faults.extend(if first.is_empty() { first } else { tries.find(Vec::is_empty).unwrap_or(first) });
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn nothing_stays_in_memory() {
    let (database, runtime) = (Database::start(), one_thread());
    let table = database.lock_table(&runtime);
    let function = Function::new(runtime, table, 10);
    let stays = |part: usize| {
        let rounds = part * 50..(part + 1) * 50;
        let events: Vec<_> = rounds.map(|round| event(round * 10..(round + 1) * 10, "1", 1)).collect();
        let run = || events.iter().for_each(|event| drop(function.run(event)));
        allocation_counter::measure(run).bytes_current
    };
    // A connection, or a buffer that grows, stays once; a leak is in every part.
    let parts = [0, 1, 2, 3].map(stays);
    println!("of 500 messages each, in memory at the end: {parts:?} bytes");
    assert!(parts.iter().any(|bytes| *bytes <= 0), "{parts:?} bytes stay of 500 messages");
}
