//! scratch
use claimant_model::configurations::small;
use claimant_model::words::trace;
use stateright::{Checker, Model};
fn main() {
    let only = std::env::args().nth(1);
    let limit: usize = std::env::args().nth(2).map_or(20_000_000, |n| n.parse().unwrap());
    for model in small() {
        if only.as_ref().is_some_and(|o| !model.config.name.contains(o.as_str())) { continue; }
        let start = std::time::Instant::now();
        let name = model.config.name;
        let checker = model.clone().checker().threads(1).target_state_count(limit).spawn_bfs().join();
        println!("{name}: {} unique, {} in all, depth {}, {:?} {}", checker.unique_state_count(), checker.state_count(), checker.max_depth(), start.elapsed(), if checker.state_count() < limit {"whole"} else {""});
        let found = checker.discoveries();
        for p in checker.model().properties() {
            let bad = p.expectation.discovery_is_failure();
            if bad && found.contains_key(p.name) {
                println!("  VIOLATED {}", p.name);
                println!("{}", trace(&model, checker.discovery(p.name).unwrap()));
            }
            if !bad && !found.contains_key(p.name) { println!("  not seen {}", p.name); }
        }
    }
}
