//! Tools for testing claimant and what is built on it; a dev-dependency only.
//!
//! | module | holds |
//! | --- | --- |
//! | [`clock`] | a clock that stands still until it is told to move |
//! | [`faulty`] | a store that fails as scripted |
//! | [`fuzz`] | generated inputs for fuzz targets and properties |
//! | [`ledger`] | a transactional store in memory |
//! | [`queue`] | a queue that is scripted |
//! | [`contract`] | the contract of a store, as checks that any store can be held to |
//! | [`outcomes`] | every outcome of the protocol, as a table that any store can be put under |

pub mod clock;
pub mod contract;
pub mod faulty;
pub mod fuzz;
pub mod ledger;
pub mod outcomes;
mod player;
pub mod queue;
mod script;

pub use clock::MovableClock;
pub use faulty::{Call, Fault, FaultyStore};
pub use queue::{DeadLetterQueue, ScriptedQueue};
