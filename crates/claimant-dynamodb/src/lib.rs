//! The lock table: claimant's records in Amazon DynamoDB.
//!
//! | module | holds |
//! | --- | --- |
//! | `table` | [`LockTable`]: the store, and how ambiguous answers are resolved |
//! | `requests` | every request and its condition |
//! | `item`, `names` | records as items |
//! | `error` | DynamoDB's errors in the words of a store |
//! | `create` | making the table, for local use and tests |
//!
//! # Permissions
//!
//! `dynamodb:UpdateItem` and `dynamodb:GetItem` on the one table.

mod create;
mod error;
mod item;
mod names;
mod requests;
mod table;

pub use names::AttributeNames;
pub use table::LockTable;
