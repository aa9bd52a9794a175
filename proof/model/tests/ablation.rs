//! Each clause is needed: without it, something that is promised breaks. Or it is said why not.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::HashSet;

use claimant_model::ablation::{ABLATIONS, Breaks};
use claimant_model::clause::Clause;
use claimant_model::conditions::{Guarded, Kind, Term};

#[test]
fn without_a_clause_a_promise_breaks() {
    for ablation in ABLATIONS {
        let found = ablation.counterexample();
        match (ablation.breaks, &found) {
            (Breaks::Promise(promises), Some(found)) => {
                assert!(promises.contains(&found.promise), "{:?}: {found:?}", ablation.clause);
                assert_eq!(found.trace.lines().count(), found.steps, "{:?}", ablation.clause);
            }
            (Breaks::Nothing(_), None) => {}
            (breaks, found) => panic!("{:?} should break {breaks:?}, and did {found:?}", ablation.clause),
        }
    }
}

#[test]
fn every_term_of_every_condition_is_in_the_table() {
    let terms = |kind: Kind| {
        let of_kind = ABLATIONS.iter().filter_map(move |ablation| match ablation.clause {
            Clause::Term(other, term) if other == kind => Some(term),
            _ => None,
        });
        of_kind.collect::<HashSet<Term>>()
    };
    for (kind, condition) in Guarded::CONDITIONS {
        let wanted: HashSet<Term> = condition.iter().flat_map(|all| all.iter().copied()).collect();
        assert_eq!(terms(*kind), wanted, "{kind:?}");
    }
}
