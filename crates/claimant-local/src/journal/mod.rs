//! The journal: what happened in a cloud, in order, and to which message.
//!
//! | module | holds |
//! | --- | --- |
//! | `event` | [`Event`]: one thing that happened |
//! | `what` | [`What`] can happen |
//! | `text` | [`Text`]: a name that many events share |
//! | `bodies` | the latest bodies, bounded in bytes |
//! | [`lines`] | what the lines say that functions write |
//! | [`outcomes`] | the outcomes that they tell |
//! | `fields` | the names and values in them |
//! | `ring` | the latest events, bounded in number and bytes |
//! | `index` | the events and keys of each message |
//! | `service` | [`Journal`]: written by all parts of a cloud, read by sequence number or by message |
//!
//! A journal that is [off](Journal::off) costs nothing. It is written where a thing happens, and nothing waits for it.

mod bodies;
mod event;
mod fields;
mod index;
pub mod lines;
pub mod outcomes;
mod ring;
mod service;
mod text;
mod what;

pub use event::Event;
pub use service::{BODIES_MAX_BYTES, EVENTS_MAX, EVENTS_MAX_BYTES, Journal, LINES_MAX, LINES_MAX_BYTES, Totals};
pub use text::{Text, Texts};
pub use what::{Claimed, Done, InvocationEnd, Level, ProcessEnd, What};
