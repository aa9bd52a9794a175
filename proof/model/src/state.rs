//! A state: one key, the messages that carry its work, the workers that do it, and what is under way between them.

use claimant_core::{Outcome, Timestamp};

use crate::rules::{End, Why};
use crate::values::{Held, Rec, Req, Time};

/// Workers that there can be.
pub const WORKERS_MAX: usize = 3;

/// Messages that there can be.
pub const MESSAGES_MAX: usize = 3;

/// Writes that can be delayed at once.
pub const DELAYED_MAX: usize = 2;

/// Effects are counted up to here.
pub const EFFECTS_MAX: u8 = 2;

/// What a worker asks of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// The statement that claims a key without a record.
    Insert(Req),
    /// Reads the record that an insert was refused for.
    Look(Req),
    /// Reads the record that an optimistic transaction starts from.
    Begin(Req),
    /// Claims: as a whole, or blindly.
    Claim(Req),
    /// Writes what the decision gave, if the record is still the one that was seen.
    Replace {
        /// What was asked.
        req: Req,
        /// What was seen.
        seen: Rec,
        /// What the decision gave.
        next: Rec,
        /// Whether another owner had left the key in progress.
        taken_over: bool,
    },
    /// Makes a lease longer.
    Renew {
        /// The claim.
        held: Held,
        /// The new end of the lease.
        lease: Time,
        /// The time at the owner.
        now: Time,
    },
    /// Ends a claim.
    Settle {
        /// The claim.
        held: Held,
        /// How it ends.
        end: End,
        /// The time at the owner.
        now: Time,
    },
    /// Ends an optimistic attempt, if the record is still the one that was seen.
    Commit {
        /// What was asked.
        req: Req,
        /// What was seen.
        seen: Option<Rec>,
        /// What is to be there.
        next: Rec,
        /// How the attempt ends.
        end: End,
        /// The time at the owner.
        now: Time,
    },
}

/// What an optimistic attempt starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "what was asked, and what was seen")]
pub struct Base {
    pub req: Req,
    pub seen: Option<Rec>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Out {
    /// Completed under this claim; `resolved` where only the record told.
    Completed {
        /// Whether its answer was lost and the record told.
        resolved: bool,
    },
    /// Completed before.
    Duplicate,
    /// Another owner works on it.
    Busy,
    /// Its claim ended as failed, or was released.
    Retry,
    /// Rejected, or the key belongs to another payload.
    Rejected {
        /// Whether it is a conflict.
        conflict: bool,
    },
    /// Left for a person to decide.
    Parked,
    /// The claim was lost.
    Lost,
    /// Whether the claim was settled is not known.
    Unsettled,
    /// The store gave no answer to the claim.
    StoreFailed,
}

/// What a worker is at. `id` is the message's; `until` is when its time is over, by the true clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "said above")]
pub enum Worker {
    Idle,
    /// It waits for an answer; `lost` once it knows that none will come.
    Asking {
        id: u8,
        until: Time,
        ask: Ask,
        lost: bool,
        resolving: bool,
    },
    /// Its handler runs.
    Running {
        id: u8,
        until: Time,
        held: Held,
        base: Option<Base>,
    },
    /// It has an outcome; `letter` says whether a dead letter was confirmed, once one was sent.
    Reporting {
        id: u8,
        out: Out,
        letter: Option<bool>,
    },
}

/// Where a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Place {
    Queue,
    InFlight,
    Deleted,
    DeadLetters,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// Where it is.
    pub place: Place,
    /// How often it was received under its present id.
    pub receives: u8,
    /// How often it was redriven, each time under a new id.
    pub redriven: u8,
    /// Whether the function put a copy of it into the dead-letter queue.
    pub copied: bool,
}

/// A promise that a step broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
#[allow(missing_docs, reason = "the names are those of the properties")]
pub enum Flaw {
    S1 = 1,
    S2 = 2,
    S3 = 4,
    S4 = 8,
    S5 = 16,
    S10 = 32,
    OneDecision = 64,
    OwnWrites = 128,
    LeasesGrow = 256,
    RejectedOnce = 512,
    Attempts = 1024,
}

