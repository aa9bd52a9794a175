//! Why a message is rejected for good.

use std::error::Error as StdError;
use std::fmt;

use crate::key::InvalidValue;

/// Why a message is rejected: what is wrong and where in the body, never what the body says.
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
