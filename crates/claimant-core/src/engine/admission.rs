//! How many claims to take, when to write completions, and what still fits into the time: pure rules and one memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::limits::{CLAIM_AHEAD_MAX, CLAIM_AHEAD_MAX_MS, START_MIN_MS, STORE_BATCH_MAX};

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

/// What an engine has learned, shared by its invocations.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) durations: Durations,
    /// The longest that a call took that said that the system it calls is away, in milliseconds; zero once the system has answered since.
    hung_ms: AtomicU64,
    pub(crate) repeats: Repeats,
}

impl Learned {
    /// Takes note of a call that took so long and said that the system is away, or was cut off at its own timeout.
    pub(crate) fn hung(&self, took: Duration) {
        self.hung_ms.fetch_max(took.as_millis() as u64, Ordering::Relaxed);
    }

    /// Returns how long calls of a system take that is away, as far as is known.
    pub(crate) fn hangs(&self) -> Duration {
        Duration::from_millis(self.hung_ms.load(Ordering::Relaxed))
    }

    /// Forgets how long they took: the system is back.
    pub(crate) fn forget_hangs(&self) {
        self.hung_ms.store(0, Ordering::Relaxed);
    }
}

/// Above this share of claims that find their work done, the records are looked at first.
const MOST: f64 = 0.5;

/// How often a claim finds its work done, learned from answers: by deliveries, the first and later ones.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    shares: Mutex<[DoneShare; 2]>,
}

/// A share of answers, from 0 to 1.
#[derive(Debug, Default)]
struct DoneShare {
    done: f64,
    /// How many in a row were not.
    misses: u32,
}

impl Repeats {
    /// Learns from the answer to a claim. The estimate moves a sixteenth of the way; and by two in a row that were not done at once
    /// to where a claim comes first, since each look at such a one is a request more.
    pub(crate) fn learn(&self, delivery: DeliveryKind, done: bool) {
        let share = &mut self.shares.lock().unwrap_or_else(PoisonError::into_inner)[delivery as usize];
        share.done += (f64::from(u8::from(done)) - share.done) / 16.0;
        share.misses = if done { 0 } else { share.misses.saturating_add(1) };
        if share.misses >= 2 {
            share.done = share.done.min(MOST);
        }
    }

    /// Returns whether most claims of such deliveries find their work done.
    pub(crate) fn are_usual(&self, delivery: DeliveryKind) -> bool {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)[delivery as usize].done > MOST
    }
}

/// Whether a message was delivered before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeliveryKind {
    First,
    Later,
}

/// How long handlers take, learned from those that returned and did not say that the system they call is away.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// Mean and mean deviation in milliseconds; `None` until the first handler returned.
    known: Mutex<Option<(f64, f64)>>,
}

impl Durations {
    /// Learns from a handler that returned after this long. The estimate moves an eighth of the way, as TCP's of its round
    /// trips does.
    pub(crate) fn learn(&self, took: Duration) {
        let took = took.as_secs_f64() * 1_000.0;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(match *known {
            None => (took, took / 4.0),
            Some((mean, deviation)) => {
                (mean + (took - mean) / 8.0, deviation + ((took - mean).abs() - deviation) / 4.0)
            }
        });
    }

    fn known(&self) -> Option<(f64, f64)> {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long a handler takes, on the safe side; zero while nothing is known.
    pub(crate) fn expected(&self) -> Duration {
        let (mean, deviation) = self.known().unwrap_or_default();
        Duration::from_secs_f64((mean + 2.0 * deviation) / 1_000.0)
    }

    /// Returns whether a handler has returned yet.
    pub(crate) fn are_known(&self) -> bool {
        self.known().is_some()
    }

    /// Returns how long a handler takes; zero while nothing is known.
    pub(crate) fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.known().unwrap_or_default().0 / 1_000.0)
    }

    /// Returns how many claims may wait for one of `slots`: as many whole requests as the handlers get through in
    /// [`CLAIM_AHEAD_MAX_MS`], and one request while nothing is known.
    pub(crate) fn ahead(&self, slots: usize) -> usize {
        let Some((mean, _)) = self.known() else { return STORE_BATCH_MAX };
        // OK because all are small; a mean of nothing gives infinity, which `as` turns into the largest number.
        let soon = (slots as f64 * CLAIM_AHEAD_MAX_MS as f64 / mean) as usize;
        soon.min(CLAIM_AHEAD_MAX) / STORE_BATCH_MAX * STORE_BATCH_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usually_done_is_known_soon_and_what_is_not_at_once() {
        let repeats = Repeats::default();
        let learn = |done| {
            repeats.learn(DeliveryKind::First, done);
            repeats.are_usual(DeliveryKind::First)
        };
        assert_eq!((0..20).position(|_| learn(true)), Some(10), "eleven in a row");
        let _ = (0..100).all(|_| learn(true));
        assert_eq!([learn(false), learn(false), learn(false)], [true, false, false]);
        assert!(learn(true), "the next copy is a sign that there are more");
        // Of three copies and a new message in turns, all are looked at.
        let _ = (0..100).all(|_| learn(true));
        assert!((0..100).all(|n| learn(n % 4 > 0)));
        assert!(!repeats.are_usual(DeliveryKind::Later), "of others nothing is known");
    }

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

    #[test]
    fn durations_are_learned() {
        let durations = Durations::default();
        assert_eq!((durations.ahead(1), durations.expected()), (25, Duration::ZERO));
        // Mean and deviation: 8 s and 2 s; 9 s and 3.5 s.
        durations.learn(Duration::from_secs(8));
        assert_eq!(durations.expected(), Duration::from_secs(12));
        durations.learn(Duration::from_secs(16));
        assert_eq!(durations.expected(), Duration::from_secs(16));
        let durations = Durations::default();
        (0..50).for_each(|_| durations.learn(Duration::from_secs(2)));
        assert!((2.0..2.1).contains(&durations.expected().as_secs_f64()));
        assert_eq!((durations.ahead(10), durations.ahead(250)), (0, 25));
        (0..200).for_each(|_| durations.learn(Duration::ZERO));
        assert_eq!((durations.ahead(10), durations.expected().as_millis()), (100, 0));
    }
}
