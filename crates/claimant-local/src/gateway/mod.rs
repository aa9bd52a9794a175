//! A payment gateway that records charges instead of making them.
//!
//! `POST /charges` takes `{"amount_cents": 1250, "currency": "EUR", "reference": "ord-1001"}` with an `Idempotency-Key`
//! and answers a receipt. The same key with the same charge gives the same receipt, and charges once; with another charge
//! it is refused (422). `POST /legacy/charges` does not deduplicate by idempotency key: it charges each time. `GET /_claimant/charges` lists what was
//! charged. What the reference starts with decides what happens, so that failures can be provoked:
//!
//! | reference | `/charges` and `/legacy/charges` |
//! | --- | --- |
//! | `flaky…` | charged, but the first time the connection is closed without an answer |
//! | `slow…` | charged at once; the first answer comes [`SLOW_DELAY`] (settable) later |
//! | `unavailable…` | the first time refused with 503, and not charged |
//! | `declined…` | always refused with 402, and not charged |
//! | anything else | charged |

mod charge;
mod http;
mod ledger;
mod service;

pub use charge::{Charge, KEY_MAX_BYTES, Order, REFERENCE_MAX_BYTES};
pub use http::LISTED_MAX;
pub use ledger::CHARGES_MAX;
pub use service::{Gateway, SLOW_DELAY};
