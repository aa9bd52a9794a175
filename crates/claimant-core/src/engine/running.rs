//! Running: handlers in the slots that are free.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::context::BatchContext;
use super::run::{Run, RunEnd};
use super::slots::{Held, SlotQueue};
use super::work::{Claimed, Work, add};
use crate::claim::Claim;

/// Work whose handler was run; the payload went to the handler.
pub(crate) struct Ran {
    pub(crate) work: Work<()>,
    pub(crate) claim: Claim,
    pub(crate) held: Held,
    pub(crate) end: RunEnd,
    pub(crate) took: Duration,
}

pub(crate) struct Running<'a, T> {
    cx: BatchContext<'a, T>,
    /// Claims that wait for a slot.
    ready: VecDeque<Claimed<T>>,
    runs: FuturesUnordered<BoxFuture<'a, Ran>>,
    /// The longest that a handler took.
    longest: Duration,
}

impl<'a, T: Send + 'static> Running<'a, T> {
    pub(crate) fn new(cx: BatchContext<'a, T>) -> Self {
        Self { cx, ready: VecDeque::new(), runs: FuturesUnordered::new(), longest: Duration::ZERO }
    }

    pub(crate) fn push(&mut self, claimed: Claimed<T>) {
        self.ready.push_back(claimed);
    }

    /// Returns how many claims are here: their handlers run, or wait for a slot.
    pub(crate) fn len(&self) -> usize {
        self.ready.len() + self.runs.len()
    }

    /// Returns whether no claim waits for a slot.
    pub(crate) fn none_waits(&self) -> bool {
        self.ready.is_empty()
    }

    /// Returns whether a claim that was taken ahead of the slots waits for one.
    pub(crate) fn waits_for_slot(&self) -> bool {
        self.ready.iter().any(|claimed| !claimed.held.has_slot())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Starts handlers in free slots, until `max` run. The claims whose handlers no longer fit into the time come back.
    pub(crate) fn start(&mut self, max: usize, slots: &mut SlotQueue<'a>) -> Vec<Claimed<T>> {
        if !self.cx.fits() {
            return self.ready.drain(..).collect();
        }
        while self.runs.len() < max {
            let Some(mut claimed) = self.ready.pop_front() else { break };
            if !claimed.held.has_slot() {
                let Some(held) = slots.take(self.cx.slot_by()) else {
                    self.ready.push_front(claimed);
                    break;
                };
                claimed.held = held;
            }
            self.runs.push(Box::pin(run(self.cx, claimed)));
        }
        Vec::new()
    }

    /// Waits until a handler ends; `None` where none runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Ran> {
        let mut ran = self.runs.next().await?;
        ran.held.free_slot();
        self.longest = self.longest.max(ran.took);
        add(&mut ran.work.delivery.details.handle, ran.took);
        if let RunEnd::Returned(_) = ran.end {
            self.cx.shared.durations.learn(ran.took);
        }
        Some(ran)
    }
}

async fn run<'a, T: Send + 'static>(cx: BatchContext<'a, T>, claimed: Claimed<T>) -> Ran {
    let Claimed { work, mut claim, held } = claimed;
    let (work, payload) = work.split();
    let start = Instant::now();
    let end = Run { cx, delivery: &work.delivery, key: &work.identity.key }.to_end(&mut claim, payload).await;
    Ran { work, claim, held, end, took: start.elapsed() }
}
