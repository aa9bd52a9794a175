//! scratch
#![allow(clippy::unwrap_used)]
use claimant_model::checked::Checked;
use claimant_model::config::*;
use stateright::{Checker, Model};
fn main() {
    let n = |k: &str, d: u8| std::env::var(k).map_or(d, |v| v.parse().unwrap());
    let config = Config {
        form: if n("C", 1) == 1 { Form::Conditional } else { Form::Atomic },
        finishes: match n("F", 3) { 1 => &[Finish::Ok], 2 => &[Finish::Ok, Finish::Fail], _ => &[Finish::Ok, Finish::Fail, Finish::Cut { acted: true }] },
        payloads: match n("M", 1) { 1 => &[0], _ => &[0, 0] },
        workers: n("W", 2).into(),
        losses: n("L", 1), deaths: n("D", 1), ticks: n("T", 4), receives: n("R", 3),
        stops: n("S", 1) == 1, renewed: n("N", 0) == 1, drained: false,
        ..Config::new("probe")
    };
    let start = std::time::Instant::now();
    let checker = Checked { config, only: None, sights: &[] }.checker().threads(1).timeout(std::time::Duration::from_secs(n("SECS", 200).into())).spawn_dfs().join();
    println!("{} unique, {} in all, depth {}, {:?} {:?}", checker.unique_state_count(), checker.state_count(), checker.max_depth(), start.elapsed(), checker.discoveries().keys());
}
