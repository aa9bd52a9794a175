//! The threads that handlers run on: a thread that a handler blocks cannot be taken back, so later handlers start on others.
//!
//! ```text
//! handlers ──▶ current runtime ──(a handler blocks a thread)──▶ another runtime for all that start from now on
//!                    └── goes on, with what handlers opened on it; current again when enough of its threads are free
//! ```
//!
//! **No runtime ends before all of them do**: a connection that a handler opened, and keeps for others, is served by the runtime on
//! which it was opened. Each has a thread more than handlers run at once, for timers and sockets. Those that are made because a
//! handler blocked a thread have [`THREADS_RESERVE`] more, so that a few of them last until [`BLOCKED_MAX`] threads are blocked.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Chain, Error};
use crate::limits::{BLOCKED_MAX, HANDLER_THREADS_MAX, THREADS_LOOK_MS, THREADS_MAX, THREADS_RESERVE};

/// So many empty tasks in a row that no thread has run: all of them are blocked.
const UNANSWERED_MAX: usize = 3;

/// What the threads are given to poll.
pub(crate) type HandlerTask = BoxFuture<'static, ()>;

/// A runtime of ours, shut down without waiting for what blocks its threads; or what spawns tasks elsewhere.
enum Threads {
    Ours(Option<Runtime>),
    Spawned(Spawn),
}

type Spawn = Box<dyn Fn(HandlerTask) -> JoinHandle<()> + Send + Sync>;

impl Threads {
    fn spawn(&self, task: HandlerTask) -> JoinHandle<()> {
        match self {
            // OK because it is taken out only when this is dropped.
            Self::Ours(runtime) => runtime.as_ref().expect("there until it is dropped").spawn(task),
            Self::Spawned(spawn) => spawn(task),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Self::Ours(runtime) = self
            && let Some(runtime) = runtime.take()
        {
            runtime.shutdown_background();
        }
    }
}

/// Makes a runtime with so many threads.
type Make = Box<dyn Fn(usize) -> io::Result<Threads> + Send + Sync>;

/// Threads of their own for handlers, replaced when handlers block them. Clones share them.
#[derive(Clone)]
pub struct HandlerThreads(Arc<Shared>);

struct Shared {
    make: Option<Make>,
    /// For so many handlers at once there are threads.
    at_once: usize,
    /// How many more threads those have that are made because a handler blocked one.
    reserve: usize,
    /// All that were made, the current ones last; empty until they are first needed.
    all: Mutex<Vec<Arc<Generation>>>,
    /// Handlers that were left behind and have not returned: each blocks a thread.
    blocked: Arc<AtomicUsize>,
}

impl HandlerThreads {
    /// Makes the first runtime with `make`, and others when handlers have blocked threads of the current one. It is passed how many
    /// threads a runtime must have, so that of the handlers that run `at_once` ([`THREADS_MAX`] at most) one that blocks its thread
    /// holds up no other.
    ///
    /// # Errors
    /// When the first runtime cannot be made.
    pub fn new(
        at_once: usize,
        make: impl Fn(usize) -> io::Result<Runtime> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let threads = Self::later(at_once, make);
        threads.start().map(|()| threads)
    }

    /// Does as [`new`](Self::new), and makes the first runtime at the first [`start`](Self::start), or with the first handler: for
    /// programs that have something to do before they have a message.
    #[must_use]
    pub fn later(at_once: usize, make: impl Fn(usize) -> io::Result<Runtime> + Send + Sync + 'static) -> Self {
        Self::of(Some(Box::new(move |count| Ok(Threads::Ours(Some(make(count)?))))), at_once, THREADS_RESERVE)
    }

    /// Uses runtimes that the caller drives and ends, each by one thread, so that a handler that blocks its thread blocks all that run
    /// there; otherwise as [`new`](Self::new).
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn on_handles(make: impl Fn() -> io::Result<Handle> + Send + Sync + 'static) -> Result<Self, Error> {
        let threads = |handle: Handle| Threads::Spawned(Box::new(move |task| handle.spawn(task)));
        let threads = Self::of(Some(Box::new(move |_| make().map(threads))), 1, 0);
        threads.start().map(|()| threads)
    }

