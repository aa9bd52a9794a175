//! What a consumer chooses: what becomes of abandoned work, of another payload of a key, and how long keys are kept.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::limits;

/// What becomes of work whose owner did not settle it before its lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Abandoned {
    /// Another owner claims it and runs the handler again.
    #[default]
    Rerun,
    /// It is not run again until an operator decides: at most once.
    Park,
}

/// The error of a record that is parked because its owner left it.
pub const ABANDONED: &str = "its owner's lease ended before it was settled: the work may be done";

/// What becomes of a message whose key belongs to work with another payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conflicts {
    /// It is rejected, loudly: one key with two payloads is a mistake of the producer or of the key rule.
    #[default]
    Reject,
    /// The key alone says what is the same work: it is treated as a duplicate.
    Ignore,
}

/// How a consumer treats the records of its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimPolicy {
    /// What becomes of abandoned work.
    pub abandoned: Abandoned,
    /// What becomes of a key with another payload.
    pub conflicts: Conflicts,
    /// By how much the clocks of two owners may differ (ε): a lease is over only this long after its end.
    pub skew: Duration,
    /// For how long after its last write a record keeps duplicates out.
    pub window: Duration,
}

impl Default for ClaimPolicy {
    fn default() -> Self {
        Self {
            abandoned: Abandoned::Rerun,
            conflicts: Conflicts::Reject,
            skew: Duration::from_millis(limits::SKEW_DEFAULT_MS),
            window: Duration::from_secs(limits::WINDOW_DEFAULT_S),
        }
    }
}

/// Returns when the deduplication window of a record written now ends, in seconds. It begins where the lease is over, so that
/// neither a duplicate nor the table's TTL gets rid of a record while it is the evidence of abandoned work.
#[must_use]
pub fn expiry(now: Timestamp, lease_until: Timestamp, policy: &ClaimPolicy) -> u64 {
    now.max(lease_until.plus(policy.skew)).plus(policy.window).as_secs_rounded_up()
}

/// Returns when the deduplication window of a record that is settled now ends, in seconds.
#[must_use]
pub fn window_end(now: Timestamp, policy: &ClaimPolicy) -> u64 {
    now.plus(policy.window).as_secs_rounded_up()
}
