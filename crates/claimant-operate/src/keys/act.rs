//! Acts on one record.

use std::time::Duration;

use claimant_core::error::Chain;
use claimant_core::protocol::{Act, OperateDecision, OperateRefusal, Operation, operate};
use claimant_core::{Error, Fence, OwnerToken, Record, RecordId, Replaced, StoreError, StoreErrorKind};

use super::access::Keys;

/// How often a record is read and written at most, while others write it too.
pub(super) const ROUNDS_MAX: u32 = 6;

/// How long to wait after a call without an answer; then twice as long each time.
pub(super) const WAIT_BASE_MS: u64 = 100;

/// What to do to a record.
#[derive(Debug, Clone)]
pub struct Order {
    /// The record.
    pub id: RecordId,
    /// What to do.
    pub act: Act,
    /// Who does it, for the note on the record.
    pub by: String,
    /// Why, for the note on the record.
    pub why: String,
    /// Whether to do it although a lease is live, or the key completed. Work can then run twice, and at the same time.
    pub force: bool,
    /// Whether to decide only, and write nothing.
    pub dry_run: bool,
}

/// Which claim of a key a record is of, or which end of it: another one whenever the key goes on, and the same where a lease is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(String);

impl Version {
    /// Returns that of a record, or of none.
    #[must_use]
    pub fn of(record: Option<&Record>) -> Self {
        // Each claim and act has a fence of its own; where fences began anew, the owner tells. All of its token would let a reader settle.
        let version = |record: &Record| format!("{}/{}/{}", record.fence, record.owner.prefix(), record.status);
        Self(record.map_or_else(|| "absent".to_owned(), version))
    }

    /// Returns it as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Version {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acted {
    /// The record was seen to be the new one.
    Done {
        /// The record before, as far as it is known.
        before: Box<Record>,
        /// The record written.
        after: Box<Record>,
    },
    /// It would be written; this was a dry run.
    WouldWrite {
        /// The record.
        before: Box<Record>,
        /// The record that would be written, with another owner and the time of then.
        after: Box<Record>,
    },
    /// The record is already as the act would leave it.
    NothingToDo(Box<Record>),
    /// It is refused, and nothing was written.
    Refused {
        /// Why.
        why: OperateRefusal,
        /// The record, if there is one.
        record: Option<Box<Record>>,
    },
    /// The key has gone on since the record was looked at that was to be acted on, and nothing was written. This is the record now.
    Changed(Option<Box<Record>>),
    /// The write may have applied, and its answer was lost; the key has gone on since. This is the record now.
    Superseded(Option<Box<Record>>),
    /// The write may have applied: the store did not confirm it, for this reason. Doing it again is safe.
    Unknown {
        /// Why it did not.
        why: String,
    },
}

impl Keys {
    /// Does what the order says, if the record allows it: reads it, decides, and writes the decision if the record is still the one
    /// that was read; else again, a few times.
    ///
    /// Cancel safe: when dropped, the act applied or did not.
    ///
    /// # Errors
    /// When the store gave no answer, or others write the record all the time; nothing is written then.
    pub async fn act(&self, order: &Order) -> Result<Acted, Error> {
        self.act_on(order, None).await
    }

