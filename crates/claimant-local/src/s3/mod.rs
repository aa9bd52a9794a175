//! An S3 endpoint that keeps objects in memory: as much of S3 as payloads outside of their messages need.
//!
//! `PutObject`, `GetObject`, `HeadObject`, `DeleteObject`, with paths (`/bucket/key`), which the AWS SDKs use for an endpoint whose host is
//! an address. A get may ask for a part of an object (`Range`), or for one version of it (`If-Match`). A put may depend on what is there:
//! `If-None-Match: *`, `If-Match: ETAG`. Its body may come in chunks (`aws-chunked`), followed
//! by its checksum. Checksums are kept and returned; `x-amz-content-sha256`, `x-amz-checksum-sha256` and `Content-MD5` are checked, and so is
//! the expected owner of the bucket. Every other request is refused by name: lists, copies, versions, uploads in parts, other conditions
//! (`If-…`).
//!
//! Accepted, and otherwise than at AWS:
//!
//! | what | here |
//! | --- | --- |
//! | signatures, those of chunks too | not checked |
//! | checksums other than SHA-256 (CRC32, …) | kept and returned; a wrong one is not found |
//! | encryption, storage class, tags, access lists of a put | without effect |
//! | events to queues | there are none |
//!
//! | module | holds |
//! | --- | --- |
//! | `buckets` | [`S3`]: buckets and their objects |
//! | `chunks` | bodies in chunks |
//! | `http` | the requests and answers |

mod buckets;
mod chunks;
mod http;

pub use buckets::{KEPT_MAX_BYTES, OBJECT_MAX_BYTES, S3};
