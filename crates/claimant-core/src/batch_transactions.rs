//! Effects and completions of many messages in one transaction.
//!
//! ```text
//! store.claim_all ──▶ claims ─┐
//! store.begin ──▶ TransactionGuard<X> in the handler ──▶ store.commit(transaction, completions of all the claims)
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::claim::Claim;
use crate::panics::Caught;
use crate::protocol::Settlement;
use crate::store::{Call, Settled, Store, StoreError};
use crate::transaction::AnyTransaction;

/// A store that completes many claims in one transaction with what a handler wrote in it.
///
/// Claims are those of the [`Store`], seen by others and with a lease. To the clauses of stores this adds:
///
/// 18. **All or none.** [`commit`](Self::commit) completes all of the claims together with the transaction, guarded as a settlement
///     is, or writes nothing. A transaction that is dropped or rolled back leaves no trace.
/// 19. **Found out.** [`resolve`](Self::resolve) tells what became of a commit that was cut off or has no answer, and what it tells
///     stays so.
///
/// A call of these that panics costs all items that it is for: in [`begin`](Self::begin) they are
/// [`StoreFailed`](crate::Outcome::StoreFailed), in [`commit`](Self::commit) and [`resolve`](Self::resolve)
/// [`SettleUnknown`](crate::Outcome::SettleUnknown).
#[diagnostic::on_unimplemented(note = "batches in a transaction are for a PostgresStore")]
pub trait BatchTransactional: Store {
    /// The transaction that the handler borrows. Dropping it discards the handler's writes.
    type Transaction: Send + 'static;

    /// Begins a transaction, within this time; the store may end it when it is still open after it `lasts` so long.
    ///
    /// # Errors
    /// When the store gave none.
    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> BoxFuture<'a, Result<Self::Transaction, StoreError>>;

    /// Completes these claims, all of different keys, in the transaction, and commits it, within this time: one answer for each,
    /// in their order. All of them are [`Done`](Settled::Done), or none is:
    ///
    /// - [`Lost`](Settled::Lost) answers a claim that was no longer held, and [`Aborted`](Settled::Aborted) the others, which
    ///   still are.
    /// - [`Unknown`](Settled::Unknown), with its claim, answers each where the commit had no answer: [`resolve`](Self::resolve)
    ///   finds out.
    fn commit<'a>(
        &'a self,
        transaction: Self::Transaction,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>>;

    /// Finds out, within this time, whether a commit without an answer applied to these: [`Done`](Settled::Done) if it did. If it
    /// did not it never will: [`Aborted`](Settled::Aborted), and the claim is still held, or [`Lost`](Settled::Lost).
    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>>;

    /// Rolls a transaction back, within this time, where that is better than dropping it.
    fn roll_back<'a>(&'a self, transaction: Self::Transaction, _: Call<'a>) -> BoxFuture<'a, ()> {
        drop(transaction);
        Box::pin(async {})
    }
}

impl<S: BatchTransactional + ?Sized> BatchTransactional for Arc<S> {
    type Transaction = S::Transaction;

    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> BoxFuture<'a, Result<Self::Transaction, StoreError>> {
        (**self).begin(lasts, call)
    }

    fn commit<'a>(
        &'a self,
        transaction: Self::Transaction,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        (**self).commit(transaction, completions, call)
    }

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        (**self).resolve(completions, call)
    }

    fn roll_back<'a>(&'a self, transaction: Self::Transaction, call: Call<'a>) -> BoxFuture<'a, ()> {
        (**self).roll_back(transaction, call)
    }
}

/// [`BatchTransactional`], whatever the transaction's type.
pub(crate) trait AnyBatchTransactions: Send + Sync {
    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> BoxFuture<'a, Result<AnyTransaction, StoreError>>;

    fn commit<'a>(
        &'a self,
        transaction: AnyTransaction,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>>;

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>>;

    fn roll_back<'a>(&'a self, transaction: AnyTransaction, call: Call<'a>) -> BoxFuture<'a, ()>;
}

impl<S: BatchTransactional> AnyBatchTransactions for S {
    fn begin<'a>(&'a self, lasts: Duration, call: Call<'a>) -> BoxFuture<'a, Result<AnyTransaction, StoreError>> {
        let begun = Caught::new(|| BatchTransactional::begin(self, lasts, call), || Err(StoreError::panicked()));
        Box::pin(async move { begun.await.map(AnyTransaction::new) })
    }

    fn commit<'a>(
        &'a self,
        transaction: AnyTransaction,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        match transaction.unpack() {
            Some(transaction) => {
                let count = completions.len();
                let commit = || BatchTransactional::commit(self, transaction, completions, call);
                Box::pin(Caught::new(commit, move || Settled::all_panicked(count)))
            }
            // Of another store: nothing of this one is in it.
            None => Box::pin(async move { completions.iter().map(|_| Settled::Lost).collect() }),
        }
    }

    fn resolve<'a>(&'a self, completions: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        let count = completions.len();
        let resolve = || BatchTransactional::resolve(self, completions, call);
        Box::pin(Caught::new(resolve, move || Settled::all_panicked(count)))
    }

    fn roll_back<'a>(&'a self, transaction: AnyTransaction, call: Call<'a>) -> BoxFuture<'a, ()> {
        match transaction.unpack() {
            Some(transaction) => {
                Box::pin(Caught::new(|| BatchTransactional::roll_back(self, transaction, call), || ()))
            }
            None => Box::pin(async {}),
        }
    }
}
