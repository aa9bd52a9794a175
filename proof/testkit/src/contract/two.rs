//! Two instances of a store, of which each call meets one: as two processes with the same records.

use std::sync::{Arc, Mutex, PoisonError};

use claimant_core::Store;
use fastrand::Rng;

/// Which instance a call meets is drawn, for checks fall into step with any pattern, such as a claim and a look in turn. The seed is always
/// the same, so that what was found is found again.
pub(super) struct Two {
    instances: [Arc<dyn Store>; 2],
    draws: Mutex<Rng>,
}

impl Two {
    pub(super) fn new(one: Arc<dyn Store>, other: Arc<dyn Store>) -> Self {
        Self { instances: [one, other], draws: Mutex::new(Rng::with_seed(1)) }
    }

    fn next(&self) -> &dyn Store {
        let mut draws = self.draws.lock().unwrap_or_else(PoisonError::into_inner);
        self.instances[usize::from(draws.bool())].as_ref()
    }
}

impl Store for Two {
    crate::pass_on!(self => self.next(); claim, claim_all, renew, settle, settle_all, get);
    crate::pass_on!(self => self.instances[0]; claims_max, claims_outlive_owners);
}
