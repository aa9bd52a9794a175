//! The contract of a store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use tokio::time::timeout;

use crate::claim::Claim;
use crate::failure::Failure;
use crate::key::RecordId;
use crate::limits::STORE_GUARD_MS;
use crate::meter::Meter;
use crate::panics::Caught;
use crate::protocol::{ClaimRequest, Refusal, Renewal, Settlement};
use crate::record::Record;
pub use crate::store_error::{StoreError, StoreErrorKind};

/// Returns what stands before the store of a consumer, by its name.
pub(crate) type Before<'a> = &'a mut dyn FnMut(&str, Arc<dyn Store>) -> Arc<dyn Store>;

/// How long one call may take, and where it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// How long the call may take.
    pub within: Duration,
    /// Where requests and units are counted.
    pub meter: &'a Meter,
}

/// The answer to a claim that reached the store.
#[derive(Debug)]
pub enum ClaimAnswer {
    /// The claim is held: run the handler, then settle.
    Granted(Claim),
    /// The claim is not held, for this reason.
    Refused(Refusal),
}

/// The answer of a batched claim for one of its keys.
#[derive(Debug)]
pub enum BatchedClaim {
    /// The answer that [`Store::claim`] would return.
    Answered(ClaimAnswer),
    /// The batched request cannot tell: the key is to be claimed by itself, with the same request.
    ClaimAlone,
}

impl BatchedClaim {
    /// Changes the answer, if there is one.
    #[must_use]
    pub fn map(self, change: impl FnOnce(ClaimAnswer) -> ClaimAnswer) -> Self {
        match self {
            Self::Answered(answer) => Self::Answered(change(answer)),
            Self::ClaimAlone => Self::ClaimAlone,
        }
    }
}

/// The answer to a renewal that reached the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The claim is held at least until the end asked for.
    Held,
    /// It is no longer held: stop the handler.
    Lost,
}

/// The result of a settlement.
#[derive(Debug)]
pub enum Settled {
    /// The record was seen to hold this ending, written under exactly this claim.
    Done,
    /// The claim was no longer held: another owner has the key, or the record is gone. Nothing was written.
    Lost,
    /// The claim's transaction cannot commit, for a reason of the handler's or for now. Nothing was written and the claim is
    /// still held; without its transaction, it can only end as failed. Answers completions of a
    /// [`Transactional`] store alone.
    Aborted {
        /// The claim.
        claim: Claim,
        /// Why, and whether trying again can help. The handler has returned: what it did outside of the transaction may be done, so that
        /// where another try can help, [at most once](crate::Consumer::at_most_once) parks the work.
        failure: Failure,
    },
    /// The key was not claimable after all, and this is why: the answer of a store that claims and completes in one step.
    /// Nothing was written.
    Refused(Refusal),
    /// Whether the ending was written could not be found out in the time given. Until it is, the message is not done.
    Unknown {
        /// The claim, to be settled again in the same way: a settlement that applied, its answer lost, is then [`Done`](Self::Done). `None`
        /// where the call that had it was given up, or the store wants no other try, such as a login with a refused password.
        claim: Option<Claim>,
        /// Why. Where its kind [is transient](StoreErrorKind::is_transient) or [`Other`](StoreErrorKind::Other), the engine tries
        /// again to find out.
        error: StoreError,
    },
}

impl Settled {
    /// Returns `Unknown` for this reason; the claim can be settled again.
    #[must_use]
    pub fn unknown(claim: Claim, error: impl Into<StoreError>) -> Self {
        Self::Unknown { claim: Some(claim), error: error.into() }
    }

    /// Returns `Unknown` without the claim, which was lost with a call that was abandoned after this time.
    #[must_use]
    pub fn given_up(within: Duration) -> Self {
        Self::Unknown { claim: None, error: StoreError::no_answer(within) }
    }

    /// Returns `Unknown` without the claim, which was lost with a call that panicked.
    pub(crate) fn panicked() -> Self {
        Self::Unknown { claim: None, error: StoreError::panicked() }
    }

    /// Returns that for each of so many.
    pub(crate) fn all_panicked(count: usize) -> Vec<Self> {
        std::iter::repeat_with(Self::panicked).take(count).collect()
    }
}

