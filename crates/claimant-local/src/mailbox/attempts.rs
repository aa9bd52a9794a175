//! When attempts to send a mail began and ended: whether two were under way at the same time.

use std::sync::{Arc, Mutex};

use tokio::time::Instant;

use super::mail::{Field, KEY_HEADERS, value_of};
use crate::sync::lock;

/// Attempts whose times are kept; later ones are not.
pub const ATTEMPTS_MAX: usize = 100_000;

/// One attempt to send a mail.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Those of the mail's headers that can carry its key: the others of a raw mail can be many, and attempts are kept to the end.
    pub headers: Vec<Field>,
    /// When its request had been read.
    pub began: Instant,
    /// When it was answered, or its sender was found to be gone; `None` while it is under way.
    pub ended: Option<Instant>,
}

/// The attempts in the order of their beginnings. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct AttemptLog(Arc<Mutex<Vec<Attempt>>>);

/// An attempt that has not ended. Dropping it ends it.
pub(super) struct UnderWay {
    log: AttemptLog,
    /// `None` where the log is full.
    index: Option<usize>,
}

impl Attempt {
    /// The value of the first of these headers of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        value_of(&self.headers, name)
    }

    /// Whether both were under way at some moment.
    pub fn overlaps(&self, other: &Self) -> bool {
        let ends_after = |one: &Self, moment| one.ended.is_none_or(|ended| ended > moment);
        ends_after(self, other.began) && ends_after(other, self.began)
    }
}

impl AttemptLog {
    pub(super) fn begin(&self, headers: &[Field]) -> UnderWay {
        let mut attempts = lock(&self.0);
        let index = (attempts.len() < ATTEMPTS_MAX).then_some(attempts.len());
        if index.is_some() {
            let is_key = |field: &&Field| KEY_HEADERS.iter().any(|name| field.name.eq_ignore_ascii_case(name));
            let headers = headers.iter().filter(is_key).cloned().collect();
            attempts.push(Attempt { headers, began: Instant::now(), ended: None });
        }
        UnderWay { log: self.clone(), index }
    }

    pub(super) fn attempts(&self) -> Vec<Attempt> {
        lock(&self.0).clone()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(index) = self.index else { return };
        lock(&self.log.0)[index].ended = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn attempts_overlap_while_both_are_under_way() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let attempt = |began, ended: Option<u64>| Attempt { headers: vec![], began: at(began), ended: ended.map(at) };
        for (one, other, expected) in [
            ((0, Some(10)), (20, Some(30)), false),
            ((0, Some(20)), (20, Some(30)), false),
            ((0, Some(21)), (20, Some(30)), true),
            ((0, None), (20, Some(30)), true),
            ((0, Some(10)), (20, None), false),
            ((5, Some(6)), (0, Some(30)), true),
        ] {
            let (one, other) = (attempt(one.0, one.1), attempt(other.0, other.1));
            assert_eq!((one.overlaps(&other), other.overlaps(&one)), (expected, expected), "{one:?} {other:?}");
        }
    }

    #[test]
    fn an_attempt_ends_when_it_is_dropped() {
        let log = AttemptLog::default();
        let headers = [("References", "x".repeat(100_000)), ("Idempotency-Key", "k".to_owned())];
        let under_way = log.begin(&headers.map(|(name, value)| Field { name: name.into(), value }));
        let begun = &log.attempts()[0];
        assert!(begun.ended.is_none() && begun.header("idempotency-key") == Some("k"));
        // The journey of a mail is no part of what is kept of each.
        assert_eq!(begun.headers.len(), 1);
        drop(under_way);
        assert!(log.attempts()[0].ended.is_some());
    }
}
