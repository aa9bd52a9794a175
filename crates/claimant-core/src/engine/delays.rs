//! When a message comes back: after a failure, when it was held back, for its turn, or at the end of a lease.

use std::time::Duration;

use super::context::BatchContext;
use super::shared_limit::now;
use crate::backoff;
use crate::clock::Timestamp;
use crate::key::MessageId;
use crate::limits::{RECEIVES_MAX_DEFAULT, VISIBILITY_MAX_S};
use crate::message::Message;

impl BatchContext<'_> {
    /// Returns after how long a message whose handler failed is shown again. At once on its last receive, where that is known, and after
    /// its last attempt: it is dead-lettered or rejected then, and until then it is in flight, and its group waits, for nothing. A
    /// message that was received more often than its queue's maxReceiveCount shows that the setting is wrong: it backs off as usual.
    ///
    /// Where its handler asked for nothing, what it calls `is_away`, and the breaker is not closed, it comes back as late as one that was
    /// held back.
    pub(crate) fn retry_delay(
        &self,
        message: &Message,
        attempt: u32,
        is_away: bool,
        asked: Option<Duration>,
    ) -> Duration {
        let is_last_attempt = self.options().attempts_max.is_some_and(|max| attempt >= max);
        let is_last_receive = self.shared.receives_max == Some(message.receive_count());
        let holds_back = self.holds_back();
        // While its breaker is not closed, no claim is made that could reject it.
        if is_last_attempt && !holds_back {
            return Duration::ZERO;
        }
        let held = (is_away && holds_back).then(|| self.held_delay(message));
        // A schedule would send it again only to be rejected.
        let asked = asked.filter(|asked| !is_last_attempt || !backoff::is_long(*asked));
        let delay = asked.or(held).map(|asked| self.bounded(message.id(), asked));
        // What is sent again has all its receives before it, and one attempt at least.
        if is_last_receive && !delay.is_some_and(backoff::is_long) {
            return Duration::ZERO;
        }
        delay.unwrap_or_else(|| backoff::delay(attempt, message.id()))
    }

    /// Returns the delay that was asked for, or the longest that a queue can hide a message for, where it is not sent again: without
    /// schedules, or where its key's window would be over by then. An earlier delivery of it may do its work meanwhile, which is remembered
    /// for as long as that.
    fn bounded(&self, message_id: &MessageId, asked: Duration) -> Duration {
        let has_schedules = self.queue().has_schedules();
        if !backoff::is_long(asked) || has_schedules && backoff::is_remembered(self.policy().window, asked) {
            return asked;
        }
        let (asked_s, window_s) = (asked.as_secs(), self.policy().window.as_secs());
        tracing::warn!(consumer = %self.name(), message_id = %message_id, asked_s, window_s, has_schedules, hidden_s = VISIBILITY_MAX_S, "its handler asks for a longer delay than a queue can hide a message for, and it is not sent again: that takes a schedule, and a window that is a day longer than the delay. It comes back earlier");
        Duration::from_secs(VISIBILITY_MAX_S)
    }

    /// Returns after how long a message is shown again that an open breaker held back: where the intake is paused, when that is over.
    pub(crate) fn held_delay(&self, message: &Message) -> Duration {
        let (receives, id) = (message.receive_count(), message.id());
        // One with more receives than are assumed shows that its queue has more.
        let assumed = (receives <= RECEIVES_MAX_DEFAULT).then_some(RECEIVES_MAX_DEFAULT);
        let receives_max = self.shared.receives_max.or(assumed);
        match self.shared.breaker.as_ref().and_then(|breaker| breaker.paused(self.now())) {
            Some(paused) => backoff::paused_delay(receives, receives_max, paused, id),
            None => backoff::held_delay(receives, id),
        }
    }

    /// Returns after how long a message has its turn within the limit that came too early in this invocation, if it comes back to
    /// this process.
    pub(crate) fn turn_promised(&self) -> Option<Duration> {
        let limit = self.shared.limit.as_ref()?;
        limit.with(|slots| slots.promise(now(self.shared.clock.as_ref())))
    }

    /// Returns when a key that is held until `until` can be claimed: then, and up to a second later, so that waiting copies
    /// do not all come at once.
    pub(crate) fn after_lease(&self, message_id: &MessageId, until: Timestamp) -> Duration {
        until.since(self.now()) + backoff::jitter(message_id)
    }
}