/// Where records live.
///
/// # The contract
///
/// The clauses are numbered; the contract suite of `claimant-testkit` checks a store against each.
///
/// 1. **One decision.** A claim is granted, refused or parked as [`protocol::decide`](crate::protocol::decide)
///    says of the record in the store, and the record written is the one that it gives, exactly: each text byte by byte,
///    NUL and white space included, and each time up to [`TIME_MAX_MS`](crate::limits::TIME_MAX_MS). The claim granted is what
///    [`claim_of`](crate::protocol::claim_of) or [`held`](crate::protocol::held) makes of that record.
/// 2. **Atomic.** Reading a record, deciding and writing it are one step: of any number of claims that overlap,
///    at most one is granted.
/// 3. **Guarded.** [`renew`](Store::renew) and [`settle`](Store::settle) write only while the record shows exactly
///    `(IN_PROGRESS, owner, fence)` of the claim; else the record is left as it is.
/// 4. **Own writes are recognised.** A write that applied although its answer was lost is a success when it is
///    tried again, never "another owner has it".
/// 5. **Fences grow** by one with each granted claim, across release and takeover, as long as the record lives.
/// 6. **Final.** A `COMPLETED` record changes only after its window ended.
/// 7. **Leases never shrink** by a renewal that lands late.
/// 8. **Expiry is compared**, at each call and with the caller's time; a record whose window ended counts as absent
///    even where it was not deleted yet, but not while its lease is live.
/// 9. **No clock.** The only times used are those of the request.
/// 10. **Keys are bytes.** Two record ids are the same only if their bytes are.
/// 11. **Bounded.** Each call returns within about the time it is given; an answer that did not come is an
///     [`Unreachable`](StoreErrorKind::Unreachable) or [`Unknown`](Settled::Unknown), never a guess. `Unknown` gives the
///     claim back, and the same settlement can be tried again with it. So can a claim, with the same owner. No call panics, whatever
///     is in the record.
/// 12. **Cancel safe.** A call that is dropped either applied or did not; it leaves nothing that a later call
///     or the end of the lease does not fix.
/// 13. **Silent.** Errors hold no key, payload or credential.
///
/// A call that panics all the same has no answer, and is not tried again: a claim is [`StoreFailed`](crate::Outcome::StoreFailed)
/// and ends with its lease, a settlement is [`SettleUnknown`](crate::Outcome::SettleUnknown). It costs its own message alone, but
/// for [`settle_all`](Self::settle_all), which costs the settlements of that call: from then on, the process settles each by itself.
/// After [`claim_all`](Self::claim_all), each key is claimed by itself. A renewal is asked for again at its next turn; where the
/// lease does not last until then, its handler is cancelled, and its message is [`LeaseLost`](crate::Outcome::LeaseLost).
///
/// What [`claims_max`](Self::claims_max) and the like return is fixed, and they must not panic.
pub trait Store: Send + Sync + 'static {
    /// Claims a key, within this time.
    ///
    /// # Errors
    /// When the store did not give an answer. The claim may be held all the same; it then ends with its lease.
    fn claim<'a>(&'a self, request: &'a ClaimRequest, call: Call<'a>)
    -> BoxFuture<'a, Result<ClaimAnswer, StoreError>>;

    /// Makes a lease longer, within this time; on [`Renewed::Held`], `claim.lease_until` is the new end.
    ///
    /// # Errors
    /// When the store did not give an answer. The lease may be longer all the same.
    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>>;

    /// Claims several keys within this time: one answer for each, in their order. What can be done in one request for many is done here.
    ///
    /// A key can be there twice. No key waits for another one longer than the time given.
    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(join_all(requests.iter().map(move |request| async move {
            let claim = Caught::new(|| self.claim(request, call), || Err(StoreError::panicked()));
            let answer = timeout(call.within, claim).await;
            answer.unwrap_or_else(|_| Err(StoreError::no_answer(call.within))).map(BatchedClaim::Answered)
        })))
    }

    /// Ends several claims, all of different keys, within this time: one answer for each, in their order. No claim waits
    /// for another one much longer than the time given; one that is given up then is lost with its call.
    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(join_all(settlements.into_iter().map(move |(claim, settlement)| async move {
            // A little longer than each call has, so that a store which keeps to its time gives the claim back.
            let longest = call.within.saturating_add(Duration::from_millis(STORE_GUARD_MS / 2));
            let settle = Caught::new(|| self.settle(claim, &settlement, call), Settled::panicked);
            let settled = timeout(longest, settle).await;
            settled.unwrap_or_else(|_| Settled::given_up(call.within))
        })))
    }

    /// Ends a claim, within this time.
    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled>;

    /// Returns the most claims that may be held at once, where each takes up something scarce, such as a connection. Keys are then
    /// claimed only as handlers become free.
    fn claims_max(&self) -> Option<usize> {
        None
    }

    /// Returns whether a claim is seen by others while it is held, and stays when its owner dies. Where it does not, as with claims
    /// that are open transactions, it is not known that work was abandoned: such a store has no at-most-once consumers, and
    /// its fences and attempts count only what ended.
    fn claims_outlive_owners(&self) -> bool {
        true
    }

    /// Returns whether records outlive the process, and others see them. A function where they do not logs a warning when it starts.
    /// What wraps a store passes it on.
    fn records_outlive_process(&self) -> bool {
        true
    }

    /// Reads a record, within this time: for operators and tests, and as a hint; not for decisions.
    ///
    /// # Errors
    /// When the store did not give an answer.
    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>>;
}

/// A store that several have, such as two consumers of a test: each with a clone.
impl<S: Store + ?Sized> Store for Arc<S> {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        (**self).claim(request, call)
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        (**self).renew(claim, renewal, call)
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        (**self).claim_all(requests, call)
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        (**self).settle_all(settlements, call)
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        (**self).settle(claim, settlement, call)
    }

    fn claims_max(&self) -> Option<usize> {
        (**self).claims_max()
    }

    fn claims_outlive_owners(&self) -> bool {
        (**self).claims_outlive_owners()
    }

    fn records_outlive_process(&self) -> bool {
        (**self).records_outlive_process()
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        (**self).get(id, call)
    }
}

/// A store whose claims carry a transaction.
///
/// To the clauses of [`Store`] this adds:
///
/// 20. **Both or neither.** The claim that [`claim`](Store::claim) grants carries a `Transaction`; settling it as completed commits
///     that and the completion in one step, or neither; any other ending, and dropping the claim or the transaction, leaves no
///     trace of what the handler did with it. A claim that is settled as completed without its transaction is
///     [`Lost`](Settled::Lost).
#[diagnostic::on_unimplemented(
    note = "take table.transactions(), table.optimistic_transactions(), PostgresTransactions::new(…) or MySqlTransactions::new(…)"
)]
pub trait Transactional: Store {
    /// The transaction that the handler borrows. Dropping it discards the handler's writes.
    type Transaction: Send + 'static;
}

impl<S: Transactional + ?Sized> Transactional for Arc<S> {
    type Transaction = S::Transaction;
}
