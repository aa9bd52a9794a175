//! What is wrong with a template, and what of it is not run here.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::spec::NotRun;
use crate::Error;

/// The findings of everything that reads one template.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// By line, so that they come in the template's order.
    faults: RefCell<BTreeSet<(usize, String)>>,
    not_run: RefCell<BTreeMap<(usize, String), NotRun>>,
}

/// Returns a text in one line: a template can hold anything. Who prints it escapes what would steer a terminal.
fn shown(text: &str) -> String {
    text.replace('\n', r"\n")
}

impl Findings {
    pub(super) fn fault(&self, line: usize, fault: String) {
        self.faults.borrow_mut().insert((line, shown(&fault)));
    }

    /// `what` is a logical id or a path, `kind` its type.
    pub(super) fn not_run(&self, line: usize, what: &str, kind: &str, why: impl Into<String>) {
        let found = NotRun { what: shown(what), kind: shown(kind), line, why: shown(&why.into()) };
        self.not_run.borrow_mut().insert((line, format!("{what} {}", found.why)), found);
    }

    /// What is not run, in the template's order; where there are faults, those.
    pub(super) fn into_result(self, place: &str) -> Result<Vec<NotRun>, Error> {
        let faults = self.faults.into_inner();
        if faults.is_empty() {
            return Ok(self.not_run.into_inner().into_values().collect());
        }
        let list: String = faults.iter().map(|(line, fault)| format!("\n  - {place}:{line}: {fault}")).collect();
        Err(Error::new(format!("{place} cannot be run locally:{list}")))
    }
}
