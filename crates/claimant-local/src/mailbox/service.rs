//! The mailbox: what becomes of each attempt to send, and what is kept.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::attempts::{Attempt, AttemptLog, UnderWay};
use super::mail::{Accepted, Mail, bare_address};
use crate::faults::Faults;
use crate::journal::{Journal, Text, What};
use crate::sync::lock;

/// Mails kept; the oldest goes when one more arrives.
pub const MAILS_MAX: usize = 10_000;
/// Bytes of text and headers kept over all mails; the oldest go when one more does not fit.
pub const MAILS_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Mails whose key and recipients are kept, longer than the mails; past it, or past [`MAILS_MAX_BYTES`] of them, it is not known which
/// was sent twice.
pub const ACCEPTED_MAX: usize = 100_000;
/// How long a `slow…` recipient's answer takes unless set otherwise.
pub const SLOW_DELAY: Duration = Duration::from_secs(2);
/// `flaky…` addresses remembered as refused once; past it all are forgotten, and refused once more.
const FLAKY_MAX: usize = 100_000;

/// The SES endpoint and what it received. Clones share one mailbox.
#[derive(Debug, Clone)]
pub struct Mailbox {
    kept: Arc<Mutex<Kept>>,
    log: AttemptLog,
    pub(super) slow_delay: Duration,
    pub(super) journal: Journal,
    pub(super) faults: Faults,
}

/// What was accepted, and how often it was tried.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) mails: VecDeque<Mail>,
    bytes: usize,
    accepted: Vec<Accepted>,
    accepted_bytes: usize,
    pub(super) received: u64,
    pub(super) attempts: u64,
    refused_once: HashSet<String>,
}

/// What becomes of an attempt.
pub(super) enum Verdict {
    Accept,
    AcceptLate,
    SendingPaused,
    Rejected,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Mailbox {
    /// An empty mailbox.
    pub fn new() -> Self {
        Self {
            kept: Arc::default(),
            log: AttemptLog::default(),
            slow_delay: SLOW_DELAY,
            journal: Journal::off(),
            faults: Faults::default(),
        }
    }

    /// The same mailbox with another delay for `slow…` recipients. Clones made before keep theirs.
    #[must_use]
    pub fn with_slow_delay(mut self, delay: Duration) -> Self {
        self.slow_delay = delay;
        self
    }

    /// The same mailbox, which writes each answer into this journal, and has these faults. Clones made before keep theirs.
    #[must_use]
    pub fn observed(mut self, journal: &Journal, faults: &Faults) -> Self {
        (self.journal, self.faults) = (journal.clone(), faults.clone());
        self
    }

    /// Writes an answer into the journal.
    pub(super) fn note(&self, mail: &Mail, answer: &'static str) {
        self.journal.note(|| What::Mail { key: mail.key().map(Text::from), answer }, |event| event);
    }

    /// What was accepted, oldest first: at most [`MAILS_MAX`] mails and [`MAILS_MAX_BYTES`].
    pub fn mails(&self) -> Vec<Mail> {
        self.kept().mails.iter().cloned().collect()
    }

    /// The key and the recipients of every mail that was accepted, oldest first; `None` where they are more than are kept.
    pub(crate) fn accepted(&self) -> Option<Vec<Accepted>> {
        let kept = self.kept();
        (kept.accepted.len() as u64 == kept.received).then(|| kept.accepted.clone())
    }

    /// How many mails were accepted, kept or not.
    pub fn received(&self) -> u64 {
        self.kept().received
    }

    /// How many well-formed `SendEmail` requests came, whatever the answer.
    pub fn attempts(&self) -> u64 {
        self.kept().attempts
    }

    /// When each attempt began and ended, in the order of their beginnings: the first
    /// [`ATTEMPTS_MAX`](super::ATTEMPTS_MAX).
    pub fn log(&self) -> Vec<Attempt> {
        self.log.attempts()
    }

    /// Counts an attempt and decides what becomes of it.
    pub(super) fn attempt(&self, mail: &Mail) -> Verdict {
        let mut kept = self.kept();
        kept.attempts += 1;
        let mut verdict = Verdict::Accept;
        for recipient in &mail.to {
            let address = bare_address(recipient).to_ascii_lowercase();
            if address.starts_with("reject") {
                return Verdict::Rejected;
            }
            if address.starts_with("slow") && matches!(verdict, Verdict::Accept) {
                verdict = Verdict::AcceptLate;
            }
            if address.starts_with("flaky") && kept.refuse_first(address) {
                verdict = Verdict::SendingPaused;
            }
        }
        verdict
    }

    /// Notes that an attempt begins; it ends when the value is dropped.
    pub(super) fn begin(&self, mail: &Mail) -> UnderWay {
        self.log.begin(&mail.headers)
    }

    pub(crate) fn keep(&self, mail: Mail) {
        let accepted = Accepted { key: mail.key().unwrap_or_default().to_owned(), to: mail.to.join(", ") };
        let bytes = accepted.key.len() + accepted.to.len();
        let mut kept = self.kept();
        kept.received += 1;
        if kept.accepted.len() < ACCEPTED_MAX && kept.accepted_bytes + bytes <= MAILS_MAX_BYTES {
            kept.accepted_bytes += bytes;
            kept.accepted.push(accepted);
        }
        kept.bytes += mail.bytes();
        kept.mails.push_back(mail);
        while kept.mails.len() > MAILS_MAX || kept.bytes > MAILS_MAX_BYTES {
            let Some(oldest) = kept.mails.pop_front() else { break };
            kept.bytes -= oldest.bytes();
        }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }
}

impl Kept {
    /// True the first time an address is seen.
    fn refuse_first(&mut self, address: String) -> bool {
        if self.refused_once.len() >= FLAKY_MAX {
            self.refused_once.clear();
        }
        self.refused_once.insert(address)
    }
}

#[cfg(test)]
mod tests {
    use super::super::mail::TEXT_MAX_BYTES;
    use super::*;

