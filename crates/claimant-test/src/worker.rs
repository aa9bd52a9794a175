//! What works on the messages of a queue: invocations, one after the other or at the same time.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{InvocationTime, Message, Report, Router};

use crate::backlog::{Backlog, End};
use crate::clock::MovableClock;
use crate::life::{self, Halt, Life, SharedSteps, Step};
use crate::receiver::Receiver;
use crate::records::Records;

/// How many of an invocation's timeouts a message stays hidden whose invocation has not reported on it.
const HIDDEN_TIMEOUTS: u32 = 6;

/// So many invocations empty any queue of a test, unless a message comes back for ever.
const INVOCATIONS_MAX: usize = 10_000;

/// The consumers, and the queue that they work for.
pub(crate) struct Worker {
    pub(crate) router: Router,
    pub(crate) clock: MovableClock,
    pub(crate) steps: SharedSteps,
    pub(crate) backlog: Arc<Mutex<Backlog>>,
    pub(crate) timeout: Duration,
    pub(crate) receives_max: u32,
    /// Whether there is a dead-letter queue.
    pub(crate) dead_letters: bool,
    pub(crate) records: Records,
}

/// One invocation that has begun.
pub(crate) struct Invocation<'a> {
    life: Arc<Life>,
    batch: Vec<usize>,
    running: Pin<Box<dyn Future<Output = Report> + Send + 'a>>,
}

impl Worker {
    pub(crate) fn backlog(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn receiver(&self, batch: Vec<usize>) -> Receiver {
        let (backlog, clock) = (Arc::clone(&self.backlog), self.clock.clone());
        Receiver { backlog, clock, dead_letters: self.dead_letters, batch }
    }

    pub(crate) fn time(&self) -> InvocationTime {
        let now = self.router.now();
        InvocationTime::new(now, now.plus(self.timeout), Duration::from_millis(MARGIN_DEFAULT_MS))
    }

    /// Works until the queue is empty, each batch once or twice at the same time, and returns an invocation that stands still.
    pub(crate) async fn work_in(&self, batch_max: usize, twice: bool) -> Option<Invocation<'_>> {
        let mut stopped = None;
        for _ in 0..INVOCATIONS_MAX {
            let now = self.router.now();
            let batch = self.backlog().receive(batch_max, now, self.timeout * HIDDEN_TIMEOUTS, self.receives_max);
            if batch.is_empty() {
                let Some(at) = self.backlog().next_visible_at(now) else { return stopped };
                self.clock.advance(at.since(now));
            } else if twice {
                let [one, other] = [self.begin(batch.clone()), self.begin(batch.clone())];
                let _ = tokio::join!(self.run(one), self.run(other));
                self.check(&batch).await;
            } else {
                stopped = self.run(self.begin(batch.clone())).await.or(stopped);
                self.check(&batch).await;
            }
        }
        panic!("the queue is not empty after {INVOCATIONS_MAX} invocations");
    }

    fn begin(&self, indexes: Vec<usize>) -> Invocation<'_> {
        let batch: Vec<Message> = indexes.iter().map(|index| self.backlog().all[*index].message.clone()).collect();
        let (life, time) = (Life::new(&self.steps), self.time());
        let (own, queue) = (Arc::clone(&life), self.receiver(indexes.clone()));
        let work = async move {
            let report = self.router.process(&batch, time, &queue).await.all().clone();
            life::step(Step::Report).await;
            report
        };
        Invocation { life, batch: indexes, running: Box::pin(async move { own.scope(work).await }) }
    }

    /// Runs an invocation, and applies its report. Returns it where it stands still; one that dies is dropped.
    async fn run<'a>(&self, mut invocation: Invocation<'a>) -> Option<Invocation<'a>> {
        let report = tokio::select! {
            biased;
            halt = invocation.life.halted() => return (halt == Halt::Stop).then_some(invocation),
            report = &mut invocation.running => report,
        };
        self.apply(&invocation.batch, &report);
        None
    }

    /// Notes which of these messages have left the queue as done and are not: now, since others may do them later.
    async fn check(&self, batch: &[usize]) {
        for index in batch {
            let Some(id) = self.backlog().done(*index) else { continue };
            if let Some(why) = self.records.undone(&id, self.router.now()).await {
                self.backlog().all[*index].undone.get_or_insert(why);
            }
        }
    }

    /// Lets an invocation go on whose messages others have done meanwhile.
    pub(crate) async fn go_on(&self, invocation: Invocation<'_>, scenario: &str) {
        invocation.life.go_on();
        let batch = invocation.batch.clone();
        let report = invocation.running.await;
        for (index, entry) in batch.into_iter().zip(report.entries()) {
            let queued = self.backlog().all[index].clone();
            let done = queued.end == Some(End::Done) || !matches!(entry.outcome.word(), "completed" | "duplicate");
            assert!(
                done,
                "{scenario}: the process reports a message as done that is not: {}",
                entry.message_id.as_str()
            );
        }
    }

    fn apply(&self, batch: &[usize], report: &Report) {
        assert_eq!(report.entries().len(), batch.len(), "one outcome for each message");
        let now = self.router.now();
        for (index, entry) in batch.iter().zip(report.entries()) {
            self.backlog().report(*index, entry, now);
        }
    }
}
