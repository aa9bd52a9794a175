//! A limit in the engine: nothing is claimed or started beyond it. What it decides is in `protocol/{rate,plan,slot,turn,slots,kept}.rs`; an engine
//! without a limit comes by none of this.
//!
//! | module | holds |
//! | --- | --- |
//! | `stage` | the stage of a batch: how many keys may be claimed, and which handler may start now |
//! | `asking` | what is asked of the store, and what the answers say |
//! | `calls` | what one batch or worker asks for, and when there is something to do |
//! | `shared` | the limit as this process knows it, and its slots |
//! | `users` | whose turn it is, where several batches of the process have calls |
//! | `worker` | a limit for what takes its work by itself and not in batches |

mod asking;
mod calls;
pub(super) mod shared;
pub(super) mod stage;
pub(super) mod users;
pub(crate) mod worker;