/// Everything there is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// The true time.
    pub now: Time,
    /// The key's record.
    pub record: Option<Rec>,
    /// The workers; those beyond the configuration's are idle for ever.
    pub workers: [Worker; WORKERS_MAX],
    /// The messages; those beyond the configuration's are not there.
    pub messages: [Message; MESSAGES_MAX],
    /// Writes that may still arrive, though no caller waits for them.
    pub delayed: [Option<Ask>; DELAYED_MAX],
    /// Losses that are left.
    pub losses: u8,
    /// Deaths that are left.
    pub deaths: u8,
    /// Redrives that are left.
    pub redrives: u8,
    /// How often the handler had its effect, for each payload, at most [`EFFECTS_MAX`].
    pub effects: [u8; 2],
    /// Whether work with this payload was ever completed.
    pub done: [bool; 2],
    /// Completions in the present window.
    pub completions: u8,
    /// What the owner's clock showed when it settled the last completion, where windows end.
    pub done_at: Time,
    /// Promises that were broken on the way here.
    pub flaws: u16,
}

impl Ask {
    /// The owner token that it names.
    #[must_use]
    pub const fn owner(&self) -> u8 {
        match self {
            Self::Insert(req) | Self::Look(req) | Self::Begin(req) | Self::Claim(req) => req.owner,
            Self::Replace { req, .. } | Self::Commit { req, .. } => req.owner,
            Self::Renew { held, .. } | Self::Settle { held, .. } => held.owner,
        }
    }

    /// The owner token of the record that it has seen.
    #[must_use]
    pub const fn seen_owner(&self) -> Option<u8> {
        match self {
            Self::Replace { seen, .. } | Self::Commit { seen: Some(seen), .. } => Some(seen.owner),
            _ => None,
        }
    }

    /// Whether it can change the record.
    #[must_use]
    pub const fn writes(&self) -> bool {
        !matches!(self, Self::Look(_) | Self::Begin(_))
    }

    /// Whether it ends a claim or an attempt.
    #[must_use]
    pub const fn ends(&self) -> bool {
        matches!(self, Self::Settle { .. } | Self::Commit { .. })
    }
}

impl Out {
    /// What a refusal makes of a message, as the engine's `refused` does.
    #[must_use]
    pub const fn of_refusal(why: Why) -> Self {
        match why {
            Why::Completed => Self::Duplicate,
            Why::Busy { .. } => Self::Busy,
            Why::Rejected => Self::Rejected { conflict: false },
            Why::Conflict => Self::Rejected { conflict: true },
            Why::Parked => Self::Parked,
        }
    }

    /// What a written ending makes of a message, as the engine's `after_settling` does.
    #[must_use]
    pub const fn of_end(end: End, resolved: bool) -> Self {
        match end {
            End::Completed => Self::Completed { resolved },
            End::Released | End::Failed => Self::Retry,
            End::Rejected => Self::Rejected { conflict: false },
            End::Parked => Self::Parked,
        }
    }

    /// Whether it goes to the dead-letter queue, where the function sends letters.
    #[must_use]
    pub const fn is_letter(self) -> bool {
        matches!(self, Self::Rejected { .. } | Self::Parked)
    }

    /// Whether the message may be deleted, as production says.
    #[must_use]
    pub fn is_success(self, dead_lettered: bool) -> bool {
        let outcome = match self {
            Self::Completed { .. } => Outcome::Completed,
            Self::Duplicate => Outcome::Duplicate,
            Self::Busy => Outcome::Busy { until: Timestamp::from_millis(0) },
            Self::Retry => Outcome::Retry,
            // A rejection's reason cannot be made outside the core; both depend on the letter alone.
            Self::Rejected { .. } | Self::Parked => Outcome::Parked { dead_lettered },
            Self::Lost => Outcome::LeaseLost,
            Self::Unsettled => Outcome::SettleUnknown,
            Self::StoreFailed => Outcome::StoreFailed,
        };
        outcome.is_success()
    }
}

impl State {
    /// Whether a promise was broken on the way here.
    #[must_use]
    pub const fn has(&self, flaw: Flaw) -> bool {
        self.flaws & flaw as u16 != 0
    }

    /// The smallest owner token that no owner has.
    #[must_use]
    pub fn fresh_owner(&self) -> u8 {
        let mut taken = 0_u32;
        let mut take = |owner: u8| taken |= 1 << owner;
        self.record.iter().for_each(|record| take(record.owner));
        for ask in self.delayed.iter().flatten() {
            take(ask.owner());
            ask.seen_owner().into_iter().for_each(&mut take);
        }
        for worker in &self.workers {
            match worker {
                Worker::Asking { ask, .. } => {
                    take(ask.owner());
                    ask.seen_owner().into_iter().for_each(&mut take);
                }
                Worker::Running { held, base, .. } => {
                    take(held.owner);
                    base.and_then(|base| base.seen).into_iter().for_each(|seen| take(seen.owner));
                }
                Worker::Idle | Worker::Reporting { .. } => {}
            }
        }
        // OK because a 32-bit word has at most 32 trailing ones.
        taken.trailing_ones() as u8
    }
}
