//! A worker: its handlers by event type, and its settings.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use claimant_core::limits::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, LEASE_MAX_MS};
use claimant_core::{Breaker, Clock, ConsumerName, Error, Limit, Store, SystemClock, TransactionalHandler};
use serde::de::DeserializeOwned;
use sqlx::PgPool;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connections::Connections;
use crate::context::InboxContext;
use crate::downstream::Downstream;
use crate::handlers::Handlers;
use crate::limits::{self, EVENT_TYPE_MAX_BYTES, POLL_MAX_MS, POLL_MIN_MS};
use crate::transaction::Transaction;

/// What happens to a group when one of its messages is dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum AfterDeath {
    /// Its later messages wait until an operator has retried or discarded the dead one: they may depend on it.
    #[default]
    GroupWaits,
    /// Its later messages go on without it. A dead message that is retried is then processed after them.
    GroupGoesOn,
}

/// Processes the messages of one consumer, with a handler for each event type. Any number of workers may run at once, in one
/// process or in many; give them the same settings.
///
/// ```no_run
/// # mod claimant { pub use claimant_core::*; pub mod inbox { pub use claimant_inbox::*; } }
/// use std::time::Duration;
///
/// use claimant::inbox::{Inbox, InboxContext, Limits, Transaction};
/// use claimant::{Error, HandlerError, TransactionGuard};
///
/// #[derive(serde::Deserialize)]
/// struct Placed { order_id: String }
///
/// async fn placed(order: Placed, mut tx: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
///     sqlx::query("INSERT INTO orders (id) VALUES ($1)").bind(order.order_id).execute(&mut *tx).await?;
///     Ok(())
/// }
///
/// # async fn example(inbox: Inbox) -> Result<(), Error> {
/// let worker = inbox.worker("orders").on("order.placed", placed).timeout(Duration::from_secs(20)).attempts_max(3);
/// let summary = worker.run_once(Limits::within(Duration::from_secs(60))).await?;
/// println!("{} done, {} dead", summary.done, summary.dead);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Worker {
    pub(crate) pool: PgPool,
    pub(crate) consumer: String,
    pub(crate) handlers: Handlers,
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) attempts_max: u32,
    pub(crate) poll: Duration,
    pub(crate) after_death: AfterDeath,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) shared: Arc<Shared>,
}

/// What all clones of a worker share, and all of its runs in this process.
pub(crate) struct Shared {
    pub(crate) downstream: Downstream,
    slots: OnceLock<Arc<Semaphore>>,
    /// The inbox's.
    pub(crate) connections: Arc<Connections>,
}

/// One of a worker's slots, and a connection for it.
pub(crate) type Slot = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Shared {
    fn new(downstream: Downstream, connections: Arc<Connections>) -> Self {
        Self { downstream, slots: OnceLock::new(), connections }
    }

    /// Takes up to so many of the slots that are free, and returns whether there was no connection for another one.
    pub(crate) fn take(&self, wanted: usize) -> (Vec<Slot>, bool) {
        let mut taken = Vec::new();
        while taken.len() < wanted
            && let Some(Ok(slot)) = self.slots.get().map(|slots| Arc::clone(slots).try_acquire_owned())
        {
            let Some(connection) = self.connections.take() else { return (taken, true) };
            taken.push((slot, connection));
        }
        (taken, false)
    }
}

impl Worker {
    /// Creates the worker of this consumer, which shares the pool's connections with other workers.
    pub(crate) fn new(pool: PgPool, connections: Arc<Connections>, consumer: String) -> Self {
        Self {
            pool,
            consumer,
            handlers: Handlers::default(),
            concurrency: CONCURRENCY_DEFAULT,
            timeout: Duration::from_millis(limits::TIMEOUT_DEFAULT_MS),
            attempts_max: limits::ATTEMPTS_DEFAULT,
            poll: Duration::from_millis(limits::POLL_DEFAULT_MS),
            after_death: AfterDeath::default(),
            clock: Arc::new(SystemClock),
            shared: Arc::new(Shared::new(Downstream::default(), connections)),
        }
    }

