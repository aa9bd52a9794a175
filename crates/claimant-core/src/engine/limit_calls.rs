//! What one party asks of the store for the slots of its limit, and what it waits for: a batch, or a worker.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::asker::Asker;
use super::shared_limit::{SharedLimit, now};
use crate::clock::Clock;
use crate::protocol::slots::{LimitSlots, Now, SlotRequest};

pub(crate) struct LimitCalls<'a> {
    pub(crate) limit: &'a SharedLimit,
    /// Its number among those that use the limit.
    pub(crate) user: u64,
    clock: &'a dyn Clock,
    /// What is asked of the store.
    calls: FuturesUnordered<BoxFuture<'a, ()>>,
    /// A change of what the process holds, made by any invocation of it.
    changed: Option<BoxFuture<'a, ()>>,
    /// When there may be something to be done.
    wake_at: Option<Instant>,
    /// Where this process begins to look for a slot.
    seed: u64,
}

impl Drop for LimitCalls<'_> {
    fn drop(&mut self) {
        self.limit.with_users(|users| users.leave(self.user));
        self.limit.tell();
    }
}

impl<'a> LimitCalls<'a> {
    pub(crate) fn new(limit: &'a SharedLimit, clock: &'a dyn Clock, seed: u64) -> Self {
        let user = limit.with_users(|users| users.enter());
        Self { user, limit, clock, calls: FuturesUnordered::new(), changed: None, wake_at: None, seed }
    }

    pub(crate) fn now(&self) -> Now {
        now(self.clock)
    }

    /// Returns how many messages may be taken for calls that begin within this time, while so many are taken that were not started yet:
    /// none while those are more than half of what can start soon, so that requests go together.
    pub(crate) fn room(&self, unstarted: usize, ahead: Duration) -> usize {
        let soon = self.limit.with(|slots| slots.soon(self.now(), ahead));
        if unstarted > soon / 2 { 0 } else { soon - unstarted }
    }

    /// Asks the store for what is needed where so many messages wait, and notes whether a change is waited for.
    pub(crate) fn go_on(&mut self, waiting: usize, asker: impl Fn() -> Asker<'a>, waits: impl FnOnce(&Self) -> bool) {
        // Before the state is read, so that no change is missed.
        let changed = Box::pin(self.limit.changed());
        self.wake_at = loop {
            match self.limit.next(self.now(), waiting, self.seed) {
                Ok(request) => self.ask(request, asker()),
                Err(at) => break at,
            }
        };
        self.changed = waits(self).then_some(changed);
    }

    fn ask(&self, request: SlotRequest, asker: Asker<'a>) {
        self.calls.push(Box::pin(self.limit.go(request, asker)));
    }

    /// Lets those slots go, if nothing else of the process may need them; returns whether there was one.
    pub(crate) fn leave(
        &self,
        which: impl FnOnce(&mut LimitSlots, Now) -> Vec<u32>,
        asker: impl Fn() -> Asker<'a>,
    ) -> bool {
        if !self.limit.with_users(|users| users.is_last()) {
            return false;
        }
        let now = self.now();
        let left = self.limit.with(|slots| which(slots, now));
        left.iter().for_each(|number| self.ask(SlotRequest::Release(*number), asker()));
        !left.is_empty()
    }

    /// Returns whether the store is asked for something.
    pub(crate) fn asks(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns whether messages wait for a slot or a call.
    pub(crate) fn waits(&self) -> bool {
        self.changed.is_some()
    }

    /// Returns when there may be something to be done; where messages wait, also for a call that can begin so long after it.
    pub(crate) fn wake_at(&self, ahead: Duration) -> Option<Instant> {
        if !self.waits() {
            return self.wake_at;
        }
        let call_at = self.limit.next_call_at(self.now(), self.user).and_then(|at| at.checked_sub(ahead));
        // Where a call can begin already, it waits for something else.
        let call_at = call_at.filter(|at| *at > Instant::now());
        self.wake_at.into_iter().chain(call_at).min()
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

    /// Waits for all answers of the store.
    pub(crate) async fn finish(&mut self) {
        while self.calls.next().await.is_some() {}
    }
}
