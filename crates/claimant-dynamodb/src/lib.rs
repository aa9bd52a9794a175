//! The lock table: claimant's records in Amazon DynamoDB.
//!
//! | module | holds |
//! | --- | --- |
//! | `table` | [`LockTable`]: the store |
//! | `tables` | [`Tables`]: which of several tables has a record |
//! | `moving` | moves records to another set of tables |
//! | `claim`, `settle` | one claim, its renewal and its end, and how ambiguous answers are resolved |
//! | `requests`, `statements` | every request and its condition; the PartiQL statements for many |
//! | `batch` | many records in one request |
//! | `transaction`, `commit` | the handler's writes, and the one request that commits them with the completion |
//! | `transactions`, `optimistic` | the stores whose claims carry a transaction: with a claim in the table, and without |
//! | `records`, `shape` | what operators ask of the table; whether it is one |
//! | `item`, `names` | converts records to items and back |
//! | `settings` | [`Settings`]: read from the environment |
//! | `permitted` | what the role may do, as far as it is known |
//! | `error` | maps DynamoDB's errors to store errors |
//! | `create` | creates the table, for local use and tests |
//!
//! # Permissions
//!
//! `dynamodb:UpdateItem` and `dynamodb:GetItem` on each table. `dynamodb:PutItem` for claims of one new key that take less processor
//! time; for many records in one request also `dynamodb:PartiQLInsert`, `dynamodb:PartiQLUpdate` and `dynamodb:BatchGetItem`, see
//! [`LockTable::batched`]. What of these is denied is not sent again (for many, for a minute), and the answers are the same. On tables that records are moved from
//! `dynamodb:GetItem`, `BatchGetItem` and `DeleteItem`. For a transaction's own writes `PutItem`, `UpdateItem`, `DeleteItem` and `ConditionCheckItem` on
//! their tables, as far as they are used. Operators need
//! `dynamodb:UpdateItem`, `GetItem`, `Scan` and `DescribeTable`.

mod batch;
mod claim;
mod commit;
mod create;
mod error;
#[cfg(test)]
mod fuzz;
mod item;
mod moving;
mod names;
mod optimistic;
mod permitted;
mod records;
mod requests;
mod settings;
mod settle;
mod shape;
mod statements;
mod table;
mod tables;
mod transaction;
mod transactions;

pub use moving::outranks;
pub use names::AttributeNames;
pub use optimistic::OptimisticTransactions;
pub use settings::Settings;
pub use table::LockTable;
pub use tables::{TABLES_MAX, Tables};
pub use transaction::{Condition, TRANSACTION_MAX_BYTES, TRANSACTION_WRITES_MAX, Transaction};
pub use transactions::TableTransactions;
