//! What was checked, and what came of it.

use std::fmt;
use std::sync::Arc;

use claimant_core::Store;

use super::watched::{Unanswered, Watched};

/// The clauses of the contracts of [`Store`], from 14 of [`Records`](claimant_core::Records), and from 18 of
/// [`BatchTransactional`](claimant_core::BatchTransactional), and the one of [`Transactional`](claimant_core::Transactional), by their names:
/// the first is clause 1.
pub const CLAUSES: [&str; 20] = [
    "One decision",
    "Atomic",
    "Guarded",
    "Own writes",
    "Fences grow",
    "Final",
    "Leases never shrink",
    "Expiry is compared",
    "No clock",
    "Keys are bytes",
    "Bounded",
    "Cancel safe",
    "Silent",
    "Compare and set",
    "Nothing is missed",
    "Pages are bounded",
    "A list changes nothing",
    "All or none",
    "Found out",
    "Both or neither",
];

/// How many of them are the contract of [`Store`].
pub const STORE_CLAUSES: usize = 13;

/// What one check comes to: what was seen, where that is not what the contract asks for.
pub(super) type Finding = Result<(), String>;

/// A check that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The number of the clause, from 1; `None` where the store does not work at all.
    pub clause: Option<usize>,
    /// The name of the check.
    pub check: String,
    /// What was seen.
    pub seen: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clause, check, seen } = self;
        match clause {
            Some(clause) => write!(f, "clause {clause} ({}) of the store contract is broken", CLAUSES[clause - 1])?,
            None => f.write_str("the store does not work")?,
        }
        write!(f, ": {check}: {seen}")
    }
}

/// How many checks of each clause held, and which did not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    held: [usize; CLAUSES.len()],
    broken: Vec<Broken>,
}

impl Findings {
    /// How many checks of this clause held; the first clause is 1.
    ///
    /// # Panics
    /// When there is no such clause.
    #[must_use]
    pub fn held(&self, clause: usize) -> usize {
        self.held[clause - 1]
    }

    /// How many checks held.
    #[must_use]
    pub fn total(&self) -> usize {
        self.held.iter().sum()
    }

    /// The checks that did not hold, in the order in which they were made.
    #[must_use]
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} checks held", self.total())?;
        for (n, held) in self.held.iter().enumerate() {
            write!(f, ", clause {}: {held}", n + 1)?;
        }
        self.broken.iter().try_for_each(|broken| write!(f, "\n{broken}"))
    }
}

/// Holds one store to the contract.
pub(super) struct Examiner {
    pub(super) store: Arc<dyn Store>,
    /// Whether the first check that does not hold ends it all.
    strict: bool,
    /// Of a call of the check under way that did not end in time, or panicked.
    unanswered: Unanswered,
    pub(super) findings: Findings,
}

impl Examiner {
    /// Returns the store as it is asked, too.
    pub(super) fn of<S: Send + Sync + ?Sized>(store: Arc<S>, strict: bool) -> (Self, Arc<Watched<S>>)
    where
        Watched<S>: Store,
    {
        let unanswered = Unanswered::default();
        let store = Arc::new(Watched::new(store, unanswered.clone()));
        (Self { store: store.clone(), strict, unanswered, findings: Findings::default() }, store)
    }

    /// Takes in what one check came to.
    pub(super) fn hold(&mut self, clause: usize, check: impl Into<String>, finding: Finding) {
        if self.holds(Some(clause), check.into(), finding) {
            self.findings.held[clause - 1] += 1;
        }
    }

    /// Takes in what a check of no clause came to; returns whether it held.
    pub(super) fn works(&mut self, check: impl Into<String>, finding: Finding) -> bool {
        self.holds(None, check.into(), finding)
    }

    fn holds(&mut self, clause: Option<usize>, check: String, finding: Finding) -> bool {
        let Err(seen) = self.unanswered.take().map_or(finding, Err) else { return true };
        let broken = Broken { clause, check, seen };
        assert!(!self.strict, "{broken}");
        self.findings.broken.push(broken);
        false
    }
}

/// `Ok` where it is so.
pub(super) fn ensure(so: bool, seen: impl FnOnce() -> String) -> Finding {
    if so { Ok(()) } else { Err(seen()) }
}
