//! Payloads that are kept in Amazon S3, with messages that only point to them: as the SQS Extended Client for Java and Python does.
//!
//! | module | holds |
//! | --- | --- |
//! | `payloads` | [`S3Payloads`]: the bucket, its limits, and what writes, fetches and removes |
//! | `answers` | what S3's refusals mean for a message |

mod answers;
mod payloads;

pub use claimant_events::extended::{SIZE_ATTRIBUTE, message_body};
pub use payloads::{PAYLOAD_MAX_BYTES, S3Payloads};
