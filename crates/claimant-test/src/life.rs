//! Processes that can be killed, or made to stand still, at any of their steps.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::task::JoinHandle;

use crate::faulty::Call;

tokio::task_local! {
    /// The process that what is polled belongs to.
    static LIFE: Arc<Life>;
}

/// A step of a process that others can see. A process that dies at one has not taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A call of the store is sent.
    Request(Call),
    /// The answer to a call of the store, which has applied, arrives.
    Answer(Call),
    /// The handler goes on after an `await` that had to wait.
    HandlerGoesOn,
    /// A request to the queue is sent: to hide, delete or dead-letter messages.
    QueueRequest,
    /// The answer to a request to the queue, which has applied, arrives.
    QueueAnswer,
    /// The report on the batch is handed over.
    Report,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = |call: &Call| match call {
            Call::Claim => "a claim",
            Call::Renew => "a renewal",
            Call::Settle => "a settlement",
        };
        match self {
            Self::Request(of) => write!(f, "{} is sent", call(of)),
            Self::Answer(of) => write!(f, "the answer to {} arrives", call(of)),
            Self::HandlerGoesOn => f.write_str("the handler goes on after an await"),
            Self::QueueRequest => f.write_str("a request to the queue is sent"),
            Self::QueueAnswer => f.write_str("the queue's answer arrives"),
            Self::Report => f.write_str("the report is handed over"),
        }
    }
}

/// How a process ends at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Halt {
    /// It dies.
    Kill,
    /// It stands still until it is let go on.
    Stop,
}

/// The steps that all processes of a queue have taken, and the one that one of them does not take.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// Each with the number of the invocation that took it.
    taken: Vec<(usize, Step)>,
    invocations: usize,
    halt_at: Option<(usize, Halt)>,
    /// The index of the last step that was not taken at once, or not at all.
    halted_at: Option<usize>,
}

pub(crate) type SharedSteps = Arc<Mutex<Steps>>;

/// Lets a process end like this at its `number`th step from now on, which counts from 1.
pub(crate) fn halt_at(steps: &SharedSteps, number: usize, halt: Halt) {
    let mut steps = lock(steps);
    steps.halt_at = Some((steps.taken.len() + number, halt));
}

/// Takes back a halt that no process has come to, and returns whether there was one.
pub(crate) fn take_halt(steps: &SharedSteps) -> bool {
    lock(steps).halt_at.take().is_some()
}

/// Returns the steps taken so far.
pub(crate) fn taken(steps: &SharedSteps) -> Vec<(usize, Step)> {
    lock(steps).taken.clone()
}

/// Returns the index of the last step at which a process ended.
pub(crate) fn halted_at(steps: &SharedSteps) -> Option<usize> {
    lock(steps).halted_at
}

/// One process, while it works on one batch.
#[derive(Debug)]
pub(crate) struct Life {
    steps: SharedSteps,
    number: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    halted: Option<Halt>,
    waiting: Vec<Waker>,
}

impl Life {
    pub(crate) fn new(steps: &SharedSteps) -> Arc<Self> {
        let mut shared = lock(steps);
        shared.invocations += 1;
        Arc::new(Self { steps: Arc::clone(steps), number: shared.invocations, state: Mutex::default() })
    }

    /// Runs what the process does.
    pub(crate) async fn scope<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        LIFE.scope(Arc::clone(self), work).await
    }

    /// Waits until the process ends at a step, and returns how.
    pub(crate) async fn halted(&self) -> Halt {
        poll_fn(|cx| {
            let mut state = lock(&self.state);
            match state.halted {
                Some(halt) => Poll::Ready(halt),
                None => {
                    state.waiting.push(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Lets a process go on that stands still.
    pub(crate) fn go_on(&self) {
        let mut state = lock(&self.state);
        state.halted = None;
        state.waiting.drain(..).for_each(Waker::wake);
    }

    /// Comes to a step; the process may end at it.
    fn reach(&self, step: Step) {
        let mut steps = lock(&self.steps);
        steps.taken.push((self.number, step));
        let number = steps.taken.len();
        if let Some((_, halt)) = steps.halt_at.take_if(|(at, _)| *at == number) {
            steps.halted_at = Some(number - 1);
            let mut state = lock(&self.state);
            state.halted = Some(halt);
            state.waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// Returns whether the process runs; if not, the task is woken once it does.
    fn runs(&self, cx: &Context<'_>) -> bool {
        let mut state = lock(&self.state);
        if state.halted.is_some() {
            state.waiting.push(cx.waker().clone());
        }
        state.halted.is_none()
    }

    /// Takes a step, or never returns.
    async fn step(&self, step: Step) {
        self.reach(step);
        poll_fn(|cx| if self.runs(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// Takes a step of the process that this is polled in, if it is one.
pub(crate) async fn step(step: Step) {
    if let Ok(life) = LIFE.try_with(Arc::clone) {
        life.step(step).await;
    }
}

/// Starts a handler's task as part of the process that starts it.
pub(crate) fn spawn(mut task: Pin<Box<dyn Future<Output = ()> + Send>>) -> JoinHandle<()> {
    let Ok(life) = LIFE.try_with(Arc::clone) else { return tokio::spawn(task) };
    let mut waited = false;
    tokio::spawn(poll_fn(move |cx| {
        if std::mem::take(&mut waited) {
            life.reach(Step::HandlerGoesOn);
        }
        if !life.runs(cx) {
            return Poll::Pending;
        }
        let polled = task.as_mut().poll(cx);
        waited = polled.is_pending();
        polled
    }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
