//! An S3 endpoint that keeps objects in memory: as much of S3 as payloads outside of their messages need.
//!
//! `PutObject`, `GetObject`, `HeadObject`, `DeleteObject`, with paths (`/bucket/key`), which the AWS SDKs use for an endpoint whose host is
//! an address. Checksums are kept and returned, `x-amz-content-sha256` and `Content-MD5` are checked, and so is the expected owner of
//! the bucket. Everything else is refused by name: lists, copies, versions, uploads in parts, bodies in chunks (`aws-chunked`),
//! events to queues. A range is not honoured; the whole object is the answer, as HTTP allows.
//!
//! | module | holds |
//! | --- | --- |
//! | `buckets` | [`S3`]: buckets and their objects |
//! | `http` | the requests and answers |

mod buckets;
mod http;

pub use buckets::{KEPT_MAX_BYTES, OBJECT_MAX_BYTES, S3};
