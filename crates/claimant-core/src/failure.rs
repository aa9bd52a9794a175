//! Why a handler failed, and whether trying again can help.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::error::{Chain, shown};

/// The most of a handler's error that is shown, in bytes.
const FAILURE_MAX_BYTES: usize = 1_024;

/// Why a handler failed, and whether trying again can help.
///
/// Made by `?` from any error: it is then retried with backoff, which is the default. A failure that no retry can
/// fix is said aloud with [`.terminal()`](Terminal::terminal). One after which the work may be done all the same, as
/// when the answer of the system that does it was lost, is said with [`HandlerError::uncertain`].
///
/// The error's `Display` is logged and kept on the record (cut to 256 bytes), so keep payload data out of it.
///
/// An error type of one's own cannot implement `From` for it, since `?` makes it of any error: a function that is given to `map_err` says
/// for each variant whether it is [`terminal`](Self::terminal) or to be [tried again](Self::retry).
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{FailureKind, HandlerError, Terminal};
///
/// fn quantity(text: &str) -> Result<u32, HandlerError> {
///     Ok(text.parse().terminal()?) // it will not parse next time either
/// }
/// assert_eq!(quantity("many").unwrap_err().kind(), FailureKind::Terminal);
/// ```
pub struct HandlerError {
    source: Box<dyn StdError + Send + Sync>,
    kind: FailureKind,
    retry_after: Option<Duration>,
    downstream: Option<Cow<'static, str>>,
}

/// What a failure says about another try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// The work is not done, and another try can help.
    Retry,
    /// The work is not done, and no try will do it.
    Terminal,
    /// The work may be done.
    Uncertain,
}

impl HandlerError {
    /// Returns a failure to be tried again, with this text. The work is not done: an
    /// [at-most-once](crate::Consumer::at_most_once) consumer tries it again too.
    pub fn retry(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: why.into(), kind: FailureKind::Retry, retry_after: None, downstream: None }
    }

    /// Returns a failure that no retry can fix, with this text.
    pub fn terminal(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind: FailureKind::Terminal, ..Self::retry(why) }
    }

    /// Returns a failure after which it is not known whether the work is done: the request was sent, and no answer came. An
    /// [at-most-once](crate::Consumer::at_most_once) consumer parks the message, as it does with work that was cut off;
    /// any other one tries it again, as after [`retry`](Self::retry).
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// use claimant::{FailureKind, HandlerError};
    ///
    /// fn charged(answer: std::io::Result<u16>) -> Result<(), HandlerError> {
    ///     match answer.map_err(HandlerError::uncertain)? {
    ///         200 => Ok(()),
    ///         429 => Err(HandlerError::retry("the gateway was busy and did nothing")),
    ///         _ => Err(HandlerError::uncertain("the gateway failed on the way")),
    ///     }
    /// }
    /// assert_eq!(charged(Err(std::io::ErrorKind::TimedOut.into())).unwrap_err().kind(), FailureKind::Uncertain);
    /// ```
    pub fn uncertain(why: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind: FailureKind::Uncertain, ..Self::retry(why) }
    }

    /// Asks for the next try after this long instead of the backoff, in whole seconds, rounded up. A queue hides a message for
    /// [`VISIBILITY_MAX_S`](crate::limits::VISIBILITY_MAX_S) at most. What is to wait longer is sent to its queue again at its time, where the
    /// function has schedules (the `Queue`'s [`has_schedules`](crate::Queue::has_schedules)) and the consumer's window is a day longer than
    /// the delay, and else comes back after that. Earlier, too, where the process dies before the message is deleted.
    ///
    /// After the last attempt that [`attempts_max`](crate::Consumer::attempts_max) allows there is no next try: the message is rejected.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Says that the system of this name is away, or gives no answer in time: its [breaker](crate::Breaker) counts that. Not for what it
    /// answers about one message.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// use claimant::HandlerError;
    ///
    /// fn sent(status: u16) -> Result<(), HandlerError> {
    ///     match status {
    ///         200 => Ok(()),
    ///         400 => Err(HandlerError::terminal("the mail server refuses this address")),
    ///         status => Err(HandlerError::retry(format!("the mail server answered {status}")).downstream("mail")),
    ///     }
    /// }
    /// assert_eq!(sent(503).unwrap_err().failed_downstream(), Some("mail"));
    /// ```
    #[must_use]
    pub fn downstream(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.downstream = Some(name.into());
        self
    }

    /// Returns the name of the system that is away, if that was said.
    #[must_use]
    pub fn failed_downstream(&self) -> Option<&str> {
        self.downstream.as_deref()
    }

    /// Returns what it says about another try.
    #[must_use]
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the delay asked for, if any.
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
    /// Writes the error and its causes, each once.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self.source.as_ref()), f)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            FailureKind::Retry => "retry",
            FailureKind::Terminal => "terminal",
            FailureKind::Uncertain => "uncertain",
        };
        write!(f, "HandlerError({kind}: {self})")
    }
}

