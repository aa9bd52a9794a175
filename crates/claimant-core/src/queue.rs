//! What the engine asks of the queue while a batch runs.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::report::DeadLetter;

/// What a queue's methods return: object safe, as for stores.
pub type QueueFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The queue that a batch came from, by the messages' places in the batch.
///
/// No method is given a time limit: the engine drops the future when the time is over. All are cancel safe:
/// a call that is dropped either took effect or did not.
pub trait Queue: Send + Sync {
    /// Hides a message from other receivers for this long from now. `false` when it is no longer this
    /// delivery's to hide, or the queue did not answer: its handler is then cancelled.
    fn hide(&self, place: usize, period: Duration) -> QueueFuture<'_, bool>;

    /// Deletes messages that are done, before the report does: so that a process which dies on the next one takes none of
    /// them back to the queue. `true` only once the queue has confirmed that all are gone, `false` where it cannot.
    fn delete<'a>(&'a self, places: &'a [usize]) -> QueueFuture<'a, bool> {
        let _ = places;
        Box::pin(std::future::ready(false))
    }

    /// Whether rejected messages can be sent to a dead-letter queue from here.
    fn has_dead_letters(&self) -> bool;

    /// Sends a copy of a message to the dead-letter queue. `true` only once the queue has confirmed it: the
    /// message is then reported successful and deleted.
    fn dead_letter<'a>(&'a self, letter: &'a DeadLetter) -> QueueFuture<'a, bool>;
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

    fn dead_letter<'a>(&'a self, _letter: &'a DeadLetter) -> QueueFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}
