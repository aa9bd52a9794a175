//! What one party asks of the store for the slots of its limit, and what it waits for: a batch, or a worker.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::shared::{SharedLimit, now};
use crate::clock::Clock;
use crate::engine::asker::Asker;
use crate::protocol::slots::{LimitSlots, Now, SlotRequest};

/// What has no answer by then keeps its slots.
const LAST_LOOK: Duration = Duration::from_millis(300);

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
    /// When that was looked at.
    looked_at: Instant,
    /// How much before its call a key is claimed.
    ahead: Duration,
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
    pub(crate) fn new(limit: &'a SharedLimit, clock: &'a dyn Clock, seed: u64, ahead: Duration) -> Self {
        let user = limit.with_users(|users| users.enter(ahead));
        let (calls, changed, wake_at, looked_at) = (FuturesUnordered::new(), None, None, Instant::now());
        Self { user, limit, clock, calls, changed, wake_at, looked_at, ahead, seed }
    }

    pub(crate) fn now(&self) -> Now {
        now(self.clock)
    }

    /// Returns how many calls can begin soon, whoever has them.
    pub(crate) fn soon(&self) -> usize {
        self.limit.with(|slots| slots.soon(self.now(), self.ahead))
    }

    /// Returns how many messages may be taken, while so many are taken that were not started yet: those of others that come first count, too.
    /// None while those are more than half of what can start soon, so that requests go together.
    pub(crate) fn room(&self, unstarted: usize) -> usize {
        let now = self.now();
        let (soon, at) = (self.soon(), self.limit.next_claim_at(now, self.user));
        let taken = unstarted + self.limit.with_users(|users| users.claimed_first(self.user));
        if taken > soon / 2 || at.is_some_and(|at| at > now.mono) { 0 } else { soon - taken }
    }

    /// Asks the store for what is needed where so many messages wait, and notes whether a change is waited for.
    pub(crate) fn go_on(&mut self, waiting: usize, asker: impl Fn() -> Asker<'a>, waits: impl FnOnce(&Self) -> bool) {
        self.looked_at = self.now().mono;
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

    /// Lets slots go as at the end of an invocation, if nothing else of the process may need them; returns whether the store is asked for
    /// something.
    pub(crate) fn rest(&self, asker: impl Fn() -> Asker<'a>) -> bool {
        let (now, is_last) = (self.now(), self.limit.with_users(|users| users.is_last()));
        if is_last && self.limit.with(|slots| slots.listens_last(now)) {
            let asker = asker();
            // The report waits for the answer.
            self.ask(SlotRequest::Listen, Asker { by: asker.by.min(now.mono + LAST_LOOK), ..asker });
            return true;
        }
        self.leave(|slots, now| slots.leave(now), asker)
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

    /// Returns when there may be something to be done. Where messages wait, also when the next one can be claimed; where some are claimed
    /// (`are_claimed`), when the next one can begin.
    pub(crate) fn wake_at(&self, are_claimed: bool) -> Option<Instant> {
        if !self.waits() {
            return self.wake_at;
        }
        let (limit, now) = (self.limit, self.now());
        let at = if are_claimed { limit.next_call_at(now, self.user) } else { limit.next_claim_at(now, self.user) };
        // Where it could already when that was looked at, it waits for something else.
        let at = at.filter(|at| *at > self.looked_at);
        self.wake_at.into_iter().chain(at).min()
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
