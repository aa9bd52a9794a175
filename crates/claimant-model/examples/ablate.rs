//! scratch
use claimant_model::ablation::*;
fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    for a in ABLATIONS {
        let label = format!("{:?}", a.clause);
        if !label.contains(&filter) { continue; }
        let start = std::time::Instant::now();
        let c = a.counterexample();
        println!("{label} in {}: {:?} {:?}", a.config().name, c.as_ref().map(|c| (c.promise, c.steps)), start.elapsed());
        if !filter.is_empty() { if let Some(c) = c { println!("{}", c.trace); } }
    }
}
