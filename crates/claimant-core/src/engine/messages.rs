//! Messages: each is done when all events in it are. It has one entry in the report, and one dead letter at most; one that the queue delivered
//! twice in a batch is two here.

use std::time::Duration;

use super::dead_letters::Disposed;
use super::progress::{Combined, Progress, TryAgain, error_of_event};
use super::reading::Arrival;
use super::work::{Answer, Delivery};
use crate::report::{Details, Entry, HandlerResult, Outcome};

/// What becomes of a message now that another of its events has ended.
pub(crate) enum MessageEnd {
    /// Others of its events have not ended.
    Open,
    /// It has its outcome; whether that is a success.
    Reported { success: bool },
    /// It goes to the dead-letter queue.
    Disposed(Box<Disposed>),
}

/// A message of the batch, until it is known what became of it.
#[derive(Default)]
struct Events {
    total: u32,
    ended: u32,
    progress: Progress<Disposed>,
}

/// The messages of a batch, by their index. Until it is known what became of one, it counts as not started, which is no success.
pub(crate) struct Messages {
    entries: Vec<Entry>,
    events: Vec<Events>,
}

impl Messages {
    /// Returns the messages that these events are of; each has one at least.
    pub(crate) fn new(arrivals: &[Arrival]) -> Self {
        let mut messages = Self { entries: Vec::new(), events: Vec::new() };
        for arrival in arrivals {
            if arrival.index == messages.entries.len() {
                messages.entries.push(Entry::new(arrival.message.id().clone(), Outcome::NotStarted));
                messages.events.push(Events::default());
            }
            messages.events[arrival.index].total += 1;
        }
        messages
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// Records the answer to an event.
    pub(crate) fn answered(&mut self, delivery: &Delivery, answer: Answer) -> MessageEnd {
        let alone = self.entries.len() == 1 && self.events[delivery.index].total == 1;
        let (events, details) = (&mut self.events[delivery.index], delivery.details);
        let Answer { outcome, visible_after, result } = answer;
        self.entries[delivery.index].result = result.filter(|_| alone).map(HandlerResult);
        match outcome.is_success() {
            true => events.progress.succeed(outcome, details),
            false => events.progress.fail(delivery.event, TryAgain { outcome, visible_after, details }),
        }
        self.ended(delivery.index, delivery.lane)
    }

    /// Records that an event is one for the dead-letter queue.
    pub(crate) fn disposed(&mut self, disposed: Disposed) -> MessageEnd {
        let (index, lane) = (disposed.delivery.index, disposed.delivery.lane);
        self.events[index].progress.dispose(disposed.delivery.event, disposed);
        self.ended(index, lane)
    }

    /// Gives a message its outcome.
    pub(crate) fn report(
        &mut self,
        index: usize,
        outcome: Outcome,
        visible_after: Option<Duration>,
        details: Details,
    ) -> MessageEnd {
        let (entry, events) = (&mut self.entries[index], self.events[index].total);
        (entry.outcome, entry.visible_after, entry.details) = (outcome, visible_after, Details { events, ..details });
        MessageEnd::Reported { success: entry.outcome.is_success() }
    }

    fn ended(&mut self, index: usize, lane: usize) -> MessageEnd {
        let events = &mut self.events[index];
        events.ended += 1;
        if events.ended < events.total {
            return MessageEnd::Open;
        }
        let total = events.total;
        match std::mem::take(&mut events.progress).combined() {
            Some(Combined::Again(failure)) => {
                self.report(index, failure.outcome, failure.visible_after, failure.details)
            }
            Some(Combined::Disposed { event, mut disposed, others }) => {
                // The event that ended last waits for the dead letter.
                disposed.delivery.lane = lane;
                if total > 1 {
                    disposed.disposal.error = error_of_event(&disposed.disposal.error, event, total, others);
                }
                MessageEnd::Disposed(Box::new(disposed))
            }
            Some(Combined::Done(outcome, details)) => self.report(index, outcome, None, details),
            // None of its events has ended, which cannot be here; it stays as not started.
            None => MessageEnd::Reported { success: false },
        }
    }
}
