//! What a handler can ask about its run.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::claim::Fence;
use crate::key::{ConsumerName, InvalidValue, Key};
use crate::limits::LEASE_MAX_MS;
use crate::message::Message;

/// The time that a context made for a test leaves its handler.
const TEST_REMAINING: Duration = Duration::from_secs(30);

/// Describes a run to its handler. Cheap to clone; it cannot change the claim.
#[derive(Debug, Clone)]
pub struct Context {
    about: Arc<About>,
}

#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) consumer: ConsumerName,
    pub(crate) key: Key,
    pub(crate) fence: Fence,
    pub(crate) attempt: u32,
    pub(crate) message: Message,
    pub(crate) cancelled_at: Instant,
}

impl Context {
    pub(crate) fn new(about: About) -> Self {
        Self { about: Arc::new(about) }
    }

    /// Returns the context of a first run of a first delivery, for a test that calls a handler by itself: of this key, with
    /// 30 s until it is cancelled. The consumer's name is `test`, the message's id `test-message`, the fencing token 1, and
    /// there is no trace.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// use claimant::{Context, HandlerError};
    ///
    /// async fn confirm(order: &str, cx: Context) -> Result<String, HandlerError> {
    ///     Ok(format!("{order}, attempt {} of {}", cx.attempt(), cx.key()))
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let cx = Context::for_tests("ord-1").unwrap().with_attempt(2);
    /// assert_eq!(confirm("tea", cx).await.unwrap(), "tea, attempt 2 of ord-1");
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the key is empty, or longer than 2,048 bytes.
    pub fn for_tests(key: &str) -> Result<Self, InvalidValue> {
        Ok(Self::new(About {
            consumer: ConsumerName::new("test")?,
            key: Key::new(key)?,
            fence: Fence::FIRST,
            attempt: 1,
            message: Message::new("test-message", "")?,
            cancelled_at: Instant::now() + TEST_REMAINING,
        }))
    }

    /// Returns the same context, for a test, with this attempt.
    #[must_use]
    pub fn with_attempt(self, attempt: u32) -> Self {
        self.changed(|about| about.attempt = attempt)
    }

    /// Returns the same context, for a test, with this many deliveries.
    #[must_use]
    pub fn with_receive_count(self, receive_count: u32) -> Self {
        self.changed(|about| about.message = about.message.clone().with_receive_count(receive_count))
    }

    /// Returns the same context, for a test, of this message.
    #[must_use]
    pub fn with_message(self, message: Message) -> Self {
        self.changed(|about| about.message = message)
    }

    /// Returns the same context, for a test, with this much time left from now on: at most [`LEASE_MAX_MS`].
    #[must_use]
    pub fn with_remaining(self, remaining: Duration) -> Self {
        let remaining = remaining.min(Duration::from_millis(LEASE_MAX_MS));
        self.changed(|about| about.cancelled_at = Instant::now() + remaining)
    }

    fn changed(self, change: impl FnOnce(&mut About)) -> Self {
        let mut about = Arc::unwrap_or_clone(self.about);
        change(&mut about);
        Self::new(about)
    }

    /// Returns the key of the work. Hand it to the system that has the effect, so that it can recognise a repeat.
    #[must_use]
    pub fn key(&self) -> &str {
        self.about.key.as_str()
    }

    /// Returns the fencing token of this claim. It grows with each claim of the key, so that a system that keeps the largest
    /// one seen can refuse a late write of an earlier owner.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.about.fence
    }

    /// Returns which run of the handler for this key this is: 1 for the first, and for the first after the key was rejected and
    /// redriven. Otherwise it survives redelivery under another id, unlike the receive count.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.about.attempt
    }

    /// Returns the message that carries the work: its attributes, group and times, what its envelopes say, and its body as
    /// delivered.
    #[must_use]
    pub fn message(&self) -> &Message {
        &self.about.message
    }

    /// Returns the id of the message that carries the work.
    #[must_use]
    pub fn message_id(&self) -> &str {
        self.about.message.id().as_str()
    }

    /// Returns how often the queue has delivered this message, this time included.
    #[must_use]
    pub fn receive_count(&self) -> u32 {
        self.about.message.receive_count()
    }

    /// Returns the trace that the producer sent the message in, as the header (`Root=…;Parent=…;Sampled=…`) that continues it:
    /// hand it to the systems you call, as `X-Amzn-Trace-Id`.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        self.about.message.trace()
    }

    /// Returns the consumer that runs.
    #[must_use]
    pub fn consumer(&self) -> &str {
        self.about.consumer.as_str()
    }

    /// Returns how long the handler has until it is cancelled. Zero means no time, never "no limit".
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.about.cancelled_at.saturating_duration_since(Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_handler_sees_its_run() {
        let cx = Context::new(About {
            consumer: ConsumerName::new("mails").unwrap(),
            key: Key::new("order-1").unwrap(),
            fence: Fence::new(7),
            attempt: 3,
            message: Message::new("m-1", "").unwrap().with_receive_count(5).with_trace("Root=1"),
            cancelled_at: Instant::now() + Duration::from_secs(9),
        });
        assert_eq!((cx.consumer(), cx.key(), cx.message_id()), ("mails", "order-1", "m-1"));
        assert_eq!((cx.fence(), cx.attempt(), cx.receive_count()), (Fence::new(7), 3, 5));
        assert_eq!((cx.trace(), cx.remaining()), (Some("Root=1"), Duration::from_secs(9)));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(cx.remaining(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_context_for_a_test_is_that_of_a_first_run_unless_said() {
        let first = Context::for_tests("order-1").unwrap();
        assert_eq!((first.consumer(), first.key(), first.message_id()), ("test", "order-1", "test-message"));
        assert_eq!((first.fence().get(), first.attempt(), first.receive_count(), first.trace()), (1, 1, 1, None));
        assert_eq!(first.remaining(), Duration::from_secs(30));
        let later = first.clone().with_attempt(3).with_receive_count(4).with_remaining(Duration::from_secs(2));
        assert_eq!((later.attempt(), later.receive_count(), later.remaining()), (3, 4, Duration::from_secs(2)));
        assert_eq!((later.key(), first.attempt()), ("order-1", 1), "a clone is not changed with it");
        assert_eq!(first.with_remaining(Duration::MAX).remaining(), Duration::from_millis(LEASE_MAX_MS));
        assert!(Context::for_tests("").is_err() && Context::for_tests(&"k".repeat(2_049)).is_err());
    }
}
