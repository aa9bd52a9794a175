//! A function's environment.

use std::collections::BTreeMap;

use crate::fact::Fact;
use crate::link::Link;

/// A function's environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Those whose names are known, with their values.
    pub variables: BTreeMap<String, Fact<Link>>,
    /// Whether there can be others.
    pub is_open: bool,
}

impl Environment {
    /// Returns the value of a variable; nothing if it is certain not to be set.
    pub fn get(&self, variable: &str) -> Option<&Fact<Link>> {
        const UNKNOWN: &Fact<Link> = &Fact::Unknown;
        self.variables.get(variable).or(self.is_open.then_some(UNKNOWN))
    }

    /// Returns whether a variable is set.
    pub fn has(&self, variable: &str) -> Fact<bool> {
        self.has_any(|name| name == variable)
    }

    /// Returns whether a variable is set whose name is such a one.
    pub(crate) fn has_any(&self, is_one: impl Fn(&str) -> bool) -> Fact<bool> {
        match self.variables.keys().any(|name| is_one(name)) {
            false if self.is_open => Fact::Unknown,
            found => Fact::Known(found),
        }
    }
}
