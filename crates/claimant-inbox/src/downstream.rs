//! The system that handlers call: its breaker, and its limit.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use claimant_core::breaker::{Health, Passage, WorkerBreaker};
use claimant_core::limit::{LimitTurn, Line, WorkerLimit};
use claimant_core::{Breaker, Clock, Error, Failure, Limit, Store};
use futures_util::future::OptionFuture;
use tokio::time::Instant;

use crate::limits::TURN_MAX_MS;
use crate::link::BEGIN_MAX;

/// The breaker and the limit of a worker, if it has them, with the stores that they are shared in. Its clones share what is known of them.
#[derive(Default)]
pub(crate) struct Downstream {
    pub(crate) breaker: Option<(Breaker, Arc<dyn Store>)>,
    pub(crate) limit: Option<(Limit, Arc<dyn Store>)>,
    worker_breaker: OnceLock<WorkerBreaker>,
    worker_limit: OnceLock<WorkerLimit>,
}

impl Downstream {
    /// Returns the same settings, of which nothing is known yet.
    pub(crate) fn fresh(&self) -> Self {
        Self { breaker: self.breaker.clone(), limit: self.limit.clone(), ..Self::default() }
    }

    /// Checks the settings for the worker of this consumer, and begins with them.
    pub(crate) fn begin(&self, consumer: &str, clock: &Arc<dyn Clock>, timeout: Duration) -> Result<(), Error> {
        if let Some((limit, store)) = &self.limit {
            let limit = WorkerLimit::new(limit, consumer, Arc::clone(store), Arc::clone(clock))?;
            self.worker_limit.get_or_init(|| limit);
        }
        if let Some((breaker, store)) = &self.breaker {
            // From its taking: its transaction begins, its turn comes, and its handler runs.
            let longest = BEGIN_MAX + self.turn_max() + timeout;
            let breaker = WorkerBreaker::new(breaker, consumer, Arc::clone(store), Arc::clone(clock), longest)?;
            let breaker = self.worker_limit.get().into_iter().fold(breaker, WorkerBreaker::within);
            self.worker_breaker.get_or_init(|| breaker);
        }
        Ok(())
    }

    /// Returns whether there is a store that is asked while handlers run.
    pub(crate) fn has_store(&self) -> bool {
        self.breaker.is_some() || self.limit.is_some()
    }

    /// Returns how long a message that is taken can wait for its turn.
    pub(crate) fn turn_max(&self) -> Duration {
        if self.limit.is_some() { Duration::from_millis(TURN_MAX_MS) } else { Duration::ZERO }
    }

    /// Waits for the turn of a message that is taken; returns whether it has come, and the breaker lets it begin.
    pub(crate) async fn may_begin(&self, turn: &mut Turn) -> bool {
        let has_come = match &mut turn.limit {
            Some(limit) => limit.begin(self.turn_max()).await,
            None => true,
        };
        has_come && self.worker_breaker.get().is_none_or(|breaker| breaker.may_begin(turn.is_probe))
    }

    /// Returns what a failure says of the system.
    pub(crate) fn health_in(&self, failure: &Failure) -> Health {
        self.worker_breaker.get().map_or(Health::Unknown, |breaker| breaker.health_in(failure))
    }

    /// Returns a run's way through both.
    pub(crate) fn way(&self) -> Way<'_> {
        let (passage, line) =
            (self.worker_breaker.get().map(WorkerBreaker::passage), self.worker_limit.get().map(WorkerLimit::line));
        Way { passage, line, waiting: 0, is_short: false }
    }
}

/// The turn of a message that is taken. Dropped, its run has ended.
pub(crate) struct Turn {
    /// Set where there is a limit.
    limit: Option<LimitTurn>,
    /// Whether it was taken as a probe of the breaker.
    is_probe: bool,
}

/// A run's way through the breaker and the limit.
pub(crate) struct Way<'a> {
    passage: Option<Passage<'a>>,
    line: Option<Line<'a>>,
    /// Messages that are known to wait.
    waiting: usize,
    /// Whether it is the breaker or the limit that they wait for.
    is_short: bool,
}

impl Way<'_> {
    /// Waits where the breaker is open and messages wait, while so many are under way, see [`Passage::wait`].
    pub(crate) fn wait(&mut self, under_way: usize, once: bool) -> bool {
        let waiting = self.waiting;
        self.passage.as_mut().is_none_or(|passage| passage.wait(waiting, under_way, once))
    }

    /// Returns whether the breaker lets no message begin.
    fn is_held(&self) -> bool {
        self.passage.as_ref().is_some_and(|passage| passage.room(0) == 0)
    }

    /// Returns how many messages may be looked for while so many are under way: while this worker probes, one at a time.
    pub(crate) fn room(&self, under_way: usize) -> usize {
        let probes = self.passage.as_ref().filter(|_| !self.is_held());
        probes.map_or(usize::MAX, |passage| passage.room(under_way))
    }

    /// Returns how many messages may be taken, since the breaker and the limit let them run soon.
    pub(crate) fn soon(&self) -> usize {
        if self.is_held() { 0 } else { self.line.as_ref().map_or(usize::MAX, Line::room) }
    }

    /// Takes note that so many messages wait.
    pub(crate) fn found(&mut self, waiting: usize) {
        (self.waiting, self.is_short) = (waiting, waiting > 0 && self.soon() == 0);
    }

    /// Returns whether messages wait for the breaker or the limit.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Asks for what is needed of the limit where the worker can take so many messages more, or takes none; returns whether messages may run
    /// soon that have waited.
    pub(crate) fn go_on(&mut self, free: Option<usize>) -> bool {
        let waiting = if free.is_some() && !self.is_held() { self.waiting } else { 0 };
        if let Some(line) = &mut self.line {
            line.go_on(waiting, free.unwrap_or(0));
        }
        let has_come = self.is_short && self.soon() > 0;
        self.is_short &= !has_come;
        has_come
    }

    /// Lets go what is held of both where nothing waits.
    pub(crate) fn rest(&mut self) {
        if let Some(passage) = &mut self.passage {
            passage.rest();
        }
        if let Some(line) = &mut self.line {
            line.rest();
        }
    }

    /// Returns the turn of a message that is taken.
    pub(crate) fn turn(&self) -> Turn {
        Turn { limit: self.line.as_ref().map(Line::turn), is_probe: self.passage.as_ref().is_some_and(Passage::probes) }
    }

    /// Takes note of a run that took so long.
    pub(crate) fn observe(&mut self, health: Health, took: Duration) {
        if let Some(passage) = &mut self.passage {
            passage.observe(health, took);
        }
    }

    /// Returns when there may be something to be done.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.line.as_ref().and_then(Line::wake_at)
    }

    /// Waits until something has changed; for ever where nothing will. Cancel safe.
    pub(crate) async fn next(&mut self) {
        let passage = async {
            match &mut self.passage {
                Some(passage) => passage.next().await,
                None => false,
            }
        };
        let line = async {
            match &mut self.line {
                Some(line) => line.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            true = passage => {}
            () = line => {}
        }
    }

    /// Ends it: what is under way is written, and what is held of the limit is free for others.
    pub(crate) async fn end(self) {
        // At once: the store of one may be silent.
        tokio::join!(OptionFuture::from(self.passage.map(Passage::end)), OptionFuture::from(self.line.map(Line::end)));
    }
}
