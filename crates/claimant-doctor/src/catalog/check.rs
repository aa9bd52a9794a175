//! A check, as it is described to people.

use std::path::Path;

/// The checkout that this was built from.
const BUILT_FROM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

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
    /// Where it is documented: an address, or a file in claimant's repository.
    pub source: &'static str,
}

impl Check {
    /// Returns where people find its documentation from wherever they are: the address, or the file in the checkout that this was built
    /// from, where that is still there.
    pub fn see(&self) -> String {
        if self.source.starts_with("https://") {
            return self.source.to_owned();
        }
        let file = Path::new(BUILT_FROM).join(self.source).canonicalize();
        file.map_or_else(|_| format!("{} in claimant's repository", self.source), |file| file.display().to_string())
    }
}
