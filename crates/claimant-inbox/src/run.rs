//! A worker's loop: takes messages, processes them, and polls again.

use std::future::{Future, pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Error, StoreError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::attempt::{Attempt, AttemptOutcome};
use crate::downstream::Way;
use crate::error;
use crate::limits::{GATHER_MS, WINDOW_MAX, WINDOW_SPARE};
use crate::link::{self, BEGIN_MAX, STATEMENT_MAX, end_of};
use crate::rows::{self, TakeAnswer, TakeQuery};
use crate::summary::{Limits, Summary};
use crate::worker::{Shared, Worker};

/// Until when a worker runs that ends when nothing is due.
#[derive(Debug, Clone, Copy)]
struct Deadlines {
    /// When the last attempt may begin.
    begin_by: Instant,
    return_by: Instant,
}

/// Whether a worker has no message, since there was no connection for one.
#[derive(Debug, Clone, Copy)]
enum Starved {
    No,
    Since(Instant),
    Logged,
}

/// The state of a running worker.
struct WorkerLoop<'a> {
    worker: Arc<Worker>,
    way: Way<'a>,
    in_flight: JoinSet<Attempt>,
    summary: Summary,
    /// How many messages may still be taken.
    rest: u64,
    /// Set where the worker ends when nothing is due.
    deadlines: Option<Deadlines>,
    next_take: Instant,
    window: u32,
    /// A message whose last attempt ended its worker is due: it is tried alone, so that it ends no others.
    suspects: bool,
    /// The last poll found nothing, and no attempt has ended since.
    idle: bool,
}

impl Worker {
    /// Processes due messages until there are none or a limit is reached: for a function that runs on a schedule. Returns in time:
    /// an attempt begins only while a handler's whole timeout is left, and the time to write its end. What a silent store keeps of a
    /// [limit](Self::limit) or a [breaker](Self::breaker) by then is free again when its lease ends.
    ///
    /// Does not wait for what is due later, and ends where other workers of the inbox have all connections for that long. Needs a Tokio runtime;
    /// handlers are its tasks. Cancel safe: dropping the future cancels the handlers and rolls back their work; their attempts count.
    ///
    /// # Errors
    /// When the settings are not usable, when the time is shorter than a handler's timeout and the writing of its end, or
    /// when the database refuses or gives no answer. Returns after the attempts in flight have ended.
    pub async fn run_once(&self, limits: Limits) -> Result<Summary, Error> {
        let worker = self.checked()?;
        let shared = Arc::clone(&worker.shared);
        let needed = worker.attempt_max();
        if limits.within <= needed {
            return Err(Error::invalid(format!(
                "the inbox is to be processed within {} ms, and one attempt can take {} ms with its beginning and its end: give \
                 the function more time, or the handlers a shorter timeout (Worker::timeout)",
                limits.within.as_millis(),
                needed.as_millis()
            )));
        }
        let begin_by = end_of(limits.within - needed);
        let deadlines = Deadlines { begin_by, return_by: begin_by + needed };
        WorkerLoop::new(worker, &shared, limits.messages, Some(deadlines)).work(pending()).await
    }

    /// Processes messages until `shutdown` is ready; then takes no more, waits for those in flight to end, each within its
    /// timeout, and returns. An idle worker polls at the interval [`poll`](Self::poll), and so does one whose database cannot be
    /// reached.
    ///
    /// # Errors
    /// When the settings are not usable, or messages cannot be taken in a way that no retry fixes: the pool is closed; the database refuses the
    /// login (also that of a password that was changed, to the next connection) or a permission; it, the table or a column is not there; or
    /// it does not take the statement, as where a trigger of another program or a pooler fails it. What supervises
    /// the worker starts it again then. Where the database cannot be reached or is busy, and after an error of no known meaning, it polls again.
    pub async fn run_until(&self, shutdown: impl Future<Output = ()>) -> Result<Summary, Error> {
        let (worker, shared) = (self.checked()?, Arc::clone(&self.shared));
        WorkerLoop::new(worker, &shared, u64::MAX, None).work(shutdown).await
    }
}

impl<'a> WorkerLoop<'a> {
    /// Returns a worker that ends when nothing is due, where it has deadlines.
    fn new(worker: Arc<Worker>, shared: &'a Shared, rest: u64, deadlines: Option<Deadlines>) -> Self {
        Self {
            worker,
            way: shared.downstream.way(),
            in_flight: JoinSet::new(),
            summary: Summary::default(),
            rest,
            deadlines,
            next_take: Instant::now(),
            window: WINDOW_SPARE,
            suspects: false,
            idle: false,
        }
    }

