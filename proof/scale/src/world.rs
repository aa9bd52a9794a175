//! Who sends, the event source mapping, the processes.

use std::error::Error as StdError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_sdk_dynamodb::{Client, config};
use claimant_core::{
    Consumer, ConsumerName, Context, Engine, Error, HandlerError, InvocationTime, Key, Limit, Message, NoQueue,
    RecordId,
};
use claimant_dynamodb::{LockTable, Tables};
use claimant_outage::VirtualClock;
use claimant_outage::queue::Queue;
use claimant_simulated::sdk;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::capacity::{Capacity, Counts};
use crate::case::Case;
use crate::seen::{Sample, Seen};
use crate::wire::Wire;

/// The consumer.
const CONSUMER: &str = "confirmation";

/// How often messages are sent and received.
const TICK_MS: u64 = 5;

/// No two processes share a bucket of retries, in whichever runs they are.
static PROCESSES: AtomicU64 = AtomicU64::new(0);

type Failure = Box<dyn StdError + Send + Sync>;

/// What all processes share.
struct World {
    case: Case,
    start: Instant,
    names: Vec<String>,
    wire: Wire,
    aws: SdkConfig,
    queue: Mutex<Queue>,
    seen: Mutex<Seen>,
}

/// Runs a case on virtual time until every message is done or dead. The same seed gives the same run.
///
/// # Errors
/// When the runtime or an engine cannot be made.
pub fn run(case: &Case, seed: u64) -> Result<Seen, Failure> {
    // Where the ways of requests, and the jitter of the SDK's retries, come from.
    fastrand::seed(seed);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let names: Vec<_> = (1..=case.tables.len()).map(|n| format!("locks-{n}")).collect();
        let tables: Vec<_> = names.iter().cloned().zip(case.tables.iter().cloned()).collect();
        let wire = Wire::new(start, Capacity::new(&case.rules, &tables));
        let world = Arc::new(World {
            case: case.clone(),
            start,
            names,
            aws: sdk::config(wire.clone()),
            wire,
            queue: Mutex::new(Queue::new(case.queue())),
            seen: Mutex::default(),
        });
        world.work().await?;
        let mut seen = std::mem::take(&mut *world.seen());
        let queue = world.queue();
        (seen.sent, seen.dead, seen.receives) = (queue.sent(), queue.dead, queue.receives);
        seen.requests = world.wire.service().requests;
        Ok(seen)
    })
}

/// An engine, and nothing while it works on a batch.
type Process = Arc<Engine>;

