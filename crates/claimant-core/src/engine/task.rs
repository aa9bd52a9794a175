//! A handler's task: started once, on threads that may be blocked by others, and stopped if that can be.
//!
//! The run is in a slot that the task and the engine share. Whoever takes it out decides: a thread that polls it, or the
//! engine, which starts it elsewhere or stops it. So what never had a thread is known for certain never to have started.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;

use crate::error::Chain;
use crate::handler::RunFuture;
use crate::panics::{caught, let_go};
use crate::threads::{Generation, HandlerThreads, LeftBehind};

/// How a task ended.
#[derive(Debug)]
pub(crate) enum End<R> {
    Returned(R),
    Panicked,
    Stopped,
    /// No thread ever polled it, and none will.
    NeverStarted,
    /// It was told to stop, and still blocks its thread.
    StillRunning,
}

/// Where a run is.
enum Slot<R> {
    /// No thread has polled it yet.
    Waiting(RunFuture<R>),
    /// A thread polls it.
    Polled,
    /// It waits for something.
    Idle(RunFuture<R>),
    Returned(R),
    Panicked,
    /// It was taken out: it is not polled any more.
    Stopped,
}

/// What the task and the engine share.
struct Shared<R> {
    slot: Slot<R>,
    /// Counts it until its thread drops it, if no caller waits for it any longer.
    left_behind: Option<LeftBehind>,
}

type SharedSlot<R> = Arc<Mutex<Shared<R>>>;

fn lock<R>(slot: &SharedSlot<R>) -> MutexGuard<'_, Shared<R>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes out what is there: from here on it is stopped, unless it is put back.
fn take<R>(shared: &mut Shared<R>) -> Slot<R> {
    mem::replace(&mut shared.slot, Slot::Stopped)
}

/// A handler's task, stopped when this is dropped.
pub(crate) struct Task<R: Send + 'static> {
    slot: SharedSlot<R>,
    spawned: JoinHandle<()>,
    on: Option<(HandlerThreads, Arc<Generation>)>,
}

impl<R: Send + 'static> Task<R> {
    /// Starts a run on these threads, or without any on the runtime that calls this. Where there can be no threads, it has never
    /// started.
    pub(crate) fn start(run: RunFuture<R>, threads: Option<&HandlerThreads>) -> Self {
        let Some(threads) = threads else {
            let (slot, spawned) = spawn(run, None);
            return Self { slot, spawned, on: None };
        };
        match threads.current() {
            Ok(generation) => {
                let (slot, spawned) = spawn(run, Some(&generation));
                Self { slot, spawned, on: Some((threads.clone(), generation)) }
            }
            Err(error) => {
                tracing::error!(error = %Chain(&error), "a handler is not started");
                Self { slot: waiting(run), spawned: tokio::spawn(std::future::ready(())), on: None }
            }
        }
    }

    /// Waits until it ends by itself. Cancel safe.
    pub(crate) async fn ended(&mut self) -> End<R> {
        let joined = (&mut self.spawned).await;
        self.end(joined)
    }

    fn end(&self, joined: Result<(), JoinError>) -> End<R> {
        let slot = take(&mut lock(&self.slot));
        let joined = joined.map_err(|end| {
            let is_panic = end.is_panic();
            let_go(end);
            is_panic
        });
        match (slot, joined) {
            (Slot::Returned(returned), Ok(())) => End::Returned(returned),
            (Slot::Waiting(run), _) => {
                let_go(run);
                End::NeverStarted
            }
            // The latter: what a runtime of the user's has put around the task.
            (Slot::Panicked, _) | (_, Err(true)) => End::Panicked,
            _ => End::Stopped,
        }
    }

    /// Returns whether its threads can be replaced, so that it is worth looking at while it runs.
    pub(crate) fn is_movable(&self) -> bool {
        self.on.is_some()
    }

    /// Wakes the runtimes so that their timers fire even if a handler blocks the thread that drives them. Where this run has `waited` long for
    /// a thread, starts it on others, if there are any.
    pub(crate) fn look(&mut self, waited: bool) {
        let Some((threads, generation)) = &self.on else { return };
        threads.tend();
        if !waited || !matches!(lock(&self.slot).slot, Slot::Waiting(_)) {
            return;
        }
        let Some(others) = threads.instead_of(generation) else { return };
        let Some(run) = self.withdraw() else { return };
        let (slot, spawned) = spawn(run, Some(&others));
        mem::replace(&mut self.spawned, spawned).abort();
        self.slot = slot;
        self.on = self.on.take().map(|(threads, _)| (threads, others));
    }

    /// Takes the run back, if no thread has polled it: none will then.
    fn withdraw(&self) -> Option<RunFuture<R>> {
        let mut shared = lock(&self.slot);
        match take(&mut shared) {
            Slot::Waiting(run) => Some(run),
            other => {
                shared.slot = other;
                None
            }
        }
    }

    /// Stops it, and gives it this long to go; one that blocks its thread does not.
    pub(crate) async fn stop(mut self, grace: Duration) -> End<R> {
        if let Some(run) = self.withdraw() {
            let_go(run);
            return End::NeverStarted;
        }
        self.spawned.abort();
        match timeout(grace, &mut self.spawned).await {
            Ok(joined) => self.end(joined),
            Err(_) => self.give_up(),
        }
    }

    fn give_up(&self) -> End<R> {
        let mut shared = lock(&self.slot);
        match take(&mut shared) {
            Slot::Returned(returned) => End::Returned(returned),
            Slot::Panicked => End::Panicked,
            // Its own threads have had their time to drop it, and all of them are blocked. What was `Waiting` was withdrawn before.
            Slot::Idle(run) | Slot::Waiting(run) => {
                drop(shared);
                let_go(run);
                End::Stopped
            }
            Slot::Polled => {
                shared.slot = Slot::Polled;
                if let Some((threads, generation)) = &self.on {
                    shared.left_behind = Some(LeftBehind::on(generation));
                    drop(shared);
                    // It may be the one that waited for timers and sockets, and what handlers opened there is in use.
                    threads.tend();
                    // For all that start from now on. Where there are none, that is logged.
                    let _ = threads.instead_of(generation);
                }
                End::StillRunning
            }
            Slot::Stopped => End::Stopped,
        }
    }
}

