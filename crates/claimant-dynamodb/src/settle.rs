//! Renews and settles one claim, and resolves ambiguous answers.

use claimant_core::protocol::{self, RenewDecision, Renewal, SettleDecision, Settlement};
use claimant_core::{Budget, Claim, Renewed, Settled, StoreError, StoreErrorKind};

use crate::table::{LockTable, ROUNDS_MAX, Written};

impl LockTable {
    pub(crate) async fn renew_within(
        &self,
        claim: &mut Claim,
        renewal: Renewal,
        budget: Budget<'_>,
    ) -> Result<Renewed, StoreError> {
        let written = self.send(&claim.id, self.requests.renew(claim, &renewal), budget).await?;
        let Written::Refused(shown) = written else {
            claim.lease_until = renewal.lease_until;
            return Ok(Renewed::Held);
        };
        let seen = self.refused_by(&claim.id, shown, budget).await?;
        match (protocol::renew(seen.as_ref(), claim, &renewal), seen) {
            (RenewDecision::AlreadyLonger, Some(seen)) => {
                claim.lease_until = seen.lease_until;
                Ok(Renewed::Held)
            }
            _ => Ok(Renewed::Lost),
        }
    }

    pub(crate) async fn settle_one(&self, claim: Claim, settlement: &Settlement, budget: Budget<'_>) -> Settled {
        let mut unknown = StoreError::no_answer(budget.left());
        for round in 0..ROUNDS_MAX {
            if round > 0 && !budget.wait(round).await {
                break;
            }
            let seen = match self.send(&claim.id, self.requests.settle(&claim, settlement), budget).await {
                Ok(Written::Applied(_)) => return Settled::Done,
                Ok(Written::Refused(shown)) => self.refused_by(&claim.id, shown, budget).await,
                // No retry fixes these, and they say that nothing was written.
                Err(error) if is_final(error.kind()) => return Settled::unknown(claim, error),
                // If an earlier try applied, the caller's next one is refused and shown it.
                Err(error) if error.kind() == StoreErrorKind::Throttled => return Settled::unknown(claim, error),
                // No answer: the record tells whether the write applied, where it can be read.
                Err(error) => match self.read(&claim.id, budget).await {
                    Ok(seen) => {
                        unknown = error;
                        Ok(seen)
                    }
                    Err(_) => return Settled::unknown(claim, error),
                },
            };
            match seen.map(|seen| protocol::settle(seen.as_ref(), &claim, settlement)) {
                Ok(SettleDecision::AlreadySettled) => return Settled::Done,
                Ok(SettleDecision::Lost) => return Settled::Lost,
                Ok(SettleDecision::Write(_)) => {}
                Err(error) => unknown = error,
            }
        }
        Settled::unknown(claim, unknown)
    }
}

/// Returns whether trying again is of no use.
fn is_final(kind: StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Denied | StoreErrorKind::Misconfigured | StoreErrorKind::TooLarge)
}
