//! The gateway: one ledger, shared by its clones.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::charge::Charge;
use super::ledger::Ledger;
use crate::faults::Faults;
use crate::journal::Journal;
use crate::sync::lock;

/// How long a `slow…` charge's answer takes unless set otherwise.
pub const SLOW_DELAY: Duration = Duration::from_secs(2);

/// The gateway and what it charged. Clones share one ledger.
#[derive(Debug, Clone)]
pub struct Gateway {
    ledger: Arc<Mutex<Ledger>>,
    pub(super) slow_delay: Duration,
    pub(super) journal: Journal,
    pub(super) faults: Faults,
}

impl Default for Gateway {
    fn default() -> Self {
        Self::new()
    }
}

impl Gateway {
    /// A gateway that has charged nothing.
    pub fn new() -> Self {
        Self { ledger: Arc::default(), slow_delay: SLOW_DELAY, journal: Journal::off(), faults: Faults::default() }
    }

    /// The same gateway with another delay for `slow…` references. Clones made before keep theirs.
    #[must_use]
    pub fn with_slow_delay(mut self, delay: Duration) -> Self {
        self.slow_delay = delay;
        self
    }

    /// The same gateway, which writes each answer into this journal, and has these faults. Clones made before keep theirs.
    #[must_use]
    pub fn observed(mut self, journal: &Journal, faults: &Faults) -> Self {
        (self.journal, self.faults) = (journal.clone(), faults.clone());
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
