//! The checker: what must hold of every history, whatever went wrong in it. In the manner of Jepsen's total queue: over
//! the whole history, when everything is over.
//!
//! | module | rules |
//! | --- | --- |
//! | `records` | S1, S2, S3, S5, S9, L1: what is written to the store |
//! | `reports` | S4, S6, S7, S8, L3, L4, visibility: what is told to the mapping |
//! | `runs` | effects, S8, S10, S11: what handlers do |
//! | `ends` | S6, L2, L5: what becomes of every message |

mod ends;
mod records;
mod reports;
mod runs;

use std::fmt;

use crate::history::History;
use crate::scenario::Scenario;
use crate::story::Story;

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule, by its number in the protocol's notes, or a word.
    pub rule: &'static str,
    /// When, in milliseconds since the beginning.
    pub at_ms: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}.{:03} s: {}", self.rule, self.at_ms / 1_000, self.at_ms % 1_000, self.what)
    }
}

/// Where violations are gathered.
#[derive(Debug, Default)]
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, rule: &'static str, at_ms: u64, what: impl Into<String>) {
        self.0.push(Violation { rule, at_ms, what: what.into() });
    }
}

/// Every rule that did not hold.
#[must_use]
pub fn check(scenario: &Scenario, history: &History) -> Vec<Violation> {
    let story = Story::of(scenario, history);
    let mut found = Found::default();
    records::check(&story, &mut found);
    reports::check(&story, &mut found);
    runs::check(&story, &mut found);
    ends::check(&story, &mut found);
    found.0
}

/// The record of a key.
pub(crate) fn record_of(key: usize) -> String {
    format!("sim#k{key}")
}
