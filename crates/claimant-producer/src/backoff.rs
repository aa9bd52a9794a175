//! How long to wait before the next try.

use std::time::Duration;

/// The wait before the first one, at most twice as long; then doubling.
pub(crate) const BACKOFF_BASE_MS: u64 = 100;

/// How often a wait doubles, at most.
pub(crate) const DOUBLINGS_MAX: u32 = 5;

/// Returns how long to wait after so many failures in a row: doubling, and spread over the upper half by this id, so that callers that
/// failed together do not retry together.
pub(crate) fn backoff(failures: u32, id: &str) -> Duration {
    let full = BACKOFF_BASE_MS << failures.clamp(1, DOUBLINGS_MAX);
    let hash = |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte));
    let spread = id.bytes().fold(u64::from(failures), hash);
    Duration::from_millis(full / 2 + spread % (full / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the second id the sum is more than 64 bits take.
    #[test]
    fn a_backoff_has_any_id() {
        for id in ["k", "#%(20>3;=%#/3<"] {
            let waited = backoff(1, id).as_millis();
            assert!(
                (u128::from(BACKOFF_BASE_MS)..=u128::from(2 * BACKOFF_BASE_MS)).contains(&waited),
                "{id}: {waited}"
            );
        }
    }
}
