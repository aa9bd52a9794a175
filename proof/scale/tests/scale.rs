//! A twentieth of the load, for one second: a thousand messages a second, on partitions of fifty units, in twelve processes.

use std::time::Duration;

use claimant_scale::{Case, Seen, TableSpec, run};

fn case(units: u64) -> Case {
    let case = Case::new("").tables(&[TableSpec::on_demand(units)]).divided(20);
    Case { sent_for: Duration::from_secs(1), invocations: 12, ..case }
}

fn run_once(case: &Case) -> Seen {
    let seen = run(case, 1).expect("the runtime and the engines are made");
    assert_eq!((seen.sent, seen.ages_ms.len() + seen.dead), (1_000, 1_000), "each message has an end");
    assert_eq!((seen.lost, seen.doubled), (0, 0));
    seen
}

#[test]
fn a_new_table_throttles_and_all_is_done_once_at_its_rate() {
    let seen = run_once(&case(Case::NEW_TABLE_UNITS));
    assert_eq!((seen.dead, seen.repeated, seen.outcome("completed")), (0, 0, 1_000));
    assert!(seen.runs.len() == 1_000 && seen.runs.values().all(|runs| *runs == 1));
    // A claim and a completion for each, and what is throttled costs no unit.
    let counts = seen.counts();
    assert_eq!(counts.writes, 2_000);
    assert!(counts.throttled > counts.writes, "{counts:?}");
    // It takes its 200 units a second, and what its partitions hold at the beginning.
    let most = seen.samples.iter().map(|sample| sample.counts.writes).max();
    assert!(seen.samples[0].counts.writes <= 400 && most <= Some(400), "{most:?}");
    assert!(seen.samples.len() >= 9, "{} s", seen.samples.len());
}

#[test]
fn after_warm_throughput_nothing_is_throttled() {
    let seen = run_once(&case(80_000));
    let counts = seen.counts();
    assert_eq!((counts.writes, counts.reads, counts.throttled, seen.repeated), (2_000, 0, 0, 0));
    assert_eq!((seen.receives, seen.outcome("completed")), (1_000, 1_000));
    // A handler, four ways of a request and what waits for a full batch.
    assert!(seen.age(1_000) < Duration::from_millis(200), "{:?}", seen.age(1_000));
}

#[test]
fn copies_of_one_key_run_once_and_the_same_seed_gives_the_same_run() {
    let hot = Case { hot_percent: 20, sent_per_s: 200, ..case(80_000) };
    let [seen, again] = [(); 2].map(|()| run(&hot, 1).expect("the runtime and the engines are made"));
    assert_eq!((seen.sent, seen.lost, seen.doubled, seen.runs.get(&Case::HOT)), (200, 0, 0, Some(&1)));
    // Each other key, and the first of the copies.
    let copies = (0..200).filter(|n| hot.is_hot(*n)).count() as u64;
    assert!(copies > 20, "{copies}");
    assert_eq!((seen.outcome("completed"), seen.outcome("duplicate")), (201 - copies, copies - 1));
    assert_eq!(seen, again);
}
