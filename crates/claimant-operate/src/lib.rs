//! What the person on call needs: a library that the command `claimant` only calls.
//!
//! | module | holds |
//! | --- | --- |
//! | [`dead`] | dead letters: what is alike in them |
//! | [`target`] | what the commands work on: a local cloud, or a table and queues by their names |

pub mod dead;
mod http;
pub mod target;
