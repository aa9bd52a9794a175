//! Claims whose handlers are lent a transaction.

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, Record, RecordId, Renewed, Settled, Store, StoreError, StoreFuture, Transactional,
};

use super::MySqlStore;
use crate::session::Budget;
use crate::transaction::SqlTransaction;
use crate::{rounds, transactions};

/// The transaction of a claim in MySQL or MariaDB.
pub type MySqlTransaction = SqlTransaction<sqlx::MySql>;

/// Records in a MySQL or MariaDB database whose claims carry a transaction of it: what the handler writes in it is there exactly
/// when its key is completed.
///
/// A claim takes a connection until it is settled, so no more claims are held than the pool has connections. While it is
/// held, nobody else sees its record; a second claimant of the key waits a second for it and is then told that the key is busy,
/// until the end of the lease that it asked for itself. The server rolls back what is idle for as long as a lease lasts, as is
/// the case when the process died without a word; a renewal changes nothing about that.
///
/// What died leaves no record: fences and attempts count what ended, so `attempts_max` does not stop a message that kills its
/// process (the queue's `maxReceiveCount` does), and work outside the transaction can be done again under the same fence.
#[derive(Debug, Clone)]
pub struct MySqlTransactions {
    store: MySqlStore,
}

impl MySqlTransactions {
    /// The records of this store, and transactions on its pool.
    #[must_use]
    pub fn new(store: MySqlStore) -> Self {
        Self { store }
    }

    /// The store without transactions.
    #[must_use]
    pub fn records(&self) -> &MySqlStore {
        &self.store
    }
}

impl Transactional for MySqlTransactions {
    type Transaction = MySqlTransaction;
}

impl Store for MySqlTransactions {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(transactions::claim(self.store.pool(), request, Budget::of(call)))
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        _: Call<'a>,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        // Nobody else has the key while the transaction is open, and without it nothing is committed.
        claim.lease_until = claim.lease_until.max(renewal.lease_until);
        Box::pin(async { Ok(Renewed::Held) })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> StoreFuture<'a, Settled> {
        Box::pin(transactions::settle(self.store.pool(), claim, settlement, Budget::of(call)))
    }

    fn claims_outlive_owners(&self) -> bool {
        false
    }

    fn claims_max(&self) -> Option<usize> {
        Some(self.store.pool().options().get_max_connections() as usize)
    }

    fn look<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(rounds::look(self.store.pool(), id, Budget::of(call)))
    }
}
