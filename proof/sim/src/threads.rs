//! Real threads for handlers, which they can block for real.
//!
//! Each has a runtime of its own and runs only in its turn, while the simulation's thread waits for it: when that has nothing
//! left to do at this moment, before it lets time go on. A handler that blocks gives the turn back and stays where it is. So
//! threads are real, and the same seed gives the same run all the same.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::task::yield_now;

thread_local! {
    /// The thread that this code runs on, if it is one of handlers.
    static MINE: RefCell<Option<Arc<HandlerThread>>> = const { RefCell::new(None) };
}

/// In one round a runtime runs some 60 tasks: more than there are handlers.
const ROUNDS: usize = 3;

/// The threads of a run, in the order in which they were started.
#[derive(Default)]
pub struct Threads(Mutex<Vec<(Arc<HandlerThread>, JoinHandle<()>)>>);

/// One thread with its runtime.
pub struct HandlerThread {
    /// Where handlers are spawned.
    pub handlers: Handle,
    turn: Mutex<Turn>,
    changed: Condvar,
    /// Whether its last turn began without new work, so that nothing was left over at its end.
    settled: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The simulation's thread goes on, and this one waits for work.
    Simulation,
    /// This thread goes on.
    Handlers,
    /// The simulation's thread goes on, and a handler blocks this one.
    Blocked,
    /// It is no longer blocked, and has not had its turn yet.
    Released,
    /// The run is over.
    Over,
}

impl Threads {
    fn all(&self) -> MutexGuard<'_, Vec<(Arc<HandlerThread>, JoinHandle<()>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more.
    ///
    /// # Panics
    /// When there is none to be had.
    pub fn start(&self) -> Arc<HandlerThread> {
        // Without timers: those of the simulation are used, which are on virtual time.
        let runtime = Builder::new_current_thread().build().expect("a runtime without I/O and time needs nothing");
        let (handlers, turn) = (runtime.handle().clone(), Mutex::new(Turn::Simulation));
        let thread =
            Arc::new(HandlerThread { handlers, turn, changed: Condvar::new(), settled: AtomicBool::new(true) });
        let mine = Arc::clone(&thread);
        let work = move || {
            MINE.set(Some(Arc::clone(&mine)));
            while mine.wait_for(|turn| turn == Turn::Handlers) == Turn::Handlers {
                runtime.block_on(async {
                    for _ in 0..ROUNDS {
                        yield_now().await;
                    }
                });
                mine.hand_over(Turn::Handlers, Turn::Simulation);
            }
        };
        let started = std::thread::Builder::new().name("handlers".to_owned()).spawn(work);
        self.all().push((Arc::clone(&thread), started.expect("a thread can be started")));
        thread
    }

    /// Lets each run until it has nothing to do, or is blocked.
    pub fn let_run(&self) {
        self.all().iter().for_each(|(thread, _)| thread.let_run());
    }

    /// Ends them all, blocked ones too.
    pub fn end(&self) {
        for (thread, started) in self.all().drain(..) {
            thread.set(Turn::Over);
            // What it panicked of was shown.
            let _ = started.join();
        }
    }
}

impl HandlerThread {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, turn: Turn) {
        *self.turn() = turn;
        self.changed.notify_all();
    }

    /// Gives the turn on, unless the run is over.
    fn hand_over(&self, from: Turn, to: Turn) {
        let mut turn = self.turn();
        if *turn == from {
            *turn = to;
        }
        // Whoever wakes up needs the lock.
        drop(turn);
        self.changed.notify_all();
    }

    /// Waits for such a turn, or the end.
    fn wait_for(&self, wanted: impl Fn(Turn) -> bool) -> Turn {
        let waits = |turn: &mut Turn| !wanted(*turn) && *turn != Turn::Over;
        *self.changed.wait_while(self.turn(), waits).unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it has anything to do. What others spawn and wake on its runtime is queued where they see it; what its own tasks
    /// wake is not, but that runs in the same turn or in the next.
    fn has_work(&self) -> bool {
        match *self.turn() {
            Turn::Simulation => {
                let nothing_new = self.handlers.metrics().global_queue_depth() == 0;
                let settled = self.settled.swap(nothing_new, Ordering::Relaxed);
                !(nothing_new && settled)
            }
            Turn::Released => {
                self.settled.store(false, Ordering::Relaxed);
                true
            }
            Turn::Handlers | Turn::Blocked | Turn::Over => false,
        }
    }

    fn let_run(&self) {
        if self.has_work() {
            self.set(Turn::Handlers);
            self.wait_for(|turn| turn != Turn::Handlers);
        }
    }

    /// Blocks the thread of the handler that calls this for so long of the simulation's time; whether the run still goes on
    /// then, and `None` where it has no thread. To be called in the context of the simulation's runtime.
    pub fn block(for_ms: u64) -> Option<bool> {
        let mine = MINE.with_borrow(Clone::clone)?;
        let thread = Arc::clone(&mine);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(for_ms)).await;
            thread.hand_over(Turn::Blocked, Turn::Released);
        });
        mine.hand_over(Turn::Handlers, Turn::Blocked);
        Some(mine.wait_for(|turn| turn == Turn::Handlers) == Turn::Handlers)
    }
}
