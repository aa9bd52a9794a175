//! Running: handlers in the slots that are free, for a message each, or for many in one call.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;

use super::admission;
use super::call::{self, CallRan};
use super::context::BatchContext;
use super::limit::stage::Starts;
use super::renewal::{lease_to_renew_first, renew_first};
use super::run::{Ran, RunEnd, to_end};
use super::tenants::TenantQueue;
use super::work::Claimed;
use crate::batch::AnyBatchHandler;
use crate::definition::Runner;
use crate::handler::AnyHandler;
use crate::invocation_time::time_until;
use crate::limits::CALL_LINGER_MS;
use crate::store::Renewed;

#[expect(clippy::large_enum_variant, reason = "a box for each message costs more than the room in a few futures")]
/// A handler's run that ended: for one message, or for those of a call.
pub(crate) enum Ended {
    One(Ran),
    Call(CallRan),
}

pub(crate) struct Running<'a> {
    cx: BatchContext<'a>,
    /// Claims that wait for a slot, and with a batch handler for others.
    ready: TenantQueue<Claimed>,
    /// When those have waited long enough for others.
    linger_until: Option<Instant>,
    /// Claims for which a batch handler is called alone.
    alone: VecDeque<Claimed>,
    /// Claims that were granted late, or have waited for long, and are renewed before it is decided whether their handlers start: by a
    /// limit, since what begins late would be too near to the next one, or by a breaker, which may open meanwhile.
    renewing: FuturesUnordered<BoxFuture<'a, (Claimed, Renewed)>>,
    runs: FuturesUnordered<BoxFuture<'a, Ended>>,
    /// The messages in those.
    in_runs: usize,
    /// The longest that a handler took.
    longest: Duration,
}

impl<'a> Running<'a> {
    pub(crate) fn new(cx: BatchContext<'a>) -> Self {
        Self {
            cx,
            ready: TenantQueue::new(),
            linger_until: None,
            alone: VecDeque::new(),
            renewing: FuturesUnordered::new(),
            runs: FuturesUnordered::new(),
            in_runs: 0,
            longest: Duration::ZERO,
        }
    }

    pub(crate) fn push(&mut self, claimed: Claimed) {
        match lease_to_renew_first(self.cx, &claimed) {
            Some(lease) => self.renewing.push(Box::pin(renew_first(self.cx, claimed, lease))),
            None => self.make_ready(claimed),
        }
    }

    fn make_ready(&mut self, claimed: Claimed) {
        if self.runs_alone(&claimed) {
            return self.alone.push_back(claimed);
        }
        let is_last = self.cx.shared.receives_max.is_last(claimed.work.delivery.message.receive_count());
        self.ready.push(claimed.work.identity.tenant.clone(), is_last, claimed);
    }

    /// Makes a claim ready before the others: its lease is new, and would be little again by their turns.
    fn make_ready_first(&mut self, claimed: Claimed) {
        match self.runs_alone(&claimed) {
            true => self.alone.push_front(claimed),
            false => self.ready.push_front(claimed.work.identity.tenant.clone(), claimed),
        }
    }

    fn runs_alone(&self, claimed: &Claimed) -> bool {
        claimed.is_alone() && matches!(self.cx.shared.consumer.handler, Runner::Batch(_))
    }

    /// Returns how many claims are here: their handlers run, or wait for a slot.
    pub(crate) fn len(&self) -> usize {
        self.waiting() + self.renewing.len() + self.in_runs
    }

    /// Takes the claims that wait for a slot.
    pub(crate) fn take_waiting(&mut self) -> Vec<Claimed> {
        self.linger_until = None;
        let ready = std::mem::replace(&mut self.ready, TenantQueue::new());
        ready.into_iter().chain(self.alone.drain(..)).collect()
    }

    /// Returns how many claims wait for a slot, or for the limit.
    pub(crate) fn waiting(&self) -> usize {
        self.ready.len() + self.alone.len()
    }

    /// Returns how many claims are renewed before they can start.
    pub(crate) fn renewing(&self) -> usize {
        self.renewing.len()
    }

    /// Returns the claims that were taken ahead of the slots, and wait for one.
    fn without_slot(&self) -> impl Iterator<Item = &Claimed> {
        self.ready.iter().chain(&self.alone).filter(|claimed| !claimed.permits.has_slot())
    }

    /// Returns whether there are such claims.
    pub(crate) fn waits_for_slot(&self) -> bool {
        self.without_slot().next().is_some()
    }

    /// Returns how many claims have all but their calls within the limit, where handlers may run for `max` messages, and so many slots are free.
    pub(crate) fn startable(&self, max: usize, free: usize) -> usize {
        let in_slots = self.waiting() - self.without_slot().count().saturating_sub(free);
        in_slots.min(max.saturating_sub(self.in_runs))
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.runs.is_empty() && self.renewing.is_empty()
    }

    /// Returns until when a call waits for other items; `None` once that is over, too: what it then waits for is a slot.
    pub(crate) fn linger_until(&self) -> Option<Instant> {
        self.linger_until.filter(|at| !time_until(*at).is_zero())
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }

