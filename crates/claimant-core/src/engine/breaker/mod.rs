//! A breaker in the engine: while it is open nothing is claimed, and where this invocation probes, one message at a time goes through. What it
//! decides is in `protocol/breaker.rs`; an engine without a breaker comes by none of this.
//!
//! | module | holds |
//! | --- | --- |
//! | `gate` | the stage of a batch: how many keys may be claimed, and what waits while it is open |
//! | `way` | what the breaker allows an invocation or a worker, and what is written of a probe |
//! | `state` | the breaker as this process knows it |
//! | `shared` | what the invocations of a process share of it, and the claim of a probe |
//! | `record` | its record in the store |
//! | `pauses` | the pauses of the intake while it is open |
//! | `worker` | a breaker for what takes its work by itself and not in batches |

pub(super) mod gate;
mod pauses;
mod record;
pub(super) mod shared;
mod state;
mod way;
pub(crate) mod worker;
