//! What of a batch can be claimed now, and the claims of that.

use super::admission::{self, Pass};
use super::batch::Batch;
use super::slots::Permits;
use super::work::Work;
use crate::limits::{STORE_BATCH_MAX, UNSETTLED_MAX};

/// What can be claimed.
#[derive(Default)]
pub(super) struct Claimable {
    pub(super) keys: usize,
    /// What is claimed, and not settled yet.
    in_hand: usize,
    /// Whether each gets a handler's slot before it is claimed.
    in_slots: bool,
}

impl Batch<'_> {
    /// Returns what can be claimed now, but for the limit.
    pub(super) fn claimable(&mut self, pass: Pass) -> Claimable {
        let (cx, unsettled) = (self.cx, self.settling.len());
        // What cannot be settled must not be run: its handlers would all run again.
        let may = unsettled < cx.shared.slots.concurrency + UNSETTLED_MAX && !self.suspects.have_the_time();
        if !pass.fits || pass.must_yield || !may {
            return Claimable::default();
        }
        // Where claims are scarce, those on their way to be settled still count.
        let ending = if cx.store().claims_max().is_some() { unsettled } else { 0 };
        let in_hand = self.claiming.in_flight() + self.running.len() + ending;
        let urgent = self.claiming.next_has_little();
        let ahead = self.claims_ahead(urgent);
        let most = admission::to_claim(self.claiming.waiting(), in_hand, (cx.shared.slots.concurrency, ahead), urgent)
            .min(self.gate.room(in_hand));
        // Without claims ahead, a claim has its slot before it is asked for, and what was taken ahead before comes first.
        let in_slots = ahead == 0;
        let keys = match in_slots {
            false => most.min(self.starts.slots.room_ahead(in_hand)),
            true if most == 0 || self.running.waits_for_slot() => 0,
            true if !self.starts.slots.has_free(cx.slot_by()) => 0,
            true => most,
        };
        Claimable { keys, in_hand, in_slots }
    }

    /// Claims as many keys as may be, and the limit allows.
    pub(super) fn start_claims(&mut self, Claimable { keys, in_hand, in_slots }: Claimable) {
        let cx = self.cx;
        let unstarted = self.claiming.in_flight() + self.running.renewing() + self.running.waiting();
        let count = if keys == 0 { 0 } else { keys.min(self.starts.limit.room(unstarted)) };
        let mut admitted = Vec::with_capacity(count);
        while admitted.len() < count {
            let (slots, by) = (&mut self.starts.slots, cx.slot_by());
            let permits = if in_slots { slots.take(by) } else { slots.take_ahead(in_hand + admitted.len(), by) };
            let Some(mut permits) = permits else { break };
            let work = if self.gate.probes() { self.claiming.pop_for_probe() } else { self.claiming.pop() };
            let Some(work) = work else { break };
            permits.in_hand = work.identity.tenant.as_ref().map(|tenant| cx.shared.slots.tenants.hold(tenant));
            admitted.push((work, permits));
        }
        self.claim(admitted);
    }

    /// Claims these, and tells the others within the limit.
    pub(super) fn claim(&mut self, admitted: Vec<(Work, Permits)>) {
        self.starts.limit.claims(admitted.len());
        self.claiming.start(admitted);
    }

    /// Returns how many claims may wait for a free slot, where the next one is `urgent` or not.
    fn claims_ahead(&self, urgent: bool) -> usize {
        let shared = self.cx.shared;
        // While no handler has returned, a message that came back may be one that ends the process: what is claimed beside it would be
        // abandoned too.
        if !shared.learned.durations.are_known() && self.claiming.next_came_back() {
            return 0;
        }
        // A whole request, as while nothing is known: others may have all that were taken then.
        let least = if urgent && shared.claims_early() { STORE_BATCH_MAX } else { 0 };
        shared.ahead().max(least)
    }
}
