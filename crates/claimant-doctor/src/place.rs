//! Where something stands.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Between the logical id of a nested stack and the ids within it.
pub(crate) const WITHIN: char = '>';

/// Where, in its Metadata, a resource accepts findings.
pub(crate) const METADATA: &str = "claimant-doctor";

/// Returns what is said of a resource that accepts findings which no check can have, or without a reason.
pub(crate) fn counts_for_nothing() -> String {
    format!(
        "Metadata.{METADATA} has an entry that counts for nothing: write the name of a check, a colon and the reason why its finding is as \
         it should be"
    )
}

/// Where something stands, and which checks its owner has answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The template's path; none in an account.
    pub file: Option<Arc<str>>,
    /// Counted from 1; 0 in an account.
    pub line: usize,
    /// A logical id, with those of the stacks it is nested in; in an account its name.
    pub id: Arc<str>,
    /// The checks that are accepted here, by their names, and why.
    pub accepted: Arc<BTreeMap<String, String>>,
    /// Whether it is certain to be there: no condition of it is unknown.
    pub certain: bool,
    /// Its own condition, if it has one that is unknown.
    pub condition: Option<Arc<str>>,
}

impl Place {
    /// Returns whether this is certain to be there where the other one is: always, or under the same condition of the same stack.
    pub fn is_there_with(&self, other: &Self) -> bool {
        let stack = |place: &Self| place.id.rsplit_once(WITHIN).map(|(stack, _)| stack.to_owned());
        let has_same = || self.condition.is_none() || self.condition == other.condition;
        self.certain || stack(self) == stack(other) && has_same()
    }
}
