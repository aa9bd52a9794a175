//! An SES v2 endpoint that keeps what was sent instead of sending it.
//!
//! It speaks `SendEmail` (`POST /v2/email/outbound-emails`) as the AWS SDKs do, and lists what it received at
//! `GET /_claimant/mails`. The recipient's local part decides what happens, so that failures can be had on demand:
//!
//! | local part starts with | answer |
//! | --- | --- |
//! | `flaky` | the first attempt for the address is refused with `SendingPausedException`, later ones are accepted |
//! | `reject` | always refused with `MessageRejected` |
//! | `slow` | accepted, [`SLOW_DELAY`] (settable) later |
//! | anything else | accepted |
//!
//! An attempt is counted before its answer is decided or delayed; a mail is kept when it is answered, so a sender
//! that is killed while it waits for a slow answer leaves an attempt and no mail.

mod attempts;
mod http;
mod request;

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::net::TcpListener;

use crate::Error;
use crate::host;
use attempts::UnderWay;

pub use attempts::{ATTEMPTS_MAX, Attempt};

/// Mails kept; the oldest goes when one more arrives.
pub const MAILS_MAX: usize = 10_000;
/// Bytes of text and headers kept over all mails; the oldest go when one more does not fit.
pub const MAILS_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of one mail's text that are kept; the rest is cut off.
pub const TEXT_MAX_BYTES: usize = 64 * 1024;
/// Mails that `GET /_claimant/mails` lists: the latest ones.
pub const LISTED_MAX: usize = 1_000;
/// How long a `slow…` recipient's answer takes unless set otherwise.
pub const SLOW_DELAY: Duration = Duration::from_secs(2);
/// `flaky…` addresses remembered as refused once; past it all are forgotten, and refused once more.
const FLAKY_MAX: usize = 100_000;

/// A named value: a header or a tag of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Field {
    /// The name as the sender wrote it.
    #[serde(alias = "Name")]
    pub name: String,
    /// The value as the sender wrote it.
    #[serde(alias = "Value")]
    pub value: String,
}

/// One mail that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mail {
    /// The id that `SendEmail` answered with.
    pub message_id: String,
    /// The sender (`FromEmailAddress`).
    pub from: String,
    /// Every recipient: to, cc and bcc, as written.
    pub to: Vec<String>,
    /// The subject.
    pub subject: String,
    /// The custom headers, or all headers of a raw mail.
    pub headers: Vec<Field>,
    /// The tags (`EmailTags`).
    pub tags: Vec<Field>,
    /// The text body, else the HTML body, else a raw mail's body; at most [`TEXT_MAX_BYTES`] bytes of it.
    pub text: String,
}

impl Mail {
    /// The value of the first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let header = self.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
        Some(&header.value)
    }

    /// About what it costs to keep.
    fn bytes(&self) -> usize {
        let fields = self.headers.iter().chain(&self.tags);
        let fields: usize = fields.map(|f| f.name.len() + f.value.len()).sum();
        let to: usize = self.to.iter().map(String::len).sum();
        self.from.len() + to + self.subject.len() + fields + self.text.len()
    }
}

/// The SES endpoint and what it received. Clones share one mailbox.
#[derive(Debug, Clone)]
pub struct Mailbox {
    kept: Arc<Mutex<Kept>>,
    slow_delay: Duration,
}

#[derive(Debug, Default)]
struct Kept {
    mails: VecDeque<Mail>,
    bytes: usize,
    received: u64,
    attempts: u64,
    refused_once: HashSet<String>,
    log: Vec<Attempt>,
}

/// What becomes of an attempt.
enum Verdict {
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
        Self { kept: Arc::default(), slow_delay: SLOW_DELAY }
    }

    /// The same mailbox with another delay for `slow…` recipients. Clones made before keep theirs.
    #[must_use]
    pub fn with_slow_delay(mut self, delay: Duration) -> Self {
        self.slow_delay = delay;
        self
    }

    /// What was accepted, oldest first: at most [`MAILS_MAX`] mails and [`MAILS_MAX_BYTES`].
    pub fn mails(&self) -> Vec<Mail> {
        self.kept().mails.iter().cloned().collect()
    }

    /// How many mails were accepted, kept or not.
    pub fn received(&self) -> u64 {
        self.kept().received
    }

    /// How many well-formed `SendEmail` requests came, whatever the answer.
    pub fn attempts(&self) -> u64 {
        self.kept().attempts
    }

    /// When each attempt began and ended, in the order of their beginnings: the first [`ATTEMPTS_MAX`].
    pub fn log(&self) -> Vec<Attempt> {
        self.kept().log.clone()
    }

    /// Serves on `listener` until `shutdown` resolves and the requests under way are answered.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Error> {
        axum::serve(listener, host::loopback_only(http::router(self)))
            .with_graceful_shutdown(shutdown)
            .await
            .map_err(|e| Error::new("the SES endpoint stopped: its listener failed").caused_by(e))
    }

    /// Counts an attempt and decides what becomes of it.
    fn attempt(&self, mail: &Mail) -> Verdict {
        let mut kept = self.kept();
        kept.attempts += 1;
        let mut verdict = Verdict::Accept;
        for recipient in &mail.to {
            let address = request::bare_address(recipient).to_ascii_lowercase();
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
    fn begin(&self, mail: &Mail) -> UnderWay {
        UnderWay::begin(self, mail)
    }

    fn keep(&self, mail: Mail) {
        let mut kept = self.kept();
        kept.received += 1;
        kept.bytes += mail.bytes();
        kept.mails.push_back(mail);
        while kept.mails.len() > MAILS_MAX || kept.bytes > MAILS_MAX_BYTES {
            let Some(oldest) = kept.mails.pop_front() else { break };
            kept.bytes -= oldest.bytes();
        }
    }

    /// OK to use a poisoned lock: every change under it is complete before anything can panic.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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
