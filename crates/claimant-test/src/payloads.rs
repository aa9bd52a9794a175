//! Large payloads in memory, for tests of consumers whose messages point to them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::{BoxFuture, FetchError, Message, PayloadSource, Pointer, Rejection, Room};
use claimant_events::extended;

/// How much a batch may have in memory, and fetch at once.
const ROOM_BYTES: usize = 32 * 1024 * 1024;
const AT_ONCE: usize = 8;

/// The largest payload that is fetched, unless set.
const PAYLOAD_MAX_BYTES: usize = 8 * 1024 * 1024;

/// A bucket in memory, whose objects are the payloads of messages that
/// [`TestMessage::s3_pointer`](crate::TestMessage::s3_pointer) makes: in place of `S3Payloads`. Clones are the same bucket.
///
/// As there, what is not in it is rejected, and so is what is in another bucket or larger than
/// [`payload_max_bytes`](Self::payload_max_bytes), and a message with the attribute of a pointer and none in its body.
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
    payload_max_bytes: usize,
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl MemoryPayloads {
    /// Returns an empty bucket with this name.
    #[must_use]
    pub fn new(bucket: impl Into<String>) -> Self {
        Self { bucket: bucket.into(), payload_max_bytes: PAYLOAD_MAX_BYTES, objects: Arc::default() }
    }

    /// Returns it with this object.
    #[must_use]
    pub fn with(self, key: impl Into<String>, payload: impl Into<Vec<u8>>) -> Self {
        self.objects().insert(key.into(), payload.into());
        self
    }

    /// Sets the largest payload that is fetched, as `S3Payloads::payload_max_bytes` does. Unless set, 8 MiB.
    #[must_use]
    pub fn payload_max_bytes(self, bytes: usize) -> Self {
        Self { payload_max_bytes: bytes, ..self }
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PayloadSource for MemoryPayloads {
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection> {
        let pointer = extended::of_message(message, self.payload_max_bytes)?;
        if pointer.as_ref().is_some_and(|pointer| pointer.container != self.bucket) {
            return Err(Rejection::new("the pointer is to another bucket than that of the test"));
        }
        Ok(pointer)
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
            if payload.len() > self.payload_max_bytes {
                let too_large = extended::too_large(payload.len() as u64, self.payload_max_bytes);
                return Err(FetchError::Rejected(too_large));
            }
            room.take(payload.len()).await?;
            Ok(payload)
        })
    }

    fn room_bytes(&self) -> usize {
        ROOM_BYTES.max(self.payload_max_bytes)
    }

    fn payload_max_bytes(&self) -> usize {
        self.payload_max_bytes
    }

    fn concurrency(&self) -> usize {
        AT_ONCE
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::memory::MemoryStore;
    use claimant_core::{AttributeValue, Consumer, Context, HandlerError};
    use serde_json::Value;

    use super::*;
    use crate::{TestMessage, TestQueue};

    async fn read(_: Value, _: Context) -> Result<(), HandlerError> {
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn what_s3_payloads_reject_is_rejected() {
        let pointer = |key, bytes| TestMessage::s3_pointer("payloads", key, bytes);
        let with = |body: &str, size| TestMessage::text(body).attribute("ExtendedPayloadSize", size);
        let number = |bytes: u64| AttributeValue::number(bytes);
        let body = pointer("small", 3).body();
        for (message, wanted) in [
            (pointer("small", 3), None),
            (TestMessage::text(r#"["order", {"s3BucketName": "payloads", "s3Key": "none"}]"#), None),
            (pointer("small", 11), Some("the payload has 11 bytes, and at most 10 are fetched")),
            (pointer("large", 3), Some("the payload has 12 bytes, and at most 10 are fetched")),
            (pointer("none", 3), Some("the payload is not in its bucket")),
            (TestMessage::s3_pointer("other", "small", 3), Some("another bucket")),
            (pointer("", 3), Some("s3Key of the pointer to the payload is not a text of 1 to 1024 bytes")),
            (pointer(&"k".repeat(1_025), 3), Some("s3Key of the pointer to the payload is not a text")),
            (TestMessage::text(body.replace(']', ", 7]")), Some("is not a class and an object")),
            // As long as no pointer is: a payload, whose attribute says otherwise.
            (with(&format!("{body}{}", " ".repeat(8_192)), number(3)), Some("the body is no pointer")),
            (
                with("{}", number(3)),
                Some("the body is no pointer to a payload, and the message has the attribute ExtendedPayloadSize"),
            ),
            (with(&body, AttributeValue::text("three")), Some("ExtendedPayloadSize is no number")),
        ] {
            let payloads = MemoryPayloads::new("payloads").with("small", "\"s\"").with("large", "\"ten bytes.\"");
            let consumer = Consumer::new("reading", MemoryStore::new(), read);
            let queue = TestQueue::new(consumer.large_payloads(payloads.payload_max_bytes(10)));
            queue.send(&[message]);
            let played = queue.drain().await;
            match wanted {
                None => played.assert_done(),
                Some(why) => played.assert_dead_lettered(why),
            };
        }
    }
}
