//! Large payloads in memory, for tests of consumers whose messages point to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::{BoxFuture, FetchError, Message, PayloadSource, Pointer, Rejection, Room};
use serde_json::Value;

/// How much a batch may have in memory, and fetch at once.
const ROOM_BYTES: usize = 32 * 1024 * 1024;
const AT_ONCE: usize = 8;

/// A bucket in memory, whose objects are the payloads of messages that
/// [`TestMessage::s3_pointer`](crate::TestMessage::s3_pointer) makes: in place of `S3Payloads`. Clones are the same bucket.
///
/// What is not there, and what is in another bucket, is rejected, as there.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// use claimant_test::{MemoryPayloads, Scenario, TestMessage, TestQueue};
///
/// async fn pack(order: u64, _: Context) -> Result<(), HandlerError> {
///     if order == 7 { Ok(()) } else { Err(HandlerError::terminal("another order")) }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// for scenario in Scenario::all() {
///     let payloads = MemoryPayloads::new("payloads").with("order-7", "7");
///     let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).large_payloads(payloads);
///     let message = TestMessage::s3_pointer("payloads", "order-7", 1);
///     TestQueue::new(consumer).play(&scenario, &[message]).await.assert_done();
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryPayloads {
    bucket: String,
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl MemoryPayloads {
    /// Returns an empty bucket with this name.
    #[must_use]
    pub fn new(bucket: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), objects: Arc::default() }
    }

    /// Returns it with this object.
    #[must_use]
    pub fn with(self, key: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        self.objects().insert(key.into(), payload.into());
        self
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PayloadSource for MemoryPayloads {
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection> {
        let Ok(content) = serde_json::from_slice::<Value>(message.content()) else { return Ok(None) };
        let [container, name] = ["s3BucketName", "s3Key"].map(|field| content[1][field].as_str().map(str::to_owned));
        let (Some(container), Some(name)) = (container, name) else { return Ok(None) };
        if container != self.bucket {
            return Err(Rejection::new("the pointer is to another bucket than that of the test"));
        }
        Ok(Some(Pointer { container, name }))
    }

    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        room: &'a Room,
        _: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
        let found = self.objects().get(&pointer.name).cloned();
        let payload = found.ok_or_else(|| FetchError::Rejected(Rejection::new("the payload is not in its bucket")));
        Box::pin(async move {
            let payload = payload?;
            room.take(payload.len()).await?;
            Ok(payload)
        })
    }

    fn room_bytes(&self) -> usize {
        ROOM_BYTES
    }

    fn concurrency(&self) -> usize {
        AT_ONCE
    }
}
