//! What the checks answer, and the report of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::catalog::{CATALOG, Check};
use crate::model::Place;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing; often as it should be.
    Note,
    /// It works until something else goes wrong.
    Warning,
    /// AWS refuses it, or messages are lost or never handled.
    Error,
}

/// What a check found in one place.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// How bad it is.
    pub level: Level,
    /// Where.
    pub place: Place,
    /// What is there, with its values.
    pub what: String,
    /// What to write or type instead.
    pub fix: String,
}

/// A finding that its resource accepts, with its reason.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// What was found.
    pub finding: Finding,
    /// Why it is as it should be.
    pub reason: String,
}

/// How often a check was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Places where nothing is wrong.
    pub fine: usize,
    /// Places where something was found, accepted or not.
    pub found: usize,
    /// Places where it cannot be known.
    pub unknown: usize,
}

/// What all checks answered.
#[derive(Debug, Default)]
pub struct Report {
    /// The worst first, then by place.
    pub findings: Vec<Finding>,
    /// What would have been found, and is as it should be.
    pub accepted: Vec<Accepted>,
    /// By the number of the check; a check that had nothing to look at has none.
    pub tallies: BTreeMap<u8, Tally>,
    /// What was not looked at, and why.
    pub not_looked_at: Vec<String>,
    /// Parameters without a value that answers may depend on, each as `--parameter` takes it, with the values that it may have behind it.
    pub unvalued: BTreeSet<String>,
}

/// What a check has found in one place, before it is a finding.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) level: Level,
    pub(crate) what: String,
    pub(crate) fix: String,
}

/// The answer for one place: nothing, if it cannot be known; no `Found`, if it is fine.
pub(crate) type Answer = Option<Option<Found>>;

/// It is fine.
pub(crate) const FINE: Answer = Some(None);

/// Something is wrong.
#[allow(clippy::unnecessary_wraps, reason = "it is one of the three answers")]
pub(crate) fn found(level: Level, what: impl Into<String>, fix: impl Into<String>) -> Answer {
    Some(Some(Found { level, what: what.into(), fix: fix.into() }))
}

/// The answer for something that may not be asked: what would be found is not known then.
pub(crate) fn perhaps(answer: Answer) -> Answer {
    answer.filter(Option::is_none)
}

/// The answer to several questions about one place: all that is found, as bad as the worst of it, else that something is not known, else
/// that it is fine.
pub(crate) fn together(answers: impl IntoIterator<Item = Answer>) -> Answer {
    let (mut level, mut is_known) = (Level::Note, true);
    let (mut what, mut fixes) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            None => is_known = false,
            Some(None) => {}
            Some(Some(found)) => {
                level = level.max(found.level);
                // One statement can be what several lack, and one thing what several places lack.
                if !what.contains(&found.what) {
                    what.push(found.what);
                }
                if !fixes.contains(&found.fix) {
                    fixes.push(found.fix);
                }
            }
        }
    }
    if what.is_empty() {
        return is_known.then_some(None);
    }
    found(level, what.join("; "), fixes.join("; and "))
}

impl Report {
    /// Records a check's answer for a place.
    pub(crate) fn answer(&mut self, number: u8, place: &Place, answer: Answer) {
        let check = &CATALOG[usize::from(number) - 1];
        let tally = self.tallies.entry(number).or_default();
        let found = match answer {
            None => {
                tally.unknown += 1;
                return;
            }
            Some(None) => {
                tally.fine += 1;
                return;
            }
            Some(Some(found)) => found,
        };
        tally.found += 1;
        let Found { level, what, fix } = found;
        let finding = Finding { check, level, place: place.clone(), what, fix };
        match place.accepted.get(check.name) {
            Some(reason) => self.accepted.push(Accepted { finding, reason: reason.clone() }),
            None => self.findings.push(finding),
        }
    }

    /// Puts the findings in order.
    pub(crate) fn sort(&mut self) {
        let place = |finding: &Finding| (finding.place.file.clone(), finding.place.line, finding.place.id.clone());
        self.findings.sort_by_cached_key(|finding| {
            (std::cmp::Reverse(finding.level), place(finding), finding.check.number, finding.what.clone())
        });
    }

    /// Returns the findings of this level and worse.
    pub fn from(&self, level: Level) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.level >= level)
    }

    /// Returns how many answers are not known.
    pub(crate) fn unknown(&self) -> usize {
        self.tallies.values().map(|tally| tally.unknown).sum()
    }

    /// Leaves out what these checks answered.
    pub fn leave_out(&mut self, checks: &[&Check]) {
        self.findings.retain(|finding| !checks.contains(&finding.check));
        self.accepted.retain(|accepted| !checks.contains(&accepted.finding.check));
        self.tallies.retain(|number, _| !checks.iter().any(|check| check.number == *number));
    }

    /// Takes over what another part answered.
    pub fn add(&mut self, other: Self) {
        self.findings.extend(other.findings);
        self.sort();
        self.accepted.extend(other.accepted);
        self.not_looked_at.extend(other.not_looked_at);
        self.unvalued.extend(other.unvalued);
        for (number, tally) in other.tallies {
            let sum = self.tallies.entry(number).or_default();
            sum.fine += tally.fine;
            sum.found += tally.found;
            sum.unknown += tally.unknown;
        }
    }
}
