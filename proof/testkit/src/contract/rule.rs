//! A rule of the contract: what a script must show.

use crate::script::Step;

/// A script with the beginning of the line that each step must show.
pub(super) struct Rule {
    pub(super) clause: usize,
    pub(super) name: &'static str,
    pub(super) steps: Vec<Step>,
    pub(super) expected: Vec<&'static str>,
}
