//! What unpacking the messages of a batch may take: memory, since all contents are there at once, and time, since nothing else goes on
//! meanwhile.

use std::time::Duration;

use tokio::time::Instant;

use crate::invocation_time::{InvocationTime, time_until};
use crate::key::ConsumerName;
use crate::limits::{UNPACK_MIN_MS, UNPACK_PART, UNPACKED_BATCH_MAX_BYTES};
use crate::message::Message;

/// The memory and time left for unpacking.
pub(crate) struct Unpacking<'a> {
    /// In whose name it is logged.
    consumer: &'a ConsumerName,
    grown_bytes: usize,
    by: Instant,
}

impl<'a> Unpacking<'a> {
    pub(crate) fn new(consumer: &'a ConsumerName, time: InvocationTime) -> Self {
        Self { consumer, grown_bytes: 0, by: by(time) }
    }

    /// Returns the same, with time from now on.
    pub(crate) fn with_time(self, time: InvocationTime) -> Self {
        Self { by: by(time), ..self }
    }

    /// Returns whether there is time to unpack this message.
    pub(crate) fn has_time(&self, message: &Message) -> bool {
        let has_time = !time_until(self.by).is_zero();
        if !has_time {
            tracing::info!(consumer = %self.consumer, message_id = %message.id(), "message waits for a later batch: those of this one take too long to unpack and decode; smaller batches or a faster function need not wait");
        }
        has_time
    }

    /// Takes room for a message whose contents had so many bytes, and now are these; returns whether those of the batch's other
    /// messages leave enough. The first always has room.
    pub(crate) fn has_room(&mut self, message: &Message, packed_bytes: usize, unpacked_bytes: usize) -> bool {
        let grown_bytes = unpacked_bytes.saturating_sub(packed_bytes);
        if grown_bytes > 0 && self.grown_bytes > 0 && self.grown_bytes + grown_bytes > UNPACKED_BATCH_MAX_BYTES {
            tracing::info!(consumer = %self.consumer, message_id = %message.id(), "message waits for a later batch: what those of this one unpack to fills the memory that it may take; smaller batches need not wait");
            return false;
        }
        self.grown_bytes += grown_bytes;
        true
    }
}

fn by(time: InvocationTime) -> Instant {
    Instant::now() + (time_until(time.cancel_at) / UNPACK_PART).max(Duration::from_millis(UNPACK_MIN_MS))
}

/// Returns how many bytes contents have.
pub(crate) fn content_bytes<'m>(events: impl IntoIterator<Item = &'m Message>) -> usize {
    events.into_iter().map(|event| event.content().len()).sum()
}
