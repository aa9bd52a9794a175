//! The checker: what must hold of every history, whatever went wrong in it. In the manner of Jepsen's total queue: over
//! the whole history, when everything is over.
//!
//! | module | rules |
//! | --- | --- |
//! | `records` | S1, S2, S3, S5, S9, L1: what is written to the store |
//! | `reports` | S4, S6, S7, S8, L3, L4, visibility, schedule: what is told to the mapping, the queue and the scheduler |
//! | `runs` | effects, one run for each claim, attempts, S8, S10, S11: what handlers do |
//! | `finished` | effects that need not be repeated: what was done is completed as soon as the store answers |
//! | `processes` | what a process does at once, and what its death leaves |
//! | `ends` | S6, L2, L5: what becomes of every message |
//! | `limit` | R1, R2: how many runs begin in a time, and go on at once |
//! | `breaker` | B1, B2, P1: what a process runs that knows a breaker open, or probes; the way back of a paused intake |
//! | `good` | L4, L5, turn: nothing good is lost to something bad |

mod breaker;
mod ends;
mod finished;
mod good;
mod limit;
mod processes;
mod records;
mod reports;
mod runs;

use std::fmt;

use crate::history::History;
use crate::scenario::Scenario;
use crate::timeline::Timeline;

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

/// Whether each clock is right, within the margin. Clocks that agree can all be an hour off until faults stop, and leases with them.
fn clocks_are_right(scenario: &Scenario) -> bool {
    scenario.clocks_agree() && scenario.function.clocks_ms.iter().all(|off| off.abs() <= Scenario::SKEW_MS)
}

/// Every rule that did not hold.
#[must_use]
pub fn check(scenario: &Scenario, history: &History) -> Vec<Violation> {
    let timeline = Timeline::of(scenario, history);
    let mut found = Found::default();
    records::check(&timeline, &mut found);
    reports::check(&timeline, &mut found);
    runs::check(&timeline, &mut found);
    ends::check(&timeline, &mut found);
    finished::check(&timeline, &mut found);
    processes::check(&timeline, &mut found);
    good::check(&timeline, &mut found);
    breaker::check(&timeline, &mut found);
    limit::check(&timeline, &mut found);
    found.0
}
