//! Faults on purpose: processes killed or frozen, requests to the table refused or cut off, answers lost, mails and charges refused.
//! Each acts a number of times or for some seconds, is listed while it does, and can be ended by hand.
//!
//! | module | holds |
//! | --- | --- |
//! | `spec` | [`FaultSpec`]: what is asked for, checked; pure |
//! | `list` | [`Fault`]: those that act, and the latest that ended; pure |
//! | `service` | [`Faults`]: the shared handle that the parts of a cloud ask |
//! | `state` | what its clones share, and what faults do to processes |
//! | `claims` | whether a function tells of its claims; pure |
//! | `processes` | faults of processes: they wait for a claim, then act |

mod claims;
mod list;
mod processes;
mod service;
mod spec;
mod state;

pub(crate) use claims::asks_for_debug;
pub use list::{ACTIVE_MAX, ENDED_MAX, Fault};
pub use service::Faults;
pub use spec::{Act, FROZEN_MAX_S, FaultSpec, SECONDS_MAX, TIMES_MAX, Target, When};
