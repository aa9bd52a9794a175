//! When a failed message comes back.

use std::time::Duration;

use crate::key::MessageId;
use crate::limits::{
    BACKOFF_BASE_MS, BACKOFF_FACTOR, BACKOFF_MAX_MS, BREAKER_HIDDEN_MS, BREAKER_RECEIVES_SPARE, REJECTED_BASE_MS,
    SENT_AGAIN_LATE_S, STORE_RETRY_BASE_MS, STORE_RETRY_LEFT_MIN_MS, STORE_RETRY_MAX_MS, VISIBILITY_MAX_S,
};

/// Returns the delay before the next try after try number `attempt` (from 1): growing, capped, and spread over the upper
/// half of it so that messages that failed together do not come back together.
///
/// The spread comes from the message id, not from a random generator: the same run gives the same delays.
#[must_use]
pub fn delay(attempt: u32, message_id: &MessageId) -> Duration {
    let half = ceiling(BACKOFF_BASE_MS, BACKOFF_FACTOR, attempt) / 2;
    Duration::from_millis(half + spread(message_id, attempt) % half)
}

/// Returns whether no queue can hide a message for so long.
pub(crate) fn is_long(delay: Duration) -> bool {
    delay > Duration::from_secs(VISIBILITY_MAX_S)
}

/// Returns whether what is sent again after so long is still known to have been done, by a consumer of this window: a schedule may be late.
pub(crate) fn is_remembered(window: Duration, delay: Duration) -> bool {
    delay.saturating_add(Duration::from_secs(SENT_AGAIN_LATE_S)) <= window
}

/// Returns the delay before a rejected message is visible again, on its way to the dead-letter queue: at first none, then
/// growing, so that a queue without a redrive policy is not a hot loop.
pub(crate) fn rejected_delay(receive_count: u32) -> Duration {
    match receive_count {
        0 | 1 => Duration::ZERO,
        n => Duration::from_millis(ceiling(REJECTED_BASE_MS, 2, n - 1)),
    }
}

/// Returns the delay before a message for which there was no time is delivered again: none after its first receive. From the second
/// on its batches do not fit into their invocations, so it waits as long as one of them can take, and twice as long with each
/// further receive, spread over the upper half: others are done meanwhile, and its receives last until it has a turn. `None`, the queue's
/// own visibility timeout, for a function that never has time: anything else would be a hot loop to the dead-letter queue.
pub(crate) fn turn_delay(receive_count: u32, invocation: Duration, message_id: &MessageId) -> Option<Duration> {
    if invocation.is_zero() {
        return None;
    }
    if receive_count <= 1 {
        return Some(Duration::ZERO);
    }
    // OK because an invocation lasts minutes.
    let half = ceiling(invocation.as_millis() as u64, 2, receive_count - 1) / 2;
    Some(Duration::from_millis(half + spread(message_id, receive_count) % half.max(1)))
}

/// Returns the delay before a message that an open breaker held back is delivered again: twice as long with each receive, so that
/// its receives outlast the outage, and spread over the upper quarter.
pub(crate) fn held_delay(receive_count: u32, message_id: &MessageId) -> Duration {
    let doubled = 2_u64.saturating_pow(receive_count.saturating_sub(1));
    let quarter = BREAKER_HIDDEN_MS.saturating_mul(doubled).min(VISIBILITY_MAX_S * 1_000) / 4;
    Duration::from_millis(quarter * 3 + spread(message_id, receive_count) % quarter)
}

/// Returns the same where the intake is paused for `paused`, which it cannot be received before: just that, unless the message needs its
/// last receives, as far as it is known how many there are. Spread over a few seconds.
pub(crate) fn paused_delay(
    receive_count: u32,
    receives_left: Option<u32>,
    paused: Duration,
    message_id: &MessageId,
) -> Duration {
    let until = paused + jitter(message_id) * 5;
    match receives_left.is_some_and(|left| left < BREAKER_RECEIVES_SPARE) {
        true => until.max(held_delay(receive_count, message_id)),
        false => until,
    }
}

/// Returns the delay before a message that waited in vain for its limit is delivered again: after its first receive up to as long as
/// its invocation lasted, and then as one that a breaker held back, so that its receives last while the backlog is worked off.
pub(crate) fn limited_delay(receive_count: u32, invocation: Duration, message_id: &MessageId) -> Duration {
    match receive_count {
        0 | 1 => turn_delay(2, invocation, message_id).unwrap_or_default(),
        n => held_delay(n - 1, message_id),
    }
}

/// Returns the delay before a store that gave no answer to try number `tries` (from 1) is called again, for this message and
/// those with it: growing, capped, spread over its upper half, and at most half of the time that is left, so that the last tries
/// come close to its end. `None` where hardly any is left.
pub(crate) fn store_delay(tries: u32, message_id: &MessageId, left: Duration) -> Option<Duration> {
    if left < Duration::from_millis(STORE_RETRY_LEFT_MIN_MS) {
        return None;
    }
    let full =
        STORE_RETRY_BASE_MS.saturating_mul(2_u64.saturating_pow(tries.saturating_sub(1))).min(STORE_RETRY_MAX_MS);
    let delay = Duration::from_millis(full / 2 + spread(message_id, tries) % (full / 2));
    Some(delay.min(left / 2))
}

