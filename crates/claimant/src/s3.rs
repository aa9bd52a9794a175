//! Payloads in Amazon S3, with messages that only point to them, as Amazon's SQS Extended Client writes them.
//!
//! ```no_run
//! use claimant::s3::S3Payloads;
//! # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
//! # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
//!
//! # async fn example() -> Result<(), claimant::Error> {
//! let payloads = S3Payloads::from_env("PAYLOADS_BUCKET").await?;
//! let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).large_payloads(payloads);
//! # Ok(())
//! # }
//! ```

#[doc(inline)]
pub use claimant_s3::{PAYLOAD_MAX_BYTES, S3Payloads, SIZE_ATTRIBUTE, message_body};
