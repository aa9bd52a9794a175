//! The engine: a batch of messages in, exactly one outcome for each out.
//!
//! A message's work moves by value from stage to stage, and has a type of its own in each. In their order, with the file of each:
//!
//! ```text
//! Message ─fetching─▶ Fetched ─reading─▶ Arrival ─lanes─▶ Next::Claim(Work) ─claiming─▶ Claimed ─running─▶ Ran { Claimed, RunEnd }
//!   ─after─▶ Unsettled { Claimed, Ending, Then } ─settling─▶ SettleResult { Pending, Settled } ─after─▶ Exit ─leaving─▶ MessageEnd
//!   ─messages─▶ Entry
//! ```
//!
//! `RunEnd` is how the handler ended, `Ending` what its record gets, `Then` what its message gets, `Settled` what the store answered. An
//! `Exit` is an `Answer` (an outcome and a delay), or a `Disposal` (why a message is for the dead-letter queue). The picture with all arrows
//! is in ARCHITECTURE.md.
//!
//! | module | holds |
//! | --- | --- |
//! | `batch`, `waiting` | the loop: it lets stages start what they may, waits for one of their calls, and routes what came of it |
//! | `fetching`, `removing` | payloads that messages only point to: fetched before they are read, removed when their messages are done |
//! | `reading` | messages opened and decoded, once; what is rejected is known from here on |
//! | `unpacking` | how much memory and time opening messages may take |
//! | `lanes` | what runs side by side; order within FIFO groups and keys; who follows whom |
//! | `messages`, `progress` | what became of each message: it is done when all events in it are, also those for other consumers |
//! | `claimable`, `claiming` | what can be claimed now; keys claimed, 25 to a request, tried again |
//! | `running`, `run`, `call`, `round`, `task` | handlers in slots; one handler's run; one call of a batch handler; one round of it; its task |
//! | `unsettled`, `settling` | how a claim is to end, and what its message gets; claims settled, 25 to a request, tried again |
//! | `after` | what follows a run, whichever way it ends, and what follows a settlement |
//! | `dead_letters`, `exit`, `leaving` | copies of rejected messages; how a message leaves the batch |
//! | `delays`, `receives`, `renewal` | when a message comes back; how often it does; who renews a lease, and when |
//! | `finish`, `again` | the end of an invocation; messages that come back later than a queue can hide them are sent again by a schedule |
//! | `breaker`, `limit` | folders: nothing is claimed while a breaker is open, and nothing beyond a limit |
//! | `asker` | who asks the store for the record of either |
//! | `guarded` | the store and the queue as the engine asks them, which may panic |
//! | `tenants` | which tenant is next, where messages wait |
//! | `suspects`, `turns` | what an earlier owner may have died of, run last and alone; when it has its turn |
//! | `admission`, `learned`, `slots` | how much at once (pure); what an engine has learned of its handlers and messages; what invocations share |
//! | `invocation` | what the batches of one invocation share: what is done, and the turns of suspects |
//! | `context`, `work` | what all stages know; the types that move between them |
//! | `spans` | the spans of messages' steps, for a tracing system |

pub(crate) mod admission;
mod after;
mod again;
mod asker;
mod batch;
pub(crate) mod breaker;
mod call;
mod claimable;
mod claiming;
mod context;
pub(crate) mod dead_letters;
mod delays;
mod exit;
mod fetching;
mod finish;
mod guarded;
pub(crate) mod invocation;
pub(crate) mod lanes;
pub(crate) mod learned;
mod leaving;
pub(crate) mod limit;
mod messages;
pub(crate) mod progress;
mod reading;
mod receives;
mod removing;
mod renewal;
mod round;
mod run;
mod running;
mod settling;
mod slots;
mod spans;
mod suspects;
mod task;
mod tenants;
mod turns;
pub(crate) mod unpacking;
mod unsettled;
mod waiting;
mod work;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::clock::{Clock, SystemClock, Timestamp};
use crate::consumer::Consumer;
use crate::definition::{Definition, Runner};
use crate::error::Error;
use crate::invocation_time::InvocationTime;
use crate::key::ConsumerName;
use crate::limits::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, RECEIVES_MAX};
use crate::message::Message;
use crate::meter::Meter;
use crate::queue::Queue;
use crate::report::{DeadLetter, Report};
use crate::store::Store;
use crate::threads::HandlerThreads;
use batch::Batch;
use breaker::shared::SharedBreaker;
use context::{BatchContext, Shared};
use invocation::{Invocation, Part, Sequence};
use learned::Learned;
use limit::shared::SharedLimit;
use receives::ReceivesMax;
use removing::Removals;
use slots::Slots;
use unpacking::Unpacking;

