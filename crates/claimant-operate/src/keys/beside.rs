//! Records that are not of work, and what acts make of them: those by which processes share a breaker or a limit.

use claimant_core::RecordId;
use claimant_core::breaker::BREAKER_CONSUMER;
use claimant_core::limit::{LIMIT_CONSUMER, LIMIT_PLAN, LIMIT_WANTED};
use claimant_core::protocol::Act;

/// What a record is of that is not of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// A breaker.
    Breaker,
    /// A limit: what an operator has set.
    Limit,
    /// The plan that the processes of a limit go by.
    Plan,
    /// The mark of a process that has no slot of its limit.
    Mark,
    /// A slot of a limit.
    Slot,
}

impl Beside {
    /// Returns what this record is of; `None` of a record of work.
    #[must_use]
    pub fn of(id: &RecordId) -> Option<Self> {
        match id.consumer() {
            BREAKER_CONSUMER => Some(Self::Breaker),
            LIMIT_CONSUMER => Some(match id.as_str().rsplit_once('/') {
                None => Self::Limit,
                Some((_, LIMIT_PLAN)) => Self::Plan,
                Some((_, LIMIT_WANTED)) => Self::Mark,
                Some(_) => Self::Slot,
            }),
            _ => None,
        }
    }

    /// Returns what a person is asked before an act on it.
    #[must_use]
    pub const fn asks(self, act: Act) -> &'static str {
        match (self, act) {
            (Self::Breaker, _) => "Close it",
            (Self::Limit, _) => "Let it be as the functions set it",
            (Self::Plan, Act::Resolve) => "Let nothing start that the limit holds for",
            (Self::Plan, _) => "Let another plan hold, beside this one for half a minute",
            (Self::Mark, _) => "Let processes keep all their slots for now",
            (Self::Slot, Act::Resolve) => "Keep it from every process",
            (Self::Slot, _) => "Free it",
        }
    }

    /// Returns what an act leaves that writes.
    pub(super) const fn becomes(self, act: Act) -> &'static str {
        match (self, act) {
            (Self::Breaker, _) => "the breaker is closed",
            (Self::Limit, _) => "the limit is as the functions set it",
            (Self::Plan, Act::Resolve) => "nothing starts that the limit holds for, until its window is over",
            (Self::Plan, _) => "another plan can hold, and processes go by this one for up to half a minute",
            (Self::Mark, _) => "processes keep all their slots until one says again that it has none",
            (Self::Slot, Act::Resolve) => "no process can take the slot until its window is over",
            (Self::Slot, _) => {
                "the slot is free for another process, and the one that has it goes on in it for up to 8 s, and with what it runs"
            }
        }
    }

    /// Returns what it is while its lease is live.
    pub(super) const fn is_live(self) -> &'static str {
        match self {
            Self::Breaker => "the breaker is open",
            Self::Limit => "it is being set",
            Self::Plan => "processes go by the plan",
            Self::Mark => "a process says that it has no slot",
            Self::Slot => "a process holds the slot",
        }
    }

    /// Returns what it is that counts as completed.
    pub(super) const fn is_completed(self) -> &'static str {
        match self {
            Self::Breaker => "it is completed",
            Self::Limit => "an operator has set the limit: claimant limit NAME --as-set takes that back",
            Self::Plan => "nothing starts that the limit holds for, until it is forgotten by force",
            Self::Mark => "processes keep all their slots, until it is forgotten by force",
            Self::Slot => "the slot is kept from every process, and free once it is forgotten by force",
        }
    }
}
