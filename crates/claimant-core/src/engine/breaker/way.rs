//! What the breaker allows an invocation or a worker: nothing while it is open, one message at a time while this one probes, else everything.

use std::time::Duration;

use tokio::time::Instant;

use super::shared::{Probe, SharedBreaker};
use crate::clock::Timestamp;
use crate::engine::asker::Asker;
use crate::protocol::breaker::{Effect, Health};

/// Between two renewals of a claim for one message at least.
const KEEP_AGAIN: Duration = Duration::from_secs(1);

pub(crate) struct Way<'a> {
    pub(crate) breaker: &'a SharedBreaker,
    /// Set while this invocation or worker probes.
    probe: Option<Probe<'a>>,
    /// When its claim was granted or renewed, where no run has ended since.
    granted: Option<Instant>,
}

/// What is to be done about a breaker that is not closed.
pub(crate) enum Write<'a> {
    Open(&'a SharedBreaker),
    Keep(Probe<'a>),
    Fail(Probe<'a>),
    Close(Probe<'a>),
    Resume(&'a SharedBreaker),
}

/// What came of it.
pub(crate) enum Written<'a> {
    Nothing,
    /// The intake is paused.
    Paused,
    /// The probe goes on.
    Kept(Probe<'a>),
    /// It is closed for all processes.
    Closed(&'a SharedBreaker),
}

impl<'a> Write<'a> {
    /// Does it.
    pub(crate) async fn go(self, asker: Asker<'_>) -> Written<'a> {
        let opened = |paused| if paused { Written::Paused } else { Written::Nothing };
        match self {
            Write::Open(breaker) => opened(breaker.open(asker).await),
            Write::Fail(probe) => opened(probe.fail(asker).await),
            Write::Keep(probe) => probe.keep(asker).await.map_or(Written::Nothing, Written::Kept),
            Write::Close(probe) => {
                let breaker = probe.breaker;
                if probe.close(asker).await { Written::Closed(breaker) } else { Written::Nothing }
            }
            Write::Resume(breaker) => {
                breaker.resume(asker).await;
                Written::Nothing
            }
        }
    }
}

impl<'a> Way<'a> {
    pub(crate) fn new(breaker: &'a SharedBreaker) -> Self {
        Self { breaker, probe: None, granted: None }
    }

    /// Returns how many runs may begin while so many are under way.
    pub(crate) fn room(&self, under_way: usize) -> usize {
        match self.probe {
            None if !self.breaker.is_closed() => 0,
            Some(_) => 1_usize.saturating_sub(under_way),
            None => usize::MAX,
        }
    }

    pub(crate) fn probes(&self) -> bool {
        self.probe.is_some()
    }

    /// Returns whether this one probes, and no other process does: for so long its claim lasts.
    pub(crate) fn probe_lasts(&self, now: Timestamp) -> bool {
        self.probe.as_ref().is_some_and(|probe| probe.lasts(now))
    }

    /// Takes note of what the wait for the breaker came to.
    pub(crate) fn waited(&mut self, probe: Option<Probe<'a>>) {
        if probe.is_some() {
            (self.probe, self.granted) = (probe, Some(Instant::now()));
        }
    }

    /// Takes note of a run that took so long; returns what is to be written before anything else begins. Who does not know whether it has
    /// another message renews the claim for it at once.
    pub(crate) fn observe(&mut self, health: Health, took: Duration, asker: Asker<'_>) -> Option<Write<'a>> {
        let now = asker.clock.now();
        self.note_run(health, took, now)
            .or_else(|| self.keep(now.plus(asker.expected.turn + asker.expected.run), false))
    }

    /// Takes note of a run that took so long; returns what is to be written about what came of it.
    pub(crate) fn note_run(&mut self, health: Health, took: Duration, now: Timestamp) -> Option<Write<'a>> {
        self.granted = None;
        match self.breaker.observe(health, took, self.probe.is_some(), now) {
            Effect::Nothing => None,
            Effect::Open => Some(Write::Open(self.breaker)),
            Effect::Close => self.probe.take().map(Write::Close),
            Effect::OpenAgain => self.probe.take().map(Write::Fail),
        }
    }

    /// Renews the claim of a probe for its next message, where it would not last until the end of that: once for each, since no claim lasts for
    /// some, and again for one that `is_claimed`, and has waited for its turn since.
    pub(crate) fn keep(&mut self, until: Timestamp, is_claimed: bool) -> Option<Write<'a>> {
        let may = self.granted.is_none_or(|at| is_claimed && at.elapsed() >= KEEP_AGAIN);
        self.probe.take_if(|probe| may && probe.is_short(until)).map(Write::Keep)
    }

    /// Ends a probe that has no more messages: one that has an answer closes the breaker, since where each invocation has one message none
    /// has more answers. Where nothing was learned, another one probes when the lease ends.
    pub(crate) fn leave(&mut self) -> Option<Write<'a>> {
        self.probe.take().filter(|_| self.breaker.has_answer()).map(Write::Close)
    }
}
