//! What a user's function returns.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

/// Why a handler failed, and whether trying again can help.
///
/// Made by `?` from any error: it is then retried with backoff, which is the default. A failure that no retry can
/// mend is said aloud with [`.terminal()`](Terminal::terminal).
///
/// The error's `Display` is logged and kept on the record (cut to 256 bytes), so keep payload data out of it.
///
/// ```
/// use claimant_core::{HandlerError, Terminal};
///
/// fn quantity(text: &str) -> Result<u32, HandlerError> {
///     Ok(text.parse().terminal()?) // it will not parse next time either
/// }
/// assert!(quantity("many").unwrap_err().is_terminal());
/// ```
pub struct HandlerError {
    source: Box<dyn StdError + Send + Sync>,
    terminal: bool,
    retry_after: Option<Duration>,
}

impl HandlerError {
    /// A failure to be tried again, with this text.
    pub fn retry(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: why.into(), terminal: false, retry_after: None }
    }

    /// A failure that no retry can mend, with this text.
    pub fn terminal(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { terminal: true, ..Self::retry(why) }
    }

    /// Asks for the next try after this long instead of the backoff. Rounded up to whole seconds, and
    /// cut to [`VISIBILITY_MAX_S`](crate::limits::VISIBILITY_MAX_S), since SQS hides a message for 12 hours at most.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Whether the message is rejected for good.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The delay asked for, if any.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

// Not `std::error::Error` itself: that would forbid the blanket conversion that `?` needs.
impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        Self::retry(error)
    }
}

impl fmt::Display for HandlerError {
    /// The error and its causes, each once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        let mut cause = self.source.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.terminal { "terminal" } else { "retry" };
        write!(f, "HandlerError({kind}: {self})")
    }
}

/// Says that a failure is permanent.
pub trait Terminal<T> {
    /// Turns an error into one that rejects the message: `parse(text).terminal()?`.
    ///
    /// # Errors
    /// The error that was there, made terminal.
    fn terminal(self) -> Result<T, HandlerError>;
}

impl<T, E: Into<Box<dyn StdError + Send + Sync>>> Terminal<T> for Result<T, E> {
    fn terminal(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::terminal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_is_the_default_and_terminal_is_said_aloud() {
        let parse = |text: &str| -> Result<u32, HandlerError> { Ok(text.parse::<u32>()?) };
        assert!(!parse("x").unwrap_err().is_terminal());
        assert!("x".parse::<u32>().terminal().unwrap_err().is_terminal());
        let asked = HandlerError::retry("busy").after(Duration::from_secs(9));
        assert_eq!((asked.to_string().as_str(), asked.retry_after()), ("busy", Some(Duration::from_secs(9))));
    }
}
