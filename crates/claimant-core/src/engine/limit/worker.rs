//! A limit for what takes its work by itself and not in batches, such as the workers of an inbox.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::calls::LimitCalls;
use super::shared::{Permit, SharedLimit, now};
use crate::backoff;
use crate::claim::OwnerToken;
use crate::clock::Clock;
use crate::engine::asker::{Asker, Worker};
use crate::error::Error;
use crate::key::MessageId;
use crate::limit::Limit;
use crate::limits::{LIMIT_AHEAD_MS, SKEW_DEFAULT_MS, STORE_CALL_MAX_MS};
use crate::store::Store;

/// Messages are taken for runs that begin within this time.
const AHEAD: Duration = Duration::from_millis(LIMIT_AHEAD_MS);

/// A [`Limit`] as one process knows it, for workers that take their work by themselves. All that name its system in one store share it,
/// also consumers of queues.
pub struct WorkerLimit {
    known: Arc<Known>,
    worker: Worker,
    /// Where this process begins to look for a slot.
    seed: u64,
}

/// What is known of it in this process.
struct Known {
    limit: Arc<SharedLimit>,
    clock: Arc<dyn Clock>,
    /// Messages that are taken and have not had their turn.
    unstarted: AtomicUsize,
    /// Held by the one whose turn is next, so that they have theirs in the order of coming.
    next: Mutex<()>,
}

impl WorkerLimit {
    /// Returns the limit of the worker of this name, with nothing of it held.
    ///
    /// # Errors
    /// When its settings are out of bounds, or the store's claims end with their owners, so that no other process would keep to it.
    pub fn new(limit: &Limit, consumer: &str, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let worker = Worker::new((consumer, "limit", limit.faults()), store, Arc::clone(&clock), Duration::ZERO)?;
        let limit = Arc::new(SharedLimit::new(
            limit,
            &worker.name,
            Duration::from_millis(SKEW_DEFAULT_MS),
            Arc::clone(&worker.store),
        )?);
        let (unstarted, next) = (AtomicUsize::new(0), Mutex::new(()));
        let seed = backoff::seed(&MessageId::new(OwnerToken::draw()?.as_str())?);
        Ok(Self { seed, known: Arc::new(Known { limit, clock, unstarted, next }), worker })
    }

    /// Returns one worker's way to its turns.
    #[must_use]
    pub fn line(&self) -> Line<'_> {
        let calls = LimitCalls::new(&self.known.limit, self.worker.clock.as_ref(), self.seed, AHEAD);
        Line { owner: self, calls }
    }

    /// Returns what is known of it, for what has to know when the turns come.
    pub(crate) fn shared(&self) -> Arc<SharedLimit> {
        Arc::clone(&self.known.limit)
    }

    fn asker(&self) -> Asker<'_> {
        self.worker.asker(Duration::from_millis(STORE_CALL_MAX_MS))
    }
}

impl fmt::Debug for WorkerLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerLimit").field("consumer", &self.worker.name).finish_non_exhaustive()
    }
}

/// One worker's way to its turns. Dropped before it has [ended](Self::end), the slots that it holds end with their leases.
pub struct Line<'a> {
    owner: &'a WorkerLimit,
    calls: LimitCalls<'a>,
}

impl Line<'_> {
    fn unstarted(&self) -> usize {
        self.owner.known.unstarted.load(Ordering::SeqCst)
    }

    /// Returns how many messages may be taken, since their turns are soon.
    #[must_use]
    pub fn room(&self) -> usize {
        self.calls.room(self.unstarted())
    }

    /// Asks the store for what is needed where so many messages wait that are not taken, and for those that are; `free` is how many more
    /// the worker can have in hand.
    pub fn go_on(&mut self, waiting: usize, free: usize) {
        let (owner, unstarted) = (self.owner, self.unstarted());
        // While a call can begin, or all that the worker has in hand run, it is not the limit that the others wait for.
        let is_short = self.calls.limit.is_short(owner.worker.clock.as_ref()) && unstarted.max(free) > 0;
        let needed = if is_short { waiting.saturating_add(unstarted) } else { unstarted };
        self.calls.go_on(needed, || owner.asker(), |_| waiting > 0 || unstarted > 0);
    }

    /// Returns the turn of a message that is taken, which it waits for.
    #[must_use]
    pub fn turn(&self) -> LimitTurn {
        self.owner.known.unstarted.fetch_add(1, Ordering::SeqCst);
        LimitTurn { known: Arc::clone(&self.owner.known), waits: true, permit: Permit::default() }
    }

    /// Returns when there may be something to be done.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.calls.wake_at(false)
    }

    /// Waits until something has changed; for ever where nothing will. Cancel safe.
    pub async fn next(&mut self) {
        self.calls.next().await;
    }

    /// Lets slots go as at the end of an invocation, where nothing waits to be taken.
    pub fn rest(&mut self) {
        if self.unstarted() == 0 {
            self.calls.leave(|known, now| known.leave(now), || self.owner.asker());
        }
    }

    /// Ends the worker's way: slots that no other one of its process uses are free for other processes.
    pub async fn end(mut self) {
        // What is renewed cannot be let go.
        self.calls.finish().await;
        self.calls.leave(|known, _| known.leave_all(), || self.owner.asker());
        self.calls.finish().await;
    }
}

impl fmt::Debug for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("unstarted", &self.unstarted()).finish_non_exhaustive()
    }
}

/// The turn of a message that is taken. Dropped, its run has ended.
pub struct LimitTurn {
    known: Arc<Known>,
    waits: bool,
    /// That of its run.
    permit: Permit,
}

impl LimitTurn {
    /// Waits until it has come, not longer than this; returns whether it has. Turns come in the order of waiting. Cancel safe.
    pub async fn begin(&mut self, within: Duration) -> bool {
        let (known, by) = (Arc::clone(&self.known), Instant::now() + within);
        let Ok(_next) = timeout_at(by, known.next.lock()).await else { return false };
        loop {
            // Before the state is read, so that no change is missed.
            let changed = known.limit.changed();
            let now = now(known.clock.as_ref());
            // Turns of a worker come in their own order.
            if let Some(permit) = known.limit.begin(now, 0, false) {
                self.permit = permit;
                self.wait_no_more();
                return true;
            }
            if now.mono >= by {
                return false;
            }
            let call_at = known.limit.with(|slots| slots.next_call_at(now));
            tokio::select! {
                () = changed => {}
                () = sleep_until(call_at.map_or(by, |at| at.min(by))) => {}
            }
        }
    }

    fn wait_no_more(&mut self) {
        if std::mem::take(&mut self.waits) {
            self.known.unstarted.fetch_sub(1, Ordering::SeqCst);
            self.known.limit.tell();
        }
    }
}

impl Drop for LimitTurn {
    fn drop(&mut self) {
        self.wait_no_more();
    }
}

impl fmt::Debug for LimitTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitTurn").field("waits", &self.waits).finish_non_exhaustive()
    }
}
