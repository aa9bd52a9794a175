//! What stages know of their engine and their batch.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::admission;
use super::asker::Asker;
use super::breaker::shared::SharedBreaker;
use super::guarded::GuardedStore;
use super::invocation::Part;
use super::learned::Learned;
use super::limit::shared::SharedLimit;
use super::receives::ReceivesMax;
use super::removing::Removals;
use super::slots::Slots;
use super::work::Delivery;
use crate::claim::Claim;
use crate::clock::{Clock, Timestamp};
use crate::definition::Definition;
use crate::invocation_time::{InvocationTime, store_call, time_until};
use crate::key::ConsumerName;
use crate::limits::{CANCEL_GRACE_MS, SETTLE_LINGER_MAX_MS, SETTLE_LINGER_MIN_MS, SETTLE_LINGER_MS};
use crate::message::Message;
use crate::meter::Meter;
use crate::options::{Lease, Options};
use crate::protocol::breaker::Expected;
use crate::protocol::{Abandoned, ClaimPolicy};
use crate::queue::Queue;
use crate::report::Outcome;
use crate::store::Call;
use crate::threads::HandlerThreads;

/// What all batches of an engine share.
pub(crate) struct Shared {
    pub(crate) consumer: Definition,
    pub(crate) name: ConsumerName,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) learned: Learned,
    pub(crate) threads: Option<HandlerThreads>,
    pub(crate) receives_max: ReceivesMax,
    /// Whether each claim is logged at `INFO`.
    pub(crate) logs_claims: bool,
    pub(crate) slots: Slots,
    pub(crate) breaker: Option<SharedBreaker>,
    /// The limit across processes.
    pub(crate) limit: Option<Arc<SharedLimit>>,
}

impl Shared {
    /// Returns how long a handler takes, on the safe side: what the consumer says, else what was learned.
    pub(crate) fn expected(&self) -> Duration {
        self.consumer.options.expected.unwrap_or_else(|| self.learned.durations.expected())
    }

    /// Returns the same, for a time in which calls can hang: until the system that is called has answered again, as long as they did.
    pub(crate) fn expected_at_most(&self) -> Duration {
        self.expected().max(self.learned.hangs())
    }

    /// Returns the time between two calls in a slot of the limit.
    fn interval(&self) -> Duration {
        self.limit.as_ref().map_or(Duration::ZERO, |limit| limit.interval())
    }

    /// Returns how long a handler takes on the whole: zero while nothing is known.
    pub(crate) fn takes(&self) -> Duration {
        self.consumer.options.expected.unwrap_or_else(|| self.learned.durations.mean())
    }

    /// Returns whether keys may be claimed before their handlers can start. Not with renewed leases: they are short, and renewed only in a
    /// slot. Nor where claims are scarce, nor where abandoned work is parked: a crash would park what never started.
    pub(crate) fn claims_early(&self) -> bool {
        self.consumer.options.lease == Lease::UntilDeadline && self.claims_may_wait()
    }

    /// Returns whether a claim may be held longer than its handler runs.
    fn claims_may_wait(&self) -> bool {
        self.consumer.store.claims_max().is_none() && self.consumer.options.policy.abandoned != Abandoned::Park
    }

    /// Returns how long an ending may wait for others to be written with: about as long as a handler takes, in which the process can die
    /// with the same consequence. Where claims are scarce, others wait for it; where abandoned work is parked, someone would have to
    /// look at it: there only for a moment.
    pub(crate) fn linger(&self) -> Duration {
        if !self.claims_may_wait() {
            return Duration::from_millis(SETTLE_LINGER_MS);
        }
        let [least, longest] = [SETTLE_LINGER_MIN_MS, SETTLE_LINGER_MAX_MS].map(Duration::from_millis);
        self.expected().clamp(least, longest)
    }

    /// Returns how many claims may wait for a free slot.
    pub(crate) fn ahead(&self) -> usize {
        // Each invocation for its part of the slots; while nothing is known, only where it has all of them.
        let invocations = self.slots.invocations();
        let bold = invocations == 1 || self.learned.durations.are_known();
        if self.claims_early() && bold {
            self.learned.durations.ahead((self.slots.concurrency / invocations).max(1))
        } else {
            0
        }
    }
}

/// One batch: what its stages need of the engine, its time, its queue.
#[derive(Clone, Copy)]
pub(crate) struct BatchContext<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) time: InvocationTime,
    /// The batch as a part of its invocation.
    pub(crate) part: &'a Part<'a>,
    pub(crate) meter: &'a Meter,
    /// How many events the invocation has, as far as is known: more than one where one of them can take others along.
    pub(crate) events: usize,
    /// The payloads that are removed when their messages are done.
    pub(crate) removals: Option<&'a Removals<'a>>,
}

