//! What the breaker allows an invocation or a worker: nothing while it is open, one message at a time while this one probes, else everything.

use std::time::Duration;

use super::asker::Asker;
use super::shared_breaker::{Probe, SharedBreaker};
use crate::clock::Timestamp;
use crate::protocol::breaker::{Effect, Health};

pub(crate) struct Way<'a> {
    pub(crate) breaker: &'a SharedBreaker,
    /// Set while this invocation or worker probes.
    probe: Option<Probe<'a>>,
    /// Whether a run has ended since its claim was granted or renewed.
    has_run: bool,
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
        Self { breaker, probe: None, has_run: false }
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
        self.has_run &= probe.is_none();
        self.probe = probe.or(self.probe.take());
    }

    /// Takes note of a run that took so long; returns what is to be written before anything else begins. Who does not know whether it has
    /// another message renews the claim for it at once.
    pub(crate) fn after_run(&mut self, health: Health, took: Duration, asker: Asker<'_>) -> Option<Write<'a>> {
        self.note_run(health, took, asker.clock.now()).or_else(|| self.keep(asker))
    }

    /// Takes note of a run that took so long; returns what is to be written about what came of it.
    pub(crate) fn note_run(&mut self, health: Health, took: Duration, now: Timestamp) -> Option<Write<'a>> {
        self.has_run = true;
        match self.breaker.after_run(health, took, self.probe.is_some(), now) {
            Effect::Nothing => None,
            Effect::Open => Some(Write::Open(self.breaker)),
            Effect::Close => self.probe.take().map(Write::Close),
            Effect::OpenAgain => self.probe.take().map(Write::Fail),
        }
    }

    /// Renews the claim of a probe for its next message, where it would not last for that: once for each, since no claim lasts for some.
    pub(crate) fn keep(&mut self, asker: Asker<'_>) -> Option<Write<'a>> {
        let until = asker.clock.now().plus(asker.expected);
        self.probe.take_if(|probe| self.has_run && probe.is_short(until)).map(Write::Keep)
    }

    /// Ends a probe that has no more messages: one that has an answer closes the breaker, since where each invocation has one message none
    /// has more answers. Where nothing was learned, another one probes when the lease ends.
    pub(crate) fn leave(&mut self) -> Option<Write<'a>> {
        self.probe.take().filter(|_| self.breaker.has_answer()).map(Write::Close)
    }
}
