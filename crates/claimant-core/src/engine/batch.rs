//! One batch: the loop that moves each message's work from stage to stage, until every one has its outcome.

use std::time::Duration;

use super::admission::Pass;
use super::after::{After, after_run, after_settling};
use super::breaker::gate::Gate;
use super::call::AfterCall;
use super::claiming::{ClaimResult, Claiming};
use super::context::BatchContext;
use super::dead_letters::DeadLetters;
use super::lanes::{Lanes, Next};
use super::limit::stage::Starts;
use super::messages::Messages;
use super::reading::Arrival;
use super::running::{Ended, Running};
use super::settling::Settling;
use super::suspects::{NextSuspects, Suspects};
use super::unsettled::Unsettled;
use super::work::{Answer, Claimed, Delivery, Work};
use crate::backoff;
use crate::report::{DeadLetter, Latencies, Outcome, Report, Totals};
use crate::store::StoreError;

/// One batch in progress.
pub(crate) struct Batch<'a> {
    pub(super) cx: BatchContext<'a>,
    pub(super) lanes: Lanes,
    pub(super) claiming: Claiming<'a>,
    pub(super) running: Running<'a>,
    pub(super) settling: Settling<'a>,
    pub(super) dead_letters: DeadLetters<'a>,
    pub(super) suspects: Suspects<'a>,
    pub(super) gate: Gate<'a>,
    pub(super) starts: Starts<'a>,
    pub(super) messages: Messages,
}

/// How a pass of the loop ends.
enum PassEnd {
    /// Stages may start more at once.
    Again,
    /// A call of a stage is waited for.
    Wait,
    /// Messages wait, though no call is under way.
    LookAgain,
    /// Only suspects are left: the next ones have their turn.
    Suspects,
    /// Each message has its outcome.
    Done,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(cx: BatchContext<'a>, arrivals: Vec<Arrival>) -> Self {
        let seed = arrivals.first().map_or(0, |arrival| backoff::seed(arrival.message.id()));
        Self {
            cx,
            starts: Starts::new(cx, seed),
            messages: Messages::new(&arrivals),
            lanes: Lanes::new(arrivals, cx.policy().conflicts),
            claiming: Claiming::new(cx),
            running: Running::new(cx),
            settling: Settling::new(cx),
            dead_letters: DeadLetters::new(cx),
            suspects: Suspects::new(cx),
            gate: Gate::new(cx),
        }
    }

    /// Moves everything until each message has its outcome: a batch ends when no stage has a call under way, nothing waits, and no suspect is
    /// left. Returns the dead letters of single events of messages with several, too, which are not sent.
    pub(crate) async fn drive(mut self) -> (Report, Vec<DeadLetter>) {
        self.cx.warn_if_no_time();
        self.cx.warn_if_slower_than_its_limit();
        loop {
            let fits = self.cx.fits();
            let may_wait = self.gate.may_wait(fits);
            self.advance_lanes(may_wait);
            let pass = Pass { fits, may_wait, must_yield: self.must_yield() };
            self.attend_gate(pass);
            let claimable = self.claimable(pass);
            self.attend_limit(pass, claimable.keys);
            self.start_claims(claimable);
            self.start_runs(pass);
            self.settling.start(self.claiming.in_flight() + self.running.len() > 0);
            self.dead_letters.start();
            match self.end_pass() {
                PassEnd::Again => {}
                PassEnd::Wait => self.wait(pass).await,
                PassEnd::LookAgain => self.look_again(pass).await,
                PassEnd::Suspects => self.start_suspects(pass),
                PassEnd::Done => return self.report(),
            }
        }
    }

    /// Decides how a pass ends in which all stages have started what they may.
    fn end_pass(&mut self) -> PassEnd {
        if self.lanes.can_advance() {
            return PassEnd::Again;
        }
        if self.claiming.waiting() == 0 && self.running.waiting() == 0 && self.suspects.is_empty() {
            self.starts.slots.stop_waiting();
        }
        // Whatever its breaker and its limit wait for: others may have their turn meanwhile.
        let has_ended = self.suspects.is_idle() && self.claiming.is_idle() && !self.has_in_hand();
        if has_ended && self.suspects.end_turn() {
            return PassEnd::Again;
        }
        if !self.is_idle() || self.starts.slots.is_waiting() {
            return PassEnd::Wait;
        }
        // While our own suspects have the time, claims wait behind them.
        if self.running.waiting() > 0 || self.claiming.waiting() > 0 && !self.suspects.have_the_time() {
            return PassEnd::LookAgain;
        }
        if !self.suspects.is_empty() {
            return PassEnd::Suspects;
        }
        if self.starts.limit.rest() { PassEnd::Again } else { PassEnd::Done }
    }

    /// Brings every lane to a message that needs a claim, or to its end; none waits for a claim any more unless `may_wait`.
    fn advance_lanes(&mut self, may_wait: bool) {
        loop {
            while let Some(next) = self.lanes.advance() {
                match next {
                    Next::Claim(work) if self.suspects.is_by_receives(&work) => self.suspects.push(work, 0),
                    Next::Claim(work) => self.claiming.push(work),
                    Next::Unread(delivery, unread) => {
                        let exit = self.cx.unread(&delivery, unread);
                        self.leave(delivery, None, exit);
                    }
                    Next::Follow { delivery, record, key, leader } => {
                        let exit = self.cx.following(&delivery, key, leader);
                        self.leave(delivery, Some(record), exit);
                    }
                    Next::Blocked(delivery) => {
                        self.conclude(delivery, Answer::failure(Outcome::Blocked, Duration::ZERO));
                    }
                }
            }
            if self.claiming.waiting() == 0 || may_wait {
                return;
            }
            while let Some(work) = self.claiming.pop() {
                self.without_run(work.without_payload().delivery);
            }
        }
    }

