//! The lock table: claimant's records in Amazon DynamoDB.
//!
//! | module | holds |
//! | --- | --- |
//! | `table` | [`LockTable`]: the store, and how ambiguous answers are resolved |
//! | `requests`, `statements` | every request and its condition; the PartiQL statements for many |
//! | `batch` | many records in one request |
//! | `item`, `names` | records as items |
//! | `error` | DynamoDB's errors in the words of a store |
//! | `create` | making the table, for local use and tests |
//!
//! # Permissions
//!
//! `dynamodb:UpdateItem` and `dynamodb:GetItem` on the one table; for many records in one request also
//! `dynamodb:PartiQLInsert`, `dynamodb:PartiQLUpdate` and `dynamodb:BatchGetItem`, see [`LockTable::batched`].

mod batch;
mod create;
mod error;
mod item;
mod names;
mod requests;
mod statements;
mod table;

pub use names::AttributeNames;
pub use table::LockTable;
