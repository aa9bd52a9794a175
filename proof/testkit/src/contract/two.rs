//! Two instances of a store, of which each call meets the next: as two processes with the same records.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claimant_core::Store;

pub(super) struct InTurn {
    instances: [Arc<dyn Store>; 2],
    calls: AtomicUsize,
}

impl InTurn {
    pub(super) fn new(one: Arc<dyn Store>, other: Arc<dyn Store>) -> Self {
        Self { instances: [one, other], calls: AtomicUsize::new(0) }
    }

    fn next(&self) -> &dyn Store {
        self.instances[self.calls.fetch_add(1, Ordering::Relaxed) % 2].as_ref()
    }
}

impl Store for InTurn {
    crate::pass_on!(self => self.next(); claim, claim_all, renew, settle, settle_all, get);
    crate::pass_on!(self => self.instances[0]; claims_max, claims_outlive_owners);
}
