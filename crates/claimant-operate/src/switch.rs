//! Several event source mappings switched on or off together: each for itself, so that what fails hides nothing of what was done.

use std::time::Duration;

use claimant_aws::intake::Return;
use claimant_core::Error;
use claimant_core::error::Chain;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use serde_json::Value;

use crate::aws::is_refusal;
use crate::intake::{Change, Intake, Mapping};

/// What came of one mapping.
#[derive(Debug)]
pub struct Switched {
    /// It, as far as it is known.
    pub mapping: Mapping,
    /// The schedules of breakers that were deleted, which would have switched it on.
    pub deleted: Vec<Return>,
    /// Why such schedules, if there are any, are there still.
    pub not_kept_off: Option<Error>,
    /// Why it is not changed, or why it is not known what became of the change.
    pub failed: Option<Error>,
    became: Became,
}

/// What became of a change, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Became {
    /// Lambda does not have it.
    Unmade,
    /// Lambda has it.
    Made,
    /// Lambda does not have it, though it took it or was asked for it: another one has changed it back.
    Undone,
}

impl Switched {
    /// Returns a mapping of which nothing was asked yet.
    #[must_use]
    pub const fn untouched(mapping: Mapping) -> Self {
        Self { mapping, deleted: Vec::new(), not_kept_off: None, failed: None, became: Became::Unmade }
    }

    /// Returns whether Lambda is known to have the change: it took it, or had it before, and nothing else has changed it back since.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        matches!(self.became, Became::Made)
    }

    /// Returns why Lambda does not have the change, or why it is not known what became of it.
    #[must_use]
    pub fn why_not(&self) -> Option<String> {
        let undone = || (self.became == Became::Undone).then(|| "another one has changed it back".to_owned());
        self.failed.as_ref().map(|error| Chain(error).to_string()).or_else(undone)
    }

    /// Returns it as JSON: the mapping, why it [is not changed](Self::why_not), and the times at which the schedules that were deleted would have switched it on.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut shown = self.mapping.to_json();
        shown["failed"] = self.why_not().into();
        shown["not_kept_off"] = self.not_kept_off.as_ref().map(|error| Chain(error).to_string()).into();
        shown["deleted"] = self.deleted.iter().map(|planned| planned.at.to_utc()).collect();
        shown
    }
}

/// Changes each of these mappings, and then waits so long at most, for all of them together, until no change is under way. Of those that
/// are switched off, what would switch them on again is deleted: once before the change, so that none is due after it, and once after the
/// wait, since a breaker that had looked at the mapping before may have planned its return meanwhile.
///
/// `stopped` ends the wait, and nothing else, once it is ready: a mapping that was waited for is then looked at once more. It is polled from
/// the beginning of the wait on, and not where nothing is to be waited for.
///
/// What fails at one mapping is said of it, and the others are changed all the same.
pub async fn switch(
    intake: &Intake,
    mappings: Vec<Mapping>,
    change: Change,
    within: Duration,
    stopped: impl Future<Output = ()>,
) -> Vec<Switched> {
    let mut all: Vec<_> = mappings.into_iter().map(Switched::untouched).collect();
    let is_pause = change.enabled == Some(false);
    for one in &mut all {
        if is_pause {
            one.keep_off(intake).await;
        }
        one.change(intake, change).await;
    }
    let stopped = stopped.shared();
    let states = join_all(all.iter().map(|one| settled(intake, one, within, stopped.clone()))).await;
    for (one, state) in all.iter_mut().zip(states) {
        if let Some(state) = state {
            one.settle(state, change);
        }
    }
    for one in &mut all {
        if is_pause && one.is_changed() {
            one.keep_off(intake).await;
        }
    }
    all
}

/// Waits for a mapping; returns nothing where its change was refused.
async fn settled(
    intake: &Intake,
    one: &Switched,
    within: Duration,
    stopped: impl Future<Output = ()>,
) -> Option<Result<Mapping, Error>> {
    let is_asked = one.is_changed() || one.mapping.has_unknown_state();
    if is_asked { Some(intake.settled(&one.mapping, within, stopped).await) } else { None }
}

impl Switched {
    async fn change(&mut self, intake: &Intake, change: Change) {
        match intake.change(&self.mapping, change).await {
            Ok(mapping) => (self.mapping, self.became) = (mapping, Became::Made),
            Err(error) => {
                // It may have been changed all the same, as where no answer came: its state is asked for.
                if !is_refusal(&error) {
                    self.mapping.forget_state();
                }
                self.failed = Some(error);
            }
        }
    }

    /// Deletes what would switch it on, whether it is off or about to be.
    async fn keep_off(&mut self, intake: &Intake) {
        match intake.keep_off(&self.mapping).await {
            Ok(deleted) => {
                self.deleted.extend(deleted);
                self.not_kept_off = None;
            }
            Err(error) => self.not_kept_off = Some(error),
        }
    }

    fn settle(&mut self, state: Result<Mapping, Error>, change: Change) {
        match state {
            Ok(mapping) => {
                self.mapping = mapping;
                if self.mapping.has(change) {
                    // Also that whose answer was lost.
                    (self.became, self.failed) = (Became::Made, None);
                } else if self.mapping.is_settled() {
                    self.became = Became::Undone;
                }
            }
            // Why the change failed says more.
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }
}
