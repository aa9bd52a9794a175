//! Messages: each is done when all events in it are. It has one entry in the report, and one dead letter at most.

use std::cmp::Reverse;
use std::time::Duration;

use super::dead_letters::Disposed;
use super::intake::Arrival;
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

/// What those events of a message came to that have ended.
#[derive(Default)]
struct Progress {
    events: u32,
    ended: u32,
    success: Option<(Outcome, Details)>,
    /// The one that the message waits for longest.
    failure: Option<Failure>,
    /// The first event that no retry can fix, and how many others there are.
    disposed: Option<Box<(Disposed, u32)>>,
}

/// An event that is to be tried again.
struct Failure {
    event: u32,
    outcome: Outcome,
    visible_after: Option<Duration>,
    details: Details,
}

/// The messages of a batch, by their index. Until it is known what became of one, it counts as not started, which is no success.
pub(crate) struct Messages {
    entries: Vec<Entry>,
    progress: Vec<Progress>,
}

impl Messages {
    /// Returns the messages that these events are of; each has one at least.
    pub(crate) fn new<T>(arrivals: &[Arrival<T>]) -> Self {
        let mut messages = Self { entries: Vec::new(), progress: Vec::new() };
        for arrival in arrivals {
            if arrival.index == messages.entries.len() {
                messages.entries.push(Entry::new(arrival.message.id().clone(), Outcome::NotStarted));
                messages.progress.push(Progress::default());
            }
            messages.progress[arrival.index].events += 1;
        }
        messages
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// Records the answer to an event.
    pub(crate) fn answered(&mut self, delivery: &Delivery, answer: Answer) -> MessageEnd {
        let alone = self.entries.len() == 1 && self.progress[delivery.index].events == 1;
        let (progress, details) = (&mut self.progress[delivery.index], delivery.details);
        let Answer { outcome, visible_after, result } = answer;
        self.entries[delivery.index].result = result.filter(|_| alone).map(HandlerResult);
        if !outcome.is_success() {
            progress.fail(Failure { event: delivery.event, outcome, visible_after, details });
        } else if progress.success.is_none() || outcome == Outcome::Completed {
            progress.success = Some((outcome, details));
        }
        self.ended(delivery.index, delivery.lane)
    }

    /// Records that an event is one for the dead-letter queue. Its message goes there once no other event of it is to be tried
    /// again: until then there would be a dead letter for each delivery.
    pub(crate) fn disposed(&mut self, disposed: Disposed) -> MessageEnd {
        let (index, lane) = (disposed.delivery.index, disposed.delivery.lane);
        let progress = &mut self.progress[index];
        match &mut progress.disposed {
            None => progress.disposed = Some(Box::new((disposed, 0))),
            Some(known) => {
                known.1 += 1;
                if disposed.delivery.event < known.0.delivery.event {
                    known.0 = disposed;
                }
            }
        }
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
        let (entry, events) = (&mut self.entries[index], self.progress[index].events);
        (entry.outcome, entry.visible_after, entry.details) = (outcome, visible_after, Details { events, ..details });
        MessageEnd::Reported { success: entry.outcome.is_success() }
    }

    fn ended(&mut self, index: usize, lane: usize) -> MessageEnd {
        let progress = &mut self.progress[index];
        progress.ended += 1;
        if progress.ended < progress.events {
            return MessageEnd::Open;
        }
        let Progress { events, success, failure, disposed, .. } = std::mem::take(progress);
        progress.events = events;
        match (failure, disposed, success) {
            (Some(failure), _, _) => self.report(index, failure.outcome, failure.visible_after, failure.details),
            (None, Some(disposed), _) => MessageEnd::Disposed(Box::new(of_message(*disposed, events, lane))),
            (None, None, Some((outcome, details))) => self.report(index, outcome, None, details),
            // None of its events has ended, which cannot be here; it stays as not started.
            (None, None, None) => MessageEnd::Reported { success: false },
        }
    }
}

impl Progress {
    /// A message comes back when all of its events can be tried again, so that none of its receives is for nothing: the one that
    /// needs it longest counts, and the first of equals. The queue's own visibility timeout is longer than any other delay.
    fn fail(&mut self, failure: Failure) {
        let rank = |one: &Failure| (one.visible_after.is_none(), one.visible_after, Reverse(one.event));
        if self.failure.as_ref().is_none_or(|known| rank(known) < rank(&failure)) {
            self.failure = Some(failure);
        }
    }
}

/// Returns the dead letter of a message for its first event that no retry can fix, beside so many others; the lane is that of the
/// event that ended last, which waits for it.
fn of_message((mut disposed, others): (Disposed, u32), events: u32, lane: usize) -> Disposed {
    disposed.delivery.lane = lane;
    if events > 1 {
        let number = disposed.delivery.event + 1;
        let rest = if others == 0 { String::new() } else { format!(" (and {others} more of its events)") };
        disposed.disposal.error = format!("event {number} of {events}: {}{rest}", disposed.disposal.error);
    }
    disposed
}
