//! Tools for testing claimant and what is built on it; a dev-dependency only.
//!
//! | module | holds |
//! | --- | --- |
//! | [`batch_ledger`] | a store in memory with transactions for batches |
//! | [`fuzz`] | generated inputs for fuzz targets and properties |
//! | [`contract`] | the contract of a store, as checks that any store can be held to |
//! | [`logs`] | what is logged on a test's thread |
//! | [`outcomes`] | every outcome of the protocol, as a table that any store can be put under |
//! | `player`, `script` | steps that are played on a store, and what was seen of each |
//!
//! What users need for tests of their own is in `claimant-test`: [`clock`], [`faulty`] and [`queue`] are from there.

pub mod batch_ledger;
pub mod contract;
pub mod fuzz;
pub mod logs;
pub mod outcomes;
mod player;
mod script;

pub use claimant_test::{
    Call, DeadLetterQueue, Fault, FaultyStore, MemoryTransactions, MovableClock, ScriptedQueue, clock, faulty, pass_on,
    scripted_queue as queue,
};