    /// Starts handlers in free slots, until they run for `max` messages; a call waits a moment for others, where more claims
    /// are on their way.
    pub(crate) fn start(&mut self, max: usize, starts: &mut Starts<'a>, more: bool) {
        let cx = self.cx;
        match &cx.shared.consumer.handler {
            Runner::Each(handler) => self.start_each(handler, max, starts),
            Runner::Batch(handler) => self.start_calls(handler, max, starts, more),
        }
    }

    fn start_each(&mut self, handler: &'a AnyHandler, max: usize, starts: &mut Starts<'a>) {
        while self.in_runs < max {
            let Some(claimed) = self.take(starts, false) else { break };
            self.in_runs += 1;
            self.runs.push(Box::pin(run(self.cx, handler, claimed)));
        }
    }

    fn start_calls(&mut self, handler: &'a AnyBatchHandler, max: usize, starts: &mut Starts<'a>, more: bool) {
        let items_max = self.cx.shared.consumer.options.items_max();
        while self.in_runs < max {
            // What may have failed a call before fails no other item now.
            let alone = !self.alone.is_empty();
            let lingered = self.linger_until.is_some_and(|at| time_until(at).is_zero());
            let room = items_max.min(max - self.in_runs);
            let count = if alone { 1 } else { admission::to_call(self.ready.len(), room, more && !lingered) };
            let items: Vec<_> = (0..count).map_while(|number| self.take(starts, number > 0)).collect();
            if items.is_empty() {
                break;
            }
            self.in_runs += items.len();
            let call = call::call(self.cx, handler, items);
            self.runs.push(Box::pin(async { Ended::Call(call.await) }));
        }
        let waits = self.waiting() > 0 && self.in_runs < max && more;
        let linger = || Instant::now() + Duration::from_millis(CALL_LINGER_MS);
        self.linger_until = waits.then(|| self.linger_until.unwrap_or_else(linger));
    }

    /// Takes a claim that waits, with a slot, within the limit; `None` where there is none of either. One that has waited for long is
    /// renewed before. A call `goes_on` with those behind its first one.
    fn take(&mut self, starts: &mut Starts<'a>, goes_on: bool) -> Option<Claimed> {
        let (cx, tenants) = (self.cx, &self.cx.shared.slots.tenants);
        loop {
            let (place, claimed) = match self.alone.front_mut() {
                Some(alone) => (None, alone),
                None => {
                    let place = self.ready.next_start(tenants)?;
                    (Some(place), self.ready.get_mut(place)?)
                }
            };
            if !claimed.permits.has_slot() {
                claimed.permits.take_slot_of(starts.slots.take(cx.slot_by())?);
            }
            let late = lease_to_renew_first(cx, claimed).filter(|_| starts.limit.may_begin(goes_on));
            if late.is_none() {
                claimed.permits.limit_permit = starts.limit.begin(goes_on)?;
                if let Some(in_hand) = &mut claimed.permits.in_hand {
                    tenants.start(in_hand);
                }
            }
            let claimed = match place {
                Some(place) => self.ready.take(place),
                None => self.alone.pop_front(),
            };
            match late {
                Some(lease) => self.renewing.push(Box::pin(renew_first(cx, claimed?, lease))),
                None => return claimed,
            }
        }
    }

    /// Waits until a handler ends, or a claim is renewed, of which nothing came yet; `None` where there is neither. Cancel safe.
    pub(crate) async fn next(&mut self) -> Option<Option<Ended>> {
        tokio::select! {
            biased;
            Some(ended) = self.runs.next() => {
                self.after_run(&ended);
                Some(Some(ended))
            }
            Some((claimed, renewed)) = self.renewing.next() => Some(self.after_renewal(claimed, renewed)),
            else => None,
        }
    }

    fn after_renewal(&mut self, claimed: Claimed, renewed: Renewed) -> Option<Ended> {
        if renewed == Renewed::Held {
            self.make_ready_first(claimed);
            return None;
        }
        let ran = Ran::new(self.cx, claimed.without_payload(), RunEnd::LeaseLostUnstarted, Duration::ZERO);
        Some(Ended::One(ran))
    }

    fn after_run(&mut self, ended: &Ended) {
        let (items, longest) = match ended {
            Ended::One(ran) => {
                ran.end.teach(self.cx, ran.took, ran.health());
                (1, ran.took)
            }
            Ended::Call(call) => (call.items.len(), call.longest),
        };
        self.in_runs -= items;
        self.longest = self.longest.max(longest);
    }
}

async fn run(cx: BatchContext<'_>, handler: &AnyHandler, claimed: Claimed) -> Ended {
    let (mut claimed, payload) = claimed.split();
    let start = Instant::now();
    let end = to_end(&cx, &claimed.work, handler, &mut claimed.claim, payload).await;
    Ended::One(Ran::new(cx, claimed, end, start.elapsed()))
}
