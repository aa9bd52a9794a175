//! What operators ask of a store, beside its contract.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::clock::Timestamp;
use crate::key::{ConsumerName, InvalidValue, RecordId};
use crate::record::{Record, Status};
use crate::store::{Call, Store, StoreError};

/// What a record means to an operator at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// In progress, and its lease is honoured.
    Running,
    /// In progress, and its lease is over: its owner died, its handler did not stop when cancelled, or the store gave no answer when
    /// it was claimed or ended.
    Stuck,
    /// Done.
    Completed,
    /// The last run failed; claimable at once.
    Failed,
    /// The last run failed for good.
    Rejected,
    /// An operator has to decide.
    Parked,
    /// Its window is over: it counts as absent, and was not deleted yet.
    Over,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Running, Self::Stuck, Self::Completed, Self::Failed, Self::Rejected, Self::Parked, Self::Over];

    /// Returns the state of a record at this time, with this clock-skew margin.
    #[must_use]
    pub fn of(record: &Record, now: Timestamp, skew: Duration) -> Self {
        let in_progress = record.status == Status::InProgress;
        if in_progress && now <= record.lease_until.plus(skew) {
            return Self::Running;
        }
        if record.expires_at_s.saturating_mul(1_000) < now.as_millis() {
            return Self::Over;
        }
        match record.status {
            Status::InProgress => Self::Stuck,
            Status::Completed => Self::Completed,
            Status::Failed => Self::Failed,
            Status::Rejected => Self::Rejected,
            Status::Parked => Self::Parked,
        }
    }

    /// Returns the word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stuck => "stuck",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::Parked => "parked",
            Self::Over => "over",
        }
    }

    /// Returns the status of records in this state; `None` where any can be.
    const fn status(self) -> Option<Status> {
        match self {
            Self::Running | Self::Stuck => Some(Status::InProgress),
            Self::Completed => Some(Status::Completed),
            Self::Failed => Some(Status::Failed),
            Self::Rejected => Some(Status::Rejected),
            Self::Parked => Some(Status::Parked),
            Self::Over => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = InvalidValue;

    fn from_str(word: &str) -> Result<Self, InvalidValue> {
        Self::ALL.into_iter().find(|s| s.as_str() == word).ok_or_else(|| {
            InvalidValue("a state is one of running, stuck, completed, failed, rejected, parked, over".into())
        })
    }
}

/// Which records to list.
#[derive(Debug, Clone)]
pub struct Filter {
    /// In one of these states; in any if there are none.
    pub states: Vec<State>,
    /// Of this consumer, if set.
    pub consumer: Option<ConsumerName>,
    /// Last written before this time, if set.
    pub written_before: Option<Timestamp>,
    /// The time at the operator.
    pub now: Timestamp,
    /// By how much clocks may differ.
    pub skew: Duration,
}

impl Filter {
    /// Returns whether a record is to be listed.
    #[must_use]
    pub fn matches(&self, id: &RecordId, record: &Record) -> bool {
        let state = State::of(record, self.now, self.skew);
        (self.states.is_empty() || self.states.contains(&state))
            && self.consumer.as_ref().is_none_or(|consumer| id.consumer() == consumer.as_str())
            && self.written_before.is_none_or(|before| record.updated_at < before)
    }

    /// Returns the statuses that records to be listed can have, each once; none means any. For stores that can ask their server
    /// for less than all.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        let of_states: Option<Vec<_>> = self.states.iter().map(|state| state.status()).collect();
        let of_states = of_states.unwrap_or_default();
        Status::ALL.into_iter().filter(|status| of_states.contains(status)).collect()
    }
}

/// Where a list goes on: text that only its store understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(String);

impl Cursor {
    /// Creates a cursor from a store's text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A part of a list.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The records of this part that match, without their results.
    pub records: Vec<(RecordId, Record)>,
    /// Where the list goes on; `None` at its end.
    pub next: Option<Cursor>,
    /// How many records were read for it.
    pub looked_at: u64,
    /// How many of them match and are not of the form that claimant writes. They are left out.
    pub foreign: u64,
}

/// About how much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    /// Records. Expired ones that were not deleted yet count.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// The read units that a list of everything consumes, from a store that charges by them.
    pub read_units: Option<u64>,
}

/// The answer to a replacement that reached the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// The record is the new one.
    Done,
    /// The record is another one than was seen, or there is none. An earlier try of this very write can have made it so: the
    /// record tells, by its owner.
    Changed,
}

/// A store whose records can be listed and operated on.
///
/// # The contract
///
/// It goes on with the clauses of [`Store`].
///
/// 14. **Compare and set.** [`replace`](Records::replace) writes `next` exactly, and only while the record has the status, the
///     owner, the fence and the end of the lease of `seen`. As no two writes give a record the same four, that is the record seen.
/// 15. **Nothing is missed.** Following each of [`cursors`](Records::cursors) to its end, a list has every record that matches
///     all the time until then. It can have a record twice, and one that has changed meanwhile as it was.
/// 16. **Pages are bounded**, in bytes and in time: a page can be empty and not the last. A cursor can be followed again.
/// 17. **A list changes nothing**, and takes no claim's time: no lock is held between pages.
pub trait Records: Store {
    /// Writes `next` if the record is still the one that was seen, within this time.
    ///
    /// # Errors
    /// When the store did not give an answer. The write may have applied all the same: `next.owner` tells.
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>>;

    /// Returns where lists begin, within this time: at least one cursor and at most `parts`, or as many as the store consists of
    /// where that is more. They can be followed side by side; no record is behind two of them.
    ///
    /// # Errors
    /// When the store did not give an answer.
    fn cursors(&self, parts: usize, call: Call<'_>) -> BoxFuture<'_, Result<Vec<Cursor>, StoreError>> {
        let _ = (parts, call);
        Box::pin(async { Ok(vec![Cursor::new("")]) })
    }

    /// Returns the records that match and come next, within this time.
    ///
    /// # Errors
    /// When the store did not give an answer, or the cursor is not one of its own.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        from: &'a Cursor,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// Returns about how much there is, within this time. It costs next to nothing, and can be hours old.
    ///
    /// # Errors
    /// When the store did not give an answer.
    fn size<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Size, StoreError>>;
}
