//! A breaker for what takes its work by itself and not in batches, such as the workers of an inbox.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::shared::{Probe, SharedBreaker};
use super::way::{Way, Write, Written};
use crate::breaker::Breaker;
use crate::clock::Clock;
use crate::engine::asker::{Asker, Worker};
use crate::engine::limit::shared::SharedLimit;
use crate::engine::limit::worker::WorkerLimit;
use crate::error::Error;
use crate::failure::Failure;
use crate::limits::{SKEW_DEFAULT_MS, STORE_CALL_MAX_MS};
pub use crate::protocol::breaker::Health;
use crate::store::Store;

/// The longest that is waited in one go; then again.
const WAIT_MAX: Duration = Duration::from_secs(3_600);

/// How long a worker waits that looks only once.
const LOOK: Duration = Duration::from_millis(100);

/// A [`Breaker`] as one process knows it, for workers that take their work by themselves. All that name its system in one store share it,
/// also consumers of queues.
pub struct WorkerBreaker {
    shared: SharedBreaker,
    worker: Worker,
    /// Within which its runs have their turns.
    limit: Option<Arc<SharedLimit>>,
}

impl WorkerBreaker {
    /// Returns the breaker of the worker of this name, closed; `longest` is how long one of its runs can take.
    ///
    /// # Errors
    /// When its settings are out of bounds, or the store's claims end with their owners, so that no other process would see it.
    pub fn new(
        breaker: &Breaker,
        consumer: &str,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        longest: Duration,
    ) -> Result<Self, Error> {
        let worker = Worker::new((consumer, "breaker", breaker.faults()), store, clock, longest)?;
        let shared = SharedBreaker::new(breaker, &worker.name, Duration::from_millis(SKEW_DEFAULT_MS))?;
        Ok(Self { shared, worker, limit: None })
    }

    /// Has a probe wait for its turn within this limit, and not lose its claim meanwhile.
    #[must_use]
    pub fn within(self, limit: &WorkerLimit) -> Self {
        Self { limit: Some(limit.shared()), ..self }
    }

    /// Returns the worker as one that asks, with its answers within this time.
    fn asker(&self, within: Duration) -> Asker<'_> {
        let mut asker = self.worker.asker(within);
        asker.expected.turn = self.limit.as_ref().map_or(Duration::ZERO, |limit| limit.interval());
        asker
    }

    /// Returns whether a run that is about to begin still may. While this process probes, only a run that was taken as the probe may.
    #[must_use]
    pub fn may_begin(&self, as_probe: bool) -> bool {
        self.shared.is_closed() || as_probe && !self.shared.is_open()
    }

    /// Returns what the failure of a run says of the system.
    #[must_use]
    pub fn health_in(&self, failure: &Failure) -> Health {
        if self.shared.is_of(failure) { Health::Away } else { Health::Unknown }
    }

    /// Returns one worker's way through it.
    #[must_use]
    pub fn passage(&self) -> Passage<'_> {
        Passage {
            breaker: self,
            looked: false,
            way: Way::new(&self.shared),
            wait: None,
            writes: FuturesUnordered::new(),
            rests: false,
        }
    }
}

impl fmt::Debug for WorkerBreaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerBreaker").field("consumer", &self.worker.name).finish_non_exhaustive()
    }
}

/// A wait for the breaker.
struct Wait<'a> {
    /// Whether it may come to a probe; else it only learns what others do.
    may_probe: bool,
    end: BoxFuture<'a, Option<Probe<'a>>>,
}

/// One worker's way through a breaker. Dropped while it probes, the breaker is open until its lease ends.
pub struct Passage<'a> {
    breaker: &'a WorkerBreaker,
    /// Whether it has waited.
    looked: bool,
    way: Way<'a>,
    wait: Option<Wait<'a>>,
    /// What is written to its record.
    writes: FuturesUnordered<BoxFuture<'a, Written<'a>>>,
    /// Whether no message is under way or waits.
    rests: bool,
}

impl<'a> Passage<'a> {
    /// Returns how many runs may begin while so many are under way.
    #[must_use]
    pub fn room(&self, under_way: usize) -> usize {
        self.way.room(under_way)
    }

    /// Returns whether this worker probes.
    #[must_use]
    pub fn probes(&self) -> bool {
        self.way.probes()
    }

    /// Begins to wait where nothing may begin and so many messages wait, until that has changed. Where none does, it waits no more, and while
    /// so many runs are under way, it waits for others to close the breaker: it asks for a probe only where that could begin at once. With
    /// `once`, it looks once, and then returns `false` while nothing may begin.
    pub fn wait(&mut self, messages: usize, under_way: usize, once: bool) -> bool {
        let may_probe = under_way == 0;
        self.rests &= messages == 0;
        self.wait.take_if(|wait| messages == 0 || wait.may_probe != may_probe);
        // What is being written can change that, too.
        if messages == 0 || self.room(0) > 0 || self.wait.is_some() || !self.writes.is_empty() {
            return true;
        }
        if once && self.looked {
            return false;
        }
        self.looked = true;
        let asker = self.breaker.asker(WAIT_MAX);
        let by = if once { Instant::now() + LOOK } else { asker.by };
        let end = Box::pin(self.breaker.shared.pass(asker, move || may_probe, by));
        self.wait = Some(Wait { may_probe, end });
        true
    }

    /// Takes note of a run that took so long.
    pub fn observe(&mut self, health: Health, took: Duration) {
        self.rests = false;
        let write = self.way.observe(health, took, self.asker());
        self.write(write);
    }

    /// Returns the worker as one that writes.
    fn asker(&self) -> Asker<'a> {
        self.breaker.asker(Duration::from_millis(STORE_CALL_MAX_MS))
    }

    fn write(&mut self, write: Option<Write<'a>>) {
        let asker = self.asker();
        self.writes.extend(write.map(|write| -> BoxFuture<'a, Written<'a>> { Box::pin(write.go(asker)) }));
    }

    /// Waits until something has changed; `false` where nothing will. Cancel safe.
    pub async fn next(&mut self) -> bool {
        if self.wait.is_none() && self.writes.is_empty() {
            return false;
        }
        let wait = async {
            match &mut self.wait {
                Some(wait) => (&mut wait.end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(written) = self.writes.next() => {
                if let Written::Kept(probe) = written {
                    self.way.waited(Some(probe));
                    if self.rests {
                        self.rest();
                    }
                }
            }
            probe = wait => {
                self.wait = None;
                self.way.waited(probe);
            }
        }
        true
    }

    /// Ends a probe, where no message is under way or waits: one that has an answer closes the breaker. Without one, nobody probes before its
    /// lease ends. So it does once its claim is renewed that is being renewed, unless messages wait then.
    pub fn rest(&mut self) {
        self.rests = true;
        let write = self.way.leave();
        self.write(write);
    }

    /// Ends the worker's way: its probe as where it [rests](Self::rest), and what is under way is written.
    pub async fn end(mut self) {
        self.wait = None;
        self.rest();
        while self.next().await {}
    }
}

impl fmt::Debug for Passage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passage").field("probes", &self.way.probes()).finish_non_exhaustive()
    }
}
