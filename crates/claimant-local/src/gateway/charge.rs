//! What is charged.

use serde::{Deserialize, Serialize};

/// Bytes of an `Idempotency-Key` at most.
pub const KEY_MAX_BYTES: usize = 255;
/// Bytes of a reference at most.
pub const REFERENCE_MAX_BYTES: usize = 255;

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
    /// The `Idempotency-Key`; `None` for a charge of `/legacy/charges`.
    pub key: Option<String>,
    /// How many requests it answers.
    pub requests: u32,
}