/// Runs batches through one consumer. Any number may run at once: they share the concurrency, the claims that the store can
/// hold, and how long handlers took.
pub struct Engine(Shared);

impl Engine {
    /// Creates an engine for this consumer; `concurrency` applies unless the consumer sets its own. A batch handler has room for
    /// one full call at least.
    ///
    /// # Errors
    /// When the consumer's settings are out of bounds: one error with every fault.
    pub fn new<T>(consumer: Consumer<T>, concurrency: usize) -> Result<Self, Error> {
        Self::of(consumer.definition, concurrency)
    }

    /// Creates an engine as [`new`](Self::new) does.
    pub(crate) fn of(consumer: Definition, concurrency: usize) -> Result<Self, Error> {
        let name = consumer.check()?;
        let held_max = consumer.store.claims_max().map(|max| max.clamp(1, CONCURRENCY_MAX));
        let call = match &consumer.handler {
            Runner::Each(_) => 1,
            Runner::Batch(_) => consumer.options.items_max(),
        };
        let concurrency = consumer.options.concurrency.unwrap_or(concurrency.max(call));
        let concurrency = concurrency.clamp(1, held_max.unwrap_or(CONCURRENCY_MAX));
        let options = &consumer.options;
        let breaker = options.breaker.as_ref().map(|breaker| SharedBreaker::new(breaker, &name, options.policy.skew));
        let limit = options.limit.as_ref();
        let limit = limit.map(|limit| SharedLimit::new(limit, &name, options.policy.skew, Arc::clone(&consumer.store)));
        Ok(Self(Shared {
            breaker: breaker.transpose()?,
            limit: limit.transpose()?.map(Arc::new),
            slots: Slots::new(concurrency, held_max),
            consumer,
            name,
            clock: Arc::new(SystemClock),
            learned: Learned::default(),
            threads: None,
            receives_max: ReceivesMax::default(),
            logs_claims: false,
        }))
    }