    async fn work(mut self, shutdown: impl Future<Output = ()>) -> Result<Summary, Error> {
        let mut shutdown = pin!(shutdown);
        let mut open = true;
        let mut broken = None;
        let (mut lacks_connection, mut starved) = (false, Starved::No);
        loop {
            open &= self.rest > 0 && self.deadlines.is_none_or(|deadlines| Instant::now() < deadlines.begin_by);
            open = open && !self.is_held_back();
            if self.way.go_on((open && !lacks_connection).then(|| self.room())) {
                self.next_take = Instant::now();
            }
            starved = self.warn_if_starved(starved);
            if self.in_flight.is_empty() && (!open || (self.once() && self.idle)) {
                break;
            }
            let warn_at = if let Starved::Since(begun) = starved { Some(begun + BEGIN_MAX) } else { None };
            let wake_at = self.wake_at(open).into_iter().chain(warn_at).min();
            tokio::select! {
                // Each is looked at before more is taken, also where that goes on at once.
                biased;
                Some(ended) = self.in_flight.join_next() => self.end(ended),
                () = self.way.next() => {}
                () = &mut shutdown, if open => open = false,
                () = ready(()), if open && self.may_take() => {
                    lacks_connection = self.take_due().await.unwrap_or_else(|error| {
                        open = !self.once() && error::may_pass(&error);
                        tracing::warn!(%error, consumer = self.worker.consumer, "no messages could be taken");
                        broken = (!open).then_some(error);
                        self.next_take = Instant::now() + self.worker.poll;
                        self.idle = true;
                        false
                    });
                    starved = match starved {
                        _ if !lacks_connection || !self.in_flight.is_empty() => Starved::No,
                        Starved::No => Starved::Since(Instant::now()),
                        before => before,
                    };
                }
                () = self.worker.shared.connections.has_one(), if open && lacks_connection => {
                    (lacks_connection, self.next_take) = (false, Instant::now());
                }
                () = sleep_until(wake_at.unwrap_or(self.next_take)), if wake_at.is_some() => {}
            }
        }
        if self.once() && matches!(starved, Starved::Since(_)) && self.summary == Summary::default() {
            self.warn_of_starvation();
        }
        match self.deadlines {
            // What is not written or let go by then ends with its lease.
            Some(Deadlines { return_by, .. }) => _ = timeout_at(return_by, self.way.end()).await,
            None => self.way.end().await,
        }
        let Some(error) = broken.map(Error::from) else { return Ok(self.summary) };
        let what = format!("the inbox of {} cannot be processed", self.worker.consumer);
        Err(Error::new(what).of_kind(error.kind()).caused_by(error))
    }

    /// Returns whether it ends when nothing is due.
    fn once(&self) -> bool {
        self.deadlines.is_some()
    }

    /// Waits where the breaker is open and messages are due. Returns whether a run that ends when nothing is due ends for that: its messages
    /// are safe, and the next run looks again.
    fn is_held_back(&mut self) -> bool {
        let once = self.once();
        let ends = !self.way.wait(self.in_flight.len(), once);
        if ends {
            tracing::info!(
                consumer = self.worker.consumer,
                "no messages are taken: the breaker of what their handlers call is open"
            );
        }
        ends
    }

    /// Returns how many messages may be taken, but for the limit, and for a breaker that is open.
    fn room(&self) -> usize {
        let under_way = self.in_flight.len();
        let most = if self.suspects { 1_usize.saturating_sub(under_way) } else { self.worker.concurrency - under_way };
        most.min(self.way.room(under_way))
    }

    /// Logs that it gets no connection, once it has waited so long for one: workers that look for messages have theirs for some milliseconds.
    fn warn_if_starved(&self, starved: Starved) -> Starved {
        match starved {
            Starved::Since(begun) if begun.elapsed() >= BEGIN_MAX => {
                self.warn_of_starvation();
                Starved::Logged
            }
            starved => starved,
        }
    }

    fn warn_of_starvation(&self) {
        tracing::warn!(
            consumer = self.worker.consumer,
            "no messages are taken: other workers of the inbox and handlers have all {} connections of its pool",
            self.worker.pool.options().get_max_connections()
        );
    }

    fn may_take(&self) -> bool {
        self.room() > 0 && self.next_take <= Instant::now() && !(self.once() && self.idle)
    }

