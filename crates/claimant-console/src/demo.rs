//! The demonstration of a console: under way, or as it went last.

use claimant_operate::demo::Chapter;
use serde::Serialize;

/// What is known of the demonstration.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Demo {
    /// Whether it is under way.
    pub(crate) running: bool,
    /// What is over, in its order.
    pub(crate) chapters: Vec<Chapter>,
    /// Why it ended early, if it did.
    pub(crate) failed: Option<String>,
}

impl Demo {
    /// Begins it, unless it is under way; returns whether it began.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = !self.running;
        if begins {
            *self = Self { running: true, ..Self::default() };
        }
        begins
    }

    /// Ends it.
    pub(crate) fn end(&mut self, failed: Option<String>) {
        (self.running, self.failed) = (false, failed);
    }
}
