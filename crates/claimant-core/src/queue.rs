//! What the engine asks of the queue while a batch runs.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};

use crate::clock::Timestamp;
use crate::intake::Intake;
use crate::invocation_time::{guarded, time_until};
#[cfg(doc)]
use crate::limits::{DEAD_LETTERS_BATCH_MAX, VISIBILITY_MAX_S};
use crate::report::DeadLetter;

/// The answer to [`Queue::hide`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HideAnswer {
    /// The message is hidden, or nothing says that it is not this delivery's any more.
    Hidden,
    /// The queue says that the message is no longer this delivery's: it was deleted, or others can receive it.
    Lost,
}

/// Whether the queue has confirmed what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// It has.
    Confirmed,
    /// It has not: refused, no answer, or not possible here. It may be done all the same.
    Unconfirmed,
}

/// A message that comes back later than a queue can hide it: it is sent to its queue again, and not in flight until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendAgain {
    /// The message's index in the batch.
    pub index: usize,
    /// When it is to be sent again.
    pub at: Timestamp,
    /// How long that is from now.
    pub after: Duration,
}

/// The queue that a batch came from, by the messages' indexes in the batch.
///
/// The engine drops the future when the time is over. All are cancel safe: a call that is dropped either took effect or did
/// not. One that panics confirms nothing, and ends nothing else.
pub trait Queue: Send + Sync {
    /// Hides a message from other receivers for this long from now. [`HideAnswer::Lost`] where the queue says that it is no
    /// longer this delivery's to hide: its handler is then cancelled. Not every queue can say so of a message that is visible
    /// again (a standard queue accepts the change); there, the lease alone keeps others off.
    fn hide(&self, index: usize, period: Duration) -> BoxFuture<'_, HideAnswer>;

    /// Deletes completed messages before the report does, so that none of them is redelivered if the process dies on the next
    /// one. [`Confirmation::Confirmed`] only once the queue has confirmed that all are gone.
    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        let _ = indexes;
        Box::pin(std::future::ready(Confirmation::Unconfirmed))
    }

    /// Returns whether rejected messages can be sent to a dead-letter queue from here. Unless it says so, they go there by redrive.
    /// Where it returns `true`, [`dead_letters`](Self::dead_letters) has to be implemented, too: as it is, it confirms nothing.
    fn has_dead_letters(&self) -> bool {
        false
    }

    /// Sends copies of messages to the dead-letter queue, at most [`DEAD_LETTERS_BATCH_MAX`], within this time. Answers for
    /// each, in their order: [`Confirmation::Confirmed`] only once the queue has confirmed that very copy, since the message is
    /// then reported successful and deleted. One without an answer counts as unconfirmed.
    fn dead_letters<'a>(
        &'a self,
        dead_letters: &'a [DeadLetter],
        within: Duration,
    ) -> BoxFuture<'a, Vec<Confirmation>> {
        let _ = (dead_letters, within);
        Box::pin(std::future::ready(Vec::new()))
    }

    /// Returns what lets this queue's messages into the function, where an open breaker is to pause it.
    fn intake(&self) -> Option<&dyn Intake> {
        None
    }

    /// Returns whether messages can be sent again at a time of their own from here. Unless it says so, no message comes back later
    /// than a queue can hide it, [`VISIBILITY_MAX_S`]. Where it returns `true`, [`send_again`](Self::send_again) has to be implemented, too:
    /// as it is, it confirms nothing.
    fn has_schedules(&self) -> bool {
        false
    }

    /// Schedules messages to be sent to their own queue again, each as it was received and at its time, within this time, with the
    /// attribute [`SENT_AGAIN_OF`](crate::own_attributes::SENT_AGAIN_OF): its [first id](crate::Message::first_id). A message that has such a
    /// schedule already gets no second one. Answers for each, in their order: [`Confirmation::Confirmed`] only once its schedule was seen
    /// to be there, since the message is then reported successful and deleted. One without an answer counts as unconfirmed.
    fn send_again<'a>(&'a self, messages: &'a [SendAgain], within: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        let _ = (messages, within);
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// Asks a queue for something of each of so many messages, until `by`, and returns whether it has confirmed each. Where no time is left, it is
/// not asked.
pub(crate) async fn confirmed<'a>(
    count: usize,
    by: Instant,
    ask: impl FnOnce(Duration) -> BoxFuture<'a, Vec<Confirmation>>,
) -> Vec<bool> {
    let left = time_until(by);
    let answers = match left.is_zero() {
        true => Vec::new(),
        false => timeout(left, ask(guarded(left))).await.unwrap_or_default(),
    };
    let mut confirmed: Vec<_> = answers.into_iter().map(|answer| answer == Confirmation::Confirmed).collect();
    confirmed.resize(count, false);
    confirmed
}

/// A queue without any of these calls: rejected messages go to their dead-letter queue by redrive.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoQueue;

impl Queue for NoQueue {
    fn hide(&self, _index: usize, _period: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_queue_does_not_answer_in_time_is_not_confirmed() {
        use Confirmation::{Confirmed, Unconfirmed};
        const WITHIN: Duration = Duration::from_secs(1);
        let ready = |answers: Vec<_>| confirmed(3, Instant::now() + WITHIN, |_| Box::pin(std::future::ready(answers)));
        assert_eq!(ready(vec![Unconfirmed, Confirmed]).await, [false, true, false]);
        assert_eq!(confirmed(1, Instant::now() + WITHIN, |_| Box::pin(std::future::pending())).await, [false]);
        // A request would be on its way for a message that is reported as one that comes back.
        assert_eq!(confirmed(1, Instant::now(), |_| panic!("it has no time")).await, [false]);
    }
}
