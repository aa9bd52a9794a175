//! The threads that handlers run on: a thread that a handler blocks cannot be taken back, so all of them are replaced.
//!
//! ```text
//! handlers ──▶ current runtime ──(a handler blocks a thread)──▶ fresh runtime for all that start from now on
//!                    └── stays for those that run on it; shut down in the background when they are gone
//! ```
//!
//! What is left of a runtime that was shut down is the blocked threads alone, one for each handler that does not return.
//! They are counted, and with [`BLOCKED_MAX`] of them there are no fresh runtimes any more.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::error::{Chain, Error};
use crate::limits::{BLOCKED_MAX, RUNTIMES_MAX, THREADS_LOOK_MS};

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

type Make = Box<dyn Fn() -> io::Result<Threads> + Send + Sync>;

/// Threads of their own for handlers, replaced when handlers block them. Clones share them.
#[derive(Clone)]
pub struct HandlerThreads(Arc<Shared>);

struct Shared {
    make: Option<Make>,
    /// `None` until they are first needed.
    current: Mutex<Option<Arc<Generation>>>,
    counts: Arc<Counts>,
}

/// Counts the threads in use.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Runtimes that are not shut down.
    runtimes: AtomicUsize,
    /// Handlers that were left behind and have not returned: each blocks a thread.
    blocked: AtomicUsize,
}

impl Counts {
    /// Counts a handler that was left behind as returned.
    pub(crate) fn returned(&self) {
        self.blocked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl HandlerThreads {
    /// Makes the first runtime with `make`, and later ones when handlers have blocked threads of the one before. A runtime
    /// should have as many threads as handlers run at once, so that one that blocks its thread holds up no other.
    ///
    /// # Errors
    /// When the first runtime cannot be made.
    pub fn new(make: impl Fn() -> io::Result<Runtime> + Send + Sync + 'static) -> Result<Self, Error> {
        let threads = Self::later(make);
        threads.start().map(|()| threads)
    }

    /// Does as [`new`](Self::new), and makes the first runtime at the first [`start`](Self::start), or with the first handler: for
    /// programs that have something to do before they have a message.
    #[must_use]
    pub fn later(make: impl Fn() -> io::Result<Runtime> + Send + Sync + 'static) -> Self {
        Self::of(None, Some(Box::new(move || Ok(Threads::Ours(Some(make()?))))))
    }

    /// Uses runtimes that the caller drives and ends; otherwise as [`new`](Self::new).
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn on_handles(make: impl Fn() -> io::Result<Handle> + Send + Sync + 'static) -> Result<Self, Error> {
        let threads = |handle: Handle| Threads::Spawned(Box::new(move |task| handle.spawn(task)));
        let threads = Self::of(None, Some(Box::new(move || make().map(threads))));
        threads.start().map(|()| threads)
    }

    /// Starts each handler's task with `spawn`, which can run it wherever and however it likes, and puts no fresh threads in place
    /// of blocked ones: for tests that stop handlers at one of their steps.
    #[must_use]
    pub fn spawned_by(spawn: impl Fn(BoxFuture<'static, ()>) -> JoinHandle<()> + Send + Sync + 'static) -> Self {
        Self::of(Some(Threads::Spawned(Box::new(spawn))), None)
    }

    fn of(first: Option<Threads>, make: Option<Make>) -> Self {
        let counts = Arc::default();
        let current = Mutex::new(first.map(|threads| Generation::of(threads, &counts)));
        Self(Arc::new(Shared { make, current, counts }))
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
        self.0.counts.blocked.load(Ordering::Relaxed)
    }

    /// Returns whether so many threads are blocked that they are not replaced any more: the process should end.
    #[must_use]
    pub fn are_exhausted(&self) -> bool {
        self.blocked() >= BLOCKED_MAX
    }

    /// Returns the current threads, and makes the first ones.
    pub(crate) fn current(&self) -> Result<Arc<Generation>, Error> {
        let mut current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = &*current {
            return Ok(Arc::clone(current));
        }
        // OK because what has no `make` begins with threads.
        let make = self.0.make.as_ref().expect("threads, or how to make them");
        let first = make().map_err(|e| Error::new("no threads can be started for the handlers").caused_by(e))?;
        Ok(Arc::clone(current.insert(Generation::of(first, &self.0.counts))))
    }

    /// Returns threads that no handler has blocked yet, in place of these; `None` where no more can be started.
    pub(crate) fn instead_of(&self, blocked: &Arc<Generation>) -> Option<Arc<Generation>> {
        let mut current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = current.as_ref().filter(|current| !Arc::ptr_eq(current, blocked)) {
            return Some(Arc::clone(current));
        }
        let make = self.0.make.as_ref()?;
        let (runtimes, blocked) = (self.0.counts.runtimes.load(Ordering::Relaxed), self.blocked());
        if runtimes >= RUNTIMES_MAX || self.are_exhausted() {
            tracing::error!(
                runtimes,
                blocked,
                "handlers block their threads, and no more threads are started for others"
            );
            return None;
        }
        match make() {
            Ok(threads) => {
                let fresh = Generation::of(threads, &self.0.counts);
                tracing::warn!(
                    runtimes,
                    blocked,
                    "handlers block their threads: those that start from now on get fresh ones"
                );
                *current = Some(Arc::clone(&fresh));
                Some(fresh)
            }
            Err(error) => {
                tracing::error!(runtimes, blocked, error = %Chain(&error), "handlers block their threads, and no fresh ones can be started");
                None
            }
        }
    }
}

impl fmt::Debug for HandlerThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerThreads").field("counts", &self.0.counts).finish_non_exhaustive()
    }
}

/// One set of threads. It ends when it is not the current one any more and no handler runs on it.
pub(crate) struct Generation {
    threads: Threads,
    began: Instant,
    /// When its threads were last made to poll their timers, in milliseconds since it began.
    tended_ms: AtomicU64,
    counts: Arc<Counts>,
}

impl Generation {
    fn of(threads: Threads, counts: &Arc<Counts>) -> Arc<Self> {
        counts.runtimes.fetch_add(1, Ordering::Relaxed);
        let (began, counts) = (Instant::now(), Arc::clone(counts));
        Arc::new(Self { threads, began, tended_ms: AtomicU64::new(0), counts })
    }

    pub(crate) fn spawn(&self, task: HandlerTask) -> JoinHandle<()> {
        self.threads.spawn(task)
    }

    /// Counts a handler that was left behind, until it has returned.
    pub(crate) fn left_behind(&self) -> Arc<Counts> {
        self.counts.blocked.fetch_add(1, Ordering::Relaxed);
        Arc::clone(&self.counts)
    }

    /// Makes one of the threads poll timers and sockets, if none was made to recently.
    ///
    /// In Tokio one thread at a time waits for them. If the handler that it then polls blocks it, no other thread takes its
    /// place until it is woken, by a new task: without one, all other handlers would wait as well.
    pub(crate) fn tend(&self) {
        // OK because a process does not last 2^64 ms.
        let now = self.began.elapsed().as_millis() as u64;
        let last = self.tended_ms.load(Ordering::Relaxed);
        let due = now >= last + THREADS_LOOK_MS / 2;
        if due && self.tended_ms.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            drop(self.threads.spawn(Box::pin(std::future::ready(()))));
        }
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        self.counts.runtimes.fetch_sub(1, Ordering::Relaxed);
    }
}
