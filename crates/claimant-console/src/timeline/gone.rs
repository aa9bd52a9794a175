//! How a message left its queue for good, in words.

use claimant_core::Timestamp;

use super::clauses::Told;
use super::fact::Answer;
use super::life::{End, Receive};
use super::words::{clock, short, times};

impl Told<'_> {
    /// Returns how it left for good: a message of which the dead-letter queue has a copy leaves with that copy.
    pub(super) fn end(&self) -> Option<(Timestamp, End<'_>)> {
        self.end_of_copy().or(self.life.end)
    }

    /// Returns how the copy in the dead-letter queue left that queue, if it did. One that SQS moved on is a dead letter still.
    pub(super) fn end_of_copy(&self) -> Option<(Timestamp, End<'_>)> {
        self.life.end.filter(|(_, end)| !matches!(end, End::Moved(_) | End::Redriven(..)))?;
        let (.., id) = self.life.copy?;
        let copy = self.others.iter().find(|other| other.id == id)?;
        copy.end.filter(|(_, end)| !matches!(end, End::Moved(_)))
    }

    /// Returns when it left, in words.
    pub(super) fn at(&self) -> String {
        self.end().map_or_else(String::new, |(at, _)| clock(at, self.now))
    }

    /// Returns the queue that it left, in words.
    pub(super) fn left(&self) -> &'static str {
        let is_of_letters = self.life.was_dead_letter() || self.end_of_copy().is_some();
        if is_of_letters { "its dead-letter queue" } else { "its queue" }
    }

    /// Returns who deleted it and why. Its work is not done, as far as is known, and no dead-letter queue has it.
    pub(super) fn deleted(&self) -> String {
        let at = self.at();
        match (self.end(), self.life.last()) {
            (Some((_, End::Discarded)), _) => format!(
                "deleted from its dead-letter queue at {at}: it was discarded, sent back as a new message, or done by what reads that queue"
            ),
            (Some((_, End::QueueDeleted)), _) => format!("deleted at {at}, with {}", self.left()),
            (_, Some(last)) if last.is_scheduled() => {
                format!("deleted at {at}: a schedule sends it again, as a new message")
            }
            (Some((_, End::Purged)), _) => format!("deleted at {at}: {} was emptied", self.left()),
            (Some((_, End::DeletedAhead)), _) => format!(
                "deleted by its function at {at}, ahead of its answer: it deletes what is done before it removes a payload, or runs what may \
                 end its process"
            ),
            (_, None) => format!("deleted at {at}, before a function received it"),
            (_, Some(last)) => format!("deleted {}", by_whom(last, &at)),
        }
    }

    /// Returns in which dead-letter queue it is, and who brought it there.
    pub(super) fn is_among_letters(&self) -> String {
        match (self.life.end, self.life.copy) {
            (Some((_, End::Moved(queue))), _) => {
                let received = self.life.last().map_or(0, |last| last.count as usize).max(self.life.receives.len());
                let so_far = if self.life.is_done() { ", though its work is done" } else { " without success" };
                let why = match received {
                    // A copy, of which no receive is told.
                    0 => String::new(),
                    _ => format!(", as it had been received {}{so_far}", times(received)),
                };
                format!("in the dead-letter queue {queue} since {}: SQS moved it there{why}", self.at())
            }
            _ if self.life.is_dead_letter() => {
                let since = self.life.sent.map_or_else(String::new, |at| format!(" since {}", clock(at, self.now)));
                let of = self.life.made_from().map_or_else(String::new, |id| format!(" of message {}", short(id)));
                format!("in the dead-letter queue {}{since}: the copy{of} that its function sent there", self.queue())
            }
            (_, Some((since, queue, copy))) => {
                let since = clock(since, self.now);
                format!("in the dead-letter queue {queue} since {since}, as message {}", short(copy))
            }
            _ => "in the dead-letter queue".to_owned(),
        }
    }
}

/// Returns who deleted a message after this receive, which its function did not do ahead of its answer.
fn by_whom(last: &Receive<'_>, at: &str) -> String {
    match (last.details.answer.map(|(_, answer)| answer), last.finished) {
        _ if last.details.filtered => format!("at {at}: it fits no filter of the event source mapping"),
        (Some(Answer::Done), None) => {
            format!("by its event source mapping at {at}: its function logged nothing of its work")
        }
        // A mapping without it takes each message of an answer for done.
        (Some(Answer::Done), Some(_)) => format!(
            "by its event source mapping at {at}, though its work is not known to be done: does the mapping have ReportBatchItemFailures?"
        ),
        (Some(Answer::Failed) | None, _) => format!("at {at} by something else that reads its queue, or by hand"),
    }
}
