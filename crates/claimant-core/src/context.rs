//! What a handler may know about its run.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::claim::Fence;
use crate::key::{ConsumerName, Key, MessageId};

/// What a handler may know about its run. Cheap to clone; gives no power over the claim.
#[derive(Debug, Clone)]
pub struct Context {
    run: Arc<Run>,
}

#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) consumer: ConsumerName,
    pub(crate) key: Key,
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    pub(crate) message_id: MessageId,
    pub(crate) receive_count: u32,
    pub(crate) trace: Option<String>,
    pub(crate) cancelled_at: Instant,
}

impl Context {
    pub(crate) fn new(run: Run) -> Self {
        Self { run: Arc::new(run) }
    }

    /// The key of the work. Hand it to the system that has the effect, so that it can recognise a repeat.
    #[must_use]
    pub fn key(&self) -> &str {
        self.run.key.as_str()
    }

    /// The fence of this claim: grows with each claim of the key, so that a system that keeps the largest one seen
    /// can refuse a late write of an earlier owner.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.run.fence
    }

    /// Which run of the handler for this key this is: 1 for the first. Survives redrive, unlike the receive count.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.run.attempt
    }

    /// The id of the message that carries the work.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.run.message_id.as_str()
    }

    /// How often the queue has delivered this message, this time included.
    #[must_use]
    pub fn receive_count(&self) -> u32 {
        self.run.receive_count
    }

    /// The trace that the producer sent the message in, as the header (`Root=…;Parent=…;Sampled=…`) that continues it:
    /// hand it to the systems you call, as `X-Amzn-Trace-Id`.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.run.trace.as_deref()
    }

    /// The consumer that runs.
    #[must_use]
    pub fn consumer(&self) -> &str {
        self.run.consumer.as_str()
    }

    /// How long the handler has until it is cancelled. Zero means no time, never "no limit".
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.run.cancelled_at.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_handler_sees_its_run() {
        let cx = Context::new(Run {
            consumer: ConsumerName::new("mails").unwrap(),
            key: Key::new("order-1").unwrap(),
            fence: Fence::new(7),
            attempt: 3,
            message_id: MessageId::new("m-1").unwrap(),
            receive_count: 5,
            trace: Some("Root=1".to_owned()),
            cancelled_at: Instant::now() + Duration::from_secs(9),
        });
        assert_eq!((cx.consumer(), cx.key(), cx.message_id()), ("mails", "order-1", "m-1"));
        assert_eq!((cx.fence(), cx.attempt(), cx.receive_count()), (Fence::new(7), 3, 5));
        assert_eq!((cx.trace(), cx.remaining()), (Some("Root=1"), Duration::from_secs(9)));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(cx.remaining(), Duration::ZERO);
    }
}
