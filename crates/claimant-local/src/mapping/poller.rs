//! The loop of one mapping: gather a batch, invoke the function, delete what succeeded.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::counters::count;
use super::event::{self, Event};
use super::source::Source;
use super::switch::{MappingSwitch, Wanted};
use super::verdict::{Verdict, verdict};
use crate::arn;
use crate::journal::{Text, What};
use crate::lambda::{Call, Function};
use crate::sqs::Received;
use crate::sync::lock;

/// Batches in flight at the same time when the template sets no `MaximumConcurrency`. Lambda would go on to scale up;
/// two are enough to see what happens side by side, on one machine.
const CONCURRENCY_DEFAULT: u32 = 2;

/// A queue and the function that gets its messages.
pub(super) struct Poller {
    pub(super) source: Source,
    pub(super) function: Function,
    pub(super) switch: MappingSwitch,
}

impl Poller {
    /// Polls whenever it is to, until it is stopped and every batch in flight has ended.
    pub(super) async fn run(self: Arc<Self>) {
        let mut wanted = self.switch.wanted();
        loop {
            // An error means that every switch is gone, and this one is held here.
            let next = wanted.wait_for(|wanted| *wanted != Wanted::Paused).await.map(|wanted| *wanted);
            if !matches!(next, Ok(Wanted::Polling)) {
                return;
            }
            self.switch.set_busy(true);
            Arc::clone(&self).poll(&mut wanted).await;
            self.switch.set_busy(false);
        }
    }

    /// Polls until something else is wanted and every batch in flight has ended.
    async fn poll(self: Arc<Self>, wanted: &mut watch::Receiver<Wanted>) {
        let slots = Arc::new(Semaphore::new(self.concurrency()));
        let mut batches = JoinSet::new();
        loop {
            let slot = tokio::select! {
                biased;
                _ = wanted.wait_for(|wanted| *wanted != Wanted::Polling) => break,
                slot = self.slot(&slots) => slot,
            };
            let messages = self.source.gather(&self.function, wanted).await;
            if messages.is_empty() {
                break;
            }
            while batches.try_join_next().is_some() {}
            let poller = Arc::clone(&self);
            batches.spawn(async move {
                let ids: Vec<_> = messages.iter().map(|message| message.message_id.clone()).collect();
                poller.deliver(messages).await;
                poller.source.let_go(&ids);
                drop(slot);
            });
        }
        while batches.join_next().await.is_some() {}
    }

    /// How many batches of this mapping are in flight at the same time.
    fn concurrency(&self) -> usize {
        let wanted = self.source.spec.maximum_concurrency.unwrap_or(CONCURRENCY_DEFAULT);
        usize::try_from(wanted).map_or(Semaphore::MAX_PERMITS, |wanted| wanted.max(1))
    }

    /// Waits for a turn of this mapping, then for a process that no batch of the function's other mappings has: a batch that waits for
    /// one uses up its visibility timeout. Cancel safe.
    async fn slot(&self, slots: &Arc<Semaphore>) -> [OwnedSemaphorePermit; 2] {
        let own = Arc::clone(slots).acquire_owned().await.expect("the semaphore is never closed");
        [own, self.function.batch().await]
    }

    async fn deliver(&self, messages: Vec<Received>) {
        let fifo = self.source.spec.queue.ends_with(".fifo");
        let mut events = event::events(&arn::of_queue(&self.source.spec.queue), messages).into_iter();
        while let Some(Event { messages, payload }) = events.next() {
            let ids: Vec<String> = messages.iter().map(|message| message.message_id.clone()).collect();
            let call = Call {
                request_id: Uuid::new_v4().to_string().into(),
                payload: payload.into(),
                messages: ids.iter().collect(),
            };
            let result = self.function.deliver(call.clone()).await;
            let verdict = verdict(self.switch.reports_failures(), &ids, &result);
            self.note(&call, &verdict);
            let failed = self.apply(&messages, &verdict);
            if fifo && failed > 0 {
                // What follows a failure in its group must not be handed out before it.
                let left: usize = events.map(|event| event.messages.len()).sum();
                lock(&self.source.counters).failed += count(left);
                return;
            }
        }
    }

    /// Writes into the journal what the mapping makes of an invocation.
    fn note(&self, call: &Call, verdict: &Verdict) {
        let reported = || {
            let (failed, succeeded): (Vec<_>, Vec<_>) = call.messages.iter().partition(|id| verdict.leaves(id));
            let texts = |ids: Vec<&Text>| ids.into_iter().cloned().collect();
            let why = match verdict {
                Verdict::AllFailed { reason } => Some(reason.into()),
                Verdict::AllSucceeded | Verdict::SomeFailed(_) => None,
            };
            What::Reported { succeeded: texts(succeeded), failed: texts(failed), why }
        };
        let queue = Text::from(&self.source.spec.queue);
        self.function
            .journal()
            .note(reported, |event| event.queue(&queue).function(self.function.name()).invocation(&call.request_id));
    }

    /// Deletes what succeeded and counts; returns the number of messages left.
    fn apply(&self, messages: &[Received], verdict: &Verdict) -> usize {
        let (left, succeeded): (Vec<_>, Vec<_>) =
            messages.iter().partition(|message| verdict.leaves(&message.message_id));
        let deleted = self.source.delete(succeeded);
        let mut counters = lock(&self.source.counters);
        counters.invocations += 1;
        counters.succeeded += deleted;
        counters.failed += count(left.len());
        if let Verdict::AllFailed { reason } = verdict {
            counters.whole_batch_failures += 1;
            let (function, queue) = (self.function.name(), &self.source.spec.queue);
            tracing::warn!(function, queue, messages = messages.len(), reason, "the whole batch failed");
        }
        left.len()
    }
}
