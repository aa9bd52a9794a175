//! The limit of a batch: keys are claimed and handlers started as the slots allow that this process holds.

use std::time::Duration;

use tokio::time::Instant;

use super::calls::LimitCalls;
use super::shared::Permit;
use super::users::Has;
use crate::engine::context::BatchContext;
use crate::engine::slots::SlotQueue;
use crate::limits::LIMIT_AHEAD_MS;

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

/// What of a batch waits.
pub(crate) struct Waits {
    /// Messages that wait for their claims, or for their turns as suspects.
    pub(crate) unclaimed: usize,
    /// Claims that wait for a handler's slot or a call.
    pub(crate) unstarted: usize,
    /// What of that waits for the limit alone.
    pub(crate) has: Has,
}

pub(crate) struct Limiting<'a> {
    cx: BatchContext<'a>,
    calls: Option<LimitCalls<'a>>,
}

impl<'a> Limiting<'a> {
    /// Returns the limit of a batch; its process begins to look for a slot at `seed`: spread by message.
    pub(crate) fn new(cx: BatchContext<'a>, seed: u64) -> Self {
        let limit = cx.shared.limit.as_ref();
        let ahead = if cx.shared.claims_early() { AHEAD } else { Duration::ZERO };
        Self { cx, calls: limit.map(|limit| LimitCalls::new(limit, cx.shared.clock.as_ref(), seed, ahead)) }
    }

    pub(crate) fn exists(&self) -> bool {
        self.calls.is_some()
    }

    /// Returns how many keys may be claimed, while so many are claimed whose handlers were not started yet.
    pub(crate) fn room(&self, unstarted: usize) -> usize {
        self.calls.as_ref().map_or(usize::MAX, |calls| calls.room(unstarted))
    }

    /// Returns how many calls can begin soon, whoever has them.
    pub(crate) fn soon(&self) -> usize {
        self.calls.as_ref().map_or(usize::MAX, LimitCalls::soon)
    }

    /// Tells the others that so many keys are being claimed.
    pub(crate) fn claims(&self, keys: usize) {
        if let Some(calls) = &self.calls {
            calls.limit.with_users(|users| users.claims(calls.user, keys));
        }
    }

    /// Returns after how long a call may begin; `None` where no slot is held, or calls must end first.
    pub(crate) fn turn(&self) -> Option<Duration> {
        let Some(calls) = &self.calls else { return Some(Duration::ZERO) };
        let now = calls.now();
        calls.limit.next_call_at(now, calls.user).map(|at| at.saturating_duration_since(now.mono))
    }

    /// Returns whether a call may begin now, or one may go on with another item.
    pub(crate) fn may_begin(&self, goes_on: bool) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.limit.may_begin(calls.now(), calls.user, goes_on))
    }

    /// Begins a call, if one may begin now, or goes on with another item of it.
    pub(crate) fn begin(&self, goes_on: bool) -> Option<Permit> {
        let (Some(calls), Some(limit)) = (&self.calls, &self.cx.shared.limit) else {
            return Some(Permit::default());
        };
        limit.begin(calls.now(), calls.user, goes_on)
    }

    /// Asks the store for what is needed for messages that wait for their claims, and claims that wait for their calls, if they still fit
    /// into the time; tells the others that use the limit what this one has.
    pub(crate) fn attend(&mut self, Waits { unclaimed, unstarted, has }: Waits, fits: bool) {
        let cx = self.cx;
        let Some(calls) = &mut self.calls else { return };
        let waiting = if fits { unclaimed + unstarted } else { 0 };
        if calls.limit.with_users(|users| users.has(calls.user, has)) {
            calls.limit.tell();
        }
        if waiting == 0 && unclaimed + unstarted > 0 {
            calls.limit.with(|slots| slots.unserved());
        }
        let asker = || cx.asker(cx.time.return_by);
        let is_short = |calls: &LimitCalls<'_>| (if has.could_claim { calls.room(0) } else { calls.soon() }) == 0;
        calls.go_on(waiting, asker, |calls| waiting > 0 && (unstarted > 0 || is_short(calls)));
    }

    /// Lets slots go where nothing else of the process needs them; returns whether the store is asked for something.
    pub(crate) fn rest(&self) -> bool {
        let asker = || self.cx.asker(self.cx.time.return_by);
        self.calls.as_ref().is_some_and(|calls| calls.rest(asker))
    }

    /// Returns whether neither the store is asked for anything, nor messages wait for a slot or a call.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.as_ref().is_none_or(|calls| !calls.asks() && !calls.waits())
    }

    /// Returns when there may be something to be done, where so many claims wait for their calls.
    pub(crate) fn wake_at(&self, unstarted: usize) -> Option<Instant> {
        let calls = self.calls.as_ref()?;
        let at = calls.wake_at(unstarted > 0);
        let by = calls.waits().then(|| self.cx.slot_by());
        at.into_iter().chain(by).min()
    }

    /// Waits for an answer of the store, or for a change; for ever where there will be none. Cancel safe.
    pub(crate) async fn next(&mut self) {
        match &mut self.calls {
            Some(calls) => calls.next().await,
            None => std::future::pending().await,
        }
    }
}
