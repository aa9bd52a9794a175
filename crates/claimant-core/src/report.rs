//! One outcome for every message of a batch.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use crate::clock::Timestamp;
use crate::consumer::Rejection;
use crate::key::MessageId;

/// What became of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its handler ran and its key was seen completed under this claim.
    Completed,
    /// Its key had been completed before; the handler did not run.
    Duplicate,
    /// Somebody else works on its key, until this time at most.
    Busy {
        /// When the key is claimable at the latest.
        until: Timestamp,
    },
    /// The handler failed, panicked or was cancelled; its claim was released. Try again.
    Retry,
    /// The handler did not stop when told; its claim stays until the lease ends.
    Stuck,
    /// There was no time left to start it.
    NotStarted,
    /// An earlier message of its ordered group did not succeed.
    Blocked,
    /// No retry can mend it.
    Rejected(Rejection),
    /// It was abandoned by an at-most-once consumer; an operator has to decide.
    Parked,
    /// The claim could not be settled as wanted: it was lost to somebody else.
    Lost,
    /// Whether the claim was settled is not known.
    Unsettled,
    /// The store gave no answer to the claim.
    StoreFailed,
}

impl Outcome {
    /// Whether the message may be deleted: only if its key was observed completed.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Completed | Self::Duplicate)
    }

    /// One word for logs and metrics.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Duplicate => "duplicate",
            Self::Busy { .. } => "busy",
            Self::Retry => "retry",
            Self::Stuck => "stuck",
            Self::NotStarted => "not_started",
            Self::Blocked => "blocked",
            Self::Rejected(_) => "rejected",
            Self::Parked => "parked",
            Self::Lost => "lost",
            Self::Unsettled => "unsettled",
            Self::StoreFailed => "store_failed",
        }
    }
}

/// What became of the message at one place of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The message.
    pub message_id: MessageId,
    /// What became of it.
    pub outcome: Outcome,
    /// For a failure: after how long the queue should show the message again; `None` leaves it as it is.
    pub visible_after: Option<Duration>,
}

/// What became of a batch: one entry for each message, in the batch's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    entries: Vec<Entry>,
}

impl Report {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// All entries, in the batch's order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The ids to report failed, each once: a queue can deliver one message twice in a batch, and if any copy
    /// failed, it failed.
    #[must_use]
    pub fn failures(&self) -> Vec<&MessageId> {
        let mut seen = HashSet::new();
        let failed = self.entries.iter().filter(|e| !e.outcome.is_success());
        failed.map(|e| &e.message_id).filter(|id| seen.insert(*id)).collect()
    }

    /// How many messages had each outcome, by [`Outcome::word`].
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
        let entry = |id: &str, outcome| Entry { message_id: MessageId::new(id).unwrap(), outcome, visible_after: None };
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
