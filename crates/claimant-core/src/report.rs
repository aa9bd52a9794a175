//! One outcome for every message of a batch.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::time::Duration;

use crate::claim::Fence;
use crate::clock::Timestamp;
use crate::key::{ConsumerName, MessageId, RecordId};
use crate::meter::Usage;
use crate::rejection::Rejection;

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Its handler ran and its key was seen completed under this claim.
    Completed,
    /// Its key had been completed before; the handler did not run.
    Duplicate,
    /// Another owner works on its key.
    Busy {
        /// When the key is claimable if the owner's lease is not renewed.
        until: Timestamp,
    },
    /// The handler failed or panicked; its claim was released. Try again.
    Retry,
    /// As [`Retry`](Self::Retry), later than a queue can hide a message: a schedule was confirmed that sends it to its queue again.
    Scheduled,
    /// The handler was cancelled, at the deadline or its timeout; its claim was released. Try again.
    Cancelled,
    /// The handler did not stop when it was cancelled; its claim stays until the lease ends.
    Stuck,
    /// There was no time left to start it.
    NotStarted,
    /// It was held back as long as there was time, since the breaker of a system that its handler calls is open.
    BreakerOpen,
    /// It waited as long as there was time for a call that the limit of a system allows which its handler calls.
    RateLimited,
    /// An earlier message of its ordered group did not succeed.
    Blocked,
    /// No retry can fix it.
    Rejected {
        /// Why.
        rejection: Rejection,
        /// Whether the dead-letter queue has confirmed a copy of it.
        dead_lettered: bool,
    },
    /// It is at-most-once work that may be done; an operator has to decide.
    Parked {
        /// Whether the dead-letter queue has confirmed a copy of it.
        dead_lettered: bool,
    },
    /// The claim was lost to another owner before it was settled.
    LeaseLost,
    /// Whether the claim was settled is not known.
    SettleUnknown,
    /// The store gave no answer to the claim.
    StoreFailed,
    /// Its envelope says that it holds no event: there is nothing to do.
    Empty,
    /// The payload that it points to could not be fetched. Try again.
    FetchFailed,
    /// No route takes it, and the function says to acknowledge such messages: nothing was done.
    Ignored,
}

impl Outcome {
    /// Returns whether the message may be deleted: only if its key was observed completed (which is what a committed row of an inbox
    /// counts as), or a copy of it observed in the dead-letter queue, or a schedule that sends it again was confirmed, or it has no work:
    /// by what its envelope says, or since the function says to ignore it.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        match self {
            Self::Completed | Self::Duplicate | Self::Scheduled | Self::Empty | Self::Ignored => true,
            Self::Rejected { dead_lettered, .. } | Self::Parked { dead_lettered } => *dead_lettered,
            _ => false,
        }
    }

    /// Returns the word for logs and metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Duplicate => "duplicate",
            Self::Busy { .. } => "busy",
            Self::Retry => "retry",
            Self::Scheduled => "scheduled",
            Self::Cancelled => "cancelled",
            Self::Stuck => "stuck",
            Self::NotStarted => "not_started",
            Self::BreakerOpen => "breaker_open",
            Self::RateLimited => "rate_limited",
            Self::Blocked => "blocked",
            Self::Rejected { rejection, .. } if rejection.is_conflict() => "conflict",
            Self::Rejected { .. } => "rejected",
            Self::Parked { .. } => "parked",
            Self::LeaseLost => "lease_lost",
            Self::SettleUnknown => "settle_unknown",
            Self::StoreFailed => "store_failed",
            Self::Empty => "empty",
            Self::FetchFailed => "fetch_failed",
            Self::Ignored => "ignored",
        }
    }
}

/// Every word that [`Outcome::word`] can return.
pub const OUTCOME_WORDS: [&str; 20] = [
    "completed",
    "duplicate",
    "busy",
    "retry",
    "scheduled",
    "cancelled",
    "stuck",
    "not_started",
    "breaker_open",
    "rate_limited",
    "blocked",
    "conflict",
    "rejected",
    "parked",
    "lease_lost",
    "settle_unknown",
    "store_failed",
    "empty",
    "fetch_failed",
    "ignored",
];

/// A message on its way to the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeadLetter {
    /// The message's index in the batch.
    pub index: usize,
    /// Its id.
    pub message_id: MessageId,
    /// The consumer that rejected it.
    pub consumer: ConsumerName,
    /// Why; without payload data, unless the handler put it into its error.
    pub error: String,
    /// Which run of the handler rejected it, if one did.
    pub attempt: Option<u32>,
    /// What became of it.
    pub reason: DeadLetterReason,
    /// The record of its key, if it has a key.
    pub record: Option<RecordId>,
}

/// What became of a message that goes to the dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeadLetterReason {
    /// No retry can do its work, and this message has not done it.
    Rejected,
    /// Its key belongs to work with another payload; this message's work is not done.
    Conflict,
    /// Its work may be done.
    Parked,
}

