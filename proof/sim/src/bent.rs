//! A store whose answers, or the requests to it, are those of a wrong runtime.

use std::time::Duration;

use claimant_core::protocol::{Abandoned, ClaimRequest, Ending, Likely, Refusal, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, Fence, Record, RecordId, Renewed, Settled, Store, StoreError,
    Transactional,
};

use crate::calls::{BREAKER, LIMIT};
use crate::mutant::Mutant;

/// A store whose answers are read wrongly.
#[derive(Clone)]
pub struct Bent<S> {
    /// The real one.
    pub inner: S,
    /// What is wrong.
    pub mutant: Mutant,
}

impl<S: Store + Clone> Bent<S> {
    fn claimed(&self, answer: ClaimAnswer, request: &ClaimRequest) -> ClaimAnswer {
        if self.mutant == Mutant::WritesAfterReturn {
            let (store, request) = (self.inner.clone(), request.clone());
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(60)).await;
                let meter = claimant_core::Meter::default();
                let within = Duration::from_secs(1);
                let _ = store.claim(&request, Call { within, meter: &meter }).await;
            });
        }
        match answer {
            ClaimAnswer::Refused(Refusal::Busy { .. }) if self.mutant == Mutant::BusyIsDone => {
                ClaimAnswer::Refused(Refusal::Completed { result: None })
            }
            ClaimAnswer::Granted(claim) if self.mutant == Mutant::SuspectsUnknown => {
                ClaimAnswer::Granted(Claim { interruptions: 0, ..claim })
            }
            ClaimAnswer::Granted(claim) if self.mutant == Mutant::FenceMadeUp && request.likely != Likely::New => {
                ClaimAnswer::Granted(Claim { fence: claim.fence.next(), ..claim })
            }
            ClaimAnswer::Refused(Refusal::Busy { .. })
                if self.mutant == Mutant::SlotsShared && request.id.as_str().starts_with(LIMIT) =>
            {
                let (owner, fence, lease_until) = (request.owner.clone(), Fence::FIRST, request.lease_until);
                let (id, attempt, interruptions) = (request.id.clone(), 1, 0);
                let (last_error, transaction) = (None, None);
                ClaimAnswer::Granted(Claim {
                    id,
                    owner,
                    fence,
                    lease_until,
                    attempt,
                    interruptions,
                    last_error,
                    transaction,
                })
            }
            answer => answer,
        }
    }

    /// The request as the wrong runtime makes it: its engine does not know that abandoned work is parked.
    fn asked(&self, request: &ClaimRequest) -> ClaimRequest {
        let mut request = request.clone();
        if self.mutant == Mutant::ClaimsAhead {
            request.policy.abandoned = Abandoned::Park;
        }
        request
    }

    /// The ending as the wrong runtime writes it. No consumer that runs work at most once takes a window this short.
    fn ended(&self, settlement: &Settlement) -> Settlement {
        let mut settlement = settlement.clone();
        if self.mutant == Mutant::WindowForgotten {
            settlement.policy.window = Duration::from_secs(60);
        }
        if self.mutant == Mutant::AttemptsGivenBack && matches!(settlement.ending, Ending::Failed { .. }) {
            settlement.ending = Ending::Released;
        }
        settlement
    }

    fn settled(&self, settled: Settled) -> Settled {
        match (settled, self.mutant) {
            (Settled::Unknown { error, .. }, Mutant::SettlesGivenUp) => Settled::Unknown { claim: None, error },
            (Settled::Unknown { .. }, Mutant::UnknownIsDone) | (Settled::Lost, Mutant::LostIsDone) => Settled::Done,
            (settled, _) => settled,
        }
    }
}

impl<S: Store + Clone> Store for Bent<S> {
    claimant_test::pass_on!(self => self.inner; claims_max, claims_outlive_owners);

    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move { Ok(self.claimed(self.inner.claim(&self.asked(request), call).await?, request)) })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            let asked: Vec<_> = requests.iter().map(|request| self.asked(request)).collect();
            let answers = self.inner.claim_all(&asked, call).await.into_iter().zip(requests);
            answers.map(|(answer, request)| Ok(answer?.map(|answer| self.claimed(answer, request)))).collect()
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        if self.mutant != Mutant::RenewalsPretended {
            return self.inner.renew(claim, renewal, call);
        }
        Box::pin(async move {
            // OK because this mutant hides the answer.
            let _ = self.inner.renew(claim, renewal, call).await;
            claim.lease_until = claim.lease_until.max(renewal.lease_until);
            Ok(Renewed::Held)
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        if self.mutant == Mutant::ReleasesPretended && claim.id.as_str().starts_with(BREAKER) {
            let (store, settlement, within) = (self.inner.clone(), settlement.clone(), call.within);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let meter = claimant_core::Meter::default();
                let _ = store.settle(claim, &settlement, Call { within, meter: &meter }).await;
            });
            return Box::pin(std::future::ready(Settled::Done));
        }
        Box::pin(async move { self.settled(self.inner.settle(claim, &self.ended(settlement), call).await) })
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let ended = settlements.into_iter().map(|(claim, settlement)| (claim, self.ended(&settlement)));
            let settled = self.inner.settle_all(ended.collect(), call).await;
            settled.into_iter().map(|settled| self.settled(settled)).collect()
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        if self.mutant == Mutant::BreakerUnseen && id.as_str().starts_with(BREAKER) {
            return Box::pin(async move { self.inner.get(id, call).await.map(|_| None) });
        }
        self.inner.get(id, call)
    }
}

impl<S: Transactional + Clone> Transactional for Bent<S> {
    type Transaction = S::Transaction;
}
