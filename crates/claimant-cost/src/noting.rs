//! Takes what a template says, and notes what is assumed where it does not.

use claimant_doctor::fact::Fact;
use claimant_doctor::model::Function;

/// The assumptions so far.
pub(crate) struct Noting(pub(crate) Vec<String>);

impl Noting {
    /// Notes that this is assumed.
    pub(crate) fn note(&mut self, what: impl Into<String>) {
        self.0.push(what.into());
    }

    /// Returns the value, or the default where it is not known.
    pub(crate) fn or<T: Clone + std::fmt::Display>(&mut self, what: &str, fact: &Fact<T>, default: T) -> T {
        fact.known().cloned().unwrap_or_else(|| {
            self.note(format!("{what}: {default}"));
            default
        })
    }

    /// Returns the value, if it is set; not known counts as not set.
    pub(crate) fn or_unset<T: Clone>(&mut self, what: &str, fact: &Fact<Option<T>>) -> Option<T> {
        fact.known().cloned().unwrap_or_else(|| {
            self.note(format!("{what}: not set"));
            None
        })
    }

    /// Returns whether a variable of the function is on, of which only this value is not the default.
    pub(crate) fn is_on(&mut self, function: &Function, variable: &str, default: bool) -> bool {
        let word = |on| if on { "on" } else { "off" };
        if function.environment.get(variable).is_some_and(|value| value.known().is_none()) {
            self.note(format!("{variable}: {}", word(default)));
        }
        default != function.is_set(variable, word(!default))
    }
}
