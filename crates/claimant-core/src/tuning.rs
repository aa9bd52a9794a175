//! The options of a consumer: how much at once, for how long, how often.

use std::time::Duration;

use crate::breaker::Breaker;
use crate::consumer::Consumer;
use crate::limit::Limit;
use crate::options::Lease;
use crate::protocol::{Abandoned, Conflicts};

impl<T> Consumer<T> {
    /// Sets how many messages this process works on at once, in all invocations of its engine: 1 to [`CONCURRENCY_MAX`](crate::limits::CONCURRENCY_MAX).
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).concurrency(20);
    /// ```
    #[must_use]
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.definition.options.concurrency = Some(messages);
        self
    }

    /// Sets how many messages one call of a [`BatchHandler`](crate::BatchHandler) gets at most: 1 to
    /// [`ITEMS_MAX`](crate::limits::ITEMS_MAX), and [`ITEMS_DEFAULT`](crate::limits::ITEMS_DEFAULT) unless set. Each of them
    /// counts as one message of the [`concurrency`](Self::concurrency), which is at least this unless the consumer sets its own.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, HandlerError, batch::Items, memory::MemoryStore};
    /// # async fn pack(_: Items<u64>) -> Result<(), HandlerError> { Ok(()) }
    /// // Two calls at once, of 100 messages each.
    /// let consumer = Consumer::batch("packing", MemoryStore::new(), pack).items_max(100).concurrency(200);
    /// ```
    #[must_use]
    pub fn items_max(mut self, items: usize) -> Self {
        self.definition.options.items_max = Some(items);
        self
    }

    /// Sets how long the handler takes: a message is started only if that much time is left. Unless set, it is learned from
    /// this process's own runs. At most [`LEASE_MAX_MS`](crate::limits::LEASE_MAX_MS).
    #[must_use]
    pub fn expected(mut self, duration: Duration) -> Self {
        self.definition.options.expected = Some(duration);
        self
    }

    /// Sets how long the handler may take before it is cancelled and the message tried again: 1 to
    /// [`LEASE_MAX_MS`](crate::limits::LEASE_MAX_MS). Unless set, until the invocation's time is over.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// use std::time::Duration;
    ///
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
    ///     .expected(Duration::from_secs(2))
    ///     .timeout(Duration::from_secs(20));
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.definition.options.timeout = Some(timeout);
        self
    }

    /// Sets how often a key may be claimed for its handler to run, at least once; the message is then rejected, with the error of the last run
    /// beside that reason. A claim whose owner died counts, run or not. The count is the key's, not the message's, so a redrive does not reset it as it does
    /// the queue's own. Once the key is rejected, a message with another id, such as a redriven one, starts with as many
    /// fresh attempts.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).attempts_max(3);
    /// ```
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.definition.options.attempts_max = Some(attempts);
        self
    }

    /// Waits in the invocation, for this long at most, for a key that another owner holds: 1 to
    /// [`BUSY_WAIT_MAX_MS`](crate::limits::BUSY_WAIT_MAX_MS). Unless set, such a message is reported as busy at once, and comes back
    /// when the other's lease is over.
    ///
    /// For copies that come close together, of work that takes a moment: the copy is then a duplicate after the wait, and costs no
    /// receive. Meanwhile its key is asked for again and again, after 50 ms at most and then more and more seldom, up to every
    /// second: 9 more requests in 1 s, 15 in 5 s, each with its write unit. The message holds no slot, so others run; the invocation lasts
    /// longer, and is paid for. Nothing waits beyond the time in which its handler could start.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// use std::time::Duration;
    ///
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).wait_while_busy(Duration::from_secs(1));
    /// ```
    #[must_use]
    pub fn wait_while_busy(mut self, most: Duration) -> Self {
        self.definition.options.busy_wait = Some(most);
        self
    }

    /// Limits how many messages all processes together start each second, or run at once, for a system that the handler calls, see
    /// [`Limit`]. Needs a store whose claims [outlive their owners](crate::Store::claims_outlive_owners).
    ///
    /// Its records are not the consumer's own: a role that may use the consumer's keys alone needs those that begin with `claimant-rate#`,
    /// too, or nothing runs.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.definition.options.limit = Some(limit);
        self
    }

    /// Holds messages back while the breaker of a system that the handler calls is open, see [`Breaker`]. Needs a store whose claims
    /// [outlive their owners](crate::Store::claims_outlive_owners): its processes share the breaker through that.
    ///
    /// Its record is not the consumer's own: a role that may use the consumer's keys alone needs those that begin with `claimant-breaker#`,
    /// too, or each process has a breaker of its own.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// use claimant::Breaker;
    ///
    /// let breaker = Breaker::new("warehouse").opens_after(3, 20);
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).breaker(breaker);
    /// ```
    #[must_use]
    pub fn breaker(mut self, breaker: Breaker) -> Self {
        self.definition.options.breaker = Some(breaker);
        self
    }

    /// Sets how long a claim is honoured. A renewed lease lasts [`LEASE_MIN_MS`](crate::limits::LEASE_MIN_MS) to [`LEASE_MAX_MS`](crate::limits::LEASE_MAX_MS).
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// use std::time::Duration;
    ///
    /// use claimant::Lease;
    ///
    /// let lease = Lease::Renewed(Duration::from_secs(10));
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).lease(lease);
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.definition.options.lease = lease;
        self
    }

    /// Never runs work again that may be done: whose owner died, whose handler panicked, was cancelled or timed out, or
    /// returned [`HandlerError::uncertain`](crate::HandlerError::uncertain), or whose transaction did not commit. It is parked, and an operator decides. What the
    /// handler reports failed by [`HandlerError::retry`](crate::HandlerError::retry) or `?` is tried again, so a handler must
    /// return `uncertain` for everything that can go wrong after its request may have arrived, and no client beneath it may
    /// send a request again by itself, as those of many SDKs do. For effects that must not be
    /// repeated and whose system cannot recognise a repeat. Needs a store whose claims [outlive their
    /// owners](crate::Store::claims_outlive_owners), and a rule for the key, such as [`key`](Self::key): a redrive gives a message a new
    /// id, and under the id as the key its parked work would run again.
    ///
    /// It holds within the [`window`](Self::window), 15 days or more here, since a queue keeps a message for up to 14: once a key's window
    /// is over, its next message runs, parked or not. Decide before, or set a longer window. And it holds for the processes that have it: one
    /// without it, as while a deployment adds it, removes it or is rolled back, runs again what one with it did not end. Pause the queue for that,
    /// and decide what is stuck.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).at_most_once();
    /// ```
    #[must_use]
    pub fn at_most_once(mut self) -> Self {
        self.definition.options.policy.abandoned = Abandoned::Park;
        self
    }

    /// Sets what happens to a message whose key belongs to work with another payload: by default it is rejected.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// use claimant::Conflicts;
    ///
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).conflicts(Conflicts::Ignore);
    /// ```
    #[must_use]
    pub fn conflicts(mut self, conflicts: Conflicts) -> Self {
        self.definition.options.policy.conflicts = conflicts;
        self
    }

    /// Sets for how long a finished key keeps duplicates out (default 15 days). A whole number of seconds,
    /// [`WINDOW_MIN_S`](crate::limits::WINDOW_MIN_S) to [`WINDOW_MAX_S`](crate::limits::WINDOW_MAX_S).
    /// [At most once](Self::at_most_once) needs the default or more.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// use std::time::Duration;
    ///
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
    ///     .window(Duration::from_secs(30 * 86_400))
    ///     .clock_skew(Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.definition.options.policy.window = window;
        self
    }

    /// Sets by how much the clocks of two hosts may differ (default 1 s), at most [`SKEW_MAX_MS`](crate::limits::SKEW_MAX_MS).
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.definition.options.policy.skew = skew;
        self
    }
}
