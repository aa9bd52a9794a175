//! What a batch waits for: calls of its stages; and where it has none under way, what other batches and invocations do.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::batch::Batch;
use super::turns::Activity;

/// Before a turn that begins as the last one ended: nothing of this batch will wake it.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

impl Batch<'_> {
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

    /// Returns whether nothing may be claimed now, since suspects of other consumers have the time.
    pub(super) fn is_held_up(&self) -> bool {
        self.cx.part.sequence.turns.is_held_up(self.cx.shared.expected_at_most())
    }

    /// Waits for one call of a stage, and routes what came of it.
    pub(super) async fn next_event(&mut self) {
        self.starts.slots.give_back();
        // Its suspects wait for their turn otherwise.
        if self.suspects.is_idle() {
            self.says_what_it_does(self.gate.is_shut());
        }
        let linger = self.settling.linger_until().into_iter().chain(self.running.linger_until());
        let linger = linger.chain(self.starts.limit.wake_at(self.running.waiting())).min();
        tokio::select! {
            biased;
            Some(results) = self.settling.next() => results.into_iter().for_each(|result| self.settled(result)),
            Some(ended) = self.running.next() => ended.into_iter().for_each(|ended| self.ran(ended)),
            Some(results) = self.claiming.next() => results.into_iter().for_each(|result| self.claimed(result)),
            Some(sent) = self.dead_letters.next() => sent.into_iter().for_each(|(disposed, confirmed)| self.dead_lettered(disposed, confirmed)),
            true = self.gate.next() => {}
            () = self.starts.limit.next() => {}
            () = self.suspects.ready() => {}
            () = self.starts.slots.arrived() => {}
            () = sleep_until(linger.unwrap_or_else(Instant::now)), if linger.is_some() => {}
        }
    }

    /// Waits where messages wait, and no call is under way: for the suspects of other consumers, while they have the time; else another
    /// invocation opened the breaker or took the limit's turn between two stages of this turn.
    pub(super) async fn look_again(&mut self) {
        self.starts.slots.give_back();
        let is_held_up = self.is_held_up();
        self.says_what_it_does(is_held_up);
        if !is_held_up {
            return sleep(LOOK_AGAIN).await;
        }
        // Later it does not fit into the time any more, and then nothing waits.
        let by = self.cx.slot_by().max(Instant::now() + LOOK_AGAIN);
        self.cx.part.sequence.turns.freed(self.cx.shared.expected_at_most(), by).await;
    }

    fn says_what_it_does(&self, rests: bool) {
        self.cx.part.sequence.turns.does(match (self.has_in_hand(), rests) {
            (true, _) => Activity::InHand,
            (false, true) => Activity::Resting,
            (false, false) => Activity::Working,
        });
    }
}