impl<R: Send + 'static> Drop for Task<R> {
    fn drop(&mut self) {
        if let Some(run) = self.withdraw() {
            let_go(run);
        }
        self.spawned.abort();
    }
}

fn spawn<R: Send + 'static>(run: RunFuture<R>, on: Option<&Generation>) -> (SharedSlot<R>, JoinHandle<()>) {
    let slot = waiting(run);
    let task = Box::pin(Shell { slot: Arc::clone(&slot) });
    let spawned = match on {
        Some(threads) => threads.spawn(task),
        None => tokio::spawn(task),
    };
    (slot, spawned)
}

fn waiting<R>(run: RunFuture<R>) -> SharedSlot<R> {
    Arc::new(Mutex::new(Shared { slot: Slot::Waiting(run), left_behind: None }))
}

/// What the threads poll.
struct Shell<R> {
    slot: SharedSlot<R>,
}

impl<R> Future for Shell<R> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut shared = lock(&self.slot);
        let (Slot::Waiting(mut run) | Slot::Idle(mut run)) = take(&mut shared) else { return Poll::Ready(()) };
        shared.slot = Slot::Polled;
        drop(shared);
        let polled = caught(|| run.as_mut().poll(cx));
        if let Ok(Poll::Pending) = polled {
            lock(&self.slot).slot = Slot::Idle(run);
            return Poll::Pending;
        }
        // Before anybody learns that it has ended: what it holds, such as a transaction, goes back first. Unlike in `Caught`, a panic of
        // that counts: it is one of the handler, too.
        let dropped = caught(|| drop(run));
        lock(&self.slot).slot = match (polled, dropped) {
            (Ok(Poll::Ready(returned)), Ok(())) => Slot::Returned(returned),
            _ => Slot::Panicked,
        };
        Poll::Ready(())
    }
}

impl<R> Drop for Shell<R> {
    fn drop(&mut self) {
        let mut shared = lock(&self.slot);
        let slot = take(&mut shared);
        drop(shared.left_behind.take());
        match slot {
            // A runtime that ends drops tasks which no thread has polled: the engine is to see that.
            kept @ (Slot::Returned(_) | Slot::Panicked | Slot::Waiting(_)) => shared.slot = kept,
            left => {
                drop(shared);
                let_go(left);
            }
        }
    }
}
