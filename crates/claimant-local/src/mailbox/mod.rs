//! An SES v2 endpoint that keeps what was sent instead of sending it.
//!
//! It speaks `SendEmail` (`POST /v2/email/outbound-emails`) as the AWS SDKs do, and lists what it received at
//! `GET /_claimant/mails`. The recipient's local part decides what happens, so that failures can be provoked:
//!
//! | local part starts with | answer |
//! | --- | --- |
//! | `flaky` | the first attempt for the address is refused with `SendingPausedException`, later ones are accepted |
//! | `reject` | always refused with `MessageRejected` |
//! | `slow` | accepted, and answered [`SLOW_DELAY`] (settable) later |
//! | anything else | accepted |
//!
//! An attempt is counted before its answer is decided, and a mail is kept before its answer is delayed: a sender that is killed while it
//! waits for a slow answer has sent its mail, and the next one sends it twice.
//!
//! Of every mail the key and the recipients outlive the mail, so that one that was sent twice is known as such: [`ACCEPTED_MAX`].

mod attempts;
mod http;
mod mail;
mod request;
mod service;

pub use attempts::{ATTEMPTS_MAX, Attempt};
pub use http::LISTED_MAX;
pub(crate) use mail::Accepted;
pub use mail::{Field, Mail, TEXT_MAX_BYTES};
pub use service::{ACCEPTED_MAX, MAILS_MAX, MAILS_MAX_BYTES, Mailbox, SLOW_DELAY};
