//! How many claims to take, when to write completions, and what still fits into the time: pure rules.

use std::time::Duration;

use crate::limits::{CLAIM_AHEAD_MAX_MS, START_MIN_MS, STORE_BATCH_MAX};

/// What holds for a whole pass of the loop, since it is read once: if stages saw different answers, one could leave a message to a stage
/// that no longer takes it, and nothing would wake the loop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass {
    /// Whether a handler that starts now fits into the time.
    pub(super) fits: bool,
    /// Whether messages that wait for their claims go on waiting.
    pub(super) may_wait: bool,
    /// Whether they wait while suspects of other consumers have the time.
    pub(super) must_yield: bool,
}

/// Returns how many keys to claim now.
///
/// `in_hand` counts the claims that are under way, waiting for a slot or running; `ahead` is how many may wait for a
/// slot. Where some may, claims are taken in whole requests, unless it is `urgent`; where none may, only as slots become free, so
/// that no lease runs while its message waits.
pub(crate) fn to_claim(waiting: usize, in_hand: usize, (concurrency, ahead): (usize, usize), urgent: bool) -> usize {
    let room = (concurrency + ahead).saturating_sub(in_hand);
    let all = urgent || waiting <= room || ahead == 0;
    if all { waiting.min(room) } else { room / STORE_BATCH_MAX * STORE_BATCH_MAX }
}

/// Returns how many of the claims that are ready a call gets that has room for so many: none where it is better to wait for
/// others.
pub(crate) fn to_call(ready: usize, room: usize, others_will_come: bool) -> usize {
    if others_will_come && ready < room { 0 } else { ready.min(room) }
}

/// Returns how many endings to write now: whole requests, and the rest once nothing else will end soon.
pub(crate) fn to_settle(ended: usize, others_will_end: bool, lingered: bool) -> usize {
    if others_will_end && !lingered { ended / STORE_BATCH_MAX * STORE_BATCH_MAX } else { ended }
}

/// Returns whether a handler that is expected to take `expected` may start with `left` of `total` to go.
///
/// At the beginning of an invocation anything may: what would not fit there fits nowhere.
pub(crate) fn fits(left: Duration, total: Duration, expected: Duration) -> bool {
    !left.is_zero() && left >= needed(total, expected)
}

/// Returns how much time has to be left for that.
pub(crate) fn needed(total: Duration, expected: Duration) -> Duration {
    to_start(expected).min(total / 10 * 9)
}

/// Returns how much time a handler is started with, at least, that is expected to take so long.
fn to_start(expected: Duration) -> Duration {
    expected.max(Duration::from_millis(START_MIN_MS))
}

/// Returns how many suspects run at once: one, unless they would then not fit into the time that is `left`.
pub(crate) fn together(suspects: usize, left: Duration, takes: Duration, concurrency: usize) -> usize {
    let turns = if takes.is_zero() { suspects as u128 } else { left.as_nanos() / takes.as_nanos() };
    // OK because a number of messages fits both.
    suspects.div_ceil(turns.clamp(1, suspects.max(1) as u128) as usize).min(concurrency)
}

/// Returns how much time to reserve for suspects: enough to run them one after the other and still start the last one, plus the time of
/// handlers whose keys were claimed just before. Capped at `most`, which for a timeout of 1 s is less than that sum.
pub(crate) fn reserved_for(suspects: usize, most: Duration, takes: Duration, expected: Duration) -> Duration {
    let others = u32::try_from(suspects.saturating_sub(1)).unwrap_or(u32::MAX);
    takes.saturating_mul(others).saturating_add(to_start(expected) + in_hand_for(expected)).min(most)
}

/// Returns how long after its claim a message may be in hand, where its handler takes as long as expected.
pub(crate) fn in_hand_for(expected: Duration) -> Duration {
    to_start(expected) + Duration::from_millis(CLAIM_AHEAD_MAX_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_whole_requests_ahead_of_quick_handlers_and_single_ones_for_slow() {
        // waiting, in hand, concurrency, ahead, wanted
        let rows = [
            (10, 0, 10, 25, 10),
            (1_000, 0, 10, 25, 25),
            (975, 25, 10, 25, 0),
            (975, 10, 10, 25, 25),
            (1_000, 0, 10, 100, 100),
            (1_000, 0, 100, 25, 125),
            (3, 30, 10, 25, 3),
            (6, 30, 10, 25, 0),
            (1_000, 0, 10, 0, 10),
            (990, 9, 10, 0, 1),
            (990, 25, 10, 0, 0),
            (0, 0, 10, 25, 0),
        ];
        for (waiting, in_hand, concurrency, ahead, wanted) in rows {
            let row = (waiting, in_hand, concurrency, ahead);
            assert_eq!(to_claim(waiting, in_hand, (concurrency, ahead), false), wanted, "{row:?}");
        }
        assert_eq!(to_claim(1_000, 12, (4, 25), true), 17);
        assert_eq!(to_claim(5, 12, (4, 25), true), 5);
    }

    #[test]
    fn endings_wait_for_others_only_while_there_will_be_some() {
        let rows = [
            (24, true, false, 0),
            (25, true, false, 25),
            (60, true, false, 50),
            (7, false, false, 7),
            (7, true, true, 7),
            (0, false, true, 0),
        ];
        for (ended, others, lingered, wanted) in rows {
            assert_eq!(to_settle(ended, others, lingered), wanted);
        }
    }

    #[test]
    fn a_call_waits_for_others_only_while_some_will_come() {
        // ready, room, others, wanted
        let rows = [(7, 10, true, 0), (7, 10, false, 7), (10, 10, true, 10), (25, 10, true, 10), (0, 10, false, 0)];
        for (ready, room, others, wanted) in rows {
            assert_eq!(to_call(ready, room, others), wanted, "{ready} of {room}, {others}");
        }
    }

    #[test]
    fn nothing_is_started_that_cannot_be_finished() {
        let s = Duration::from_secs;
        let rows = [
            (10, 10, 3, true),
            (2, 10, 3, false),
            (10, 10, 60, true),
            (8, 10, 60, false),
            (0, 10, 0, false),
            (1, 10, 0, true),
        ];
        for (left, total, expected, wanted) in rows {
            assert_eq!(fits(s(left), s(total), s(expected)), wanted, "{left} of {total} for {expected}");
        }
    }

    #[test]
    fn suspects_run_alone_where_the_time_allows() {
        let (s, ms) = (Duration::from_secs, Duration::from_millis);
        // suspects, left, takes in milliseconds, at once, milliseconds reserved of 14 s
        let rows = [
            (10, 28, 0, 1, 450),
            (10, 28, 10, 1, 540),
            (10, 28, 2_000, 1, 14_000),
            (3, 28, 2_000, 1, 8_250),
            (14, 28, 2_000, 1, 14_000),
            (15, 28, 2_000, 2, 14_000),
            (100, 28, 2_000, 8, 14_000),
            (100, 1, 2_000, 10, 14_000),
            (0, 28, 2_000, 0, 4_250),
        ];
        for (suspects, left, takes, at_once, reserved) in rows {
            let row = (suspects, left, takes);
            assert_eq!(together(suspects, s(left), ms(takes), 10), at_once, "{row:?}");
            assert_eq!(reserved_for(suspects, s(14), ms(takes), ms(takes)), ms(reserved), "{row:?}");
        }
    }
}
