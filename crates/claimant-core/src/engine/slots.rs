//! What all invocations of an engine share: slots for handlers, and the claims that a store can hold at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::limit::shared::Permit;
use super::tenants::{InHand, Tenants};
use crate::limits::{CLAIM_AHEAD_MAX, STORE_BATCH_MAX};

/// The slots of one engine. Who waits for one is served in the order of coming, so no invocation starves another.
#[derive(Debug)]
pub(crate) struct Slots {
    /// How many there are.
    pub(crate) concurrency: usize,
    handlers: Arc<Semaphore>,
    /// Where claims are scarce.
    claims: Option<Arc<Semaphore>>,
    /// Claims that are under way or wait for a slot, of all invocations.
    ahead: Arc<Semaphore>,
    invocations: AtomicUsize,
    /// What each tenant has of them.
    pub(crate) tenants: Tenants,
}

/// What a message holds: each is free again when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Permits {
    /// From the start of its handler, or from the claim where none are taken ahead, to the handler's end; where none starts, to the settlement.
    slot: Option<OwnedSemaphorePermit>,
    /// From the claim to its settlement, where claims are scarce.
    claim: Option<OwnedSemaphorePermit>,
    /// From the claim until it has a slot, where claims are made ahead.
    ahead: Option<OwnedSemaphorePermit>,
    /// From the start of its handler to its end.
    pub(crate) limit_permit: Permit,
    /// From the claim to the end of its handler, where the message has a tenant.
    pub(crate) in_hand: Option<Box<InHand>>,
}

impl Permits {
    pub(crate) fn has_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// Takes the slot that another one holds, with its claim if claims are scarce.
    pub(crate) fn take_slot_of(&mut self, other: Self) {
        (self.slot, self.claim, self.ahead) = (other.slot, other.claim, None);
    }

    /// Its handler has ended: the slot is free for another one.
    pub(crate) fn free_slot(&mut self) {
        (self.slot, self.limit_permit, self.in_hand) = (None, Permit::default(), None);
    }
}

impl Slots {
    pub(crate) fn new(concurrency: usize, claims: Option<usize>) -> Self {
        let claims = claims.map(|claims| Arc::new(Semaphore::new(claims)));
        // As many as one invocation alone would take, in whole requests.
        let ahead = Arc::new(Semaphore::new(concurrency + CLAIM_AHEAD_MAX + STORE_BATCH_MAX));
        let handlers = Arc::new(Semaphore::new(concurrency));
        let (invocations, tenants) = (AtomicUsize::new(0), Tenants::default());
        Self { concurrency, handlers, claims, ahead, invocations, tenants }
    }

    /// Takes a free slot, with a claim if claims are scarce.
    pub(crate) fn take(&self) -> Option<Permits> {
        let slot = Arc::clone(&self.handlers).try_acquire_owned().ok()?;
        let claim = match &self.claims {
            Some(claims) => Some(Arc::clone(claims).try_acquire_owned().ok()?),
            None => None,
        };
        Some(Permits { slot: Some(slot), claim, ..Permits::default() })
    }

    /// As [`take`](Self::take), when it is free; `None` if no slot is free by `by`. Who holds a claim waits for no slot, and who
    /// holds a slot waits only for claims, which end by themselves: no invocation waits for ever.
    pub(crate) async fn wait(&self, by: Instant) -> Option<Permits> {
        let slot = timeout_at(by, Arc::clone(&self.handlers).acquire_owned()).await.ok()?.ok()?;
        let claim = match &self.claims {
            Some(claims) => Some(timeout_at(by, Arc::clone(claims).acquire_owned()).await.ok()?.ok()?),
            None => None,
        };
        Some(Permits { slot: Some(slot), claim, ..Permits::default() })
    }

    /// Counts an invocation until what this gives is dropped.
    pub(crate) fn enter(&self) -> impl Drop + '_ {
        self.invocations.fetch_add(1, Ordering::Relaxed);
        Entered(&self.invocations)
    }

    /// Returns how many invocations share the slots now: one at least.
    pub(crate) fn invocations(&self) -> usize {
        self.invocations.load(Ordering::Relaxed).max(1)
    }
}

struct Entered<'a>(&'a AtomicUsize);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One invocation's way to the slots: while all are taken, the next one is waited for.
pub(crate) struct SlotQueue<'a> {
    slots: &'a Slots,
    waiting: Option<BoxFuture<'a, Option<Permits>>>,
    /// The slot that came.
    spare: Option<Permits>,
}

impl<'a> SlotQueue<'a> {
    pub(crate) fn new(slots: &'a Slots) -> Self {
        Self { slots, waiting: None, spare: None }
    }

    /// Takes a free slot; if there is none, starts to wait for the next one until `by`.
    pub(crate) fn take(&mut self, by: Instant) -> Option<Permits> {
        let permits = self.spare.take().or_else(|| self.slots.take());
        if permits.is_none() && self.waiting.is_none() {
            self.waiting = Some(Box::pin(self.slots.wait(by)));
        }
        permits
    }

    /// Returns how many slots are free, with claims if those are scarce.
    pub(crate) fn free(&self) -> usize {
        let claims = self.slots.claims.as_ref().map_or(usize::MAX, |claims| claims.available_permits());
        self.slots.handlers.available_permits().min(claims) + usize::from(self.spare.is_some())
    }

    /// Returns whether one is free; if there is none, starts to wait for the next one until `by`.
    pub(crate) fn has_free(&mut self, by: Instant) -> bool {
        if self.free() == 0 {
            self.spare = self.take(by);
        }
        self.free() > 0
    }

    /// Returns how many claims may be made ahead of slots, while this invocation has so many in hand: in whole requests, since others of the
    /// process have the rest. One at least where it has none, since nothing else wakes it.
    pub(crate) fn room_ahead(&self, in_hand: usize) -> usize {
        let free = self.slots.ahead.available_permits() / STORE_BATCH_MAX * STORE_BATCH_MAX;
        if in_hand == 0 { free.max(1) } else { free }
    }

    /// Takes the right to a claim ahead of its slot; where there is none, and this invocation has no claim in hand, a slot as
    /// [`take`](Self::take) does.
    pub(crate) fn take_ahead(&mut self, in_hand: usize, by: Instant) -> Option<Permits> {
        match Arc::clone(&self.slots.ahead).try_acquire_owned() {
            Ok(ahead) => Some(Permits { ahead: Some(ahead), ..Permits::default() }),
            Err(_) if in_hand == 0 => self.take(by),
            Err(_) => None,
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Stops waiting, since no message needs a slot.
    pub(crate) fn stop_waiting(&mut self) {
        self.waiting = None;
    }

    /// Gives up a slot that came and is not needed, for other invocations.
    pub(crate) fn give_back(&mut self) {
        self.spare = None;
    }

    /// Waits until a slot has come or the time for it is over; for ever where none is waited for. Cancel safe.
    pub(crate) async fn arrived(&mut self) {
        match &mut self.waiting {
            Some(waiting) => self.spare = waiting.await,
            None => std::future::pending().await,
        }
        self.waiting = None;
    }
}
