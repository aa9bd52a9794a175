//! The lock table without claims: the transaction detects whether another owner has completed or claimed its key.

use std::ops::ControlFlow::{Break, Continue};

use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use claimant_core::protocol::{
    self, ClaimRequest, Decision, Ending, Likely, Refusal, Renewal, SettleDecision, Settlement, claim_of,
};
use claimant_core::{
    AnyTransaction, BoxFuture, Budget, Call, Claim, ClaimAnswer, Failure, Record, RecordId, Renewed, Settled, Store,
    StoreError, StoreErrorKind, Transactional,
};

use crate::commit::{Next, Seen};
use crate::table::{LockTable, ROUNDS_MAX, Written};
use crate::transaction::{Base, Transaction};

/// Why a transaction does not commit that is not the one that was lent.
const REPLACED: &str = "the handler put another transaction in the place of the one that it was lent, which knows the record that it \
    starts from: add the writes to that one";

/// A lock table whose handlers run without a claim: the transaction detects whether another owner has completed or claimed the
/// key meanwhile.
///
/// One request and one write unit less for each message. For handlers that do nothing outside the transaction: two of
/// one key may run at once, and the one that commits second has no effect; [`fence`](claimant_core::Context::fence)
/// is only the number that its completion would get. It adds its writes to the transaction that it is lent; one that it puts in its
/// place fails. A redelivered message costs a read first, and is not run again
/// if its key is completed; so does one that a schedule sent again, and an event that no queue counts. A first delivery reads nothing:
/// that of a copy may run once more than [`attempts_max`](claimant_core::Consumer::attempts_max) allows.
#[derive(Debug, Clone)]
pub struct OptimisticTransactions {
    table: LockTable,
}

impl OptimisticTransactions {
    pub(crate) fn new(table: LockTable) -> Self {
        Self { table }
    }

    async fn begin(&self, request: &ClaimRequest, budget: Budget<'_>) -> Result<ClaimAnswer, StoreError> {
        self.table.bring(&request.id, budget).await?;
        // A first delivery has most likely no record; the transaction finds out if it has.
        let seen = if request.likely == Likely::New { None } else { self.table.read(&request.id, budget).await? };
        match protocol::decide(seen.as_ref(), request) {
            Decision::Refuse(refusal) => Ok(ClaimAnswer::Refused(refusal)),
            Decision::Grant { next, interruptions } => {
                let mut claim = claim_of(request.id.clone(), &next, interruptions);
                let from = |base| Transaction { base: Some(base), ..Transaction::default() };
                let base = Base { request: request.clone(), seen, in_doubt: false };
                claim.transaction = Some(AnyTransaction::with_remains(from(base.clone()), from(base)));
                Ok(ClaimAnswer::Granted(claim))
            }
            // A record that a consumer with claims left behind.
            Decision::Park { .. } | Decision::Held => match self.table.claim_one(request, budget).await? {
                ClaimAnswer::Refused(refusal) => Ok(ClaimAnswer::Refused(refusal)),
                // It failed meanwhile: this store does not take over such a claim.
                ClaimAnswer::Granted(claim) => {
                    let release = Settlement { ending: Ending::Released, now: request.now, policy: request.policy };
                    let _ = self.table.settle_one(claim, &release, budget).await;
                    Err(StoreError::new(StoreErrorKind::Throttled, "the record changed while it was to be parked"))
                }
            },
        }
    }

    async fn end(&self, mut claim: Claim, settlement: &Settlement, budget: Budget<'_>) -> Settled {
        if matches!(settlement.ending, Ending::Released | Ending::SetAside { .. }) {
            // Nothing was written.
            return Settled::Done;
        }
        let Some(mut transaction) = claim.transaction.take().and_then(AnyTransaction::unpack::<Transaction>) else {
            return Settled::Lost;
        };
        let Some(Base { request, seen, in_doubt }) = transaction.base.take() else {
            return match settlement.ending {
                Ending::Completed { .. } => {
                    claim.transaction = Some(AnyTransaction::new(Transaction::default()));
                    Settled::Aborted { claim, failure: Failure::retry(REPLACED) }
                }
                // Nothing was written, and a failure that is not counted is tried again all the same.
                _ => Settled::Done,
            };
        };
        let mut base = seen;
        let mut lock = |seen| {
            match seen {
                Seen::Nothing => {}
                Seen::Refused(seen) | Seen::Read(seen) if is_own(seen.as_ref(), &request, settlement) => {
                    return Break(Settled::Done);
                }
                Seen::Refused(seen) => base = seen,
                // The same write again, with the same token.
                Seen::Read(_) => {}
            }
            match self.write(&request, base.as_ref(), settlement) {
                Ok(write) => Continue(write),
                Err(refusal) => Break(Settled::Refused(refusal)),
            }
        };
        if !matches!(settlement.ending, Ending::Completed { .. }) {
            let settled = self.record_failure(&request, lock, in_doubt, budget).await;
            return settled.unwrap_or_else(|error| {
                let base = Base { request, seen: base, in_doubt: true };
                Settled::unknown(starting_from(claim, transaction, base), error)
            });
        }
        match self.table.commit(claim, transaction, |_, seen| lock(seen), budget).await {
            // The record that the failure replaces.
            Settled::Aborted { claim, failure } => {
                let base = Base { request, seen: base, in_doubt: false };
                Settled::Aborted { claim: starting_from(claim, Transaction::default(), base), failure }
            }
            Settled::Unknown { claim: Some(mut claim), error } => {
                let transaction =
                    claim.transaction.take().and_then(AnyTransaction::unpack::<Transaction>).unwrap_or_default();
                let base = Base { request, seen: base, in_doubt: true };
                Settled::unknown(starting_from(claim, transaction, base), error)
            }
            settled => settled,
        }
    }