    /// Ends work that is not claimed for lack of time or room.
    fn without_run(&mut self, delivery: Delivery) {
        let answer = self.cx.without_run(&delivery);
        self.conclude(delivery, answer);
    }

    /// Begins the turn of the next suspects.
    fn start_suspects(&mut self, pass: Pass) {
        let most = self.gate.room(0).min(self.starts.limit.soon());
        match self.suspects.start(&mut self.starts.slots, most, pass.fits) {
            NextSuspects::Claim(admitted) => self.claim(admitted),
            NextSuspects::NotStarted(works) => {
                works.into_iter().for_each(|work| self.without_run(work.without_payload().delivery))
            }
            NextSuspects::Later => {}
        }
    }

    pub(super) fn claimed(&mut self, result: ClaimResult) {
        match result {
            ClaimResult::Granted(claimed) => self.granted(claimed),
            ClaimResult::Refused(work, refusal) => {
                let exit = self.cx.refused(&work, refusal);
                self.leave(work.delivery, Some(work.identity.record_id), exit);
            }
            ClaimResult::Unanswered(work, error) => self.unanswered(work, &error),
        }
    }

    fn granted(&mut self, mut claimed: Claimed) {
        let Claimed { work, claim, .. } = &mut claimed;
        let details = &mut work.delivery.details;
        (details.attempt, details.fence) = (Some(claim.attempt), Some(claim.fence));
        if claim.is_taken_over() && !work.its_turn {
            self.suspects.taken_over += 1;
            tracing::warn!(consumer = %self.cx.name(), message_id = %work.delivery.message.id(), attempt = claim.attempt, fence = %claim.fence, "taking over work whose owner did not finish it");
        }
        let set_aside = self.suspects.must_be_set_aside(work, claim);
        match self.cx.options().attempts_max {
            Some(max) if claim.attempt > max => {
                self.settle(Unsettled::attempts_exhausted(self.cx, claimed, max));
            }
            _ if set_aside => self.settle(Unsettled::set_aside(claimed)),
            _ => self.running.push(claimed),
        }
    }

    /// Settles a claim, with others if the next message of its lane does not wait for it.
    fn settle(&mut self, unsettled: Unsettled) {
        let waits = self.lanes.has_more(unsettled.claimed.work.delivery.lane);
        self.settling.push(unsettled, waits);
    }

    /// Ends work whose claim the store did not answer.
    fn unanswered(&mut self, work: Work<()>, error: &StoreError) {
        let answer = self.cx.unanswered(&work.delivery, error);
        self.conclude(work.delivery, answer);
    }

    /// Starts handlers. While the store leaves settlements without an answer, each effect that is not settled counts: it may have
    /// to be repeated. So a store that takes none of them stops all, and one hot key takes up one slot. What was claimed before a
    /// breaker opened is released, or has its turn alone if its claim was answered only when this invocation probed. What no longer fits
    /// into the time is released, too.
    fn start_runs(&mut self, pass: Pass) {
        if self.gate.asks() {
            return;
        }
        if self.gate.is_shut() {
            for claimed in self.running.take_waiting() {
                self.settle(Unsettled::held_back(claimed));
            }
        } else if !pass.fits {
            for claimed in self.running.take_waiting() {
                self.settle(Unsettled::released(self.cx, claimed));
            }
        }
        self.running.start(self.runs_max(), &mut self.starts, self.claiming.in_flight() > 0);
    }

    /// Returns for how many messages handlers may run.
    pub(super) fn runs_max(&self) -> usize {
        let most = if self.gate.probes() { 1 } else { usize::MAX };
        self.cx.shared.slots.concurrency.saturating_sub(self.settling.in_doubt()).min(most)
    }

    pub(super) fn ran(&mut self, ended: Ended) {
        self.gate.observe(&ended);
        match ended {
            Ended::One(ran) => self.follow(after_run(self.cx, ran)),
            Ended::Call(call) => call.items.into_iter().for_each(|item| {
                let after = match item {
                    AfterCall::Settled(result) => {
                        self.settling.note(&result);
                        after_settling(self.cx, result)
                    }
                    AfterCall::Ran(ran) => after_run(self.cx, ran),
                };
                self.follow(after);
            }),
        }
    }

    pub(super) fn follow(&mut self, after: After) {
        match after {
            After::Settle(unsettled) => self.settle(unsettled),
            After::LaterTurn(work, interruptions) => self.suspects.push(work, interruptions),
            After::Wait(mut work) => {
                let details = &mut work.delivery.details;
                (details.attempt, details.fence) = (None, None);
                work.its_turn = false;
                self.claiming.push(work);
            }
            After::Leave(work, exit) => self.leave(work.delivery, Some(work.identity.record_id), exit),
        }
    }

    fn report(self) -> (Report, Vec<DeadLetter>) {
        debug_assert_eq!(self.claiming.waiting() + self.running.waiting(), 0, "each message has its outcome");
        let (taken_over, pauses, usage) = (self.suspects.taken_over, self.gate.pauses, self.cx.meter.usage());
        let (claim, handle, settle) = (self.claiming.longest(), self.running.longest(), self.settling.longest());
        let totals = Totals { taken_over, pauses, latencies: Latencies { claim, handle, settle }, usage };
        (Report { entries: self.messages.into_entries(), totals }, self.dead_letters.into_unsent())
    }
}
