//! What `PostgresStore` and `MySqlStore`, and their transactional stores, have in common: all but how they are opened.
//!
//! By macros and not by one generic type: for users each is a plain type with a name of its own, and the trait `Dialect`
//! stays private.

use std::fmt;
use std::time::Duration;

use claimant_core::limits::SKEW_MAX_MS;
use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Budget, Call, Claim, ClaimAnswer, Cursor, Filter, Meter, Page, Record, RecordId, Records,
    Renewed, Replaced, Settled, Size, Store, StoreError, Timestamp, Transactional,
};

use crate::dialect::Dialect;
#[cfg(feature = "mysql")]
use crate::mysql::MySqlStore;
#[cfg(feature = "postgres")]
use crate::postgres::PostgresStore;
use crate::session::Session;
use crate::transaction::SqlTransaction;
use crate::{listing, rounds, transactions};

/// Implements a store on its pool.
macro_rules! store {
    ($store:ident) => {
        impl $store {
            /// Deletes at most `portion` records whose deduplication window ended more than a minute before `now`, and returns how
            /// many: fewer than `portion` when there are no more. Expired records count as absent anyway; this frees their space. The
            /// minute is the largest clock-skew margin: for another process, whose clock is behind, the window may still run. A
            /// portion is one statement, which PostgreSQL ends after 5 s. Records that a transaction holds, as that of a handler, are left
            /// for later; in MySQL and MariaDB each of them costs a second, and the portion's others then a statement each.
            ///
            /// # Errors
            /// When the database gave no answer within this time.
            pub async fn delete_expired(
                &self,
                now: Timestamp,
                portion: u32,
                within: Duration,
            ) -> Result<u64, StoreError> {
                let meter = Meter::default();
                let budget = Budget::of(Call { within, meter: &meter });
                let mut session = Session::open(self.pool(), budget).await?.patient();
                let before = now.minus(Duration::from_millis(SKEW_MAX_MS));
                Ok(Dialect::delete_expired(&mut session, before, portion).await?)
            }
        }

        // Not derived: a pool's options are not for logs.
        impl fmt::Debug for $store {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($store)).field("connections", &self.pool().size()).finish_non_exhaustive()
            }
        }

        impl Store for $store {
            fn claim<'a>(
                &'a self,
                request: &'a ClaimRequest,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
                Box::pin(rounds::claim(self.pool(), request, Budget::of(call)))
            }

            fn claim_all<'a>(
                &'a self,
                requests: &'a [ClaimRequest],
                call: Call<'a>,
            ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
                Box::pin(rounds::claim_all(self.pool(), requests, call))
            }

            fn settle_all<'a>(
                &'a self,
                settlements: Vec<(Claim, Settlement)>,
                call: Call<'a>,
            ) -> BoxFuture<'a, Vec<Settled>> {
                Box::pin(rounds::settle_all(self.pool(), settlements, call))
            }

            fn renew<'a>(
                &'a self,
                claim: &'a mut Claim,
                renewal: Renewal,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
                Box::pin(rounds::renew(self.pool(), claim, renewal, Budget::of(call)))
            }

            fn settle<'a>(
                &'a self,
                claim: Claim,
                settlement: &'a Settlement,
                call: Call<'a>,
            ) -> BoxFuture<'a, Settled> {
                let ending = (claim, settlement.clone());
                Box::pin(rounds::settle(self.pool(), ending, Budget::of(call)))
            }

            fn get<'a>(
                &'a self,
                id: &'a RecordId,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
                Box::pin(rounds::get(self.pool(), id, Budget::of(call)))
            }
        }

        impl Records for $store {
            fn replace<'a>(
                &'a self,
                id: &'a RecordId,
                seen: &'a Record,
                next: &'a Record,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<Replaced, StoreError>> {
                Box::pin(listing::replace(self.pool(), id, seen, next, Budget::of(call)))
            }

            fn list<'a>(
                &'a self,
                filter: &'a Filter,
                from: &'a Cursor,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<Page, StoreError>> {
                Box::pin(listing::list(self.pool(), filter, from, Budget::of(call)))
            }

            fn size<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Size, StoreError>> {
                Box::pin(listing::size(self.pool(), Budget::of(call)))
            }
        }
    };
}

#[cfg(feature = "mysql")]
store!(MySqlStore);
#[cfg(feature = "postgres")]
store!(PostgresStore);

/// The transaction of a claim in MySQL or MariaDB.
#[cfg(feature = "mysql")]
pub type MySqlTransaction = SqlTransaction<sqlx::MySql>;

/// The transaction of a claim in PostgreSQL.
#[cfg(feature = "postgres")]
pub type PgTransaction = SqlTransaction<sqlx::Postgres>;

/// Defines a store whose claims carry a transaction, on the pool of another store.
macro_rules! transactional {
    ($transactions:ident, $transaction:ident, $store:ident, $database:literal) => {
        #[doc = concat!("Records in a ", $database, " database whose claims carry a transaction of it: what the handler writes")]
        /// in it is there exactly when its key is completed.
        ///
        /// A claim takes a connection until it is settled, so no more claims are held than the pool has connections. While it is
        /// held, no other owner sees its record; a second claimant of the key waits a second for it and is then answered that the key is
        /// busy, until the end of the lease that it requested itself. The server rolls back a transaction that is idle for as long as
        /// a lease, as happens when a process dies and its connection stays open; a renewal does not change that.
        ///
        /// A process that dies leaves no record: fences and attempts only count runs that ended, so `attempts_max` does not stop a
        /// message that kills its process (the queue's `maxReceiveCount` does), and work outside the transaction can be done again
        /// under the same fence.
        #[derive(Debug, Clone)]
        pub struct $transactions {
            store: $store,
        }

        impl $transactions {
            /// Returns a store with the records of this one, and with transactions on its pool.
            #[must_use]
            pub fn new(store: $store) -> Self {
                Self { store }
            }

            /// Returns the store without transactions.
            #[must_use]
            pub fn records(&self) -> &$store {
                &self.store
            }
        }

        impl Transactional for $transactions {
            type Transaction = $transaction;
        }

        impl Store for $transactions {
            fn claim<'a>(
                &'a self,
                request: &'a ClaimRequest,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
                Box::pin(transactions::claim(self.store.pool(), request, Budget::of(call)))
            }

            fn renew<'a>(
                &'a self,
                claim: &'a mut Claim,
                renewal: Renewal,
                _: Call<'a>,
            ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
                // No other owner has the key while the transaction is open, and without it nothing is committed.
                claim.lease_until = claim.lease_until.max(renewal.lease_until);
                Box::pin(async { Ok(Renewed::Held) })
            }

            fn settle<'a>(
                &'a self,
                claim: Claim,
                settlement: &'a Settlement,
                call: Call<'a>,
            ) -> BoxFuture<'a, Settled> {
                Box::pin(transactions::settle(self.store.pool(), claim, settlement, Budget::of(call)))
            }

            fn claims_outlive_owners(&self) -> bool {
                false
            }

            fn claims_max(&self) -> Option<usize> {
                Some(self.store.pool().options().get_max_connections() as usize)
            }

            fn get<'a>(
                &'a self,
                id: &'a RecordId,
                call: Call<'a>,
            ) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
                self.store.get(id, call)
            }
        }
    };
}

#[cfg(feature = "mysql")]
transactional!(MySqlTransactions, MySqlTransaction, MySqlStore, "MySQL or MariaDB");
#[cfg(feature = "postgres")]
transactional!(PostgresTransactions, PgTransaction, PostgresStore, "PostgreSQL");