    /// Returns the write that ends an attempt whose record was `base`; or why there is none.
    fn write(
        &self,
        request: &ClaimRequest,
        base: Option<&Record>,
        settlement: &Settlement,
    ) -> Result<UpdateItemFluentBuilder, Refusal> {
        let next = match protocol::decide(base, request) {
            Decision::Grant { next, .. } => next,
            Decision::Refuse(refusal) => return Err(refusal),
            Decision::Park { .. } => return Err(Refusal::Parked),
            // This attempt never writes that it is in progress.
            Decision::Held => {
                let until = request.lease_until.plus(request.policy.skew);
                return Err(Refusal::Busy { until, same_message: true });
            }
        };
        let claim = claim_of(request.id.clone(), &next, 0);
        let ended = match protocol::settle(Some(&next), &claim, settlement) {
            SettleDecision::Write(ended) => ended,
            SettleDecision::AlreadySettled | SettleDecision::Lost => Box::new(next),
        };
        Ok(match base {
            Some(seen) => self.table.requests.replace(&request.id, seen, &ended),
            None => self.table.requests.create(&request.id, &ended),
        })
    }

    /// Writes that an attempt failed, so that the count outlives a redrive and a rejection is not run again. Returns an error
    /// if it is not known whether the write applied.
    async fn record_failure(
        &self,
        request: &ClaimRequest,
        mut lock: impl FnMut(Seen) -> Next,
        in_doubt: bool,
        budget: Budget<'_>,
    ) -> Result<Settled, StoreError> {
        let mut unknown = None;
        let mut seen = Seen::Nothing;
        for _ in 0..ROUNDS_MAX {
            let write = match lock(seen) {
                Continue(write) => write,
                Break(settled) => return Ok(settled),
            };
            let read = match self.table.send(&request.id, write, budget).await {
                Ok(Written::Applied(_)) => return Ok(Settled::Done),
                Ok(Written::Refused(shown)) => {
                    self.table.refused_by(&request.id, shown, budget).await.map(Seen::Refused)
                }
                // Nothing was written.
                Err(error) if error.kind() == StoreErrorKind::Throttled => return Err(unknown.unwrap_or(error)),
                Err(error) => {
                    unknown = Some(error);
                    self.table.read(&request.id, budget).await.map(Seen::Read)
                }
            };
            seen = match read {
                // A write before this one may have applied, and another owner continued from it: to write again would count the run twice.
                Ok(read @ Seen::Refused(_)) if in_doubt || unknown.is_some() => match lock(read) {
                    Break(settled) => return Ok(settled),
                    Continue(_) => return Ok(Settled::Lost),
                },
                Ok(read) => read,
                Err(error) => return Err(unknown.unwrap_or(error)),
            };
        }
        Err(unknown.unwrap_or_else(|| StoreError::no_answer(budget.left())))
    }
}

/// Returns the claim with a transaction that starts from `base`.
fn starting_from(claim: Claim, transaction: Transaction, base: Base) -> Claim {
    Claim { transaction: Some(AnyTransaction::new(Transaction { base: Some(base), ..transaction })), ..claim }
}

/// Returns whether the record has this attempt's own ending.
fn is_own(seen: Option<&Record>, request: &ClaimRequest, settlement: &Settlement) -> bool {
    seen.is_some_and(|seen| seen.owner == request.owner && seen.status == settlement.ending.status())
}

impl Store for OptimisticTransactions {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(self.begin(request, Budget::of(call)))
    }

    /// There is nothing to renew: no other owner is excluded.
    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        _: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        claim.lease_until = claim.lease_until.max(renewal.lease_until);
        Box::pin(std::future::ready(Ok(Renewed::Held)))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(self.end(claim, settlement, Budget::of(call)))
    }

    fn claims_outlive_owners(&self) -> bool {
        false
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.table.get(id, call)
    }
}

impl Transactional for OptimisticTransactions {
    type Transaction = Transaction;
}
