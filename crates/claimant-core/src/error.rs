//! Why a consumer cannot start.

use std::error::Error as StdError;
use std::fmt;

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
        f.write_str(&self.message)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}
