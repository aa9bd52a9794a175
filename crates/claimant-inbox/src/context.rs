//! What a handler can ask about its run.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Fence, Timestamp};
use tokio::time::Instant;

use crate::rows::Taken;

/// Describes a run to its handler. Cheap to clone; it cannot change the row.
#[derive(Clone)]
pub struct InboxContext {
    run: Arc<Run>,
}

struct Run {
    taken: Arc<Taken>,
    body: String,
    cancelled_at: Instant,
}

impl InboxContext {
    pub(crate) fn new(taken: Arc<Taken>, body: String, cancelled_at: Instant) -> Self {
        Self { run: Arc::new(Run { taken, body, cancelled_at }) }
    }

    pub(crate) fn body(&self) -> &str {
        &self.run.body
    }

    /// Returns the key of the work; its SHA-256 in hex if the inbox has only that, see
    /// [`hashed_keys`](claimant_core::Consumer::hashed_keys) and
    /// [`RECORD_ID_PLAIN_MAX_BYTES`](claimant_core::key::RECORD_ID_PLAIN_MAX_BYTES). Pass it to a system that has an effect
    /// outside the transaction, so that it can recognise a repeat.
    #[must_use]
    pub fn key(&self) -> &str {
        self.run.taken.key()
    }

    /// Returns the number of the message in the inbox, by which it can be found.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.run.taken.id
    }

    /// Returns the consumer that stored it.
    #[must_use]
    pub fn consumer(&self) -> &str {
        self.run.taken.consumer()
    }

    /// Returns the event type, which selected its handler.
    #[must_use]
    pub fn event_type(&self) -> &str {
        &self.run.taken.event_type
    }

    /// Returns the group whose messages are processed in order, if it has one.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.run.taken.group.as_deref()
    }

    /// Returns the number of this attempt: 1 for the first, and for the first after an operator's [`retry`](crate::Inbox::retry).
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.taken.attempt
    }

    /// Returns the fencing token of this attempt. It grows with each attempt of the message, so that a system that keeps the
    /// largest one seen can refuse a late write of an earlier one.
    #[must_use]
    pub fn fence(&self) -> Fence {
        Fence::new(self.run.taken.fence)
    }

    /// Returns the id of the message that carried the work.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.run.taken.message_id.as_str()
    }

    /// Returns when it was stored, by the clock of the function that stored it.
    #[must_use]
    pub fn received_at(&self) -> Timestamp {
        self.run.taken.received_at
    }

    /// Returns the trace that the producer sent the message in, as the header that continues it.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.run.taken.trace.as_deref()
    }

    /// Returns how long the handler has until it is cancelled. Zero means no time, never "no limit".
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.run.cancelled_at.saturating_duration_since(Instant::now())
    }
}

// Neither bodies nor keys are ever logged.
impl std::fmt::Debug for InboxContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboxContext").field("id", &self.id()).field("attempt", &self.attempt()).finish_non_exhaustive()
    }
}
