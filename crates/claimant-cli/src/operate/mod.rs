//! The commands of the person on call.
//!
//! | module | holds |
//! | --- | --- |
//! | `dead` | dead letters: listed, grouped, shown, sent back, discarded |
//! | `effects` | what functions have done, and what was done twice |
//! | `intake` | event source mappings: paused and resumed |
//! | `list`, `inspect` | keys by their state; one key in words |
//! | `limit` | what a limit allows all processes |
//! | `act` | `release`, `reset`, `forget`, `resolve` |
//! | `pauses` | what breakers have paused |
//! | `send` | messages for trying things out |
//! | `body` | bodies of messages from files |
//! | `demo` | a demonstration on a local cloud |
//! | `fault` | faults on purpose in a local cloud |
//! | `tail` | outcomes as they happen |
//! | `options`, `parse` | the options that all of them have, and the values of options |
//! | `confirm`, `interrupt` | questions before something is written; Ctrl-C and SIGTERM, at which a command ends in order |
//! | `table` | tables and ages as text, and text that cannot harm a terminal |

pub(crate) mod act;
mod body;
pub(crate) mod confirm;
pub(crate) mod dead;
pub(crate) mod demo;
pub(crate) mod effects;
pub(crate) mod fault;
pub(crate) mod inspect;
pub(crate) mod intake;
mod interrupt;
pub(crate) mod limit;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod parse;
mod pauses;
pub(crate) mod send;
pub(crate) mod table;
pub(crate) mod tail;

use claimant_core::State;

/// Returns whether work in this state waits for a person, or for a message that may not come again.
pub(crate) const fn needs_a_person(state: State) -> bool {
    matches!(state, State::Stuck | State::Parked | State::Rejected | State::Failed)
}
