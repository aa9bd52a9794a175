//! What is known beside a template, and why it cannot be read.

use std::collections::BTreeMap;

/// What is known beside the template.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Values of parameters; the others have their defaults, or are unknown.
    pub parameters: BTreeMap<String, String>,
    /// The Region that the stack is for, if known.
    pub region: Option<String>,
    /// The account that the stack is for, if known.
    pub account: Option<String>,
}

/// Why a template cannot be read: what, where, and how to fix it.
#[derive(Debug)]
pub struct Error(pub(super) String);

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
