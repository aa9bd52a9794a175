//! A transactional store in memory, for tests of transactional handlers.

use std::fmt;
use std::sync::Arc;

use claimant_core::protocol::{self, ClaimRequest, Ending, SettleDecision, Settlement};
use claimant_core::{
    AnyTransaction, BoxFuture, Call, Claim, ClaimAnswer, Failure, HandlerError, MemoryStore, Settled, Store,
    StoreError, Transactional,
};
use futures_util::FutureExt as _;

/// What a transaction does when it commits.
type Commit<X> = Arc<dyn Fn(X) -> Result<(), HandlerError> + Send + Sync>;

/// A store in memory whose claims carry a transaction of any type. What a handler does with it takes place together with the
/// completion, or not at all. Clones are the same store.
///
/// ```
/// # use claimant_core as claimant;
/// # use std::sync::{Arc, Mutex};
/// use claimant::{Consumer, Context, HandlerError, TransactionGuard};
/// use claimant_test::{MemoryTransactions, Scenario, TestMessage, TestQueue};
///
/// async fn pack(order: u64, mut tx: TransactionGuard<Vec<u64>>, _: Context) -> Result<(), HandlerError> {
///     tx.push(order);
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// for scenario in Scenario::all() {
///     let packed = Arc::new(Mutex::new(Vec::new()));
///     let table = Arc::clone(&packed);
///     let store = MemoryTransactions::new(move |orders: Vec<u64>| Ok(table.lock().unwrap().extend(orders)));
///     let queue = TestQueue::new(Consumer::transactional("packing", store, pack).key(|order| order));
///     queue.play(&scenario, &[TestMessage::text("7")]).await.assert_done();
///     assert_eq!(*packed.lock().unwrap(), [7], "{scenario}");
/// }
/// # }
/// ```
pub struct MemoryTransactions<X> {
    records: Arc<MemoryStore>,
    commit: Commit<X>,
}

impl<X: Default + Send + 'static> MemoryTransactions<X> {
    /// Returns a store whose transactions begin as `X::default()`, and do this when they commit. An error lets the commit fail, as
    /// a condition that does not hold would: the handler's run ends with it. `commit` must do nothing then, and must not block.
    #[must_use]
    pub fn new(commit: impl Fn(X) -> Result<(), HandlerError> + Send + Sync + 'static) -> Self {
        Self { records: Arc::default(), commit: Arc::new(commit) }
    }

    /// Commits in one step: nothing here waits, so no other call comes in between on the thread of a test.
    fn commit(&self, mut claim: Claim, settlement: &Settlement, call: Call<'_>) -> Settled {
        const READY: &str = "the store in memory answers at once";
        let Some(transaction) = claim.transaction.take().and_then(AnyTransaction::unpack::<X>) else {
            return Settled::Lost;
        };
        let record = self.records.get(&claim.id, call).now_or_never().expect(READY);
        let seen = record.expect("the store in memory does not fail");
        if let SettleDecision::Write(_) = protocol::settle(seen.as_ref(), &claim, settlement)
            && let Err(error) = (self.commit)(transaction)
        {
            return Settled::Aborted { claim, failure: Failure::from(error) };
        }
        self.records.settle(claim, settlement, call).now_or_never().expect(READY)
    }
}

impl<X: Default + Send + 'static> Store for MemoryTransactions<X> {
    fn records_outlive_process(&self) -> bool {
        false
    }

    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            let mut answer = self.records.claim(request, call).await;
            if let Ok(ClaimAnswer::Granted(claim)) = &mut answer {
                claim.transaction = Some(AnyTransaction::new(X::default()));
            }
            answer
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        match settlement.ending {
            Ending::Completed { .. } => Box::pin(async move { self.commit(claim, settlement, call) }),
            _ => self.records.settle(claim, settlement, call),
        }
    }

    crate::pass_on!(self => self.records; renew, get);
}

impl<X: Default + Send + 'static> Transactional for MemoryTransactions<X> {
    type Transaction = X;
}

impl<X> Clone for MemoryTransactions<X> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records), commit: Arc::clone(&self.commit) }
    }
}

impl<X> fmt::Debug for MemoryTransactions<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryTransactions").finish_non_exhaustive()
    }
}