    /// Adds the handler of this event type, whose messages have JSON bodies that decode as `P`.
    ///
    /// Its writes in the transaction and the end of the message commit together, exactly once, or not at all. It neither commits
    /// nor rolls back: it returns `Ok` or an error. A message whose body does not decode is dead at once.
    #[must_use]
    pub fn on<P: DeserializeOwned + Send + 'static>(
        mut self,
        event_type: impl Into<String>,
        handler: impl TransactionalHandler<P, Transaction, InboxContext, Output = ()>,
    ) -> Self {
        self.handlers.add(event_type.into(), handler);
        self
    }

    /// Sets how many messages are processed at once: 1 to [`CONCURRENCY_MAX`], and never more than the pool has
    /// connections, since each holds one; with a [breaker](Self::breaker) or a [limit](Self::limit) one fewer. Clones of a worker, and its
    /// runs at once in one process, share it. Workers of one inbox share its connections: one takes a message when there is one for it.
    #[must_use]
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = messages;
        self
    }

    /// Sets how long a handler may take before it is cancelled and the message tried again: 1 ms to [`LEASE_MAX_MS`]
    /// (default 30 s). A message whose worker is killed is due again that time and 14 s after it was taken (16 s with a
    /// [limit](Self::limit)), or after its backoff if that is longer. A body that takes more than 5 s to be read takes the rest of this time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how often a message is tried before it is dead, at least once (default 12). An attempt that killed its worker counts.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }

    /// Sets the interval at which an idle worker polls for messages: [`POLL_MIN_MS`] to [`POLL_MAX_MS`] (default 1 s).
    #[must_use]
    pub fn poll(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Sets what happens to a group when one of its messages is dead.
    #[must_use]
    pub fn after_death(mut self, after_death: AfterDeath) -> Self {
        self.after_death = after_death;
        self
    }

    /// Takes no messages while the breaker of a system that the handlers call is open, see [`Breaker`]: theirs is the error that
    /// [says so](claimant_core::HandlerError::downstream), and a run that [`timeout`](Self::timeout) cuts off. Their messages are due all the
    /// same, and none of their attempts is spent but those of the probes.
    ///
    /// All that name the same system in this store share the breaker, also consumers of queues. The store's own table has to be there: for a
    /// [`PostgresStore`](claimant_sql::PostgresStore) on the inbox's pool, by its `migrate`.
    ///
    /// Running handlers hold connections, and must not keep the store from one: of the pool, one is left to it, unless it is the only one. Where
    /// workers share a pool, give it more connections than they handle messages at once together, or the store connections of its own.
    #[must_use]
    pub fn breaker(self, breaker: Breaker, store: impl Store + 'static) -> Self {
        self.with(|downstream| downstream.breaker = Some((breaker, Arc::new(store))))
    }

    /// Begins no more messages than a limit across all processes allows, see [`Limit`]. Those that have no turn yet stay in the table, due
    /// all the same, and none of their attempts is spent.
    ///
    /// All that name the same system in this store share the limit, also consumers of queues; its slots are free again when the worker ends.
    /// The store's own table has to be there, and a connection for it, as for a [`breaker`](Self::breaker): a worker has lost its
    /// slots 15 s after it last renewed them, as it does each 7.5 s, though their messages run.
    #[must_use]
    pub fn limit(self, limit: Limit, store: impl Store + 'static) -> Self {
        self.with(|downstream| downstream.limit = Some((limit, Arc::new(store))))
    }

    fn with(mut self, set: impl FnOnce(&mut Downstream)) -> Self {
        let mut downstream = self.shared.downstream.fresh();
        set(&mut downstream);
        self.shared = Arc::new(Shared::new(downstream, Arc::clone(&self.shared.connections)));
        self
    }

    /// Sets the clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the longest that an attempt takes, from when its message is being taken until its end is written.
    pub(crate) fn attempt_max(&self) -> Duration {
        self.timeout + Duration::from_millis(limits::AROUND_ATTEMPT_MAX_MS) + self.shared.downstream.turn_max()
    }

    /// Returns how many connections handlers may hold. One is left to the store of a limit or a breaker, which may be on the same pool: without
    /// it, a worker could not renew its slots while all of its handlers run. Of a single one none is left: that store has to be elsewhere.
    fn connections_of_handlers(&self) -> usize {
        // OK because a u32 fits any usize.
        let connections = self.pool.options().get_max_connections() as usize;
        connections.saturating_sub(usize::from(self.shared.downstream.has_store())).max(1)
    }

    /// Returns the worker, or an error with every fault of its settings.
    pub(crate) fn checked(&self) -> Result<Arc<Self>, Error> {
        let mut faults = Vec::new();
        if let Err(fault) = ConsumerName::new(self.consumer.as_str()) {
            faults.push(fault.to_string());
        }
        if self.handlers.is_empty() {
            faults.push("it has no handler: add one for each event type".to_owned());
        }
        for event_type in &self.handlers.repeated {
            faults.push(format!("the event type {event_type:?} has two handlers"));
        }
        for event_type in self.handlers.types().filter(|name| !(1..=EVENT_TYPE_MAX_BYTES).contains(&name.len())) {
            faults
                .push(format!("an event type has {} bytes; 1 to {EVENT_TYPE_MAX_BYTES} are allowed", event_type.len()));
        }
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let bounds = [
            // OK because usize is at most 64 bits wide.
            ("the concurrency", self.concurrency as u64, 1, CONCURRENCY_MAX as u64, "messages"),
            ("the timeout", millis(self.timeout), 1, LEASE_MAX_MS, "ms"),
            ("the limit of attempts", self.attempts_max.into(), 1, limits::ATTEMPTS_MAX.into(), "attempts"),
            ("the poll interval", millis(self.poll), POLL_MIN_MS, POLL_MAX_MS, "ms"),
        ];
        for (what, value, min, max, unit) in bounds {
            if !(min..=max).contains(&value) {
                faults.push(format!("{what} is {value} {unit}; {min} to {max} are allowed"));
            }
        }
        Error::unless_empty("the worker's settings are not usable", &faults)?;
        self.shared.downstream.begin(&self.consumer, &self.clock, self.timeout)?;
        let concurrency = self.concurrency.min(self.connections_of_handlers());
        self.shared.slots.get_or_init(|| Arc::new(Semaphore::new(concurrency)));
        Ok(Arc::new(Self { concurrency, ..self.clone() }))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { consumer, handlers, concurrency, .. } = self;
        let mut shown = f.debug_struct("Worker");
        shown.field("consumer", consumer).field("handlers", handlers).field("concurrency", concurrency);
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::{HandlerError, MemoryStore, TransactionGuard};
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

    use super::*;

    async fn handler(_: u64, _: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
        Ok(())
    }

    /// A store on the inbox's pool could not renew slots: the handlers would run, and others in their place.
    #[tokio::test]
    async fn running_handlers_leave_a_connection_to_the_store_of_a_limit_or_a_breaker() {
        for (connections, wanted, alone, beside) in [(10, 10, 10, 9), (10, 9, 9, 9), (2, 10, 2, 1), (1, 1, 1, 1)] {
            let pool = PgPoolOptions::new().max_connections(connections).connect_lazy_with(PgConnectOptions::new());
            let all = Arc::new(Connections::of(&pool));
            let worker = Worker::new(pool, all, "orders".to_owned()).on("ok", handler).concurrency(wanted);
            assert_eq!(worker.checked().unwrap().concurrency, alone);
            let limited = worker.clone().limit(Limit::new("mail").at_once(10), MemoryStore::new());
            for worker in [limited, worker.breaker(Breaker::new("mail"), MemoryStore::new())] {
                assert_eq!(worker.checked().unwrap().concurrency, beside, "of {connections}");
            }
        }
    }
}
