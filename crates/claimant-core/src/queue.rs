//! What the engine asks of the queue while a batch runs.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

#[cfg(doc)]
use crate::limits::LETTERS_BATCH_MAX;
use crate::report::DeadLetter;

/// What a queue's methods return: object safe, as for stores.
pub type QueueFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The queue that a batch came from, by the messages' places in the batch.
///
/// The engine drops the future when the time is over. All are cancel safe: a call that is dropped either took effect or did
/// not.
pub trait Queue: Send + Sync {
    /// Hides a message from other receivers for this long from now. `false` where the queue says that it is no longer this
    /// delivery's to hide: its handler is then cancelled. Not every queue can say so of a message that is visible again (an
    /// SQS standard queue accepts the change); there, the lease alone keeps others off.
    fn hide(&self, place: usize, period: Duration) -> QueueFuture<'_, bool>;

    /// Deletes messages that are done, before the report does: so that a process which dies on the next one takes none of
    /// them back to the queue. `true` only once the queue has confirmed that all are gone, `false` where it cannot.
    fn delete<'a>(&'a self, places: &'a [usize]) -> QueueFuture<'a, bool> {
        let _ = places;
        Box::pin(std::future::ready(false))
    }

    /// Whether rejected messages can be sent to a dead-letter queue from here.
    fn has_dead_letters(&self) -> bool;

    /// Sends copies of messages to the dead-letter queue, at most [`LETTERS_BATCH_MAX`], within this time. Answers for each
    /// letter, in their order: `true` only once the queue has confirmed that very copy, since the message is then
    /// reported successful and deleted. A letter without an answer counts as not taken.
    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], within: Duration) -> QueueFuture<'a, Vec<bool>>;
}

/// A queue that can do nothing: rejected messages go to their dead-letter queue by redrive.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoQueue;

impl Queue for NoQueue {
    fn hide(&self, _place: usize, _period: Duration) -> QueueFuture<'_, bool> {
        Box::pin(std::future::ready(true))
    }

    fn has_dead_letters(&self) -> bool {
        false
    }

    fn dead_letters<'a>(&'a self, _letters: &'a [DeadLetter], _within: Duration) -> QueueFuture<'a, Vec<bool>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}