    /// Returns when there may be something to be done.
    fn wake_at(&self, open: bool) -> Option<Instant> {
        let next_take = Some(self.next_take).filter(|_| open && self.room() > 0 && !(self.once() && self.idle));
        let begin_by = self.deadlines.map(|deadlines| deadlines.begin_by).filter(|_| open);
        [next_take, begin_by, self.way.wake_at()].into_iter().flatten().min()
    }

    /// Handles the end of an attempt: its slot is free, and another message of its group may be due.
    fn end(&mut self, ended: Result<Attempt, tokio::task::JoinError>) {
        // One that panicked or was aborted has not written how it ended.
        self.summary.count(ended.as_ref().map_or(AttemptOutcome::Unknown, |attempt| attempt.outcome));
        if let Ok(attempt) = &ended {
            self.way.observe(attempt.health, attempt.took);
        }
        let soon = Instant::now() + Duration::from_millis(GATHER_MS);
        // The first of several that end together sets the time; what waits for the limit is known to wait.
        let is_first = self.idle || self.next_take > soon || self.next_take <= Instant::now();
        if is_first && !self.way.is_short() {
            self.next_take = soon;
        }
        self.idle = false;
    }

    /// Takes due messages once, and begins their attempts. While the breaker or the limit lets none run soon, it only looks whether there are
    /// some. Returns whether it took none because other workers have all connections.
    async fn take_due(&mut self) -> Result<bool, StoreError> {
        let (worker, soon) = (Arc::clone(&self.worker), self.way.soon());
        // Looking takes a connection, too. OK because the smaller of the two fits a usize.
        let (mut slots, lacks) = worker.shared.take(self.rest.min(self.room().min(soon.max(1)) as u64) as usize);
        let rows = slots.len().min(soon);
        if slots.is_empty() {
            // Other runs of this process have them all, of this worker or of others.
            (self.idle, self.next_take) = (self.once() && !lacks, Instant::now() + worker.poll);
            return Ok(lacks);
        }
        let now = worker.clock.now();
        // Whichever are wanted, as many rows are read, so that a suspect is found where it was seen. OK because of the concurrency's bounds.
        let window = self.window + worker.concurrency as u32;
        let (consumer, attempt_max) = (&worker.consumer, worker.attempt_max());
        let wanted = TakeQuery { consumer, now, attempt_max, window, rows, suspects: self.suspects };
        let answer = link::rows(&worker.pool, end_of(BEGIN_MAX), "taking messages", rows::take(wanted)).await?;
        let TakeAnswer { taken, ready, more, suspects } = rows::found(&answer, window)?;
        let found = taken.len();
        // OK because usize is at most 64 bits wide.
        self.rest -= found as u64;
        for (row, slot) in taken.into_iter().zip(slots.drain(..)) {
            let worker = Arc::clone(&worker);
            match row {
                Ok(row) => self.in_flight.spawn(worker.attempt(row, self.way.turn(), slot)),
                Err(row) => self.in_flight.spawn(worker.give_up(row, slot)),
            };
        }
        let (alone, some_left) = (self.suspects, if rows > 0 { found == rows } else { ready > 0 });
        self.suspects = suspects || (alone && some_left);
        // Fewer than wanted, though more are due: the first ones are being processed, or wait for others.
        let again = more && !some_left && !alone && self.park_blocked(wanted).await?;
        if !(again || self.suspects) {
            self.window = WINDOW_SPARE;
        }
        self.idle = !(some_left || again || alone || suspects);
        self.way.found(match some_left {
            true if more => usize::MAX,
            true => ready.saturating_sub(found),
            false => 0,
        });
        let waits = self.idle || self.way.is_short();
        self.next_take = Instant::now() + if waits { worker.poll } else { Duration::ZERO };
        if self.idle {
            self.way.rest();
        }
        Ok(false)
    }

    /// Parks messages that wait for others of their group; if there are none, widens the window. Returns whether to take again
    /// at once.
    async fn park_blocked(&mut self, wanted: TakeQuery<'_>) -> Result<bool, StoreError> {
        let pool = &self.worker.pool;
        let answer = link::rows(pool, end_of(STATEMENT_MAX), "ordering messages", rows::park(wanted)).await?;
        let (parked, looked_at) = (rows::written(&answer)?, self.window);
        if parked == 0 {
            self.window = looked_at.saturating_mul(4).min(WINDOW_MAX);
        }
        Ok(parked > 0 || self.window > looked_at)
    }
}

#[cfg(test)]
mod tests;