/// Returns up to a second, so that messages that wait for the same moment do not all come at once.
pub(crate) fn jitter(message_id: &MessageId) -> Duration {
    Duration::from_millis(spread(message_id, 0) % 1_000)
}

fn ceiling(base: u64, factor: u64, attempt: u32) -> u64 {
    base.saturating_mul(factor.saturating_pow(attempt.saturating_sub(1))).min(BACKOFF_MAX_MS)
}

/// Returns a number that differs from message to message.
pub(crate) fn seed(message_id: &MessageId) -> u64 {
    spread(message_id, 0)
}

/// Hashes by FNV-1a: a few instructions, and only a spread is needed.
fn spread(message_id: &MessageId, attempt: u32) -> u64 {
    let bytes = message_id.as_str().bytes().chain(attempt.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn delays_grow_within_bounds() {
        let id = MessageId::new("m-1").unwrap();
        for (attempt, full) in [(0, 2_000), (1, 2_000), (2, 10_000), (4, 250_000), (5, 900_000), (u32::MAX, 900_000)] {
            let ms = delay(attempt, &id).as_millis();
            assert!((full / 2..=full).contains(&ms), "attempt {attempt}: {ms} ms");
        }
        assert_ne!(delay(9, &id), delay(9, &MessageId::new("m-2").unwrap()));
        let turn = |n| turn_delay(n, Duration::from_secs(10), &id).unwrap().as_millis();
        assert_eq!((turn(0), turn(1)), (0, 0));
        assert_eq!([1, 9].map(|n| turn_delay(n, Duration::ZERO, &id)), [None, None]);
        for (receive_count, full) in [(2, 10_000), (3, 20_000), (5, 80_000), (u32::MAX, 900_000)] {
            assert!((full / 2..=full).contains(&turn(receive_count)), "{receive_count}");
        }
        let limited = |n| limited_delay(n, Duration::from_secs(10), &id);
        assert_eq!((limited(2), limited(6)), (held_delay(1, &id), held_delay(5, &id)));
        assert!((5_000..=10_000).contains(&limited(1).as_millis()) && limited(0) == limited(1));
        for (receive_count, s) in [(0, 300), (1, 300), (2, 600), (5, 4_800), (9, 42_300), (u32::MAX, 42_300)] {
            let ms = held_delay(receive_count, &id).as_millis();
            assert!((s * 750..=s * 1_000).contains(&ms), "{receive_count}: {ms} ms");
        }
        // Of 5 receives the last ones are spared; 10 of them last for long.
        for (receives, max, least) in
            [(1, 5, 360), (2, 5, 360), (3, 5, 900), (4, 5, 1_800), (7, 10, 360), (8, 10, 28_800)]
        {
            let s = paused_delay(receives, Some(max - receives), Duration::from_secs(360), &id).as_secs();
            assert!((least..least * 3 / 2).contains(&s), "{receives} of {max}: {s} s");
        }
        let rejected: Vec<_> = (1..=5).map(|n| rejected_delay(n).as_secs()).collect();
        assert_eq!(rejected, [0, 1, 2, 4, 8]);
    }

    #[test]
    fn a_store_is_asked_again_soon_seldom_and_until_the_time_is_over() {
        let id = MessageId::new("m-1").unwrap();
        let long = Duration::from_secs(900);
        for (tries, full) in [(0, 50), (1, 50), (2, 100), (5, 800), (6, 1_000), (u32::MAX, 1_000)] {
            let ms = store_delay(tries, &id, long).unwrap().as_millis();
            assert!((full / 2..full).contains(&ms), "try {tries}: {ms} ms");
        }
        let of = |ms| store_delay(9, &id, Duration::from_millis(ms)).map(|delay| delay.as_millis());
        assert_eq!([of(200), of(20), of(19), of(0)], [Some(100), Some(10), None, None]);
        // What is said of these times, whatever the spread, and where each answer comes at once.
        for (seconds, wanted) in [(1, 10..=10), (5, 15..=17), (20, 25..=50)] {
            for n in 0..50 {
                let (id, mut left) = (MessageId::new(format!("m-{n}")).unwrap(), Duration::from_secs(seconds));
                let mut tries = 1;
                while let Some(delay) = store_delay(tries, &id, left) {
                    (left, tries) = (left - delay, tries + 1);
                }
                assert!(wanted.contains(&tries), "{tries} in {seconds} s");
            }
        }
    }

    /// The smallest, the largest and the number of different ones, in milliseconds.
    fn spread_of(delay: impl Fn(&MessageId) -> Duration) -> (u128, u128, usize) {
        let delays: BTreeSet<_> =
            (0..200).map(|n| delay(&MessageId::new(format!("m-{n}")).unwrap()).as_millis()).collect();
        (*delays.first().unwrap(), *delays.last().unwrap(), delays.len())
    }

    #[test]
    fn what_failed_together_comes_back_spread_over_the_upper_half() {
        let (first, last, different) = spread_of(|id| delay(4, id));
        assert!((125_000..130_000).contains(&first) && (245_000..250_000).contains(&last), "{first} to {last} ms");
        assert!(different > 190, "{different}");
        let (first, last, different) = spread_of(jitter);
        assert!(first < 50 && (950..1_000).contains(&last) && different > 150, "{first} to {last} ms, {different}");
        // The next try of a message is not as far from its neighbours' as this one.
        let id = MessageId::new("m-1").unwrap();
        assert_ne!(delay(8, &id), delay(9, &id));
    }
}
