//! When attempts to send a mail began and ended: whether two were under way at the same time.

use tokio::time::Instant;

use super::{Field, Mail, Mailbox};

/// Attempts whose times are kept; later ones are not.
pub const ATTEMPTS_MAX: usize = 100_000;

/// One attempt to send a mail.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The mail's headers.
    pub headers: Vec<Field>,
    /// When its request had been read.
    pub began: Instant,
    /// When it was answered, or its sender was found to be gone; `None` while it is under way.
    pub ended: Option<Instant>,
}

/// An attempt that has not ended. Dropping it ends it.
pub(super) struct UnderWay {
    mailbox: Mailbox,
    place: Option<usize>,
}

impl Attempt {
    /// The value of the first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(&header.value)
    }

    /// Whether both were under way at some moment.
    pub fn overlaps(&self, other: &Self) -> bool {
        let ends_after = |one: &Self, moment| one.ended.is_none_or(|ended| ended > moment);
        ends_after(self, other.began) && ends_after(other, self.began)
    }
}

impl UnderWay {
    pub(super) fn begin(mailbox: &Mailbox, mail: &Mail) -> Self {
        let mut kept = mailbox.kept();
        let place = (kept.log.len() < ATTEMPTS_MAX).then_some(kept.log.len());
        if place.is_some() {
            kept.log.push(Attempt { headers: mail.headers.clone(), began: Instant::now(), ended: None });
        }
        drop(kept);
        Self { mailbox: mailbox.clone(), place }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Some(place) = self.place else { return };
        self.mailbox.kept().log[place].ended = Some(Instant::now());
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
        let mailbox = Mailbox::new();
        let mail = Mail {
            message_id: "m".into(),
            from: String::new(),
            to: vec![],
            subject: String::new(),
            headers: vec![Field { name: "X-Key".into(), value: "k".into() }],
            tags: vec![],
            text: String::new(),
        };
        let under_way = mailbox.begin(&mail);
        assert!(mailbox.log()[0].ended.is_none() && mailbox.log()[0].header("x-key") == Some("k"));
        drop(under_way);
        assert!(mailbox.log()[0].ended.is_some());
    }
}
