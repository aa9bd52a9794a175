//! What an act has done.

use serde::Serialize;
use serde_json::Value;

/// What became of an act, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Notice {
    /// Whether it was done.
    pub(crate) done: bool,
    /// The sentence. It may have names and keys of messages, never a body.
    pub(crate) text: String,
}

/// What an act has done.
#[derive(Clone)]
pub(crate) struct Done {
    /// What became of it.
    pub(crate) notice: Notice,
    /// Where a person sees it: a path of this console, with a query if it has one.
    pub(crate) see: String,
    /// The same for a program.
    pub(crate) value: Value,
}

impl Done {
    /// Returns that an act was done, in a sentence.
    pub(crate) fn new(text: impl Into<String>, see: impl Into<String>, value: Value) -> Self {
        Self::of(true, text, see, value)
    }

    /// Returns that an act was refused, or did nothing.
    pub(crate) fn refused(text: impl Into<String>, see: impl Into<String>, value: Value) -> Self {
        Self::of(false, text, see, value)
    }

    /// Returns what became of an act that was done or not, in a sentence.
    pub(crate) fn of(done: bool, text: impl Into<String>, see: impl Into<String>, value: Value) -> Self {
        Self { notice: Notice { done, text: text.into() }, see: see.into(), value }
    }
}
