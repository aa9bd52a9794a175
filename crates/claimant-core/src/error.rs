//! Why a consumer cannot start.

use std::error::Error as StdError;
use std::fmt;

/// The most causes of an error that are shown: a cause can name itself as its cause.
pub const CAUSES_MAX: usize = 16;

/// An error and its causes on one line, by their `Display`.
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn StdError + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let causes = std::iter::successors(self.0.source(), |error| (*error).source());
        causes.take(CAUSES_MAX).try_for_each(|error| write!(f, ": {error}"))
    }
}

/// What can be done about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting, an option or another value is missing or not usable. It has to be changed; trying again does not help.
    Invalid,
    /// A service refuses: a permission is missing, or what it holds is not what is needed there, such as a table with
    /// another key. A person has to change that.
    Refused,
    /// A service gave no answer, or too many asked it. The same can succeed later.
    Unavailable,
    /// Anything else.
    Other,
}

/// Why a consumer cannot start or go on. `Display` says what is wrong, where, and how to fix it, and never repeats its
/// source.
///
/// `Debug` is the same text with its causes, because that is what Rust prints when `main` returns an error.
///
/// Errors of the stores and the producer become one by `?`. For what a `main` of your own finds out:
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Error, ErrorKind};
///
/// fn percentage(text: &str) -> Result<u8, Error> {
///     text.parse().map_err(|e| Error::invalid("DISCOUNT is not a number from 0 to 255").caused_by(e))
/// }
///
/// let error = percentage("many").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Invalid);
/// assert_eq!(error.to_string(), "DISCOUNT is not a number from 0 to 255");
/// assert_eq!(format!("{error:?}"), "DISCOUNT is not a number from 0 to 255: invalid digit found in string");
/// ```
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Returns an error with this text, of the kind [`Other`](ErrorKind::Other).
    pub fn new(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Other, message: message.into(), source: None }
    }

    /// Returns an error with this text about a value that is not usable.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(message).of_kind(ErrorKind::Invalid)
    }

    /// Sets the kind.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Returns what can be done about it.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Checks that there are no faults.
    ///
    /// # Errors
    /// When there is at least one: all of them in one message, of the kind [`Invalid`](ErrorKind::Invalid).
    pub fn unless_empty(what: &str, faults: &[String]) -> Result<(), Self> {
        match faults {
            [] => Ok(()),
            [one] => Err(Self::invalid(format!("{what}: {one}"))),
            many => Err(Self::invalid(format!("{what}, {} faults:\n  - {}", many.len(), many.join("\n  - ")))),
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_with_its_causes_where_main_returns_it() {
        let error = Error::new("a").caused_by(Error::new("b").caused_by("c"));
        assert_eq!((error.to_string().as_str(), format!("{error:?}").as_str()), ("a", "a: b: c"));
    }
}
