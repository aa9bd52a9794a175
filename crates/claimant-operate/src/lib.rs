//! What the person on call needs: a library that the command `claimant` only calls.
//!
//! | module | holds |
//! | --- | --- |
//! | [`dead`] | dead letters: read, grouped, sent back, discarded |
//! | [`intake`] | event source mappings: paused and resumed |
//! | [`keys`] | records of keys: inspected, listed, released, reset, forgotten, resolved |
//! | [`target`] | what the commands work on: a local cloud, or a table and queues by their names |

mod aws;
pub mod dead;
mod http;
pub mod intake;
pub mod keys;
pub mod target;
