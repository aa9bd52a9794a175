//! What a batch waits for: calls of its stages; and where it has none under way, what other batches and invocations do.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::admission::Pass;
use super::after::after_settling;
use super::batch::Batch;
use super::limit::stage::Waits;
use super::limit::users::Has;
use super::turns::Activity;

/// How long the loop waits before its next pass where nothing of this batch will wake it.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Batch<'_> {
    /// Waits for the breaker, where messages wait and have the time; ends a probe that has no more of them: none waits, and none is in hand, behind
    /// which others of its lane may come, or which may be set aside. So the end of a probe comes after the last settlement.
    pub(super) fn attend_gate(&mut self, pass: Pass) {
        let waiting = self.claiming.waiting() + self.suspects.len();
        if waiting > 0 && pass.may_wait {
            self.gate.wait();
        } else if waiting == 0 && !self.has_in_hand() {
            self.gate.end_probe(self.claiming.waits_for_busy());
        }
        if pass.fits && self.running.is_idle() {
            self.gate.keep(waiting, self.running.waiting(), &self.starts.limit);
        }
    }

    /// Asks for slots of the limit, where messages could run now but for it: so many could be claimed.
    pub(super) fn attend_limit(&mut self, pass: Pass, claimable: usize) {
        if !self.starts.limit.exists() {
            return;
        }
        let (is_shut, unstarted) = (self.gate.is_shut(), self.running.waiting());
        let ready = self.running.startable(self.runs_max(), self.starts.slots.free());
        // Not where claims wait for handlers' slots.
        let could_claim = claimable > 0 && ready == unstarted;
        let has = Has { could_claim, asked_first: self.claiming.asked_first(), ready };
        // Else what is claimed is given back.
        let has = if pass.fits && !is_shut { has } else { Has::default() };
        let unclaimed = if is_shut { 0 } else { self.claiming.waiting() + self.suspects.len() };
        self.starts.limit.attend(Waits { unclaimed, unstarted, has }, pass.fits);
    }

    /// Returns whether no stage has a call under way.
    pub(super) fn is_idle(&self) -> bool {
        self.claiming.is_idle()
            && self.running.is_idle()
            && self.settling.is_idle()
            && self.dead_letters.is_idle()
            && self.suspects.is_idle()
            && self.gate.is_idle()
            && self.starts.limit.is_idle()
    }

    /// Returns whether messages are claimed, or on their way to their outcomes: what is behind them in their lanes comes after that.
    pub(super) fn has_in_hand(&self) -> bool {
        self.claiming.in_flight() + self.running.len() + self.settling.len() > 0 || !self.dead_letters.is_empty()
    }

    /// Waits for one call of a stage, and routes what came of it; or, while suspects of other consumers have the time, until that is over.
    pub(super) async fn wait(&mut self, Pass { must_yield, .. }: Pass) {
        self.starts.slots.give_back();
        self.says_what_it_does(must_yield);
        let cx = self.cx;
        // In a box that only those pay for who need it: a batch of one message counts each byte.
        let freed = async { Box::pin(cx.part.sequence.turns.freed(cx.shared.expected_at_most())).await };
        let linger = self.settling.linger_until().into_iter().chain(self.running.linger_until());
        let linger = linger.chain(self.starts.limit.wake_at(self.running.waiting()));
        let linger = linger.chain(must_yield.then(|| self.yields_until())).min();
        tokio::select! {
            biased;
            Some(results) = self.settling.next() => results.into_iter().for_each(|result| self.follow(after_settling(cx, result))),
            Some(ended) = self.running.next() => ended.into_iter().for_each(|ended| self.ran(ended)),
            Some(results) = self.claiming.next() => results.into_iter().for_each(|result| self.claimed(result)),
            Some(sent) = self.dead_letters.next() => sent.into_iter().for_each(|(disposed, confirmed)| self.dead_lettered(disposed, confirmed)),
            true = self.gate.next() => {}
            () = self.starts.limit.next() => {}
            () = self.suspects.ready() => {}
            () = self.starts.slots.arrived() => {}
            () = freed, if must_yield => {}
            () = sleep_until(linger.unwrap_or_else(Instant::now)), if linger.is_some() => {}
        }
    }

    /// Waits where messages wait, and no call is under way: for the suspects of other consumers, while they have the time. Else another
    /// invocation opened the breaker or took the limit's turn between two stages of this pass, and the next pass is soon.
    pub(super) async fn look_again(&mut self, pass: Pass) {
        if pass.must_yield && self.running.waiting() == 0 {
            return self.wait(pass).await;
        }
        self.starts.slots.give_back();
        self.says_what_it_does(pass.must_yield);
        sleep(LOOK_AGAIN).await;
    }

    /// Returns whether messages wait for claims while suspects of other consumers have the time.
    pub(super) fn must_yield(&self) -> bool {
        self.claiming.waiting() > 0 && self.cx.must_yield()
    }

    /// Returns when there is something to do although it yields: later nothing fits into the time any more, and then nothing waits; or
    /// its own suspects have the time.
    fn yields_until(&self) -> Instant {
        let by = if self.gate.is_shut() { self.cx.breaker_by() } else { self.cx.slot_by() };
        let waits = !self.suspects.is_empty() && !self.suspects.have_the_time();
        let own = waits.then(|| self.suspects.time_from());
        own.into_iter().fold(by, Instant::min).max(Instant::now() + LOOK_AGAIN)
    }

    /// Tells the other sequences of the invocation what this one does, unless its suspects already wait for their turn. Suspects that wait for
    /// their breaker or limit get no turn and no time. While this one has messages in hand, time is reserved only until they should have ended:
    /// a message that hangs delays its own suspects, not other consumers.
    fn says_what_it_does(&mut self, must_yield: bool) {
        if !self.suspects.is_idle() {
            return;
        }
        let activity = match self.has_in_hand() {
            true => Activity::InHand,
            false if self.gate.is_shut() || must_yield => Activity::Resting,
            false => Activity::Working,
        };
        let waits = || self.gate.is_shut() || activity != Activity::InHand && self.starts.limit.soon() == 0;
        let reserved = (!self.suspects.is_empty() && !waits()).then(|| match activity {
            Activity::InHand => self.suspects.reserved_time().while_in_hand(self.cx.shared.expected()),
            Activity::Working | Activity::Resting => self.suspects.reserved_time(),
        });
        if reserved.is_none() && !self.suspects.is_empty() {
            self.suspects.give_back_turn();
        }
        self.cx.part.sequence.turns.does(activity, reserved);
    }
}
