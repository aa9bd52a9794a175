//! The journal: what happened in a cloud, in order, and to which message.
//!
//! | module | holds |
//! | --- | --- |
//! | `event` | [`Event`] and [`What`]: one thing that happened |
//! | `text` | [`Text`]: a name that many events share |
//! | `bodies` | the latest bodies, bounded in bytes |
//! | [`lines`] | what the lines say that functions write |
//! | `ring` | the latest events, bounded in number and bytes |
//! | `index` | the events and keys of each message |
//! | `service` | [`Journal`]: written by all parts of a cloud, read by sequence number or by message |
//!
//! A journal that is [off](Journal::off) costs nothing. It is written where a thing happens, and nothing waits for it.

mod bodies;
mod event;
mod index;
pub mod lines;
mod ring;
mod service;
mod text;

pub use event::{Claimed, Done, Event, InvocationEnd, Level, ProcessEnd, What};
pub use service::{BODIES_MAX_BYTES, EVENTS_MAX, EVENTS_MAX_BYTES, Journal, LINES_MAX, LINES_MAX_BYTES, Totals};
pub use text::{Text, Texts};
