//! The record of a key: what a store holds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::claim::{Fence, OwnerToken};
use crate::clock::Timestamp;
use crate::fingerprint::Fingerprint;
use crate::key::{InvalidValue, MessageId, RecordId};

/// The longest error text kept on a record, in bytes; a longer one is [`shortened`].
pub const ERROR_MAX_BYTES: usize = 256;

/// How a text ends that was cut.
const CUT: char = '…';

/// The largest result kept on a record, in bytes of JSON. Each KB of it costs a write unit.
pub const RESULT_MAX_BYTES: usize = 65_536;

/// The longest note kept on a record, in bytes.
pub const NOTE_MAX_BYTES: usize = 160;

/// A record's id and its note together are at most this long, in bytes, so that an item of the default shape stays under 1 KB.
const ID_AND_NOTE_MAX_BYTES: usize = 422;

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Claimed, and being worked on until its lease ends.
    InProgress,
    /// Done, for the rest of the deduplication window.
    Completed,
    /// The last run failed; claimable at once.
    Failed,
    /// The last run failed for good: not run again for the same message.
    Rejected,
    /// Abandoned work of an at-most-once consumer: an operator decides.
    Parked,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::InProgress, Self::Completed, Self::Failed, Self::Rejected, Self::Parked];

    /// Returns the word that a record holds.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Rejected => "REJECTED",
            Self::Parked => "PARKED",
        }
    }
}

impl FromStr for Status {
    type Err = InvalidValue;

    fn from_str(word: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|s| s.as_str() == word)
            .ok_or_else(|| InvalidValue("the status is not one that claimant writes".into()))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One record: the state of one (consumer, key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The state of the key.
    pub status: Status,
    /// Who made the last claim.
    pub owner: OwnerToken,
    /// How often the key was claimed.
    pub fence: Fence,
    /// Until when the last claim is honoured; meaningful while in progress.
    pub lease_until: Timestamp,
    /// Handler runs so far in this deduplication window, since the key was last rejected.
    pub attempts: u32,
    /// The message that made the last claim.
    pub message_id: MessageId,
    /// Of the payload that identifies the work.
    pub fingerprint: Fingerprint,
    /// When the first claim of this window was made.
    pub created_at: Timestamp,
    /// When the record was last written.
    pub updated_at: Timestamp,
    /// When the key was completed, if it was.
    pub completed_at: Option<Timestamp>,
    /// The end of deduplication, in whole seconds since the epoch.
    pub expires_at_s: u64,
    /// What the handler returned, if it was kept: JSON, at most [`RESULT_MAX_BYTES`] bytes.
    pub result: Option<String>,
    /// The last failure, at most [`ERROR_MAX_BYTES`] bytes.
    pub error: Option<String>,
    /// What an operator did to the record last: when, who, what and why, at most [`NOTE_MAX_BYTES`] bytes. Claims and
    /// settlements leave it as it is.
    pub note: Option<String>,
}

impl Record {
    /// Returns the error of the last end. None while its work is claimed: then the record still has that of an attempt before.
    #[must_use]
    pub fn error_of_end(&self) -> Option<&str> {
        self.error.as_deref().filter(|_| self.status != Status::InProgress)
    }

    /// Returns whether both are the same write of one key: owner and fence name one claim, status and lease everything that can
    /// happen to it.
    #[must_use]
    pub fn is_same_write(&self, other: &Self) -> bool {
        let of = |record: &'_ Self| (record.status, record.owner.clone(), record.fence, record.lease_until);
        of(self) == of(other)
    }
}

/// Returns how many bytes a note may have beside this record id.
pub(crate) fn note_room(id: &RecordId) -> usize {
    ID_AND_NOTE_MAX_BYTES.saturating_sub(id.as_str().len()).min(NOTE_MAX_BYTES)
}

/// Returns `text` cut to at most `max` bytes, at a character boundary.
#[must_use]
pub fn bounded(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Returns `text` cut to at most `max` bytes, which are 3 at least, at a character boundary; what was cut ends with `…`.
#[must_use]
pub fn shortened(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    format!("{}{CUT}", bounded(text, max.saturating_sub(CUT.len_utf8()))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_says_so() {
        for (text, wanted) in [("", ""), ("abcdef", "abcdef"), ("abcdefg", "abc…"), ("ééé", "ééé"), ("éééé", "é…")]
        {
            assert_eq!(shortened(text, 6), wanted);
        }
    }

    #[test]
    fn statuses_are_these_words_in_every_store() {
        let words = Status::ALL.map(Status::as_str);
        assert_eq!(words, ["IN_PROGRESS", "COMPLETED", "FAILED", "REJECTED", "PARKED"]);
        for status in Status::ALL {
            assert_eq!(status.as_str().parse::<Status>().ok(), Some(status));
        }
        assert!("completed".parse::<Status>().is_err() && "".parse::<Status>().is_err());
    }
}
