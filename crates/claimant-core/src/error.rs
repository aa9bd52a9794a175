//! Why a consumer cannot start.

use std::error::Error as StdError;
use std::fmt::{self, Write as _};

/// The most causes of an error that are shown: a cause can name itself as its cause.
pub const CAUSES_MAX: usize = 16;

/// The longest text of one error that is shown.
const TEXT_MAX_BYTES: usize = 64 * 1024;

/// How texts begin to quote a request: those of a client that cannot put its endpoint before one, with the body; and those of a service that
/// refuses a signature, with the headers, which have a session's token.
const QUOTES: [&str; 2] = [" to request `Request {", "The Canonical String"];

/// Returns a text up to where it quotes a request, which has a body and credentials.
#[must_use]
pub fn without_request(text: &str) -> &str {
    match QUOTES.iter().filter_map(|quote| text.find(quote)).min() {
        Some(end) => text[..end].trim_end(),
        None => text,
    }
}

/// An error and its causes on one line, by their `Display`, each once: a cause that the text before it ends with is left out. So is what
/// [quotes a request](without_request).
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a>(pub &'a (dyn StdError + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = shown(self.0, TEXT_MAX_BYTES)?;
        let mut before = without_request(&first).to_owned();
        f.write_str(&before)?;
        let causes = std::iter::successors(self.0.source(), |error| (*error).source());
        for error in causes.take(CAUSES_MAX) {
            let text = shown(error, TEXT_MAX_BYTES)?;
            let text = without_request(&text);
            if !ends_with(&before, text) {
                write!(f, ": {text}")?;
                text.clone_into(&mut before);
            }
        }
        Ok(())
    }
}

/// Returns whether a text ends with these words.
fn ends_with(text: &str, words: &str) -> bool {
    words.is_empty() || text.strip_suffix(words).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
}

/// Returns how something is shown, up to so many bytes.
///
/// # Errors
/// When it fails to show itself: it can be anybody's code.
pub(crate) fn shown(what: &dyn fmt::Display, max_bytes: usize) -> Result<String, fmt::Error> {
    let mut text = Text { text: String::new(), max_bytes, is_full: false };
    match write!(text, "{what}") {
        Err(error) if !text.is_full => Err(error),
        _ => Ok(text.text),
    }
}

/// A text that stops growing.
struct Text {
    text: String,
    max_bytes: usize,
    is_full: bool,
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = text.floor_char_boundary(self.max_bytes - self.text.len());
        self.text.push_str(&text[..room]);
        self.is_full |= room < text.len();
        if self.is_full { Err(fmt::Error) } else { Ok(()) }
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
            many => {
                // A fault can be a list of its own.
                let list: String =
                    many.iter().map(|fault| format!("\n  - {}", fault.replace('\n', "\n    "))).collect();
                Err(Self::invalid(format!("{what}, {} faults:{list}", many.len())))
            }
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

    #[test]
    fn what_quotes_a_request_or_what_came_before_is_not_shown() {
        for (text, cause, shown) in [
            ("no endpoint `x` to request `Request { body: secret } }`", "no scheme", "no endpoint `x`: no scheme"),
            ("refused", "no match.\n\nThe Canonical String is\n'GET secret'", "refused: no match."),
            ("failed to request `x`", "The String-to-Sign", "failed to request `x`: The String-to-Sign"),
            ("the database says: too long", "too long", "the database says: too long"),
            ("overlong", "long", "overlong: long"),
            ("a", "", "a"),
        ] {
            assert_eq!(Chain(&Error::new(text).caused_by(cause)).to_string(), shown);
        }
        // Also of a cause of a cause.
        let error = Error::new("a: b: c").caused_by(Error::new("b: c").caused_by("c"));
        assert_eq!(Chain(&error).to_string(), "a: b: c");
    }
}
