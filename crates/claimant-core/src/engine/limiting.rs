//! The limit of a batch: keys are claimed and handlers started as the slots allow that this process holds.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::context::BatchContext;
use super::shared_limit::{Permit, SharedLimit, now};
use super::slots::SlotQueue;
use crate::limits::LIMIT_AHEAD_MS;
use crate::protocol::slots::{Now, Step};

/// Keys are claimed for calls that begin within this time.
const AHEAD: Duration = Duration::from_millis(LIMIT_AHEAD_MS);

/// What a handler needs to start: a slot of the process, and a call within the limit.
pub(crate) struct Starts<'a> {
    pub(crate) slots: SlotQueue<'a>,
    pub(crate) limit: Limiting<'a>,
}

impl<'a> Starts<'a> {
    pub(crate) fn new(cx: BatchContext<'a>, seed: u64) -> Self {
        Self { slots: SlotQueue::new(&cx.shared.slots), limit: Limiting::new(cx, seed) }
    }
}

pub(crate) struct Limiting<'a> {
    cx: BatchContext<'a>,
    limit: Option<&'a Arc<SharedLimit>>,
    /// What is asked of the store.
    calls: FuturesUnordered<BoxFuture<'a, ()>>,
    /// A change of what the process holds, by whichever invocation.
    changed: Option<BoxFuture<'a, ()>>,
    /// When there may be something to be done.
    wake_at: Option<Instant>,
    /// Where this process begins to look for a slot: spread by message.
    seed: u64,
}

impl<'a> Limiting<'a> {
    pub(crate) fn new(cx: BatchContext<'a>, seed: u64) -> Self {
        let limit = cx.shared.slots.limit.as_ref();
        Self { cx, limit, calls: FuturesUnordered::new(), changed: None, wake_at: None, seed }
    }

    fn now(&self) -> Now {
        now(self.cx.shared.clock.as_ref())
    }

    /// Returns how many keys may be claimed, while so many are claimed whose handlers were not started yet: none while those are
    /// more than half of what can start soon, so that claims go together.
    pub(crate) fn room(&self, unstarted: usize) -> usize {
        let Some(limit) = self.limit else { return usize::MAX };
        let soon = limit.with(|slots| slots.soon(self.now(), self.ahead()));
        if unstarted > soon / 2 { 0 } else { soon - unstarted }
    }

    /// Returns how much before its call a key is claimed.
    fn ahead(&self) -> Duration {
        if self.cx.shared.claims_early() { AHEAD } else { Duration::ZERO }
    }

    /// Begins a call, if one may begin now.
    pub(crate) fn begin(&self) -> Option<Option<Permit>> {
        self.limit.map_or(Some(None), |limit| limit.begin(self.now()))
    }

    /// Asks the store for what is needed for messages that wait for their claims, and claims that wait for their calls.
    pub(crate) fn go_on(&mut self, unclaimed: usize, unstarted: usize) {
        let Some(limit) = self.limit else { return };
        // Before the state is read, so that no change is missed.
        let changed = Box::pin(limit.changed());
        let waiting = if self.cx.fits() { unclaimed + unstarted } else { 0 };
        if waiting == 0 && unclaimed + unstarted > 0 {
            limit.with(|slots| slots.unserved());
        }
        self.wake_at = loop {
            match limit.next(self.now(), waiting, self.seed) {
                Ok(step) => self.ask(limit, step),
                Err(at) => break at,
            }
        };
        let waits = waiting > 0 && (unstarted > 0 || self.room(0) == 0);
        self.changed = waits.then_some(changed);
    }

    fn ask(&self, limit: &'a SharedLimit, step: Step) {
        let asker = self.cx.asker(self.cx.schedule.return_by);
        self.calls.push(Box::pin(limit.go(step, asker)));
    }

    /// Lets slots go where nothing else of the process needs them; returns whether there was one.
    pub(crate) fn leave(&mut self) -> bool {
        let Some(limit) = self.limit.filter(|_| self.cx.shared.slots.invocations() == 1) else { return false };
        let now = self.now();
        let left = limit.with(|slots| slots.leave(now));
        left.iter().for_each(|number| self.ask(limit, Step::Release(*number)));
        !left.is_empty()
    }

    /// Returns whether neither the store is asked for anything, nor messages wait for a slot or a call.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.changed.is_none()
    }

    /// Returns when there may be something to be done, where so many claims wait for their calls.
    pub(crate) fn wake_at(&self, unstarted: usize) -> Option<Instant> {
        let limit = self.limit?;
        if self.changed.is_none() {
            return self.wake_at;
        }
        let early = if unstarted > 0 { Duration::ZERO } else { self.ahead() };
        // Where a call can begin already, it waits for something else.
        let call_at = limit.with(|slots| slots.next_call_at(self.now())).and_then(|at| at.checked_sub(early));
        let call_at = call_at.filter(|at| *at > Instant::now());
        [self.wake_at, call_at, Some(self.cx.slot_by())].into_iter().flatten().min()
    }

    /// Waits for an answer of the store, or for a change; for ever where there will be none. Cancel safe.
    pub(crate) async fn next(&mut self) {
        let changed = async {
            match &mut self.changed {
                Some(changed) => changed.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(()) = self.calls.next() => {}
            () = changed => {}
        }
    }
}
