//! What an engine has learned, as long as its process lives: how long handlers take, how long calls hang of a
//! system that is away, what is usually done, and whether its store panics over several settlements.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::limits::{CLAIM_AHEAD_MAX, CLAIM_AHEAD_MAX_MS, STORE_BATCH_MAX};
use crate::message::Message;

/// What an engine has learned, shared by its invocations.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    pub(crate) durations: Durations,
    /// The longest that a call took that said that the system it calls is away, in milliseconds; zero once the system has answered since.
    hung_ms: AtomicU64,
    pub(crate) repeats: Repeats,
    /// Whether each claim is settled in a call of its own.
    settles_alone: AtomicBool,
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

    /// Takes note of a call for settlements that panicked: from now on, one that the store panics over costs no other one.
    pub(crate) fn settle_alone(&self) {
        if !self.settles_alone.swap(true, Ordering::Relaxed) {
            tracing::warn!("the store panicked over settlements: from now on this process settles each by itself");
        }
    }

    /// Returns how many claims one call settles.
    pub(crate) fn settled_together(&self) -> usize {
        if self.settles_alone.load(Ordering::Relaxed) { 1 } else { STORE_BATCH_MAX }
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

/// Whether a message was delivered before, or can have been.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DeliveryKind {
    First,
    Later,
}

impl DeliveryKind {
    pub(crate) fn of(message: &Message) -> Self {
        if message.is_first_delivery() { Self::First } else { Self::Later }
    }
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
