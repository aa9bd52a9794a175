//! What claimant decodes beside JSON and text.
//!
//! | module | holds | feature |
//! | --- | --- | --- |
//! | `base64` | contents that are bytes in Base64 | |
//! | `gzip` | contents that are compressed | `gzip` |
//! | `protobuf` | payloads in Protobuf | `protobuf` |
//! | `avro`, `shape`, `cursor`, `datum` | payloads in Avro; what a schema says; the bytes of a datum; its values | `avro` |
//!
//! Base64 and gzip are envelopes: they can be in others and hold others, and the fingerprint is that of what they hold. Protobuf and
//! Avro are decoders.

#[cfg(feature = "avro")]
mod avro;
mod base64;
#[cfg(feature = "avro")]
mod cursor;
#[cfg(feature = "avro")]
mod datum;
#[cfg(test)]
mod fuzz;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "protobuf")]
mod protobuf;
#[cfg(feature = "avro")]
mod shape;
#[cfg(all(test, feature = "gzip"))]
mod tests;

#[cfg(feature = "avro")]
pub use avro::Avro;
pub use base64::Base64;
#[cfg(feature = "avro")]
pub use cursor::VALUES_DEFAULT;
#[cfg(feature = "gzip")]
pub use gzip::{Gzip, UNPACKED_DEFAULT_BYTES, UNPACKED_MAX_BYTES};
#[cfg(feature = "protobuf")]
pub use protobuf::Protobuf;