    /// Creates an engine as [`new`](Self::new) does, with the default concurrency.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_defaults<T>(consumer: Consumer<T>) -> Result<Self, Error> {
        Self::new(consumer, CONCURRENCY_DEFAULT)
    }

    /// Shares the limit of an earlier engine of its function that names the same system: of two consumers that each held slots of their
    /// own, one could wait for those that the other holds while that one waits for it.
    ///
    /// # Errors
    /// When the two set it differently.
    pub(crate) fn share_limit(&mut self, earlier: &[Self]) -> Result<(), String> {
        let Some(own) = self.0.limit.as_ref().map(|limit| limit.own()) else { return Ok(()) };
        let mut limits = earlier.iter().filter_map(|engine| Some((engine.name(), engine.0.limit.as_ref()?)));
        match limits.find(|(_, limit)| limit.own().downstream == own.downstream) {
            Some((name, limit)) if limit.own() != own => {
                let (system, later) = (&own.downstream, self.name());
                Err(format!(
                    "the consumers {name} and {later} set the limit of {system:?} differently: give both the same"
                ))
            }
            Some((_, limit)) => {
                self.0.limit = Some(Arc::clone(limit));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.0.clock = clock;
        self
    }

    /// Runs handlers on threads of their own: however many of them block theirs, the engine's own timers
    /// and requests go on, the report is returned in time, and later handlers get other threads.
    #[must_use]
    pub fn handlers_on(mut self, threads: HandlerThreads) -> Self {
        self.0.threads = Some(threads);
        self
    }

    /// Returns how many messages this engine works on at once.
    #[must_use]
    pub fn concurrency(&self) -> usize {
        self.0.slots.concurrency
    }

    /// Sets after how many receives the queue moves a message to its dead-letter queue, its `maxReceiveCount`: clamped to 1 to
    /// [`RECEIVES_MAX`]. A message that fails on its last receive is then shown at once, since it is dead-lettered at the next one
    /// and takes up a place in flight until then. Unless set, [`RECEIVES_MAX_DEFAULT`](crate::limits::RECEIVES_MAX_DEFAULT) is assumed for
    /// warnings, for which messages need their last receives (suspects, the probe of a breaker, turns, what is held back while the intake is
    /// paused), and every failure backs off.
    #[must_use]
    pub fn receives_max(mut self, receives: u32) -> Self {
        self.0.receives_max = ReceivesMax(Some(receives.clamp(1, RECEIVES_MAX)));
        self
    }

    /// Logs each claim at level `INFO` instead of `DEBUG`: the message's id, the first bytes of the owner token, the fencing token,
    /// the lease's end and the attempt. No key, and nothing of the body.
    #[must_use]
    pub fn log_claims(mut self, at_info: bool) -> Self {
        self.0.logs_claims = at_info;
        self
    }

    /// Returns the consumer's name.
    #[must_use]
    pub fn name(&self) -> &ConsumerName {
        &self.0.name
    }

    /// Returns the consumer's store.
    pub(crate) fn store(&self) -> &dyn Store {
        self.0.consumer.store.as_ref()
    }

    /// Returns for how long a completed key keeps duplicates out.
    pub(crate) fn window(&self) -> Duration {
        self.0.consumer.options.policy.window
    }

    /// Returns the current time by this engine's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Works on a batch and returns within its time, with one outcome for each message, in the batch's order.
    ///
    /// Handlers run as tasks of their own, so this needs a Tokio runtime with timers. Handlers that block as many threads as it has
    /// hold up the engine too, unless they have [threads of their own](Self::handlers_on).
    ///
    /// Cancel safe: dropping the future cancels the handlers; claims that were held end with their leases, and their keys are busy until then. Where a
    /// server drops it, as for a client that has gone, run it in a task of its own.
    pub fn process<'a>(
        &'a self,
        batch: &'a [Message],
        time: InvocationTime,
        queue: &'a dyn Queue,
    ) -> BoxFuture<'a, Report> {
        // In a box, so that the engine is compiled here and not in each program that awaits it.
        Box::pin(async move { self.process_whole(&Invocation::new(queue, batch.len()), batch, time).await })
    }

    /// Works on an invocation whose only consumer this is, otherwise as [`process`](Self::process).
    pub(crate) async fn process_whole(
        &self,
        invocation: &Invocation<'_>,
        batch: &[Message],
        time: InvocationTime,
    ) -> Report {
        let sequence = Sequence::of(invocation);
        let (mut report, _) = self.process_part(batch, time, &Part::whole(&sequence)).await;
        self.finish(invocation, batch, &mut report, &mut [], time.return_by).await;
        report
    }

    /// Works on a batch that is a part of an invocation, otherwise as [`process`](Self::process). Returns the dead letters of single events
    /// of messages with several, too, which are not sent.
    pub(crate) async fn process_part(
        &self,
        batch: &[Message],
        time: InvocationTime,
        part: &Part<'_>,
    ) -> (Report, Vec<DeadLetter>) {
        let shared = &self.0;
        let _entered = shared.slots.enter();
        let mut unpacking = Unpacking::new(&shared.name, time);
        let fetched = fetching::fetched(&shared.consumer.reader, &shared.name, batch, time, &mut unpacking).await;
        let removals = Removals::of(&shared.consumer.reader, &fetched);
        let arrivals = reading::arrivals(&shared.consumer.reader, &shared.name, fetched, unpacking.with_time(time));
        if part.spans().is_some() {
            arrivals.iter().for_each(|arrival| part.arrived(arrival.index, &shared.name, &arrival.message));
        }
        let meter = Meter::default();
        let events = part.sequence.invocation.events.max(arrivals.len());
        let cx = BatchContext { shared, time, part, meter: &meter, events, removals: removals.as_ref() };
        let (report, unsent) = Batch::new(cx, arrivals).drive().await;
        if let Some(removals) = removals {
            removals.finish(&report, part, time.return_by).await;
        }
        (report, unsent)
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("consumer", &self.0.consumer).finish_non_exhaustive()
    }
}
