//! Decoders of contents that are not JSON, what contents can be packed in, and the trait for one's own.
//!
//! [`Text`], [`Bytes`], `Protobuf` and `Avro` are decoders, for [`decoded_by`](crate::decoded_by).
//! [`Base64`] and `Gzip` are envelopes, for [`Consumer::envelope`](crate::Consumer::envelope); what is fingerprinted is in them.
//!
//! ```
//! use claimant::decode::{Base64, Bytes};
//! use claimant::memory::MemoryStore;
//! use claimant::{Context, HandlerError};
//!
//! async fn store(scan: Vec<u8>, cx: Context) -> Result<(), HandlerError> {
//!     println!("{}: {} bytes", cx.key(), scan.len());
//!     Ok(())
//! }
//!
//! let consumer = claimant::decoded_by(Bytes)
//!     .consumer("scans", MemoryStore::new(), store)
//!     .key_of_attribute("scan_id")
//!     .envelope(Base64::standard());
//! ```

#[doc(inline)]
pub use claimant_core::decode::{Bytes, Decoder, Json, Text};
#[doc(inline)]
pub use claimant_decode::Base64;
#[cfg(feature = "protobuf")]
#[doc(inline)]
pub use claimant_decode::Protobuf;
#[cfg(feature = "avro")]
#[doc(inline)]
pub use claimant_decode::{Avro, VALUES_DEFAULT};
#[cfg(feature = "gzip")]
#[doc(inline)]
pub use claimant_decode::{Gzip, UNPACKED_DEFAULT_BYTES, UNPACKED_MAX_BYTES};