impl<'a> BatchContext<'a> {
    pub(crate) fn name(&self) -> &'a ConsumerName {
        &self.shared.name
    }

    pub(crate) fn options(&self) -> &'a Options {
        &self.shared.consumer.options
    }

    pub(crate) fn policy(&self) -> ClaimPolicy {
        self.options().policy
    }

    pub(crate) fn store(&self) -> GuardedStore<'a> {
        GuardedStore::new(self.shared.consumer.store.as_ref())
    }

    /// Returns how long a call of the store may take until then, and the call, which has a little less.
    pub(crate) fn store_call(&self, by: Instant) -> (Duration, Call<'a>) {
        store_call(by, self.meter)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn queue(&self) -> &'a dyn Queue {
        self.part
    }

    /// Returns this invocation as one that asks the store for something of its own, with its answers until then.
    pub(crate) fn asker(&self, by: Instant) -> Asker<'a> {
        let (shared, meter) = (self.shared, self.meter);
        let (consumer, clock) = (&shared.name, shared.clock.as_ref());
        let (store, intake) = (self.store(), self.part.intake());
        let expected = Expected { turn: shared.interval(), run: shared.expected_at_most() };
        Asker { consumer, store, intake, clock, meter, by, expected }
    }

    /// Logs it where nothing can be started at all.
    pub(crate) fn warn_if_no_time(&self) {
        if !self.time.total().is_zero() || self.events == 0 {
            return;
        }
        let late_ms = self.time.late.as_millis();
        if late_ms == 0 {
            tracing::error!(consumer = %self.name(), "there is no time to start anything: the function's timeout must exceed CLAIMANT_MARGIN_MS by far, and this machine's clock must not be ahead");
        } else {
            tracing::error!(consumer = %self.name(), late_ms, "there is no time to start anything: the deadline was over when the messages came, so this machine's clock may be ahead");
        }
    }

    /// Warns where a process that has just been granted a slot of its limit can begin nothing in an invocation as long as this one.
    pub(crate) fn warn_if_slower_than_its_limit(&self) {
        let total = self.time.total();
        let interval = self.shared.interval();
        if self.events > 0 && !total.is_zero() && interval >= total {
            let (interval_ms, time_ms) = (interval.as_millis(), total.as_millis());
            tracing::warn!(consumer = %self.name(), interval_ms, time_ms, "a process begins with a wait as long as between two calls of its limit, and an invocation has no more time than that: messages lose receives. The function's timeout must be longer");
        }
    }

    /// Logs a claim: at `INFO` if that is set, else at `DEBUG`. No key, and nothing of the body.
    pub(crate) fn log_claim(&self, delivery: &Delivery, claim: &Claim) {
        let (consumer, message_id, receive_count) =
            (self.name(), delivery.message.id(), delivery.message.receive_count());
        let Claim { owner, fence, lease_until, attempt, .. } = claim;
        let taken_over = claim.is_taken_over();
        let (owner, fence, lease_until) = (owner.prefix(), fence.get(), lease_until.as_millis());
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    %consumer, %message_id, owner, fence, lease_until, attempt, taken_over, receive_count,
                    "message claimed"
                )
            };
        }
        if self.shared.logs_claims { line!(info) } else { line!(debug) }
    }

    /// Logs it where a message had no turn, and hardly gets another one. For what is behind a failure in its group,
    /// [`Engine::finish`](super::Engine::finish) does.
    pub(crate) fn warn_if_turns_end(&self, message: &Message, outcome: &Outcome) {
        if !self.shared.receives_max.is_nearly_last(message.receive_count()) {
            return;
        }
        let what = match outcome {
            Outcome::BreakerOpen => {
                "message was held back, and one receive is left at most before it is dead-lettered: a larger maxReceiveCount on its queue keeps it"
            }
            Outcome::RateLimited => {
                "message waited for its limit, and one receive is left at most before it is dead-lettered: fewer invocations at once, or smaller batches, receive no more than the limit lets run"
            }
            Outcome::NotStarted if self.time.total().is_zero() => {
                "message had no turn, since its invocation had no time for any, and one receive is left at most before it is dead-lettered"
            }
            Outcome::NotStarted => {
                "message had no turn, and one receive is left at most before it is dead-lettered: smaller batches, a longer timeout or more concurrency give it one"
            }
            _ => return,
        };
        let receive_count = message.receive_count();
        tracing::warn!(consumer = %self.name(), message_id = %message.id(), receive_count, "{what}");
    }

    /// Returns whether a handler started now would end in time, also where its calls hang as they did.
    pub(crate) fn fits(&self) -> bool {
        admission::fits(time_until(self.time.cancel_at), self.time.total(), self.shared.expected_at_most())
    }

    /// Returns whether nothing may be claimed now, since suspects of other consumers have the time.
    pub(crate) fn must_yield(&self) -> bool {
        self.part.sequence.turns.must_yield(self.shared.expected_at_most())
    }

    /// Returns until when a slot, or a probe, is worth waiting for: a millisecond later a handler does not fit into the time any more.
    pub(crate) fn slot_by(&self) -> Instant {
        self.last_start(self.shared.expected_at_most()) + Duration::from_millis(1)
    }

    /// Returns until when messages wait for the breaker: as long as a handler would fit that takes as long as usual. How long calls hung says
    /// nothing of that, and an invocation that ended earlier would receive others.
    pub(crate) fn breaker_by(&self) -> Instant {
        self.last_start(self.shared.expected()) + Duration::from_millis(1)
    }

    /// Returns when a handler that takes so long can be started at the latest.
    fn last_start(&self, expected: Duration) -> Instant {
        self.time.cancel_at - admission::needed(self.time.total(), expected)
    }

    /// Returns how long a cancelled handler may take to stop, and a last call to the queue may take. Settling keeps its share of
    /// what is left.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_millis(CANCEL_GRACE_MS).min(time_until(self.time.return_by) / 2)
    }

    /// Returns whether the breaker is not closed.
    pub(crate) fn holds_back(&self) -> bool {
        self.shared.breaker.as_ref().is_some_and(|breaker| !breaker.is_closed())
    }

    /// Returns whether a message that was not started waits for the breaker: not where this process probes and has an answer, by which the
    /// breaker closes when no message is left.
    pub(crate) fn is_held_back(&self) -> bool {
        self.holds_back() && !self.shared.breaker.as_ref().is_some_and(SharedBreaker::has_answer)
    }

    /// Returns whether a message that was not started waits for the limit of what its handler calls.
    pub(crate) fn is_limited(&self) -> bool {
        self.shared.limit.as_ref().is_some_and(|limit| limit.is_short(self.shared.clock.as_ref()))
    }
}
