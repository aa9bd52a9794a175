//! The event source mapping: receive from a queue, invoke the function, delete what succeeded.
//!
//! | module | holds |
//! | --- | --- |
//! | `batch` | how messages are gathered into batches |
//! | `filter` | which messages reach the function at all |
//! | `event` | messages as the event a function gets, split where it would be too large |
//! | `verdict` | what an invocation's result means for each message |
//!
//! A failure stays in the queue as it is: it becomes visible again when its visibility timeout ends, or when the
//! function has said otherwise. Not imitated, on purpose: scaling up and down, provisioned mode.

mod batch;
mod event;
mod filter;
mod verdict;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::lambda::Function;
use crate::sqs::{Received, Sqs};
use crate::stack::MappingSpec;

use event::Event;

pub use filter::Filter;
pub use verdict::{Verdict, verdict};

/// Batches in flight at the same time when the template sets no `MaximumConcurrency`. Lambda would go on to scale up;
/// two are enough to see what happens side by side, on one machine.
const CONCURRENCY_DEFAULT: u32 = 2;

/// A running event source mapping. Dropping it cuts what is in flight; [`stop`](Self::stop) lets it end.
pub struct Mapping {
    counters: Arc<Mutex<MappingCounters>>,
    stopped: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// What has happened to a mapping's messages so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MappingCounters {
    /// Invocations that have ended.
    pub invocations: u64,
    /// Messages deleted after an invocation.
    pub succeeded: u64,
    /// Messages deleted without one, since they fit no filter of the mapping.
    pub filtered: u64,
    /// Deliveries left in the queue for redelivery: a message that fails twice counts twice.
    pub failed: u64,
    /// Invocations after which every message was left because of an error or an invalid response.
    pub whole_batch_failures: u64,
}

/// What the poller and its batches share.
struct Poller {
    spec: MappingSpec,
    sqs: Sqs,
    function: Function,
    counters: Arc<Mutex<MappingCounters>>,
}

impl Mapping {
    /// Starts to poll, unless the mapping is disabled. Must be called within a tokio runtime.
    pub fn start(spec: MappingSpec, sqs: Sqs, function: Function) -> Self {
        let counters = Arc::<Mutex<MappingCounters>>::default();
        let (stopped, stop) = watch::channel(false);
        let poller = Arc::new(Poller { spec, sqs, function, counters: Arc::clone(&counters) });
        Self { counters, stopped, task: tokio::spawn(poller.run(stop)) }
    }

    /// Stops receiving and waits until every batch in flight has ended; stop the function to cut them.
    pub async fn stop(mut self) {
        self.stopped.send_replace(true);
        // An error means that the poller panicked, which the runtime has reported; it has ended either way.
        let _ = (&mut self.task).await;
    }

    /// What has happened so far.
    pub fn counters(&self) -> MappingCounters {
        *lock(&self.counters)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Poller {
    async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        if !self.spec.enabled {
            return;
        }
        // A program that is yet to be built must not cost a message its receives.
        tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => return,
            () = self.function.ready() => {}
        }
        let slots = Arc::new(Semaphore::new(self.concurrency()));
        let mut batches = JoinSet::new();
        loop {
            let slot = tokio::select! {
                biased;
                _ = stop.wait_for(|stopped| *stopped) => break,
                slot = Arc::clone(&slots).acquire_owned() => slot.expect("the semaphore is never closed"),
            };
            let messages = self.gather(&mut stop).await;
            if messages.is_empty() {
                break;
            }
            while batches.try_join_next().is_some() {}
            let poller = Arc::clone(&self);
            batches.spawn(async move {
                poller.deliver(messages).await;
                drop(slot);
            });
        }
        while batches.join_next().await.is_some() {}
    }

    /// A batch that waits for an environment uses up its visibility timeout, so there are no more than can run.
    fn concurrency(&self) -> usize {
        let wanted = self.spec.maximum_concurrency.unwrap_or(CONCURRENCY_DEFAULT);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        wanted.clamp(1, self.function.concurrency())
    }

    async fn deliver(&self, messages: Vec<Received>) {
        let fifo = self.spec.queue.ends_with(".fifo");
        let mut events = event::events(&self.sqs.queue_arn(&self.spec.queue), messages).into_iter();
        while let Some(Event { messages, payload }) = events.next() {
            let ids: Vec<String> = messages.iter().map(|message| message.message_id.clone()).collect();
            let result = self.function.invoke(payload).await;
            let verdict = verdict(self.spec.report_batch_item_failures, &ids, &result);
            let failed = self.apply(&messages, &verdict);
            if fifo && failed > 0 {
                // What follows a failure in its group must not be handed out before it.
                let left: usize = events.map(|event| event.messages.len()).sum();
                lock(&self.counters).failed += count(left);
                return;
            }
        }
    }

    /// Deletes what succeeded and counts; gives the number of messages left.
    fn apply(&self, messages: &[Received], verdict: &Verdict) -> usize {
        let left = messages.iter().filter(|message| verdict.leaves(&message.message_id)).count();
        let deleted =
            messages.iter().filter(|message| !verdict.leaves(&message.message_id) && self.delete(message)).count();
        let mut counters = lock(&self.counters);
        counters.invocations += 1;
        counters.succeeded += count(deleted);
        counters.failed += count(left);
        if let Verdict::AllFailed { reason } = verdict {
            counters.whole_batch_failures += 1;
            let (function, queue) = (self.function.name(), &self.spec.queue);
            tracing::warn!(function, queue, messages = messages.len(), reason, "the whole batch failed");
        }
        left
    }

    /// False if the message had gone, or come back, before its batch ended.
    fn delete(&self, message: &Received) -> bool {
        let result = self.sqs.delete(&self.spec.queue, &message.receipt_handle);
        if !matches!(result, Ok(true)) {
            let (queue, message_id) = (&self.spec.queue, &message.message_id);
            let error = result.as_ref().err().map(ToString::to_string);
            tracing::warn!(queue, message_id, error, "a message that succeeded could not be deleted");
        }
        result.unwrap_or(false)
    }
}

fn count(messages: usize) -> u64 {
    u64::try_from(messages).expect("a number of messages fits 64 bits")
}

/// Counters are whole after every statement, so a panic elsewhere does not spoil them.
fn lock(counters: &Mutex<MappingCounters>) -> MutexGuard<'_, MappingCounters> {
    counters.lock().unwrap_or_else(PoisonError::into_inner)
}
