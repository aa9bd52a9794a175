//! Processes that can be killed between any two polls, and stopped and continued.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use claimant_core::{Clock, Timestamp};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::history::{Event, InvocationNo};
use crate::scenario::Fault;
use crate::threads::HandlerThread;
use crate::world::World;

thread_local! {
    /// The invocation whose code runs at this moment: whoever asks the store or the queue is known by it.
    static CURRENT: Cell<Option<InvocationNo>> = const { Cell::new(None) };
}

/// The invocation whose code runs at this moment, if any.
#[must_use]
pub fn current() -> Option<InvocationNo> {
    CURRENT.get()
}

/// One process, from its start to its end.
pub struct Process {
    /// Which one, counted over the whole run.
    pub process_run: u32,
    /// Its place among those that run at once; its clock is that of the place.
    pub slot: usize,
    /// For how long each of its handlers blocks its thread, if that is planned.
    pub blocked_ms: Option<u64>,
    world: World,
    state: Mutex<State>,
    died: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    /// The thread that handlers get, where they have one.
    thread: Option<Arc<HandlerThread>>,
    dead: bool,
    retired: bool,
    frozen: bool,
    wakers: Vec<Waker>,
}

impl Process {
    /// A process that has just started.
    #[must_use]
    pub fn start(world: &World, slot: usize, blocked_ms: Option<u64>) -> Arc<Self> {
        let process_run = world.state().next_process_run();
        let (died, state) = (watch::Sender::new(false), Mutex::default());
        let process = Arc::new(Self { process_run, slot, blocked_ms, world: world.clone(), state, died });
        if blocked_ms.is_some() || world.scenario.function.threads {
            process.start_thread();
        }
        process
    }

    /// Starts a thread for the handlers to come; those of the one before stay there.
    pub fn start_thread(&self) -> Handle {
        let thread = self.world.threads.start();
        let handlers = thread.handlers.clone();
        self.state().thread = Some(thread);
        handlers
    }

    /// The thread that handlers get now, where they have one.
    #[must_use]
    pub fn thread(&self) -> Option<Arc<HandlerThread>> {
        self.state().thread.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.state().dead
    }

    /// Whether it gets no more invocations.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let state = self.state();
        state.dead || state.retired
    }

    /// Gives it no more invocations; it lives on.
    pub fn retire(&self) {
        self.state().retired = true;
    }

    /// Whether it is stopped.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.state().frozen
    }

    /// Ends it: nothing of it is polled again.
    pub fn kill(&self, why: &'static str) {
        if !std::mem::replace(&mut self.state().dead, true) {
            self.world.note(Event::Died { process_run: self.process_run, why });
            self.died.send_replace(true);
        }
    }

    /// Returns when it has ended.
    pub async fn died(&self) {
        // OK because the sender lives as long as this.
        let _ = self.died.subscribe().wait_for(|died| *died).await;
    }

    /// Stops it, for so long if that is known.
    pub fn freeze(self: &Arc<Self>, for_ms: Option<u64>) {
        if self.is_dead() || std::mem::replace(&mut self.state().frozen, true) {
            return;
        }
        self.world.note(Event::Frozen { process_run: self.process_run, idle: for_ms.is_none() });
        if let Some(ms) = for_ms {
            let process = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                process.thaw();
            });
        }
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        let wakers = {
            let mut state = self.state();
            if !std::mem::replace(&mut state.frozen, false) {
                return;
            }
            std::mem::take(&mut state.wakers)
        };
        if !self.is_dead() {
            self.world.note(Event::Thawed { process_run: self.process_run });
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether its code may run now; else `waker` is woken when it may.
    fn may_run(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        if state.frozen {
            state.wakers.push(waker.clone());
        }
        !state.dead && !state.frozen
    }
}

impl Clock for Process {
    fn now(&self) -> Timestamp {
        self.world.wall(self.slot)
    }
}

/// Code of a process: polled only while that runs.
pub struct Gated<F> {
    /// There until this is dropped.
    inner: Option<Pin<Box<F>>>,
    process: Arc<Process>,
    invocation: InvocationNo,
    /// Polls so far, where faults are planned between them.
    polls: Option<u32>,
}

impl<F: Future> Gated<F> {
    /// An invocation, with the faults that are planned for it.
    pub fn invocation(process: &Arc<Process>, invocation: InvocationNo, inner: F) -> Self {
        Self { inner: Some(Box::pin(inner)), process: Arc::clone(process), invocation, polls: Some(0) }
    }

    /// A handler.
    pub fn handler(process: &Arc<Process>, invocation: InvocationNo, inner: F) -> Self {
        Self { inner: Some(Box::pin(inner)), process: Arc::clone(process), invocation, polls: None }
    }

    /// Carries out what is planned before this poll.
    fn suffer(&mut self) {
        let Some(polls) = &mut self.polls else { return };
        let now = *polls;
        *polls += 1;
        let world = &self.process.world;
        if !world.state().faults {
            return;
        }
        let mine = self.invocation;
        for fault in &world.scenario.faults {
            match *fault {
                Fault::Kill { invocation, poll } if (invocation, poll) == (mine, now) => self.process.kill("killed"),
                Fault::Freeze { invocation, poll, for_ms } if (invocation, poll) == (mine, now) => {
                    self.process.freeze(Some(for_ms));
                }
                _ => {}
            }
        }
    }
}

impl<F: Future> Future for Gated<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // On a thread of the handlers, too, timers and the time are the simulation's.
        let runtime = self.process.world.runtime.clone();
        let _simulation = runtime.enter();
        if !self.process.may_run(cx.waker()) {
            return Poll::Pending;
        }
        self.suffer();
        if !self.process.may_run(cx.waker()) {
            return Poll::Pending;
        }
        let before = CURRENT.replace(Some(self.invocation));
        let Some(inner) = &mut self.inner else { return Poll::Pending };
        let polled = inner.as_mut().poll(cx);
        CURRENT.set(before);
        polled
    }
}

impl<F> Drop for Gated<F> {
    fn drop(&mut self) {
        let _simulation = self.process.world.runtime.enter();
        self.inner = None;
    }
}
