//! Envelopes that messages come in: what SNS, EventBridge, S3 and CloudEvents put around an event.
//!
//! | module | holds |
//! | --- | --- |
//! | [`sns`], [`eventbridge`], [`s3`], [`cloudevents`] | one envelope each |
//! | [`detect()`] | the same, found out by what a body looks like, nested or not |
//! | [`extended`] | the message that points to a payload in S3, as the SQS Extended Client writes it |
//! | `values` | what they share: JSON, times, traces, attributes |
//!
//! An envelope is a JSON object, and so is each part of it that has fields of its own: an array in its place is rejected.
//!
//! Nothing here fetches anything, nor checks who sent a message: who may send is the queue's policy to say.

pub mod cloudevents;
pub mod detect;
pub mod eventbridge;
pub mod extended;
#[cfg(test)]
mod fuzz;
pub mod s3;
pub mod sns;
mod values;

pub use cloudevents::CloudEvents;
pub use detect::{Detect, detect};
pub use eventbridge::EventBridge;
pub use s3::{S3, S3Record};
pub use sns::Sns;

/// How deep envelopes may be nested: the events of S3 through EventBridge and SNS are two deep.
pub const NESTING_MAX: usize = 4;

/// The most records that a notification of S3 may have; today's have one.
pub const RECORDS_MAX: usize = 100;

/// The most attributes that an event may have.
pub const ATTRIBUTES_MAX: usize = 100;