    /// Starts each handler's task with `spawn`, which can run it wherever and however it likes, and puts no fresh threads in place
    /// of blocked ones: for tests that stop handlers at one of their steps.
    #[must_use]
    pub fn spawned_by(spawn: impl Fn(BoxFuture<'static, ()>) -> JoinHandle<()> + Send + Sync + 'static) -> Self {
        let threads = Self::of(None, THREADS_MAX, 0);
        threads.all().push(threads.generation(Threads::Spawned(Box::new(spawn)), THREADS_MAX));
        threads
    }

    fn of(make: Option<Make>, at_once: usize, reserve: usize) -> Self {
        let at_once = at_once.clamp(1, THREADS_MAX);
        Self(Arc::new(Shared { make, at_once, reserve, all: Mutex::default(), blocked: Arc::default() }))
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Generation>>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation(&self, threads: Threads, count: usize) -> Arc<Generation> {
        let (began, blocked) = (Instant::now(), Arc::clone(&self.0.blocked));
        let (tended_ms, unanswered) = (AtomicU64::new(0), Arc::default());
        Arc::new(Generation { threads, count, began, tended_ms, unanswered, blocked })
    }

    /// Makes the first runtime, if there is none yet. Blocks for as long as its threads take to start.
    ///
    /// # Errors
    /// When it cannot be made. The next call tries again.
    pub fn start(&self) -> Result<(), Error> {
        self.current().map(drop)
    }

    /// Returns how many handlers were left behind, since they did not stop when they were cancelled, and still block a thread
    /// each.
    #[must_use]
    pub fn blocked(&self) -> usize {
        self.0.blocked.load(Ordering::Relaxed)
    }

    /// Returns whether so many threads are blocked that they are not replaced any more: the process should end.
    #[must_use]
    pub fn are_exhausted(&self) -> bool {
        let all = self.all();
        self.blocked() >= BLOCKED_MAX || (!self.may_grow(&all) && all.iter().all(|threads| threads.is_stalled()))
    }

    fn may_grow(&self, all: &[Arc<Generation>]) -> bool {
        let count: usize = all.iter().map(|threads| threads.count).sum();
        self.blocked() < BLOCKED_MAX && count + self.fresh_count() <= HANDLER_THREADS_MAX
    }

    fn fresh_count(&self) -> usize {
        self.0.at_once + 1 + self.0.reserve
    }

    /// Returns the current threads, and makes the first ones.
    pub(crate) fn current(&self) -> Result<Arc<Generation>, Error> {
        let mut all = self.all();
        if let Some(current) = all.last() {
            return Ok(Arc::clone(current));
        }
        // OK because what has no `make` begins with threads.
        let make = self.0.make.as_ref().expect("threads, or how to make them");
        let count = self.0.at_once + 1;
        let first = make(count).map_err(|e| Error::new("no threads can be started for the handlers").caused_by(e))?;
        let first = self.generation(first, count);
        all.push(Arc::clone(&first));
        Ok(first)
    }

    /// Makes one of the threads of each runtime poll timers and sockets: those that handlers opened on others before are in use, too.
    pub(crate) fn tend(&self) {
        self.all().iter().for_each(|threads| threads.tend());
    }

    /// Returns threads that are free, in place of these; `None` where there are none, and no more can be started. Others that are there
    /// already, and have threads enough, come first; those that have fewer come when no more can be made.
    pub(crate) fn instead_of(&self, blocked: &Arc<Generation>) -> Option<Arc<Generation>> {
        let mut all = self.all();
        let (current, others) = all.split_last()?;
        if !Arc::ptr_eq(current, blocked) {
            return Some(Arc::clone(current));
        }
        let make = self.0.make.as_ref()?;
        let usable = others.iter().enumerate().filter(|(_, threads)| !threads.is_stalled());
        let best = usable.map(|(index, threads)| (threads.free(), index)).max();
        // One thread is left for timers and sockets.
        let with_more_than = |free: usize| best.filter(|best| best.0 > free).map(|(_, index)| index);
        let instead = match with_more_than(self.0.at_once) {
            Some(index) => Some(all.remove(index)),
            None => self.fresh(make, &all).or_else(|| with_more_than(1).map(|index| all.remove(index))),
        };
        let (runtimes, blocked) = (all.len(), self.blocked());
        let Some(instead) = instead else {
            tracing::error!(
                runtimes,
                blocked,
                "handlers block their threads, and no more threads are started for others"
            );
            return None;
        };
        tracing::warn!(runtimes, blocked, "handlers block their threads: those that start from now on get others");
        all.push(Arc::clone(&instead));
        Some(instead)
    }

    fn fresh(&self, make: &Make, all: &[Arc<Generation>]) -> Option<Arc<Generation>> {
        let count = self.fresh_count();
        match self.may_grow(all).then(|| make(count))? {
            Ok(threads) => Some(self.generation(threads, count)),
            Err(error) => {
                tracing::error!(error = %Chain(&error), "no fresh threads can be started for the handlers");
                None
            }
        }
    }
}

impl fmt::Debug for HandlerThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerThreads").field("blocked", &self.0.blocked).finish_non_exhaustive()
    }
}

/// One set of threads. Each handler holds it that runs on it, or was left behind there.
pub(crate) struct Generation {
    threads: Threads,
    /// How many threads those are.
    count: usize,
    began: Instant,
    /// When its threads were last made to poll their timers, in milliseconds since it began.
    tended_ms: AtomicU64,
    /// How often that was since one of them last did.
    unanswered: Arc<AtomicUsize>,
    /// As of all threads.
    blocked: Arc<AtomicUsize>,
}

impl Generation {
    pub(crate) fn spawn(&self, task: HandlerTask) -> JoinHandle<()> {
        self.threads.spawn(task)
    }

    /// Returns how many of its threads have no handler.
    fn free(self: &Arc<Self>) -> usize {
        // It is in the list of all, too.
        self.count.saturating_sub(Arc::strong_count(self) - 1)
    }

    /// Returns whether all its threads are blocked: by handlers, or by what those spawned, which is not counted.
    fn is_stalled(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) >= UNANSWERED_MAX
    }

    /// Makes one of the threads poll timers and sockets, if none was made to recently.
    ///
    /// In Tokio one thread at a time waits for them. If the handler that it then polls blocks it, no other thread takes its
    /// place until it is woken, by a new task: without one, all other handlers would wait as well.
    fn tend(&self) {
        // OK because a process does not last 2^64 ms.
        let now = self.began.elapsed().as_millis() as u64;
        let last = self.tended_ms.load(Ordering::Relaxed);
        // Where all are blocked, the next one that is free runs the tasks that wait.
        let due = now >= last + THREADS_LOOK_MS / 2 && !self.is_stalled();
        if due && self.tended_ms.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            let unanswered = Arc::clone(&self.unanswered);
            drop(self.threads.spawn(Box::pin(async move { unanswered.store(0, Ordering::Relaxed) })));
        }
    }
}

/// A handler that was left behind, until its thread drops it.
pub(crate) struct LeftBehind(Arc<Generation>);

impl LeftBehind {
    pub(crate) fn on(generation: &Arc<Generation>) -> Self {
        generation.blocked.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(generation))
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        self.0.blocked.fetch_sub(1, Ordering::Relaxed);
    }
}
