//! A payment gateway that charges nobody, and counts.
//!
//! `POST /charges` takes `{"amount_cents": 1250, "currency": "EUR", "reference": "ord-1001"}` with an `Idempotency-Key`
//! and answers a receipt. The same key with the same charge gives the same receipt, and charges once; with another charge
//! it is refused (422). `POST /legacy/charges` knows no keys: it charges each time. `GET /_claimant/charges` lists what was
//! charged. What the reference starts with decides what happens, so that failures can be had on demand:
//!
//! | reference | `/charges` and `/legacy/charges` |
//! | --- | --- |
//! | `flaky…` | charged, but the first time the connection is closed without an answer |
//! | `slow…` | charged at once; the first answer comes [`SLOW_DELAY`] (settable) later |
//! | `unavailable…` | the first time refused with 503, and not charged |
//! | `declined…` | always refused with 402, and not charged |
//! | anything else | charged |

mod http;
mod ledger;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

use crate::Error;
use crate::host;
use ledger::Ledger;

/// Charges made at most; then every new one is refused with 503. None is forgotten, since it would be made twice.
pub const CHARGES_MAX: usize = 100_000;
/// Charges that `GET /_claimant/charges` lists: the latest ones.
pub const LISTED_MAX: usize = 1_000;
/// Bytes of an `Idempotency-Key` at most.
pub const KEY_MAX_BYTES: usize = 255;
/// Bytes of a reference at most.
pub const REFERENCE_MAX_BYTES: usize = 255;
/// How long a `slow…` charge's answer takes unless set otherwise.
pub const SLOW_DELAY: Duration = Duration::from_secs(2);

/// What is to be charged, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// How much, in hundredths; 1 or more.
    pub amount_cents: u64,
    /// Three capital letters.
    pub currency: String,
    /// What it is for: 1 to [`REFERENCE_MAX_BYTES`] bytes.
    pub reference: String,
}

/// A charge that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Charge {
    /// The gateway's id of it.
    pub charge_id: String,
    /// What was charged.
    #[serde(flatten)]
    pub order: Order,
    /// The `Idempotency-Key`; `None` where it was made by the gateway that knows none.
    pub key: Option<String>,
    /// How many requests it answers.
    pub requests: u32,
}

/// The gateway and what it charged. Clones share one ledger.
#[derive(Debug, Clone)]
pub struct Gateway {
    ledger: Arc<Mutex<Ledger>>,
    slow_delay: Duration,
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

    /// Serves on `listener` until `shutdown` resolves and the requests under way are answered.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        axum::serve(listener, host::loopback_only(http::router(self)))
            .with_graceful_shutdown(shutdown)
            .await
            .map_err(|e| Error::new("the payment gateway stopped: its listener failed").caused_by(e))
    }

    /// OK to use a poisoned lock: every change under it is complete before anything can panic.
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
