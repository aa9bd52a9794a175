//! Buckets and their objects, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use md5::{Digest as _, Md5};

use crate::Error;
use crate::clock::wall_clock_ms;
use crate::journal::{Journal, What};
use crate::sync::lock;

/// The largest object.
pub const OBJECT_MAX_BYTES: usize = 64 * 1024 * 1024;

/// What all objects have together at most.
pub const KEPT_MAX_BYTES: usize = 512 * 1024 * 1024;

/// Buckets and their objects. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct S3(Arc<Mutex<BTreeMap<String, Bucket>>>, Journal);

type Bucket = BTreeMap<String, Object>;

/// An object, and the headers that it was put with and is answered with.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) bytes: Bytes,
    pub(super) etag: String,
    pub(super) modified_ms: u64,
    pub(super) headers: Vec<(String, String)>,
}

impl Object {
    /// An object that is put now.
    pub(super) fn new(bytes: Bytes, headers: Vec<(String, String)>) -> Self {
        let etag = format!("\"{}\"", hex(&Md5::digest(&bytes)));
        Self { bytes, etag, modified_ms: wall_clock_ms(), headers }
    }
}

/// The digest in small letters.
pub(super) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What must be so of the object that is there, for another to be put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    None,
    /// There is none.
    Absent,
    /// It has this etag.
    Is(String),
}

/// Why a request is refused, as S3 says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NoSuchBucket,
    NoSuchKey,
    PreconditionFailed,
    InvalidRange,
    /// [`KEPT_MAX_BYTES`] are kept already.
    Full,
}

impl S3 {
    /// An endpoint without buckets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same endpoint, which writes each request for an object into this journal. Clones made before keep theirs.
    #[must_use]
    pub fn observed(mut self, journal: &Journal) -> Self {
        self.1 = journal.clone();
        self
    }

    /// Writes a request that was carried out into the journal.
    pub(super) fn note(&self, request: &'static str, bucket: &str, key: &str) {
        self.1.note(|| What::Object { object: format!("{bucket}/{key}").into(), request }, |event| event);
    }

    /// Makes a bucket; one that is there stays as it is.
    pub fn create_bucket(&self, name: &str) {
        lock(&self.0).entry(name.to_owned()).or_default();
    }

    /// Returns the keys of a bucket's objects, in their order; none where there is no such bucket.
    #[must_use]
    pub fn keys(&self, bucket: &str) -> Vec<String> {
        lock(&self.0).get(bucket).map(|bucket| bucket.keys().cloned().collect()).unwrap_or_default()
    }

    /// Returns an object's bytes.
    #[must_use]
    pub fn object(&self, bucket: &str, key: &str) -> Option<Vec<u8>> {
        self.get(bucket, key).ok().map(|object| object.bytes.to_vec())
    }

    /// Puts an object into a bucket, in place of one of this key.
    ///
    /// # Errors
    /// When there is no such bucket, or [`KEPT_MAX_BYTES`] are kept already.
    pub fn put_object(&self, bucket: &str, key: &str, bytes: impl Into<Vec<u8>>) -> Result<(), Error> {
        let object = Object::new(Bytes::from(bytes.into()), Vec::new());
        self.put(bucket, key.to_owned(), object, &Condition::None).map_err(|fault| match fault {
            Fault::NoSuchBucket => Error::new(format!("there is no bucket {bucket:?}")),
            _ => Error::new(format!("more than {KEPT_MAX_BYTES} bytes would be kept")),
        })
    }

    pub(super) fn get(&self, bucket: &str, key: &str) -> Result<Object, Fault> {
        let buckets = lock(&self.0);
        buckets.get(bucket).ok_or(Fault::NoSuchBucket)?.get(key).cloned().ok_or(Fault::NoSuchKey)
    }

    pub(super) fn put(&self, bucket: &str, key: String, object: Object, condition: &Condition) -> Result<(), Fault> {
        let mut buckets = lock(&self.0);
        let kept: usize = buckets.values().flat_map(BTreeMap::values).map(|object| object.bytes.len()).sum();
        let bucket = buckets.get_mut(bucket).ok_or(Fault::NoSuchBucket)?;
        match (condition, bucket.get(&key)) {
            (Condition::Is(_), None) => return Err(Fault::NoSuchKey),
            (Condition::Is(etag), Some(there)) if *etag != there.etag => return Err(Fault::PreconditionFailed),
            (Condition::Absent, Some(_)) => return Err(Fault::PreconditionFailed),
            _ => {}
        }
        let replaced = bucket.get(&key).map_or(0, |object| object.bytes.len());
        if kept - replaced + object.bytes.len() > KEPT_MAX_BYTES {
            return Err(Fault::Full);
        }
        bucket.insert(key, object);
        Ok(())
    }

    /// Deletes an object, which need not be there.
    pub(super) fn delete(&self, bucket: &str, key: &str) -> Result<(), Fault> {
        lock(&self.0).get_mut(bucket).ok_or(Fault::NoSuchBucket)?.remove(key);
        Ok(())
    }
}
