//! Dead letters: copies of rejected and parked messages go to the dead-letter queue, in requests for many.

use std::collections::VecDeque;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::context::BatchContext;
use super::exit::Disposal;
use super::work::Delivery;
use crate::key::RecordId;
use crate::limits::DEAD_LETTERS_BATCH_MAX;
use crate::queue::{Queue, confirmed};
use crate::report::DeadLetter;

/// A message on its way to the dead-letter queue.
pub(crate) struct Disposed {
    pub(crate) delivery: Delivery,
    /// The record of its key, if it has a key.
    pub(crate) record: Option<RecordId>,
    pub(crate) disposal: Disposal,
}

pub(crate) struct DeadLetters<'a> {
    cx: BatchContext<'a>,
    waiting: VecDeque<Disposed>,
    calls: FuturesUnordered<BoxFuture<'a, Vec<(Disposed, bool)>>>,
    /// Those of single events of messages with several. They are not sent here: once all events of such a message have ended, it gets one
    /// dead letter for all of its consumers.
    unsent: Vec<DeadLetter>,
}

impl<'a> DeadLetters<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self { cx, waiting: VecDeque::new(), calls: FuturesUnordered::new(), unsent: Vec::new() }
    }

    pub(crate) fn push(&mut self, disposed: Disposed) {
        self.waiting.push_back(disposed);
    }

    /// Adds the dead letter of what is one of several events of its message.
    pub(crate) fn push_unsent(&mut self, disposed: &Disposed) {
        self.unsent.push(dead_letter(self.cx, disposed));
    }

    /// Returns the dead letters that are not sent here.
    pub(crate) fn into_unsent(self) -> Vec<DeadLetter> {
        self.unsent
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns whether no message is on its way there, nor waits to be sent.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_idle() && self.waiting.is_empty()
    }

    /// Sends copies.
    pub(crate) fn start(&mut self) {
        let cx = self.cx;
        while !self.waiting.is_empty() && self.calls.len() < cx.shared.slots.concurrency {
            let count = self.waiting.len().min(DEAD_LETTERS_BATCH_MAX);
            let disposed: Vec<_> = self.waiting.drain(..count).collect();
            self.calls.push(Box::pin(async move {
                let copies: Vec<_> = disposed.iter().map(|disposed| dead_letter(cx, disposed)).collect();
                let confirmed = send(cx.queue(), &copies, cx.time.return_by).await;
                disposed.into_iter().zip(confirmed).collect()
            }));
        }
    }

    /// Waits for a request, and returns whether the queue has confirmed each copy; `None` where there is none. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Vec<(Disposed, bool)>> {
        self.calls.next().await
    }
}

/// Sends so many copies as one request takes, until `by`, and returns whether the queue has confirmed each: where it has not, and where no time
/// is left, the message stays where it is.
pub(crate) async fn send(queue: &dyn Queue, copies: &[DeadLetter], by: Instant) -> Vec<bool> {
    let confirmed = confirmed(copies.len(), by, |within| queue.dead_letters(copies, within)).await;
    for (copy, _) in copies.iter().zip(&confirmed).filter(|(_, confirmed)| !**confirmed) {
        tracing::warn!(consumer = %copy.consumer, message_id = %copy.message_id, "message could not be dead-lettered: it stays in its queue");
    }
    confirmed
}

fn dead_letter(cx: BatchContext<'_>, disposed: &Disposed) -> DeadLetter {
    let Disposed { delivery, record, disposal } = disposed;
    DeadLetter {
        index: delivery.index,
        message_id: delivery.message.id().clone(),
        consumer: cx.name().clone(),
        error: disposal.error.clone(),
        attempt: disposal.attempt,
        reason: disposal.why.reason(),
        record: record.clone(),
    }
}
