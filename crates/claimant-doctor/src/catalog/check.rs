//! A check, as it is described to people.

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check {
    /// From 1; it never changes its meaning.
    pub number: u8,
    /// What it is called in options, in accepted findings and in SARIF.
    pub name: &'static str,
    /// What should be so.
    pub title: &'static str,
    /// What happens otherwise.
    pub why: &'static str,
    /// When a finding is as it should be.
    pub fine: &'static str,
    /// Where it is documented.
    pub source: &'static str,
}
