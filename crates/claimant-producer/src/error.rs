//! Why a message was not sent.

use std::error::Error as StdError;
use std::fmt;

use claimant_core::{Error, ErrorKind};

/// Why a message was not sent, and so what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// SQS refuses the message, or the settings of a producer's client are wrong, of its credentials or its endpoint; sending it again is of
    /// no use.
    Refused,
    /// SQS failed, or EventBridge Scheduler throttled, up to the last try; or a producer could not reach SQS or has no credentials. The
    /// message was not sent.
    Failed,
    /// A try had no answer, or none that can be read, and no later one tells; or a scheduler could not reach its service, could not look at the schedule that the
    /// key has, or has no credentials. The message may have been sent: send it again with the same key.
    Unknown,
    /// An earlier message of its group was not sent, so neither was this one.
    HeldBack,
    /// Its key has a schedule already, which sends something else, at another time, or in the name of another role. Nothing was changed.
    Conflict,
}

impl SendErrorKind {
    /// Returns the word for spans.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::HeldBack => "held_back",
            Self::Conflict => "conflict",
        }
    }
}

/// Why a message was not sent. `Display` says what is wrong and how to fix it, and contains nothing of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    kind: SendErrorKind,
    message: String,
}

impl SendError {
    pub(crate) fn new(kind: SendErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Returns the kind of the error, which tells what to do about it.
    #[must_use]
    pub const fn kind(&self) -> SendErrorKind {
        self.kind
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for SendError {}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        let kind = match error.kind {
            SendErrorKind::Refused | SendErrorKind::Conflict => ErrorKind::Refused,
            SendErrorKind::Failed | SendErrorKind::Unknown | SendErrorKind::HeldBack => ErrorKind::Unavailable,
        };
        Self::new(error.message).of_kind(kind)
    }
}
