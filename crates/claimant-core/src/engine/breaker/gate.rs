//! The gate of a batch: while the breaker is open, nothing is claimed, and what waits for a claim waits here. Where this invocation
//! probes, one message at a time goes through.

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::shared::Probe;
use super::way::{Way, Write, Written};
use crate::engine::call::AfterCall;
use crate::engine::context::BatchContext;
use crate::engine::limit::stage::Limiting;
use crate::engine::running::Ended;
use crate::invocation_time::time_until;
use crate::protocol::breaker::Health;

pub(crate) struct Gate<'a> {
    cx: BatchContext<'a>,
    /// Through its breaker, if it has one.
    way: Option<Way<'a>>,
    /// The wait for the breaker, and what is written to its record.
    calls: FuturesUnordered<BoxFuture<'a, CallEnd<'a>>>,
    /// Whether its probe's claim is being renewed or released: no other call is under way then.
    asks: bool,
    /// How often this invocation has paused the intake.
    pub(crate) pauses: usize,
}

/// How a call ended.
enum CallEnd<'a> {
    Waited(Option<Probe<'a>>),
    Written(Written<'a>),
}

impl<'a> Gate<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self {
            cx,
            way: cx.shared.breaker.as_ref().map(Way::new),
            calls: FuturesUnordered::new(),
            asks: false,
            pauses: 0,
        }
    }

    /// Returns how many keys may be claimed, while so many are claimed and not settled yet.
    pub(crate) fn room(&self, under_way: usize) -> usize {
        self.way.as_ref().map_or(usize::MAX, |way| way.room(under_way))
    }

    /// Returns whether no handler may be started.
    pub(crate) fn is_shut(&self) -> bool {
        self.room(0) == 0
    }

    /// Returns whether this invocation probes.
    pub(crate) fn probes(&self) -> bool {
        self.way.as_ref().is_some_and(Way::probes)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns whether its probe's claim is being renewed or released. What is claimed meanwhile, or waits for its claim, waits for the answer.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Returns whether messages that wait for their claims go on waiting: while a handler fits into the time, and, while the breaker is open,
    /// as long as it is waited for. With the answer that closes it, they have found no time, and not an open breaker.
    pub(crate) fn may_wait(&self, fits: bool) -> bool {
        fits || self.asks || self.is_shut() && !time_until(self.cx.breaker_by()).is_zero()
    }

    /// Waits for the breaker while it is open.
    pub(crate) fn wait(&mut self) {
        let Some(way) = self.way.as_ref().filter(|_| self.is_shut() && self.is_idle()) else { return };
        let (breaker, asker) = (way.breaker, self.cx.asker(self.cx.time.cancel_at));
        let (cx, probe_by, by) = (self.cx, self.cx.slot_by(), self.cx.breaker_by());
        let may_probe = move || Instant::now() < probe_by && !cx.must_yield();
        self.calls.push(Box::pin(async move { CallEnd::Waited(breaker.pass(asker, may_probe, by).await) }));
    }

    /// Ends a probe that has no more messages, but for some that wait for busy keys: those keep it while no other process has it.
    pub(crate) fn end_probe(&mut self, waits_for_busy: bool) {
        let Some(way) = &mut self.way else { return };
        if waits_for_busy && way.probe_lasts(self.cx.now()) {
            return;
        }
        // With a message to come, what was answered is not all that it has.
        let write = way.leave().filter(|_| !waits_for_busy);
        self.write(write);
    }

    /// Renews the claim of a probe that has a next message, and none that runs, where it would not last for the turn and the run of that one:
    /// so many wait for their claims, and so many are claimed.
    pub(crate) fn keep(&mut self, waiting: usize, claimed: usize, limit: &Limiting<'_>) {
        let Some(way) = self.way.as_mut().filter(|way| waiting + claimed > 0 && way.probes()) else { return };
        // Until it is known when its turn comes, the claim lasts as it is.
        let Some(turn) = limit.turn() else { return };
        let until = self.cx.now().plus(turn + self.cx.shared.expected_at_most());
        let write = way.keep(until, claimed > 0);
        self.write(write);
    }

    fn write(&mut self, write: Option<Write<'a>>) {
        let Some(write) = write else { return };
        self.asks = matches!(write, Write::Keep(_) | Write::Close(_));
        // Nothing begins after that, and what is claimed beside a renewal is given back then.
        let is_renewal = matches!(write, Write::Keep(_));
        let asker = self.cx.asker(if is_renewal { self.cx.time.cancel_at } else { self.cx.time.return_by });
        self.calls.push(Box::pin(async move { CallEnd::Written(write.go(asker).await) }));
    }

    /// Takes note of what a run says of the system.
    pub(crate) fn observe(&mut self, ended: &Ended) {
        let Some(way) = &mut self.way else { return };
        let (seen, took) = match ended {
            Ended::One(ran) => (ran.health(), ran.took),
            Ended::Call(call) => (seen_by_most(&call.items), call.took),
        };
        let write = way.note_run(seen, took, self.cx.now());
        self.write(write);
    }

    /// Waits for a call; `false` where none is under way. Cancel safe.
    pub(crate) async fn next(&mut self) -> bool {
        let (Some(way), Some(ended)) = (&mut self.way, self.calls.next().await) else { return false };
        self.asks = false;
        match ended {
            CallEnd::Waited(probe) => {
                way.waited(probe);
                if way.breaker.is_closed() {
                    // What has waited may be run now.
                    self.cx.shared.learned.forget_hangs();
                }
            }
            CallEnd::Written(Written::Paused) => self.pauses += 1,
            CallEnd::Written(Written::Kept(probe)) => way.waited(Some(probe)),
            // What has waited runs meanwhile: that can take a minute.
            CallEnd::Written(Written::Closed(breaker)) => self.write(Some(Write::Resume(breaker))),
            CallEnd::Written(Written::Nothing) => {}
        }
        true
    }
}

/// Returns what a call says of it, which is one observation however many items it has.
fn seen_by_most(items: &[AfterCall]) -> Health {
    Health::of_most(items.iter().map(|after| match after {
        AfterCall::Ran(ran) => ran.health(),
        // It has committed, or lost its key; its handler has returned in any case.
        AfterCall::Settled(_) => Health::Answered,
    }))
}
