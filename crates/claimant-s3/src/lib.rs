//! Payloads that are kept in Amazon S3, with messages that only point to them: as the SQS Extended Client for Java and Python does.
//!
//! | module | holds |
//! | --- | --- |
//! | `payloads` | [`S3Payloads`]: the bucket, its limits, and what writes, fetches and removes |
//! | `pointer` | pure: the message that points to an object |
//! | `answers` | what S3's refusals mean for a message |

mod answers;
mod payloads;
mod pointer;

pub use payloads::{PAYLOAD_MAX_BYTES, S3Payloads};
pub use pointer::{SIZE_ATTRIBUTE, message_body};
