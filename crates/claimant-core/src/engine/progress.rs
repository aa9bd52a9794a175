//! What becomes of a message of several events: pure. It is done when all of them are; until then it stays for the one that needs
//! it longest. The first that no retry can fix decides what a message is that is done.

use std::cmp::Reverse;
use std::time::Duration;

use crate::backoff;
use crate::limits::VISIBILITY_MAX_S;
use crate::report::{Details, Outcome};

/// What the events of a message came to, of those that have ended. `D` is what goes to the dead-letter queue for an event.
pub(crate) struct Progress<D> {
    success: Option<(Outcome, Details)>,
    /// The one that the message waits for, and its event.
    failure: Option<(u32, TryAgain)>,
    /// Whether an event is to be tried again within the time for which a queue can hide a message ([`VISIBILITY_MAX_S`]), so that the message
    /// is not sent again by a schedule.
    soon: bool,
    /// The first event that no retry can fix, and how many others there are.
    disposed: Option<Box<(u32, D, u32)>>,
}

/// An event, or a message, that is to be tried again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TryAgain {
    pub(crate) outcome: Outcome,
    pub(crate) visible_after: Option<Duration>,
    pub(crate) details: Details,
}

/// What becomes of a message whose events have all ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Combined<D> {
    /// It is to be tried again.
    Again(TryAgain),
    /// It goes to the dead-letter queue for this event, beside so many others.
    Disposed { event: u32, disposed: D, others: u32 },
    /// It is done.
    Done(Outcome, Details),
}

impl<D> Default for Progress<D> {
    fn default() -> Self {
        Self { success: None, failure: None, soon: false, disposed: None }
    }
}

impl<D> Progress<D> {
    /// Records that an event is done.
    pub(crate) fn succeed(&mut self, outcome: Outcome, details: Details) {
        if self.success.as_ref().is_none_or(|(known, _)| rank(&outcome) < rank(known)) {
            self.success = Some((outcome, details));
        }
    }

    /// Records that an event is not done, and no dead letter is sent for it. Its message comes back when all of its events can be, so that
    /// none of its receives is for nothing: of those to be tried again, the one that needs it longest counts, and the first of equals. The
    /// queue's own visibility timeout is longer than any other delay. Where none is to be tried again, a rejected one counts, and not one that
    /// is blocked by it.
    pub(crate) fn fail(&mut self, event: u32, failure: TryAgain) {
        self.soon |= !failure.visible_after.is_some_and(backoff::is_long);
        let rank = |(event, one): &(u32, TryAgain)| {
            (is_tried_again(&one.outcome), one.visible_after.is_none(), one.visible_after, Reverse(*event))
        };
        let failure = (event, failure);
        if self.failure.as_ref().is_none_or(|known| rank(known) < rank(&failure)) {
            self.failure = Some(failure);
        }
    }

    /// Records that no retry can fix an event. Its message goes to the dead-letter queue once no other event of it is to be tried
    /// again: until then there would be a dead letter for each delivery.
    pub(crate) fn dispose(&mut self, event: u32, disposed: D) {
        match &mut self.disposed {
            None => self.disposed = Some(Box::new((event, disposed, 0))),
            Some(known) => {
                known.2 += 1;
                if event < known.0 {
                    (known.0, known.1) = (event, disposed);
                }
            }
        }
    }

    /// Returns what becomes of the message now that all of its events have ended; `None` if it has none.
    pub(crate) fn combined(self) -> Option<Combined<D>> {
        if let Some((_, mut failure)) = self.failure {
            // Its message is not sent again for the sake of one event: those to be tried soon come too late, and one that is
            // rejected would run again, since it has another id then.
            let most = (self.soon || self.disposed.is_some()).then_some(Duration::from_secs(VISIBILITY_MAX_S));
            failure.visible_after = failure.visible_after.map(|after| most.map_or(after, |most| after.min(most)));
            return Some(Combined::Again(failure));
        }
        if let Some(disposed) = self.disposed {
            let (event, disposed, others) = *disposed;
            return Some(Combined::Disposed { event, disposed, others });
        }
        self.success.map(|(outcome, details)| Combined::Done(outcome, details))
    }
}

/// Whether an event that is not done is to be tried again for its own sake.
fn is_tried_again(failure: &Outcome) -> bool {
    !matches!(failure, Outcome::Rejected { .. } | Outcome::Parked { .. } | Outcome::Blocked)
}

/// What an event that is done says of its message: that something was done, that it had been, or that there was nothing to do.
fn rank(success: &Outcome) -> u8 {
    match success {
        Outcome::Completed => 0,
        Outcome::Duplicate => 1,
        _ => 2,
    }
}

