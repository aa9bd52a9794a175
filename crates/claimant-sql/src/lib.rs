//! claimant's records in PostgreSQL, and in MySQL or MariaDB: for teams that have no DynamoDB.
//!
//! | module | holds |
//! | --- | --- |
//! | `postgres`, `mysql` | [`PostgresStore`], [`MySqlStore`]: how they are opened, their statements, their error codes |
//! | `stores` | their implementations of `Store`; [`PostgresTransactions`], [`MySqlTransactions`] |
//! | `dialect` | what a database's statements must do |
//! | `rounds` | tries claims and settlements until their answer is clear: the same for both |
//! | `listing` | what operators ask of a store: the same for both |
//! | `range` | which ids a page of a list is read from |
//! | `transactions` | claims that carry a transaction: from the claim to the commit |
//! | `reasons` | why a transaction did not commit |
//! | `batches` | one transaction for many claims, in PostgreSQL |
//! | `transaction`, `guard` | the transaction as its handler sees it, and the statements that it refuses |
//! | `beside` | a connection beside the pool's, to end a transaction at the server |
//! | `record` | records as rows |
//! | `session`, `control` | a connection for one call, within the time of the call; its transaction |
//! | `settings` | [`Settings`]: read from the environment; [`CONNECTIONS_DEFAULT`] |
//! | `error` | maps a database's errors to store errors |
//! | `migrations` | the table `claimant_records`; also as plain SQL in `migrations/` for other tools |
//! | `url` | checks a database's URL before the driver reads it |
//! | `parts` | what only the inbox uses: errors, migrations |
//!
//! # Permissions
//!
//! `SELECT`, `INSERT` and `UPDATE` on the table `claimant_records`; for `delete_expired` `SELECT`, `UPDATE` (PostgreSQL locks what
//! it deletes) and `DELETE`; for `migrate` the rights to create tables and to alter them: in PostgreSQL `CREATE` on the first schema of the
//! `search_path`, and to own what is there.

#[cfg(feature = "postgres")]
mod batches;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod beside;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod control;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod dialect;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod error;
#[cfg(all(test, any(feature = "mysql", feature = "postgres")))]
mod fuzz;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod guard;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod listing;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod migrations;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(any(feature = "mysql", feature = "postgres"))]
#[doc(hidden)]
pub mod parts;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod range;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod reasons;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod record;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod rounds;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod session;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod settings;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod stores;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod transaction;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod transactions;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod url;

#[cfg(feature = "mysql")]
pub use mysql::MySqlStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use settings::{CONNECTIONS_DEFAULT, Settings};
#[cfg(feature = "mysql")]
pub use stores::{MySqlTransaction, MySqlTransactions};
#[cfg(feature = "postgres")]
pub use stores::{PgTransaction, PostgresTransactions};
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub use transaction::SqlTransaction;
