//! Scripts of store calls on one key.

use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimPolicy, Conflicts, Ending, Likely};
use claimant_core::{OwnerToken, StoreError};
pub(crate) use claimant_test::faulty::stale_copy as copy;

/// Enough for any call in a test; what takes longer has failed.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// The clock-skew margin in scripts.
pub(crate) const SKEW_MS: u64 = 500;

/// The deduplication window in scripts: longer than a script takes, since a store may delete by a clock of its own what
/// is older than this.
pub(crate) const WINDOW_MS: u64 = 60_000;

/// The lease of a claim in scripts, unless it says otherwise.
pub(crate) const LEASE_MS: u64 = 1_000;

/// One call. Times are in milliseconds after the player's epoch.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Claim(ClaimStep),
    Settle {
        who: &'static str,
        ending: Ending,
        at: u64,
    },
    Renew {
        who: &'static str,
        at: u64,
        until: u64,
    },
    /// `who` comes by a claim that the store never granted.
    Forge {
        who: &'static str,
        owner: &'static str,
        fence: u64,
    },
    /// The record as it is.
    Look,
}

/// One claim; `who` names the owner, and its claim if it is granted.
#[derive(Debug, Clone)]
pub(crate) struct ClaimStep {
    pub(crate) who: &'static str,
    pub(crate) message: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) at: u64,
    pub(crate) until: u64,
    pub(crate) abandoned: Abandoned,
    pub(crate) conflicts: Conflicts,
    /// The hint, which changes no answer.
    pub(crate) likely: Likely,
}

/// A claim of a fixed message and payload, with a lease of one second.
pub(crate) fn claim(who: &'static str, at: u64) -> ClaimStep {
    ClaimStep {
        who,
        message: "m1",
        payload: "p1",
        at,
        until: at + LEASE_MS,
        abandoned: Abandoned::Rerun,
        conflicts: Conflicts::Reject,
        likely: Likely::Known,
    }
}

impl ClaimStep {
    pub(crate) fn message(self, message: &'static str) -> Self {
        Self { message, ..self }
    }

    pub(crate) fn payload(self, payload: &'static str) -> Self {
        Self { payload, ..self }
    }

    pub(crate) fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }

    pub(crate) fn parking(self) -> Self {
        Self { abandoned: Abandoned::Park, ..self }
    }

    pub(crate) fn by_key_alone(self) -> Self {
        Self { conflicts: Conflicts::Ignore, ..self }
    }

    pub(crate) fn step(self) -> Step {
        Step::Claim(self)
    }
}

pub(crate) fn settle(who: &'static str, ending: Ending, at: u64) -> Step {
    Step::Settle { who, ending, at }
}

pub(crate) fn renew(who: &'static str, at: u64, until: u64) -> Step {
    Step::Renew { who, at, until }
}

pub(crate) fn done() -> Ending {
    Ending::Completed { result: None }
}

pub(crate) fn failed() -> Ending {
    Ending::Failed { error: "it failed".into() }
}

pub(crate) fn rejected() -> Ending {
    Ending::Rejected { error: "never".into() }
}

pub(crate) fn parked() -> Ending {
    Ending::Parked { error: "in doubt".into() }
}

/// All of them.
pub(crate) fn endings() -> [Ending; 5] {
    [done(), failed(), rejected(), parked(), Ending::Released]
}

/// Another ending of the same kind, for the key that goes with another one in one request.
pub(crate) fn beside(ending: &Ending) -> Ending {
    match ending {
        Ending::Completed { .. } => Ending::Completed { result: Some("\"beside\"".into()) },
        Ending::Failed { .. } => Ending::Failed { error: "beside".into() },
        Ending::Rejected { .. } => Ending::Rejected { error: "beside".into() },
        Ending::Parked { .. } => Ending::Parked { error: "beside".into() },
        Ending::Released | Ending::SetAside { .. } => ending.clone(),
    }
}

pub(crate) fn policy(abandoned: Abandoned, conflicts: Conflicts) -> ClaimPolicy {
    ClaimPolicy { abandoned, conflicts, skew: Duration::from_millis(SKEW_MS), window: Duration::from_millis(WINDOW_MS) }
}

/// The owner token of `who`, always the same: what makes a step tried twice the same attempt.
pub(crate) fn owner(who: &str) -> OwnerToken {
    OwnerToken::from_stored(format!("{who:0>32}"))
}

/// What is said of a call that the store did not answer.
pub(crate) fn no_answer(error: &StoreError) -> String {
    format!("the store gave no answer: {error} ({error:?})")
}
