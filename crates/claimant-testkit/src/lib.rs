//! Tools for testing claimant and what is built on it; a dev-dependency only.
//!
//! | module | holds |
//! | --- | --- |
//! | [`clock`] | a clock that stands still until it is told to move |
//! | [`faulty`] | a store that fails as scripted |
//! | [`contract`] | the contract of a store, as checks that any store can be held to |

pub mod clock;
pub mod contract;
pub mod faulty;
mod script;

pub use clock::{ManualClock, VirtualClock};
pub use faulty::{Call, Fault, FaultyStore};
