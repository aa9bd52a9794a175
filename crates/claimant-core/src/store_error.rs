//! Errors of a store.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// The kind of a store's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// No answer in time, or no connection.
    Unreachable,
    /// The store put the call off, as where there are too many requests, or a lock, a failover or a lack of room is in its way. The same call
    /// can succeed later.
    Throttled,
    /// The table, database or key schema is not what the store needs.
    Misconfigured,
    /// The credentials lack a permission.
    Denied,
    /// A record is not one that claimant wrote.
    Corrupt,
    /// A record would be larger than the store allows.
    TooLarge,
    /// Anything else.
    Other,
}

impl StoreErrorKind {
    /// Returns whether the same call can succeed later: the engine tries it again as long as it has time.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::Unreachable | Self::Throttled)
    }

    /// Returns what the store did to a call that met it, where that is transient.
    pub(crate) const fn said(self) -> &'static str {
        match self {
            Self::Throttled => "put off",
            _ => "gave no answer to",
        }
    }

    /// Returns whether a settlement that met it is tried again. One that is given up repeats its effect, so this holds for an
    /// error of no known meaning, too.
    pub(crate) const fn may_pass(self) -> bool {
        self.is_transient() || matches!(self, Self::Other)
    }

    /// Returns whether a completion that met it is tried again for a while: what is not permitted, or not there, can be so within seconds.
    pub(crate) const fn may_be_put_right(self) -> bool {
        matches!(self, Self::Denied | Self::Misconfigured)
    }
}

/// Why a store gave no answer. `Display` says what failed and how to fix it, and does not repeat its source.
#[derive(Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl StoreError {
    /// Creates an error of this kind.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Creates the error of a call without an answer in this time. Without time, the store was hardly asked: the error then says so.
    #[must_use]
    pub fn no_answer(within: Duration) -> Self {
        let message = match within.as_millis() {
            0 => "no time was left for the store's answer".to_owned(),
            ms => format!("the store gave no answer within {ms} ms"),
        };
        Self::new(StoreErrorKind::Unreachable, message)
    }

    /// Creates the error of a call that panicked. A claim is not tried again, as the kind is not transient; a settlement is not, as
    /// its claim is gone.
    pub(crate) fn panicked() -> Self {
        Self::new(StoreErrorKind::Other, "the store panicked")
    }

    /// Returns the kind of the error.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let kind = match error.kind {
            StoreErrorKind::Unreachable | StoreErrorKind::Throttled => ErrorKind::Unavailable,
            StoreErrorKind::Misconfigured | StoreErrorKind::Denied => ErrorKind::Refused,
            StoreErrorKind::Corrupt | StoreErrorKind::TooLarge | StoreErrorKind::Other => ErrorKind::Other,
        };
        let whole = Self::new(error.message).of_kind(kind);
        match error.source {
            Some(source) => whole.caused_by(source),
            None => whole,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Chain;

    #[test]
    fn an_error_shows_its_cause() {
        let error = StoreError::new(StoreErrorKind::Denied, "the claim failed");
        assert_eq!(Chain(&error).to_string(), "the claim failed");
        let error = error.caused_by("no permission");
        assert_eq!(Chain(&error).to_string(), "the claim failed: no permission");
        let whole = Error::from(error);
        assert_eq!(
            (whole.kind(), format!("{whole:?}").as_str()),
            (ErrorKind::Refused, "the claim failed: no permission")
        );
    }
}
