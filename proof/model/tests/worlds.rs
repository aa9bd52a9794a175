//! Every small world, explored whole: every promise holds, and nothing that should be reachable is not.

use std::collections::HashSet;

use claimant_model::configurations::{large, small};
use claimant_model::explore::{Extent, explore};
use claimant_model::properties::{PROMISES, SIGHTS};

#[test]
fn every_small_world_keeps_every_promise() {
    for model in small() {
        let found = explore(model, Extent::whole(2));
        println!("{found}");
        assert!(found.is_sound(), "{found}");
    }
}

/// The large world has a bound, which it may outgrow.
#[test]
fn a_world_that_is_not_explored_whole_is_not_sound() {
    let found = explore(large(), Extent { states_max: Some(1_000), ..Extent::whole(2) });
    assert!(found.holds() && !found.is_sound(), "{found}");
}

#[test]
fn every_promise_is_made_and_every_sight_wanted_somewhere() {
    let worlds = small();
    for promise in PROMISES {
        assert!(worlds.iter().any(|model| (promise.made)(&model.config)), "{}", promise.name);
    }
    let wanted: HashSet<&str> = worlds.iter().flat_map(|model| model.sights).copied().collect();
    let there: HashSet<&str> = SIGHTS.iter().map(|sight| sight.name).collect();
    assert_eq!(wanted, there);
}