    /// Does what the order says as [`act`](Self::act) does; with the version of a record, only if the key has not gone on since that was read. A
    /// renewed lease counts as the same, while a claim, the end of a run and another act do not.
    ///
    /// # Errors
    /// As for [`act`](Self::act).
    pub async fn act_on(&self, order: &Order, confirmed: Option<&Version>) -> Result<Acted, Error> {
        let owner = OwnerToken::draw()?;
        // What was written last, with the record before it: its answer may have been lost.
        let mut tried: Option<(Box<Record>, Box<Record>)> = None;
        let (mut failed, mut is_lost) = (None, false);
        // The last round reads alone: what came of the write before it.
        for round in 0..=ROUNDS_MAX {
            if failed.is_some() {
                tokio::time::sleep(Duration::from_millis(WAIT_BASE_MS << round.min(ROUNDS_MAX - 1))).await;
            }
            let seen = match self.store().get(&order.id, self.call()).await {
                Ok(seen) => seen,
                Err(error) if error.kind().is_transient() => {
                    failed = Some(error);
                    continue;
                }
                Err(error) => return unanswered(error, is_lost || tried.is_some()),
            };
            if let Some((before, after)) = tried.take() {
                match came_of(after.fence, &owner, seen.as_ref()) {
                    Attempt::Applied => return Ok(Acted::Done { before, after }),
                    Attempt::Unknown => return Ok(Acted::Superseded(seen.map(Box::new))),
                    Attempt::DidNotApply => {
                        if let Some(error) = failed.take_if(|error| !error.kind().is_transient()) {
                            return unanswered(error, is_lost);
                        }
                    }
                }
            }
            if round == ROUNDS_MAX {
                break;
            }
            if confirmed.is_some_and(|confirmed| Version::of(seen.as_ref()) != *confirmed) {
                return Ok(Acted::Changed(seen.map(Box::new)));
            }
            let (before, after) = match (self.decision(order, &owner, seen.as_ref()), seen) {
                (OperateDecision::Write(after), Some(before)) => (Box::new(before), after),
                (OperateDecision::NothingToDo, Some(seen)) => return Ok(Acted::NothingToDo(Box::new(seen))),
                (OperateDecision::Refuse(why), record) => {
                    return Ok(Acted::Refused { why, record: record.map(Box::new) });
                }
                // An own write is recognised above, and there is nothing to write where there is no record.
                (_, record) => return Ok(Acted::Superseded(record.map(Box::new))),
            };
            if order.dry_run {
                return Ok(Acted::WouldWrite { before, after });
            }
            match self.store().replace(&order.id, &before, &after, self.call()).await {
                Ok(Replaced::Done) => return Ok(Acted::Done { before, after }),
                Ok(Replaced::Changed) => failed = None,
                Err(error) => {
                    // What was seen not to have applied can still be under way, unless it was answered. What an answer meant that is not known is
                    // seen.
                    is_lost |= error.kind() == StoreErrorKind::Unreachable;
                    if !error.kind().is_transient() && error.kind() != StoreErrorKind::Other {
                        return unanswered(error, is_lost);
                    }
                    failed = Some(error);
                }
            }
            tried = Some((before, after));
        }
        match failed {
            Some(error) => unanswered(error, is_lost || tried.is_some()),
            None => Err(Error::new(format!(
                "the record changed {ROUNDS_MAX} times while it was to be written: its key is being worked on"
            ))),
        }
    }

    pub(super) fn decision(&self, order: &Order, owner: &OwnerToken, seen: Option<&Record>) -> OperateDecision {
        let (now, skew) = self.now();
        let Order { id, act, by, why, force, .. } = order.clone();
        operate(seen, &Operation { id, act, owner: owner.clone(), now, skew, force, by, why })
    }
}

/// What came of a write whose answer was lost, or was that the record had changed: an SDK repeats a write by itself.
enum Attempt {
    Applied,
    DidNotApply,
    Unknown,
}

/// Tells what came of a write with this fence and owner from the record seen after it.
fn came_of(written: Fence, owner: &OwnerToken, seen: Option<&Record>) -> Attempt {
    let Some(seen) = seen else { return Attempt::Unknown };
    if seen.owner == *owner {
        return Attempt::Applied;
    }
    // The fence went to another owner, or to none yet.
    if seen.fence == written || seen.fence.next() == written { Attempt::DidNotApply } else { Attempt::Unknown }
}

/// Returns what is known where the store gave no answer, after a write or before any.
fn unanswered(error: StoreError, written: bool) -> Result<Acted, Error> {
    let error = Error::from(error);
    if written { Ok(Acted::Unknown { why: Chain(&error).to_string() }) } else { Err(error) }
}
