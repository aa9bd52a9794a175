//! The states of a message in the inbox.

use std::fmt;

/// The state of a message in the inbox. `Display` is the word in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryStatus {
    /// To be processed: now, later, or after others of its group.
    Pending,
    /// Processed.
    Done,
    /// Its attempts are exhausted, or its failure was terminal: an operator decides.
    Dead,
    /// Discarded by an operator.
    Discarded,
}

impl EntryStatus {
    const ALL: [Self; 4] = [Self::Pending, Self::Done, Self::Dead, Self::Discarded];

    /// The word in the table.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Done => "DONE",
            Self::Dead => "DEAD",
            Self::Discarded => "DISCARDED",
        }
    }

    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

impl fmt::Display for EntryStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The result of a change that an operator asked for.
#[must_use = "a message can be in another state by now"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange {
    /// The change is committed.
    Applied,
    /// Nothing was changed: there is no such message, or it is in another state.
    WrongState,
}

impl StateChange {
    pub(crate) const fn of(applied: bool) -> Self {
        if applied { Self::Applied } else { Self::WrongState }
    }
}
