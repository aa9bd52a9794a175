//! Records that are not of work, and what acts make of them: those by which processes share a breaker or a limit.

use claimant_core::RecordId;
use claimant_core::breaker::BREAKER_CONSUMER;
use claimant_core::limit::LIMIT_CONSUMER;
use claimant_core::protocol::Act;

/// What a record is of that is not of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// A breaker.
    Breaker,
    /// A limit: what an operator has set.
    Limit,
    /// A slot of a limit.
    Slot,
}

impl Beside {
    /// Returns what this record is of; `None` of a record of work.
    #[must_use]
    pub fn of(id: &RecordId) -> Option<Self> {
        match id.consumer() {
            BREAKER_CONSUMER => Some(Self::Breaker),
            LIMIT_CONSUMER if id.as_str().contains('/') => Some(Self::Slot),
            LIMIT_CONSUMER => Some(Self::Limit),
            _ => None,
        }
    }

    /// Returns what a person is asked before an act on it.
    #[must_use]
    pub const fn asks(self, act: Act) -> &'static str {
        match (self, act) {
            (Self::Breaker, _) => "Close it",
            (Self::Limit, _) => "Let it be as the functions set it",
            (Self::Slot, Act::Resolve) => "Keep it from every process",
            (Self::Slot, _) => "Free it",
        }
    }

    /// Returns what an act leaves that writes.
    pub(super) const fn becomes(self, act: Act) -> &'static str {
        match (self, act) {
            (Self::Breaker, _) => "the breaker is closed",
            (Self::Limit, _) => "the limit is as the functions set it",
            (Self::Slot, Act::Resolve) => "no process can take the slot until its window is over",
            (Self::Slot, _) => "the slot is free",
        }
    }

    /// Returns what it is while its lease is live.
    pub(super) const fn is_live(self) -> &'static str {
        match self {
            Self::Breaker => "the breaker is open",
            Self::Limit => "it is being set",
            Self::Slot => "a process holds the slot",
        }
    }

    /// Returns what it is that counts as completed.
    pub(super) const fn is_completed(self) -> &'static str {
        match self {
            Self::Breaker => "it is completed",
            Self::Limit => "an operator has set the limit: claimant limit NAME --as-set takes that back",
            Self::Slot => "the slot is kept from every process, and free once it is forgotten by force",
        }
    }
}