impl World {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        // OK because no run lasts 500 million years.
        self.start.elapsed().as_millis() as u64
    }

    fn record(key: u32) -> Result<RecordId, Error> {
        Ok(RecordId::new(&ConsumerName::new(CONSUMER)?, &Key::new(key.to_string())?))
    }

    fn process(self: &Arc<Self>) -> Result<Process, Error> {
        let number = PROCESSES.fetch_add(1, Ordering::Relaxed);
        let partition = RetryPartition::new(format!("process-{number}"));
        let config = config::Builder::from(&self.aws).retry_partition(partition).allow_no_auth().build();
        let table = LockTable::new(Client::from_conf(config), Tables::new(self.names.iter().map(String::as_str))?);
        let world = Arc::clone(self);
        let handler = move |key: u32, _: Context| Arc::clone(&world).handle(key);
        let consumer = Consumer::new(CONSUMER, table, handler).key_of(|key: &u32| key.to_string());
        let consumer = match self.case.limit_per_s {
            // A slot for each process.
            Some(limit) => consumer.limit(Limit::new(CONSUMER).per_second(limit).slots(self.case.invocations as u32)),
            None => consumer,
        };
        let engine = Engine::new(consumer, self.case.batch)?;
        Ok(Arc::new(engine.clock(Arc::new(VirtualClock::new(self.start))).receives_max(self.case.queue().receives)))
    }

    async fn handle(self: Arc<Self>, key: u32) -> Result<(), HandlerError> {
        sleep(Case::HANDLER).await;
        self.seen().ran(key);
        Ok(())
    }

    /// Sends, receives and invokes until nothing is left.
    async fn work(self: &Arc<Self>) -> Result<(), Failure> {
        let mut running: JoinSet<Process> = JoinSet::new();
        let (mut idle, mut sent, mut received_ms) = (Vec::new(), 0, 0);
        let mut counted = Counts::default();
        for tick in 1.. {
            sleep_until(self.start + Duration::from_millis(tick * TICK_MS)).await;
            let now_ms = self.now_ms();
            sent = self.send(sent, now_ms);
            while let Some(ended) = running.try_join_next() {
                idle.push(ended?);
            }
            while running.len() < self.case.invocations {
                let received = self.receive(now_ms, received_ms);
                if received.is_empty() {
                    break;
                }
                received_ms = now_ms;
                let process = idle.pop().map_or_else(|| self.process(), Ok)?;
                running.spawn(Arc::clone(self).invoke(process, received));
            }
            if now_ms.is_multiple_of(1_000) {
                counted = self.sample(counted, running.len());
            }
            if now_ms >= self.case.sent_for.as_millis() as u64 && running.is_empty() && self.queue().is_empty() {
                self.sample(counted, 0);
                break;
            }
        }
        Ok(())
    }

    /// Sends what is due by now, and returns how many were sent in all.
    fn send(&self, sent: u64, now_ms: u64) -> u64 {
        let until_ms = now_ms.min(self.case.sent_for.as_millis() as u64);
        let due = until_ms * self.case.sent_per_s / 1_000;
        let mut queue = self.queue();
        (sent..due).for_each(|_| queue.send());
        queue.show(now_ms);
        due
    }

    /// Receives a batch that is full, or what is there when the window is over.
    fn receive(&self, now_ms: u64, received_ms: u64) -> Vec<(u32, u32)> {
        let mut queue = self.queue();
        let waited = now_ms - received_ms >= self.case.window().as_millis() as u64;
        if queue.visible() >= self.case.batch || waited { queue.receive(now_ms) } else { Vec::new() }
    }

    fn sample(&self, before: Counts, invocations: usize) -> Counts {
        let (counts, partitions) = {
            let service = self.wire.service();
            (service.capacity.counts(), service.capacity.partitions())
        };
        let visible = self.queue().visible();
        let since = Counts {
            writes: counts.writes - before.writes,
            reads: counts.reads - before.reads,
            throttled: counts.throttled - before.throttled,
            over_quota: counts.over_quota - before.over_quota,
        };
        self.seen().samples.push(Sample { counts: since, visible, invocations, partitions });
        counts
    }

    async fn invoke(self: Arc<Self>, process: Process, received: Vec<(u32, u32)>) -> Process {
        let message = |(n, receives): &(u32, u32)| {
            let body = self.case.key(*n).to_string();
            let message = Message::new(format!("m{n}"), body).expect("a number is a message id");
            message.with_receive_count(*receives)
        };
        let batch: Vec<_> = received.iter().map(message).collect();
        let deadline = process.now().plus(Case::TIMEOUT);
        let report =
            process.process(&batch, InvocationTime::new(process.now(), deadline, Case::MARGIN), &NoQueue).await;
        let now_ms = self.now_ms();
        for ((n, _), entry) in received.iter().zip(report.entries()) {
            let key = self.case.key(*n);
            let sent_ms = u64::from(*n) * 1_000 / self.case.sent_per_s;
            self.seen().ended(key, &entry.outcome, Duration::from_millis(now_ms.saturating_sub(sent_ms)));
            if entry.outcome.is_success() {
                self.queue().delete(*n);
                self.forget(*n);
            } else if let Some(after) = entry.visible_after {
                // In whole seconds, as `ChangeMessageVisibility` takes them.
                let after_s = after.as_secs() + u64::from(after.subsec_nanos() > 0);
                self.queue().hide(*n, now_ms + after_s * 1_000);
            }
        }
        process
    }

    /// Drops the record of a message that is deleted, unless others have its key: millions would be kept for nothing.
    fn forget(&self, n: u32) {
        if self.case.is_hot(n) {
            return;
        }
        if let Ok(record) = Self::record(self.case.key(n)) {
            let mut service = self.wire.service();
            self.names.iter().for_each(|name| service.items.forget(name, record.as_str()));
        }
    }
}
