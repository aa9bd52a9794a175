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

/// Why a consumer cannot start or go on. `Display` says what is wrong, where, and how to mend it.
///
/// `Debug` is the same text with its causes, because that is what Rust prints when `main` returns an error.
pub struct Error {
    message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// All faults in one message, if there are any.
    ///
    /// # Errors
    /// When there is at least one fault.
    pub fn unless_empty(what: &str, faults: &[String]) -> Result<(), Self> {
        match faults {
            [] => Ok(()),
            [one] => Err(Self::new(format!("{what}: {one}"))),
            many => Err(Self::new(format!("{what}, {} faults:\n  - {}", many.len(), many.join("\n  - ")))),
        }
    }

    /// The same error with its cause.
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