/// A handler's failure in the engine's hands: plain values, so that nothing of the user's runs outside its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Why, without payload data.
    pub why: String,
    /// What it says about another try.
    pub kind: FailureKind,
    /// The delay asked for, if any.
    pub retry_after: Option<Duration>,
    /// The name of the system that is away, if that was said.
    pub downstream: Option<Cow<'static, str>>,
}

impl Failure {
    /// Returns a failure to be tried again.
    pub fn retry(why: impl Into<String>) -> Self {
        Self { why: why.into(), kind: FailureKind::Retry, retry_after: None, downstream: None }
    }

    /// Returns a failure that no retry can fix.
    pub fn terminal(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Terminal, ..Self::retry(why) }
    }

    /// Returns it as one of a handler that has returned as if all was well: where another try can help, the work may be done.
    pub(crate) fn after_return(self) -> Self {
        match self.kind {
            FailureKind::Retry => Self { kind: FailureKind::Uncertain, ..self },
            FailureKind::Terminal | FailureKind::Uncertain => self,
        }
    }
}

impl From<HandlerError> for Failure {
    /// Renders the error, which is the user's code and can do anything: called inside the handler's task.
    fn from(error: HandlerError) -> Self {
        let why = shown(&error, FAILURE_MAX_BYTES).unwrap_or_else(|_| "the handler's error cannot be shown".to_owned());
        Self { why, kind: error.kind, retry_after: error.retry_after, downstream: error.downstream }
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
        let uncertain = HandlerError::uncertain("no answer");
        for (error, kind) in [
            (parse("x").unwrap_err(), FailureKind::Retry),
            ("x".parse::<u32>().terminal().unwrap_err(), FailureKind::Terminal),
            (HandlerError::uncertain("no answer"), FailureKind::Uncertain),
        ] {
            assert_eq!((error.kind(), Failure::from(error).kind), (kind, kind));
        }
        assert_eq!(format!("{uncertain:?}"), "HandlerError(uncertain: no answer)");
        let asked = HandlerError::retry("busy").after(Duration::from_secs(9));
        assert_eq!((asked.to_string().as_str(), asked.retry_after()), ("busy", Some(Duration::from_secs(9))));
        assert_eq!(
            (Failure::terminal("no").kind, Failure::retry("not yet").kind),
            (FailureKind::Terminal, FailureKind::Retry)
        );
    }

    #[test]
    fn an_error_is_shown_within_bounds_whatever_it_does() {
        #[derive(Debug)]
        struct Odd(fn(&mut fmt::Formatter<'_>) -> fmt::Result);
        impl fmt::Display for Odd {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (self.0)(f)
            }
        }
        impl StdError for Odd {
            fn source(&self) -> Option<&(dyn StdError + 'static)> {
                Some(&LOOP)
            }
        }
        static LOOP: Odd = Odd(|f| f.write_str("loop"));
        let shown = |odd| Failure::from(HandlerError::retry(Odd(odd))).why;
        assert_eq!(shown(|f| f.write_str("top")), "top: loop");
        assert_eq!(shown(|_| Err(fmt::Error)), "the handler's error cannot be shown");
        let long = shown(|f| (0..1_000_000).try_for_each(|_| f.write_str("ß")));
        assert_eq!(long.len(), FAILURE_MAX_BYTES);
        // A character that has no room any more.
        let long = shown(|f| f.write_str(&"€".repeat(FAILURE_MAX_BYTES)));
        assert_eq!(long.len(), FAILURE_MAX_BYTES / 3 * 3);
    }
}
