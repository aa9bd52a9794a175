//! What stands before the store under test: no call of it is waited for without end, and none that panics ends the suite.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use claimant_core::panics::Caught;
use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchTransactional, BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, Cursor, Filter, Page, Record, RecordId,
    Records, Renewed, Replaced, Settled, Size, Store, StoreError, Transactional,
};
use futures_util::FutureExt as _;
use tokio::time::timeout;

use crate::script::WITHIN;

/// How much longer than it was given a call may take: far beyond what a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(10);

/// By how much a busy machine may be late.
const BUSY_MAX: Duration = Duration::from_secs(5);

/// What a future gives, which must come before the patience ends. That is of the runtime's clock, which stands still while a thread blocks
/// where it is a paused one; so the machine's is looked at, too.
pub(super) async fn in_time<T>(patience: Duration, future: impl Future<Output = T>) -> Result<T, String> {
    let begun = Instant::now();
    let answer = timeout(patience, future).await.map_err(|_| format!("it had not ended after {patience:?}"))?;
    let took = begun.elapsed();
    if took > patience + BUSY_MAX {
        return Err(format!("it took {took:?}, of which the runtime saw at most {patience:?}: it blocks a thread"));
    }
    Ok(answer)
}

/// The most that a call may take that was given so long.
pub(super) fn patience(within: Duration) -> Duration {
    within.min(WITHIN) + PATIENCE
}

/// What was seen of a call that gave no answer, since it did not end in time or panicked, for the check that made it. It is kept beside the call's
/// answer, as some checks take a call without an answer for a right one.
#[derive(Clone, Default)]
pub(super) struct Unanswered(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    /// How many checks have ended.
    checks: usize,
    seen: Option<String>,
}

impl Unanswered {
    /// Ends a check: what its calls come to from now on is of no other.
    pub(super) fn take(&self) -> Option<String> {
        let mut noted = self.noted();
        noted.checks += 1;
        noted.seen.take()
    }

    /// Returns what notes something of a call that the check under way makes now.
    fn call(&self) -> impl FnOnce(String) + Send + use<> {
        let (unanswered, check) = (self.clone(), self.noted().checks);
        move |seen| {
            let mut noted = unanswered.noted();
            if noted.checks == check {
                noted.seen = Some(seen);
            }
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store under test, whose calls are given up when they panic, or take far longer than they may.
pub(super) struct Watched<S: ?Sized> {
    store: Arc<S>,
    unanswered: Unanswered,
}

impl<S: Send + Sync + ?Sized> Watched<S> {
    pub(super) const fn new(store: Arc<S>, unanswered: Unanswered) -> Self {
        Self { store, unanswered }
    }

    fn wait<'a, T: 'a>(
        &'a self,
        name: &'static str,
        within: Duration,
        call: impl FnOnce() -> BoxFuture<'a, T>,
        given_up: impl FnOnce() -> T + Send + 'a,
    ) -> BoxFuture<'a, T> {
        let note = self.unanswered.call();
        let answer = Caught::new(|| call().map(Ok), || Err("it panicked".to_owned()));
        Box::pin(async move {
            in_time(patience(within), answer).await.flatten().unwrap_or_else(|seen| {
                note(format!("of `{name}`, which was given {within:?}: {seen}"));
                given_up()
            })
        })
    }

    fn wait_or_fail<'a, T: 'a>(
        &'a self,
        name: &'static str,
        within: Duration,
        call: impl FnOnce() -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        self.wait(name, within, call, move || Err(StoreError::no_answer(within)))
    }

    fn wait_for_all<'a>(
        &'a self,
        name: &'static str,
        within: Duration,
        count: usize,
        call: impl FnOnce() -> BoxFuture<'a, Vec<Settled>>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        self.wait(name, within, call, move || (0..count).map(|_| Settled::given_up(within)).collect())
    }
}

impl<S: Store + ?Sized> Store for Watched<S> {
    crate::pass_on!(self => self.store; claims_max, claims_outlive_owners);

    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        self.wait_or_fail("claim", call.within, || self.store.claim(request, call))
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        self.wait_or_fail("renew", call.within, || self.store.renew(claim, renewal, call))
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        self.wait(
            "claim_all",
            call.within,
            || self.store.claim_all(requests, call),
            move || requests.iter().map(|_| Err(StoreError::no_answer(call.within))).collect(),
        )
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        self.wait_for_all("settle_all", call.within, settlements.len(), || self.store.settle_all(settlements, call))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        self.wait(
            "settle",
            call.within,
            || self.store.settle(claim, settlement, call),
            move || Settled::given_up(call.within),
        )
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        self.wait_or_fail("get", call.within, || self.store.get(id, call))
    }
}

impl<S: Records + ?Sized> Records for Watched<S> {
    fn replace<'a>(
        &'a self,
        id: &'a RecordId,
        seen: &'a Record,
        next: &'a Record,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
        self.wait_or_fail("replace", call.within, || self.store.replace(id, seen, next, call))
    }

    fn cursors(&self, parts: usize, call: Call<'_>) -> BoxFuture<'_, Result<Vec<Cursor>, StoreError>> {
        self.wait_or_fail("cursors", call.within, || self.store.cursors(parts, call))
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        from: &'a Cursor,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.wait_or_fail("list", call.within, || self.store.list(filter, from, call))
    }

    fn size<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Size, StoreError>> {
        self.wait_or_fail("size", call.within, || self.store.size(call))
    }
}

impl<S: BatchTransactional> BatchTransactional for Watched<S> {
    type Transaction = S::Transaction;

    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> BoxFuture<'a, Result<Self::Transaction, StoreError>> {
        self.wait_or_fail("begin", call.within, || self.store.begin(lasts, call))
    }

    fn commit<'a>(
        &'a self,
        transaction: Self::Transaction,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        self.wait_for_all("commit", call.within, completions.len(), || {
            self.store.commit(transaction, completions, call)
        })
    }

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        self.wait_for_all("resolve", call.within, completions.len(), || self.store.resolve(completions, call))
    }

    fn roll_back<'a>(&'a self, transaction: Self::Transaction, call: Call<'a>) -> BoxFuture<'a, ()> {
        self.wait("roll_back", call.within, || self.store.roll_back(transaction, call), || ())
    }
}

impl<S: Transactional> Transactional for Watched<S> {
    type Transaction = S::Transaction;
}
