//! When an event comes back: after a failure, when it was held back, waited for its limit or was not started, when its key is busy, or when it
//! is for the dead-letter queue and did not get there.

use std::time::Duration;

use super::context::{BatchContext, Shared};
use super::limit::shared::now;
use super::work::{Answer, Delivery};
use crate::backoff;
use crate::clock::Timestamp;
use crate::invocation_time::time_until;
use crate::key::MessageId;
use crate::limits::VISIBILITY_MAX_S;
use crate::message::Message;
use crate::options::Lease;
use crate::report::Outcome;

impl Shared {
    /// Returns after how long a message with this outcome is shown again: at once, if it failed on its last receive and is not sent again, or
    /// was rejected or parked on it without a confirmed dead letter, since it is dead-lettered then, and until then it is in flight, and its
    /// group waits, for nothing. Else `after`.
    pub(crate) fn shown_after(
        &self,
        outcome: &Outcome,
        receive_count: u32,
        after: Option<Duration>,
    ) -> Option<Duration> {
        let failed = matches!(
            outcome,
            Outcome::Retry
                | Outcome::Cancelled
                | Outcome::LeaseLost
                | Outcome::Rejected { dead_lettered: false, .. }
                | Outcome::Parked { dead_lettered: false }
        );
        let is_sent_again = after.is_some_and(backoff::is_long);
        let at_once = failed && !is_sent_again && self.receives_max.is_known_last(receive_count);
        if at_once { Some(Duration::ZERO) } else { after }
    }
}

impl BatchContext<'_> {
    /// Returns after how long a message whose handler failed is to be shown again; [`own_delay`](Self::own_delay) minds its receive. The first of
    /// these that applies:
    ///
    /// 1. what its handler asked for, unless this was its last attempt;
    /// 2. after the last attempt, while the breaker is closed: at once, since what is still to come is only its rejection;
    /// 3. while the breaker is not closed, and the handler says that the system `is_away`: as late as one that was held back;
    /// 4. the backoff.
    pub(crate) fn retry_delay(
        &self,
        message: &Message,
        attempt: u32,
        is_away: bool,
        asked: Option<Duration>,
    ) -> Duration {
        let is_last_attempt = self.options().attempts_max.is_some_and(|max| attempt >= max);
        let holds_back = self.holds_back();
        match asked.filter(|_| !is_last_attempt) {
            Some(asked) => asked,
            // While its breaker is not closed, no claim is made that could reject it.
            None if is_last_attempt && !holds_back => Duration::ZERO,
            None if is_away && holds_back => self.held_delay(message),
            None => backoff::delay(attempt, message.id()),
        }
    }

    /// Returns after how long the message of an event with this answer is shown again, if that event decides it: by its own receives and payload,
    /// also where the answer is that of another message of its work.
    pub(crate) fn own_delay(&self, delivery: &Delivery, answer: &Answer) -> Option<Duration> {
        let after = match answer.outcome {
            Outcome::Retry => answer.visible_after.map(|asked| self.bounded(delivery, asked)),
            _ => answer.visible_after,
        };
        self.shared.shown_after(&answer.outcome, delivery.message.receive_count(), after)
    }

    /// Returns the delay that was asked for, or the longest that a queue can hide a message for, where it is not sent again: that takes a
    /// schedule. An earlier delivery of it may do its work meanwhile, which its key's window has to outlast, and remove its payload.
    fn bounded(&self, delivery: &Delivery, asked: Duration) -> Duration {
        if !backoff::is_long(asked) {
            return asked;
        }
        let (has_schedules, window) = (self.queue().has_schedules(), self.policy().window);
        let payload_removed = self.removals.is_some_and(|removals| removals.has(delivery.index, self.part));
        if has_schedules && backoff::is_remembered(window, asked) && !payload_removed {
            return asked;
        }
        let message = &delivery.message;
        let (asked_s, window_s) = (asked.as_secs(), window.as_secs());
        tracing::warn!(consumer = %self.name(), message_id = %message.id(), asked_s, window_s, has_schedules, payload_removed, hidden_s = VISIBILITY_MAX_S, "its handler asks for a longer delay than a queue can hide a message for, and it is not sent again: that takes a schedule, a window that is a day longer than the delay, and a payload that is not removed with its message. It comes back earlier, unless it is dead-lettered after this receive");
        Duration::from_secs(VISIBILITY_MAX_S)
    }

    /// Returns after how long a message is shown again that an open breaker held back: where the intake is paused, when that is over.
    pub(crate) fn held_delay(&self, message: &Message) -> Duration {
        let (receives, id) = (message.receive_count(), message.id());
        match self.shared.breaker.as_ref().and_then(|breaker| breaker.paused(self.now())) {
            Some(paused) => backoff::paused_delay(receives, self.shared.receives_max.left(receives), paused, id),
            None => backoff::held_delay(receives, id),
        }
    }

    /// Returns after how long a message has its turn within the limit that came too early in this invocation, if it comes back to
    /// this process.
    pub(crate) fn turn_promised(&self) -> Option<Duration> {
        let limit = self.shared.limit.as_ref()?;
        limit.with(|slots| slots.promise(now(self.shared.clock.as_ref())))
    }

    /// Returns after how long a message is shown again that waited for its limit: at its `turn`, where it was promised one, and else the later
    /// the more often it was received.
    pub(crate) fn limited_delay(&self, message: &Message, turn: Option<Duration>) -> Duration {
        let (receives, id) = (message.receive_count(), message.id());
        turn.unwrap_or_else(|| backoff::limited_delay(receives, self.time.total(), id))
    }

    /// Returns after how long a message is shown again for which there was no time; `None` is the queue's own visibility timeout.
    pub(crate) fn unstarted_delay(&self, message: &Message) -> Option<Duration> {
        let delay = backoff::turn_delay(message.receive_count(), self.time.total(), message.id())?;
        // Where other invocations of the process have the slots, as long as this one would have waited for them.
        let slots = if self.shared.slots.invocations() > 1 { time_until(self.time.cancel_at) } else { Duration::ZERO };
        Some(delay.max(slots))
    }

    /// Returns after how long a message is shown again whose key another owner holds until then, or longer.
    pub(crate) fn busy_delay(&self, message: &Message, until: Timestamp, same_message: bool) -> Duration {
        // A lease that is renewed can last as long as an invocation, and each delivery meanwhile costs a copy a receive. No
        // other message waits for the copy: if the owner dies, its own message comes back.
        let back = match self.options().lease {
            Lease::Renewed(_) if !same_message => until.max(self.now().plus(self.time.longest_lease())),
            Lease::Renewed(_) | Lease::UntilDeadline => until,
        };
        self.after_lease(message.id(), back)
    }

    /// Returns when a key that is held until `until` can be claimed: then, and up to a second later, so that waiting copies
    /// do not all come at once.
    pub(crate) fn after_lease(&self, message_id: &MessageId, until: Timestamp) -> Duration {
        until.since(self.now()) + backoff::jitter(message_id)
    }
}
