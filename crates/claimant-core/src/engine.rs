//! The engine: a batch of messages in, exactly one outcome for each out.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, SystemClock, Timestamp};
use crate::consumer::Consumer;
use crate::deadline::Schedule;
use crate::error::Error;
use crate::key::ConsumerName;
use crate::limits::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, RECEIVES_MAX, RECEIVES_MAX_DEFAULT};
use crate::message::Message;
use crate::meter::Meter;
use crate::options::Lease;
use crate::pace::Durations;
use crate::pipeline::Pipeline;
use crate::plan::{self, LaneKey};
use crate::protocol::Abandoned;
use crate::queue::Queue;
use crate::report::Report;
use crate::slots::Slots;
use crate::threads::HandlerThreads;
use serde::de::DeserializeOwned;

/// Runs batches through one consumer. Any number may run at once: they share the concurrency, the claims that the store can
/// hold, and how long handlers took.
pub struct Engine<T> {
    pub(crate) consumer: Consumer<T>,
    pub(crate) name: ConsumerName,
    pub(crate) concurrency: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) durations: Durations,
    pub(crate) threads: Option<HandlerThreads>,
    pub(crate) receives_max: u32,
    pub(crate) slots: Slots,
}

impl<T: DeserializeOwned + Send + 'static> Engine<T> {
    /// An engine for this consumer; `concurrency` counts where the consumer does not say.
    ///
    /// # Errors
    /// When the consumer's settings are out of bounds: one error with every fault.
    pub fn new(consumer: Consumer<T>, concurrency: usize) -> Result<Self, Error> {
        let name = consumer.check()?;
        let held_max = consumer.store.claims_max().unwrap_or(CONCURRENCY_MAX).clamp(1, CONCURRENCY_MAX);
        let concurrency = consumer.options.concurrency.unwrap_or(concurrency).clamp(1, held_max);
        Ok(Self {
            concurrency,
            slots: Slots::new(concurrency, consumer.store.claims_max().map(|_| held_max)),
            consumer,
            name,
            clock: Arc::new(SystemClock),
            durations: Durations::default(),
            threads: None,
            receives_max: RECEIVES_MAX_DEFAULT,
        })
    }

    /// As [`new`](Self::new) with the default concurrency.
    ///
    /// # Errors
    /// As there.
    pub fn with_defaults(consumer: Consumer<T>) -> Result<Self, Error> {
        Self::new(consumer, CONCURRENCY_DEFAULT)
    }

    /// The same engine with another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The same engine with its handlers on threads of their own: however many of them block theirs, the engine's own timers
    /// and requests go on, the report is back in time, and later handlers get fresh threads.
    #[must_use]
    pub fn handlers_on(mut self, threads: impl Into<HandlerThreads>) -> Self {
        self.threads = Some(threads.into());
        self
    }

    /// How many messages this engine works on at once.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// The same engine for a queue that gives a message to its dead-letter queue after this many receives, its
    /// `maxReceiveCount`: 1 to [`RECEIVES_MAX`]; what is beyond is taken for the nearest of them. Unless set,
    /// [`RECEIVES_MAX_DEFAULT`].
    #[must_use]
    pub fn receives_max(mut self, receives: u32) -> Self {
        self.receives_max = receives.clamp(1, RECEIVES_MAX);
        self
    }

    /// Whether a message that was received this often has one receive left at most.
    pub(crate) fn receives_end(&self, receive_count: u32) -> bool {
        receive_count + 1 >= self.receives_max.max(2)
    }

    /// The consumer's name.
    #[must_use]
    pub fn name(&self) -> &ConsumerName {
        &self.name
    }

    /// The time now, as this engine sees it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long a handler takes: what the consumer says, else what was learned.
    pub(crate) fn expected(&self) -> Duration {
        self.consumer.options.expected.unwrap_or_else(|| self.durations.expected())
    }

    /// How long a handler takes on the whole: zero while nothing is known.
    pub(crate) fn takes(&self) -> Duration {
        self.consumer.options.expected.unwrap_or_else(|| self.durations.mean())
    }

    /// How many claims may wait for a free slot. None with renewed leases: they are short, and renewed only in a slot. Nor
    /// where claims are scarce, nor where abandoned work is parked: a crash would park what never started.
    pub(crate) fn ahead(&self) -> usize {
        let parks = self.consumer.options.policy.abandoned == Abandoned::Park;
        match self.consumer.options.lease {
            Lease::UntilDeadline if self.consumer.store.claims_max().is_none() && !parks => {
                // Each invocation for its part of the slots; while nothing is known, only where it has all of them.
                let invocations = self.slots.invocations();
                let bold = invocations == 1 || self.durations.are_known();
                if bold { self.durations.ahead((self.concurrency / invocations).max(1)) } else { 0 }
            }
            Lease::UntilDeadline | Lease::Renewed(_) => 0,
        }
    }

    /// Works on a batch and returns within the schedule, with one outcome for each message, in the batch's order.
    ///
    /// Handlers run as tasks of their own, so this needs a Tokio runtime. Handlers that block as many threads as it has
    /// hold up the engine too, unless they have [threads of their own](Self::handlers_on).
    ///
    /// Cancel safe: dropping the future cancels the handlers; claims that were held end with their leases.
    pub async fn process(&self, batch: &[Message], schedule: Schedule, queue: &dyn Queue) -> Report {
        let _entered = self.slots.enter();
        let identities: Vec<_> = batch.iter().map(|m| self.consumer.identify(&self.name, m)).collect();
        let mut lanes = plan::lanes(batch.iter().zip(&identities).enumerate().map(|(place, (message, identity))| {
            match (&message.ordered_group, identity) {
                (Some(group), _) => LaneKey::Group(group.as_str()),
                (None, Ok(identity)) => LaneKey::Work(Ok(&identity.record_id)),
                // Each undecodable message is alone: it has no key to share.
                (None, Err(_)) => LaneKey::Work(Err(place)),
            }
        }));
        plan::by_receives(&mut lanes, |place| batch[place].receive_count);
        let meter = Meter::default();
        Pipeline::new(self, batch, &identities, lanes, schedule, queue, &meter).drive().await
    }
}

impl<T> std::fmt::Debug for Engine<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("consumer", &self.consumer).finish_non_exhaustive()
    }
}
