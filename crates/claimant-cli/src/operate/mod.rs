//! The commands of the person on call.
//!
//! | module | holds |
//! | --- | --- |
//! | `dead` | dead letters: listed, grouped, shown, sent back, discarded |
//! | `intake` | event source mappings: paused and resumed |
//! | `options` | the options that all of them have: what to work on, how to print, how to write |
//! | `confirm` | questions before something is written, and who asks |
//! | `table` | tables that fit the terminal, and text that cannot harm it |

#![allow(dead_code, reason = "the commands that use it follow")]

pub(crate) mod confirm;
pub(crate) mod dead;
pub(crate) mod intake;
pub(crate) mod options;
pub(crate) mod table;
