//! Every small world, explored whole: every promise holds, and nothing that should be reachable is not.

use claimant_model::configurations::small;
use claimant_model::explore::{Extent, explore};

#[test]
fn every_small_world_keeps_every_promise() {
    for model in small() {
        let found = explore(model, Extent::whole(2));
        println!("{found}");
        assert!(found.is_sound(), "{found}");
    }
}
