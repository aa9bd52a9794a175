//! Why a message is rejected for good.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::key::InvalidValue;

/// Why a message is rejected: what is wrong and where, never what the body says. A [`Fault`] of a message's content becomes one by
/// [`Message::rejection`](crate::Message::rejection), which says in which layer it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    why: String,
    conflict: bool,
}

impl Rejection {
    /// Returns a rejection that says what is wrong, and where. It is logged and kept: it must not quote the body.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), conflict: false }
    }

    pub(crate) fn conflict() -> Self {
        Self { conflict: true, ..Self::new("its key belongs to work with another payload") }
    }

    /// Returns whether its key belongs to work with another payload.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        self.conflict
    }
}

impl From<InvalidValue> for Rejection {
    fn from(fault: InvalidValue) -> Self {
        Self::new(fault.to_string())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl StdError for Rejection {}

/// What is wrong with a content, and where in it, without the content's name: `is not UTF-8 (from byte 3 on)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    what: Cow<'static, str>,
    place: Option<String>,
    /// What the content is instead, and how to fix it.
    instead: Option<String>,
}

impl Fault {
    /// Returns a fault: what follows the content's name, such as `is not UTF-8`. It must not quote the content.
    pub fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self { what: what.into(), place: None, instead: None }
    }

    /// Sets where in the content it is, in its own bytes or lines: `from byte 3 on`.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Sets what the content is instead, as far as that can be seen, and how to fix it.
    pub(crate) fn being(self, instead: Option<String>) -> Self {
        Self { instead, ..self }
    }

    /// Returns the fault without its place: for a part of a JSON text, which nobody sees cut out of it.
    #[must_use]
    pub fn without_place(self) -> Self {
        Self { place: None, ..self }
    }
}

impl<S: Into<Cow<'static, str>>> From<S> for Fault {
    fn from(what: S) -> Self {
        Self::new(what)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.place.as_ref().map_or(Ok(()), |place| write!(f, " ({place})"))?;
        self.instead.as_ref().map_or(Ok(()), |instead| write!(f, "; {instead}"))
    }
}
