//! OpenTelemetry spans of the messages that claimant works on and sends.
//!
//! | module | holds |
//! | --- | --- |
//! | `spans` | [`OtelSpans`]: what opens them |
//! | `message`, `step`, `send` | the spans of a message, of its steps and of one that is sent |
//! | `names` | the names of spans and attributes, by the semantic conventions for messaging |
//! | `trace` | the two headers by which a producer's trace comes along, and the one that is sent |

mod message;
mod names;
mod send;
mod spans;
mod step;
mod trace;

pub use spans::OtelSpans;