/// Returns the error of a message of so many events that is a dead letter for this one of them, beside so many others.
pub(crate) fn error_of_event(error: &str, event: u32, events: u32, others: u32) -> String {
    let rest = if others == 0 { String::new() } else { format!(" (and {others} more of its events)") };
    format!("event {} of {events}: {error}{rest}", event + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::rejection::Rejection;

    enum Ended {
        Done(Outcome),
        Failed(Outcome, Option<u64>),
        Disposed(&'static str),
    }
    use Ended::{Disposed, Done, Failed};

    fn combined(events: Vec<(u32, Ended)>) -> String {
        let mut progress = Progress::default();
        let details = Details::default();
        for (event, ended) in events {
            match ended {
                Done(outcome) => progress.succeed(outcome, details),
                Failed(outcome, after) => {
                    let visible_after = after.map(Duration::from_secs);
                    progress.fail(event, TryAgain { outcome, visible_after, details });
                }
                Disposed(why) => progress.dispose(event, why),
            }
        }
        match progress.combined() {
            None => "none".to_owned(),
            Some(Combined::Done(outcome, _)) => outcome.word().to_owned(),
            Some(Combined::Again(TryAgain { outcome, visible_after, .. })) => {
                format!("{} {:?}", outcome.word(), visible_after.map(|after| after.as_secs()))
            }
            Some(Combined::Disposed { event, disposed, others }) => error_of_event(disposed, event, 9, others),
        }
    }

    #[test]
    fn a_message_is_done_when_all_of_its_events_are() {
        let busy = || Outcome::Busy { until: Timestamp::from_millis(1) };
        let rejected = || Outcome::Rejected { rejection: Rejection::new("never"), dead_lettered: false };
        let cases = [
            (vec![], "none"),
            (vec![Done(Outcome::Completed)], "completed"),
            (vec![Done(Outcome::Duplicate), Done(Outcome::Completed)], "completed"),
            (vec![Done(Outcome::Ignored), Done(Outcome::Duplicate)], "duplicate"),
            (vec![Done(Outcome::Completed), Disposed("never")], "event 2 of 9: never"),
            (vec![Disposed("never"), Failed(Outcome::Retry, Some(5)), Done(Outcome::Completed)], "retry Some(5)"),
            (vec![Failed(Outcome::Retry, Some(5)), Failed(busy(), Some(9)), Disposed("never")], "busy Some(9)"),
            (vec![Failed(Outcome::Retry, Some(5)), Failed(Outcome::Cancelled, Some(5))], "retry Some(5)"),
            // Without a dead-letter queue: one that is to be tried again counts, and of the others the first.
            (vec![Failed(rejected(), Some(8)), Failed(Outcome::Retry, Some(5))], "retry Some(5)"),
            (vec![Failed(Outcome::Retry, Some(0)), Failed(rejected(), Some(0))], "retry Some(0)"),
            (vec![Failed(rejected(), Some(0)), Failed(Outcome::Retry, Some(0))], "retry Some(0)"),
            (vec![Failed(rejected(), Some(0)), Failed(Outcome::Blocked, Some(0))], "rejected Some(0)"),
            (vec![Failed(rejected(), Some(8)), Failed(Outcome::Blocked, Some(0))], "rejected Some(8)"),
            // Sent again only where all of its events can wait for that.
            (vec![Failed(Outcome::Retry, Some(99_999)), Done(Outcome::Completed)], "retry Some(99999)"),
            (vec![Failed(Outcome::Retry, Some(99_999)), Failed(busy(), Some(9))], "retry Some(42300)"),
            (vec![Failed(Outcome::Retry, Some(99_999)), Disposed("never")], "retry Some(42300)"),
            // The queue's own visibility timeout is longer than what a retry waits for.
            (vec![Failed(busy(), Some(9)), Failed(Outcome::StoreFailed, None)], "store_failed None"),
        ];
        for (events, wanted) in cases {
            assert_eq!(combined((0..).zip(events).collect()), wanted);
        }
    }

    #[test]
    fn the_first_event_counts_whichever_ended_first() {
        let two = vec![(4, Disposed("late")), (1, Disposed("early"))];
        assert_eq!(combined(two), "event 2 of 9: early (and 1 more of its events)");
        let equal = vec![(4, Failed(Outcome::Retry, Some(5))), (1, Failed(Outcome::Stuck, Some(5)))];
        assert_eq!(combined(equal), "stuck Some(5)");
    }
}
