//! Runtimes that are wrong on purpose: the checker must see each.

use claimant_core::protocol::{ClaimRequest, Refusal, Renewal, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, Record, RecordId, Renewed, Settled, Store, StoreError, StoreFuture, Transactional,
};
use clap::ValueEnum;
use serde_json::{Value, json};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mutant {
    /// Claims are written whatever the record shows.
    ClaimsWithoutCondition,
    /// Leases that are not over are taken over.
    LiveLeasesTakenOver,
    /// Endings are written whoever holds the claim.
    SettlesUnguarded,
    /// Endings are written whoever holds the claim, as long as somebody does.
    SettlesForOthers,
    /// Transactions commit whoever holds the claim.
    CommitsUnguarded,
    /// Claims do not count.
    FenceStandsStill,
    /// A duplicate of unfinished work is acknowledged.
    BusyIsDone,
    /// An ending whose answer is missing counts as written.
    UnknownIsDone,
    /// A lost claim counts as settled.
    LostIsDone,
    /// A claim is tried again long after its invocation has returned.
    WritesAfterReturn,
    /// Dead letters are taken for sent.
    LettersUnconfirmed,
    /// Nothing is ever hidden.
    VisibilityForgotten,
    /// Failures are not reported.
    FailuresForgotten,
    /// FIFO groups are not kept in order.
    GroupsIgnored,
    /// A renewal counts as made, whatever its answer.
    RenewalsPretended,
    /// Abandoned work of an at-most-once consumer is run again.
    AbandonedRerun,
    /// Two payloads of one key count as the same work.
    ConflictsIgnored,
    /// The deadline is taken to be later than it is.
    DeadlineIgnored,
    /// Finished work is forgotten after a minute.
    WindowForgotten,
}

impl Mutant {
    /// The request to the store as the wrong runtime would have sent it.
    pub fn bend_request(self, operation: &str, request: &mut Value) {
        let is_claim =
            |update: &Value| update["UpdateExpression"].as_str().is_some_and(|e| e.contains("#attempts, :zero"));
        let is_ending = |update: &Value| update["ExpressionAttributeValues"].get(":ended").is_some();
        match (self, operation) {
            (Self::ClaimsWithoutCondition, "UpdateItem") if is_claim(request) => {
                request["ConditionExpression"] = Value::Null;
            }
            (Self::LiveLeasesTakenOver, "UpdateItem") => {
                if let Some(dead) = request["ExpressionAttributeValues"].get_mut(":dead") {
                    *dead = json!({ "N": "9999999999999" });
                }
            }
            (Self::FenceStandsStill, "UpdateItem") if is_claim(request) => {
                let update = request["UpdateExpression"].as_str().unwrap_or_default();
                let update = update.replace("#fence = if_not_exists(#fence, :zero) + :one", "#fence = :one");
                request["UpdateExpression"] = json!(update);
            }
            (Self::SettlesUnguarded, "UpdateItem") if is_ending(request) => {
                request["ConditionExpression"] = Value::Null;
            }
            (Self::SettlesForOthers, "UpdateItem") if is_ending(request) => {
                request["ConditionExpression"] = json!("#status = :in_progress");
            }
            (Self::CommitsUnguarded, "TransactWriteItems") => {
                request["TransactItems"][0]["Update"]["ConditionExpression"] = Value::Null;
            }
            _ => {}
        }
    }

    /// Whether it is the store's answers that are wrong.
    #[must_use]
    pub const fn bends_answers(self) -> bool {
        matches!(
            self,
            Self::BusyIsDone
                | Self::UnknownIsDone
                | Self::LostIsDone
                | Self::WritesAfterReturn
                | Self::RenewalsPretended
        )
    }
}

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
                tokio::time::sleep(std::time::Duration::from_secs(60)).await;
                let meter = claimant_core::Meter::default();
                let within = std::time::Duration::from_secs(1);
                let _ = store.claim(&request, Call { within, meter: &meter }).await;
            });
        }
        match answer {
            ClaimAnswer::Refused(Refusal::Busy { .. }) if self.mutant == Mutant::BusyIsDone => {
                ClaimAnswer::Refused(Refusal::Completed { result: None })
            }
            answer => answer,
        }
    }

    fn settled(&self, settled: Settled) -> Settled {
        match (settled, self.mutant) {
            (Settled::Unknown { .. }, Mutant::UnknownIsDone) | (Settled::Lost, Mutant::LostIsDone) => Settled::Done,
            (settled, _) => settled,
        }
    }
}

impl<S: Store + Clone> Store for Bent<S> {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move { Ok(self.claimed(self.inner.claim(request, call).await?, request)) })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Result<Option<ClaimAnswer>, StoreError>>> {
        Box::pin(async move {
            let answers = self.inner.claim_all(requests, call).await.into_iter().zip(requests);
            answers.map(|(answer, request)| Ok(answer?.map(|answer| self.claimed(answer, request)))).collect()
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        if self.mutant != Mutant::RenewalsPretended {
            return self.inner.renew(claim, renewal, call);
        }
        Box::pin(async move {
            // OK because nobody is to know.
            let _ = self.inner.renew(claim, renewal, call).await;
            claim.lease_until = claim.lease_until.max(renewal.lease_until);
            Ok(Renewed::Held)
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> StoreFuture<'a, Settled> {
        Box::pin(async move { self.settled(self.inner.settle(claim, settlement, call).await) })
    }

    fn settle_all<'a>(
        &'a self,
        settlements: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let settled = self.inner.settle_all(settlements, call).await;
            settled.into_iter().map(|settled| self.settled(settled)).collect()
        })
    }

    fn look<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        self.inner.look(id, call)
    }
}

impl<S: Transactional + Clone> Transactional for Bent<S> {
    type Transaction = S::Transaction;
}