impl DeadLetterReason {
    /// Returns the outcome's word for it, by [`Outcome::word`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Conflict => "conflict",
            Self::Parked => "parked",
        }
    }
}

/// What became of one message of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The message.
    pub message_id: MessageId,
    /// What became of it.
    pub outcome: Outcome,
    /// For a failure: after how long the queue should make the message visible again; `None` leaves that as it is.
    pub visible_after: Option<Duration>,
    /// The steps that led to the outcome.
    pub details: Details,
    /// What the handler returned, now or when the work was done, where the message is the only one of its batch.
    pub result: Option<HandlerResult>,
}

/// What a handler returned, as JSON. `Debug` shows its length alone.
#[derive(Clone, PartialEq, Eq)]
pub struct HandlerResult(pub(crate) String);

impl HandlerResult {
    /// Returns the JSON text.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for HandlerResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandlerResult({} bytes)", self.0.len())
    }
}

impl Entry {
    /// Returns what became of a message, without details.
    #[must_use]
    pub fn new(message_id: MessageId, outcome: Outcome) -> Self {
        Self { message_id, outcome, visible_after: None, details: Details::default(), result: None }
    }

    /// Records that the dead-letter queue has confirmed a copy of it, if it was rejected or parked.
    pub(crate) fn dead_lettered(&mut self) {
        if let Outcome::Rejected { dead_lettered, .. } | Outcome::Parked { dead_lettered } = &mut self.outcome {
            (*dead_lettered, self.visible_after) = (true, None);
        }
    }
}

/// The steps of a message and their durations. A step that it did not take has no duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Details {
    /// How often the queue had delivered it, with this time.
    pub receive_count: u32,
    /// How many events it holds: one, unless its envelope has several. The other details are of the event that decided the outcome.
    pub events: u32,
    /// Which claim for a run of the handler this was, if its key was claimed for it.
    pub attempt: Option<u32>,
    /// The fencing token of that claim.
    pub fence: Option<Fence>,
    /// How long its claims took, shared requests in full, and with the waits between tries that the store did not answer.
    pub claim: Option<Duration>,
    /// How long its handler took.
    pub handle: Option<Duration>,
    /// How long its settlements took, likewise.
    pub settle: Option<Duration>,
}

/// How long the steps of a batch took at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Latencies {
    /// The longest that the claims of a message took.
    pub claim: Duration,
    /// The longest that a handler took.
    pub handle: Duration,
    /// The longest that the settlements of a message took.
    pub settle: Duration,
}

/// What was counted and measured over all messages of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// How many claims took over work that another owner had left.
    pub taken_over: usize,
    /// How often the intake was paused, since what the handlers call is away.
    pub pauses: usize,
    /// How long the steps took.
    pub latencies: Latencies,
    /// The requests to the store.
    pub usage: Usage,
}

impl Totals {
    /// Adds those of another batch of the same invocation.
    pub(crate) fn add(&mut self, other: &Self) {
        self.taken_over += other.taken_over;
        self.pauses += other.pauses;
        self.latencies = Latencies {
            claim: self.latencies.claim.max(other.latencies.claim),
            handle: self.latencies.handle.max(other.latencies.handle),
            settle: self.latencies.settle.max(other.latencies.settle),
        };
        self.usage.requests += other.usage.requests;
        self.usage.write_units += other.usage.write_units;
        self.usage.read_units += other.usage.read_units;
    }
}

/// What became of a batch: one entry for each message, in the batch's order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    pub(crate) entries: Vec<Entry>,
    /// What was counted and measured.
    pub totals: Totals,
}

impl Report {
    /// Creates a report of these entries, in the batch's order, with nothing counted and measured.
    #[must_use]
    pub fn new(entries: Vec<Entry>) -> Self {
        Self { entries, totals: Totals::default() }
    }

    /// Returns all entries, in the batch's order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the ids to report failed, each once: a queue can deliver one message twice in a batch, and if any copy
    /// failed, it failed.
    #[must_use]
    pub fn failures(&self) -> Vec<&MessageId> {
        let mut seen = HashSet::new();
        let failed = self.entries.iter().filter(|e| !e.outcome.is_success());
        failed.map(|e| &e.message_id).filter(|id| seen.insert(*id)).collect()
    }

    /// Returns how many messages had each outcome, by [`Outcome::word`].
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for entry in &self.entries {
            *counts.entry(entry.outcome.word()).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_copy_fails_its_message_once() {
        let entry = |id: &str, outcome| Entry::new(MessageId::new(id).unwrap(), outcome);
        let report = Report::new(vec![
            entry("a", Outcome::Completed),
            entry("b", Outcome::Retry),
            entry("a", Outcome::Stuck),
            entry("b", Outcome::Retry),
            entry("c", Outcome::Duplicate),
        ]);
        let failures: Vec<_> = report.failures().into_iter().map(MessageId::as_str).collect();
        assert_eq!(failures, ["b", "a"]);
        assert_eq!(report.counts()["retry"], 2);
    }
}
