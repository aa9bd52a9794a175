//! The gateway: one ledger, shared by its clones.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::charge::Charge;
use super::ledger::Ledger;
use crate::sync::lock;

/// How long a `slow…` charge's answer takes unless set otherwise.
pub const SLOW_DELAY: Duration = Duration::from_secs(2);

/// The gateway and what it charged. Clones share one ledger.
#[derive(Debug, Clone)]
pub struct Gateway {
    ledger: Arc<Mutex<Ledger>>,
    pub(super) slow_delay: Duration,
}

impl Default for Gateway {
    fn default() -> Self {
        Self::new()
    }
}

impl Gateway {
    /// A gateway that has charged nothing.
    pub fn new() -> Self {
        Self { ledger: Arc::default(), slow_delay: SLOW_DELAY }
    }

    /// The same gateway with another delay for `slow…` references. Clones made before keep theirs.
    #[must_use]
    pub fn with_slow_delay(mut self, delay: Duration) -> Self {
        self.slow_delay = delay;
        self
    }

    /// What was charged, oldest first.
    pub fn charges(&self) -> Vec<Charge> {
        self.ledger().charges().to_vec()
    }

    /// How many well-formed requests to charge came, whatever the answer.
    pub fn requests(&self) -> u64 {
        self.ledger().requests()
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        lock(&self.ledger)
    }
}
