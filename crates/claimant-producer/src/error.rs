//! Why a message was not sent.

use std::error::Error as StdError;
use std::fmt;

use claimant_core::{Error, ErrorKind};

/// What is to be done about a message that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SendErrorKind {
    /// SQS does not take it as it is; sending it again is of no use.
    Refused,
    /// SQS did not take it, for reasons of its own, to the last try. It was not sent.
    Failed,
    /// No answer came, to the last try. It may have been sent: send it again with the same key.
    Unknown,
    /// An earlier message of its group was not sent, so neither was this one.
    HeldBack,
}

/// Why a message was not sent. `Display` says what is wrong and how to fix it, and shows nothing of the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    kind: SendErrorKind,
    message: String,
}

impl SendError {
    pub(crate) fn new(kind: SendErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What is to be done about it.
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
            SendErrorKind::Refused => ErrorKind::Refused,
            SendErrorKind::Failed | SendErrorKind::Unknown | SendErrorKind::HeldBack => ErrorKind::Unavailable,
        };
        Self::new(error.message).of_kind(kind)
    }
}
