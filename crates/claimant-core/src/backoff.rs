//! When a failed message comes back.

use std::time::Duration;

use crate::key::MessageId;
use crate::limits::{BACKOFF_BASE_MS, BACKOFF_FACTOR, BACKOFF_MAX_MS, REJECTED_BASE_MS};

/// The delay before the next try after try number `attempt` (from 1): growing, capped, and spread over the upper
/// half of it so that messages that failed together do not come back together.
///
/// The spread comes from the message id, not from a random generator: the same run gives the same delays.
#[must_use]
pub fn delay(attempt: u32, message_id: &MessageId) -> Duration {
    let full = ceiling(BACKOFF_BASE_MS, BACKOFF_FACTOR, attempt);
    let half = full / 2;
    Duration::from_millis(half + spread(message_id, attempt) % (full - half + 1))
}

/// The delay before a rejected message is shown again, on its way to the dead-letter queue: at first none, then
/// growing, so that a queue without a redrive policy is not a hot loop.
pub(crate) fn rejected_delay(receive_count: u32) -> Duration {
    match receive_count {
        0 | 1 => Duration::ZERO,
        n => Duration::from_millis(ceiling(REJECTED_BASE_MS, 2, n - 1)),
    }
}

/// Up to a second, so that messages that wait for the same moment do not all come at once.
pub(crate) fn jitter(message_id: &MessageId) -> Duration {
    Duration::from_millis(spread(message_id, 0) % 1_000)
}

fn ceiling(base: u64, factor: u64, attempt: u32) -> u64 {
    base.saturating_mul(factor.saturating_pow(attempt.saturating_sub(1))).min(BACKOFF_MAX_MS)
}

/// FNV-1a: a few instructions, and only a spread is needed.
fn spread(message_id: &MessageId, attempt: u32) -> u64 {
    let bytes = message_id.as_str().bytes().chain(attempt.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_within_bounds() {
        let id = MessageId::new("m-1").unwrap();
        for (attempt, full) in [(0, 2_000), (1, 2_000), (2, 10_000), (4, 250_000), (5, 900_000), (u32::MAX, 900_000)] {
            let ms = delay(attempt, &id).as_millis();
            assert!((full / 2..=full).contains(&ms), "attempt {attempt}: {ms} ms");
        }
        assert_ne!(delay(9, &id), delay(9, &MessageId::new("m-2").unwrap()));
        let rejected: Vec<_> = (1..=5).map(|n| rejected_delay(n).as_secs()).collect();
        assert_eq!(rejected, [0, 1, 2, 4, 8]);
    }
}