    fn mail(to: &str, text: String) -> Mail {
        Mail {
            message_id: "m".into(),
            from: "shop@example.com".into(),
            to: vec![to.into()],
            subject: "s".into(),
            headers: vec![],
            tags: vec![],
            text,
        }
    }

    #[test]
    fn the_recipient_decides() {
        let mailbox = Mailbox::new();
        let table = [
            ("ada@example.com", "accept"),
            ("flaky-1@example.com", "paused"),
            ("Flaky-1@example.com", "accept"),
            ("flaky-2@example.com", "paused"),
            ("Ada <slow@example.com>", "late"),
            ("reject-me@example.com", "rejected"),
            ("reject-me@example.com", "rejected"),
        ];
        for (to, expected) in table {
            let verdict = match mailbox.attempt(&mail(to, String::new())) {
                Verdict::Accept => "accept",
                Verdict::AcceptLate => "late",
                Verdict::SendingPaused => "paused",
                Verdict::Rejected => "rejected",
            };
            assert_eq!(verdict, expected, "{to}");
        }
        assert_eq!(mailbox.attempts(), table.len() as u64);
    }

    #[test]
    fn what_is_kept_is_bounded_in_number_and_bytes() {
        let mailbox = Mailbox::new();
        for n in 0..MAILS_MAX + 5 {
            mailbox.keep(mail(&format!("{n}@example.com"), String::new()));
        }
        assert_eq!(mailbox.mails().len(), MAILS_MAX);
        assert_eq!(mailbox.mails()[0].to, ["5@example.com"]);
        assert_eq!(mailbox.received(), MAILS_MAX as u64 + 5);

        let fits = MAILS_MAX_BYTES / TEXT_MAX_BYTES;
        for _ in 0..fits + 5 {
            mailbox.keep(mail("big@example.com", "x".repeat(TEXT_MAX_BYTES)));
        }
        assert!(mailbox.kept().bytes <= MAILS_MAX_BYTES);
        assert!(mailbox.mails().len() <= fits);
    }
}
