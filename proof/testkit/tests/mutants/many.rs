//! Many keys in one call of the store with a bug.

use std::mem::discriminant;

use claimant_core::protocol::{self, ClaimRequest, Ending, SettleDecision, Settlement};
use claimant_core::{BatchedClaim, Call, Claim, ClaimAnswer, Settled, StoreError};
use futures_util::future::join_all;

use crate::bug::Bug;
use crate::store::Mutant;

impl Mutant {
    pub(crate) async fn claim_many(
        &self,
        requests: &[ClaimRequest],
        call: Call<'_>,
    ) -> Vec<Result<BatchedClaim, StoreError>> {
        if self.is(Bug::ClaimsAllUnguarded) {
            let _turn = self.turn().await;
            return self.claim_as_seen(requests, call).await;
        }
        let _locks = if self.is(Bug::LocksInTheOrderOfTheCall) { self.locks(requests).await } else { Vec::new() };
        let mut answers: Vec<_> = join_all(requests.iter().map(|request| async move {
            let answer = match requests {
                [first, ..] if self.is(Bug::FirstOfBatchForAll) => {
                    let (id, owner, likely) = (request.id.clone(), request.owner.clone(), request.likely);
                    self.claim_now(&ClaimRequest { id, owner, likely, ..first.clone() }, call).await?
                }
                _ => self.claim_now(request, call).await?,
            };
            let repeated = requests.iter().filter(|other| other.id == request.id).count() > 1;
            if self.is(Bug::GrantsRepeatedKeys) && repeated {
                let record = protocol::fresh_claim(request);
                let claim = protocol::claim_of(request.id.clone(), &record, 0);
                return Ok(BatchedClaim::Answered(ClaimAnswer::Granted(claim)));
            }
            Ok(BatchedClaim::Answered(answer))
        }))
        .await;
        match self.bug {
            Bug::AnswersInReverse => answers.reverse(),
            Bug::AnswersAHundred => answers.truncate(100),
            _ => {}
        }
        answers
    }

    /// What was read before the call had its time is what is decided on; a key that comes again is read again.
    async fn claim_as_seen(&self, requests: &[ClaimRequest], call: Call<'_>) -> Vec<Result<BatchedClaim, StoreError>> {
        let seen: Vec<_> = requests.iter().map(|request| self.read(&request.id)).collect();
        let mut answers = Vec::new();
        for (n, (request, seen)) in requests.iter().zip(seen).enumerate() {
            let begun = self.begin(&request.id, call).await;
            let again = requests[..n].iter().any(|other| other.id == request.id);
            let seen = if again { self.read(&request.id) } else { seen };
            answers.push(match begun {
                Ok(()) => Ok(BatchedClaim::Answered(self.carry_out(request, seen.as_ref()).await)),
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn settle_as_seen(&self, settlements: Vec<(Claim, Settlement)>, call: Call<'_>) -> Vec<Settled> {
        let seen: Vec<_> = settlements.iter().map(|(claim, _)| self.read(&claim.id)).collect();
        let mut answers = Vec::new();
        for ((claim, settlement), seen) in settlements.into_iter().zip(seen) {
            if let Err(error) = self.begin(&claim.id, call).await {
                answers.push(Settled::unknown(claim, error));
                continue;
            }
            answers.push(match protocol::settle(seen.as_ref(), &claim, &settlement) {
                SettleDecision::Lost => Settled::Lost,
                SettleDecision::AlreadySettled => Settled::Done,
                SettleDecision::Write(next) => {
                    self.write(&claim.id, *next);
                    Settled::Done
                }
            });
        }
        answers
    }

    pub(crate) async fn settle_many(&self, settlements: Vec<(Claim, Settlement)>, call: Call<'_>) -> Vec<Settled> {
        if self.is(Bug::SettlesAllUnguarded) {
            return self.settle_as_seen(settlements, call).await;
        }
        let endings: Vec<_> = settlements.iter().map(|(_, settlement)| settlement.ending.clone()).collect();
        let first_like =
            |ending: &Ending| endings.iter().find(|other| discriminant(*other) == discriminant(ending)).cloned();
        join_all(settlements.into_iter().enumerate().map(|(n, (claim, mut settlement))| async move {
            if self.is(Bug::SettlesTwentyFive) && n >= 25 {
                return Settled::Done;
            }
            if self.is(Bug::FirstResultForAll) {
                settlement.ending = first_like(&settlement.ending).unwrap();
            }
            if let (Bug::FailedInCompanyIsRejected, Ending::Failed { error }) = (self.bug, &settlement.ending) {
                settlement.ending = Ending::Rejected { error: error.clone() };
            }
            self.settle_now(claim, &settlement, call).await
        }))
        .await
    }
}
