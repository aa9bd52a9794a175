//! The simulation in short: the same seed gives the same run, no rule breaks, and the checker sees what is wrong.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use claimant_sim::coverage::Occurrence;
use claimant_sim::draw::draw;
use claimant_sim::judge::{PANIC, judge, judge_many};
use claimant_sim::mutant::Mutant;
use claimant_sim::run::run;
use claimant_sim::scenario::{Act, Fate, Fault, Scenario, Shape, Work};
use clap::ValueEnum as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Seeds of the long form: as few as have every fault in them. A release is held to twenty times as many (RELEASING.md).
const SEEDS: u64 = 1_000;

fn check(first: u64, count: u64) -> Vec<Occurrence> {
    let summary = judge_many(first, count, |_, _, _| {});
    let failed: Vec<_> = summary.failures.iter().map(|f| format!("SEED={}: {}", f.seed, f.violations[0])).collect();
    assert!(failed.is_empty(), "make simulate {}", failed.join("\nmake simulate "));
    assert_eq!(summary.coverage.scenarios, count);
    summary.coverage.missing()
}

#[test]
fn no_rule_breaks_in_a_few_seeds() {
    check(1_000_000, 100);
}

/// The page has the faults that there are, by their numbers, each with how often it occurred.
#[test]
fn the_page_lists_every_fault() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reliability.md");
    let page = std::fs::read_to_string(page).unwrap();
    let table = page.split_once("| # | fault | occurred |\n| --- | --- | --- |\n").unwrap().1;
    let rows: Vec<_> = table.lines().take_while(|line| line.starts_with('|')).collect();
    for (place, fault) in Occurrence::ALL.iter().enumerate() {
        let begin = format!("| {} | {} | ", fault.number(), fault.text());
        let row = rows.get(place).copied().unwrap_or_default();
        let times = row.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(" |"));
        let is_right = times.is_some_and(|times| times.parse::<u64>().is_ok_and(|times| times > 0));
        assert!(
            is_right,
            "docs/reliability.md lacks `{begin}… |`, which make simulate SEEDS=10000 prints; there is `{row}`"
        );
    }
    assert_eq!(rows.len(), Occurrence::ALL.len(), "docs/reliability.md: {:?}", rows.last());
}

/// The names of an enum's variants, which serde lists where it gets none of them.
fn variants<T: DeserializeOwned + fmt::Debug>() -> Vec<String> {
    let error = serde_json::from_str::<T>("\"\"").unwrap_err().to_string();
    let names = error.split_once("expected one of").unwrap().1;
    names.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// All names and texts in it.
fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(names.insert(text.clone())),
        Value::Array(values) => values.iter().for_each(|value| names_in(value, names)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            names_in(value, names);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn seeds_draw_all_that_a_scenario_can_have() {
    let mut drawn = BTreeSet::new();
    (0..SEEDS).for_each(|seed| names_in(&serde_json::to_value(draw(seed)).unwrap(), &mut drawn));
    let can_be = [variants::<Fault>(), variants::<Fate>(), variants::<Act>(), variants::<Work>(), variants::<Shape>()];
    let never: Vec<_> = can_be.into_iter().flatten().filter(|name| !drawn.contains(name)).collect();
    assert!(never.is_empty(), "draw.rs draws these in none of {SEEDS} seeds: {never:?}");
}

/// Without the faults of a kind, what happens is another thing: each kind has an effect.
#[test]
fn each_kind_of_fault_changes_a_run() {
    let kind = |fault: &Fault| serde_json::to_value(fault).unwrap().as_object().unwrap().keys().next().unwrap().clone();
    let mut idle: BTreeSet<String> = variants::<Fault>().into_iter().collect();
    for seed in (0..SEEDS).filter(|seed| seed % 2_048 != 7) {
        let scenario = draw(seed);
        let kinds: BTreeSet<_> = scenario.faults.iter().map(kind).filter(|kind| idle.contains(kind)).collect();
        if kinds.is_empty() {
            continue;
        }
        let hash = run(&scenario, None).hash();
        for name in kinds {
            let mut without = scenario.clone();
            without.faults.retain(|fault| kind(fault) != name);
            if run(&without, None).hash() != hash {
                idle.remove(&name);
            }
        }
        if idle.is_empty() {
            return;
        }
    }
    panic!("these faults change no run of {SEEDS} seeds: {idle:?}");
}

#[test]
#[ignore = "takes a minute: make test"]
fn no_rule_breaks_in_thousands_of_seeds_and_every_fault_occurs() {
    assert_eq!(check(0, SEEDS), [], "faults that did not occur");
}

/// Where nothing would be run, or not what is asked for.
#[test]
fn the_program_refuses_seeds_that_there_are_not() {
    for (args, wanted) in [
        (&["--seeds", "0"][..], "'--seeds <SEEDS>'"),
        (&["--from", "18446744073709551615", "--seeds", "3"], "from 18446744073709551615 on, there are not 3 seeds"),
        (&["--from", "18446744073709551615", "--mutants"], "there are not 600 seeds"),
        (&["--seed", "3", "--seeds", "5"], "cannot be used with"),
        (&["--scenario", "file", "--from", "5"], "cannot be used with"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_simulate")).args(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(wanted), "{args:?}: {said}");
    }
}

/// In another thread and in another order: nothing of one run is left for the next, in the SDK neither.
#[test]
fn the_same_seed_gives_the_same_run() {
    let hash = |seed: u64| (seed, run(&draw(seed), None).hash());
    let seeds = || (10..30).filter(|seed| seed % 2_048 != 7);
    let other = thread::spawn(move || seeds().rev().map(hash).collect::<Vec<_>>());
    let first: Vec<_> = seeds().map(hash).collect();
    let second: Vec<_> = other.join().unwrap().into_iter().rev().collect();
    assert_eq!(first, second);
}

#[test]
fn a_scenario_is_read_as_it_was_written() {
    for seed in 0..200 {
        let scenario = draw(seed);
        let text = serde_json::to_string(&scenario).unwrap();
        assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
    }
}

fn scenarios() -> Vec<(PathBuf, Scenario)> {
    // Cargo runs the tests of a crate in its directory.
    let files = std::fs::read_dir("scenarios").unwrap().map(|entry| entry.unwrap().path());
    let read = |path: PathBuf| (path.clone(), serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap());
    files.map(read).collect()
}

/// Scenarios that once broke a rule, such as a lease that is renewed between the turn of a run and its start; and those on which a
/// mutant does, named after it: a further one for a rule that has to see it, too, with that after two dashes.
#[test]
fn kept_scenarios_break_no_rule_unless_their_mutant_does() {
    let scenarios = scenarios();
    for (path, scenario) in &scenarios {
        assert_eq!(judge(scenario, None).violations, [], "{}", path.display());
        let name = path.file_stem().unwrap().to_str().unwrap();
        let (name, rule) = name.split_once("--").map_or((name, None), |(name, rule)| (name, Some(rule)));
        let mutant = Mutant::from_str(name, false);
        assert!(rule.is_none() || mutant.is_ok(), "{}: no such mutant", path.display());
        if let Ok(mutant) = mutant {
            let violations = judge(scenario, Some(mutant)).violations;
            let seen = violations.iter().any(|violation| rule.is_none_or(|rule| violation.rule == rule));
            assert!(seen, "{} is not seen: {violations:?}", path.display());
            // A run that ends so shows nothing of what is wrong.
            assert!(violations.iter().all(|violation| violation.rule != PANIC), "{mutant:?}: {violations:?}");
        }
    }
    for mutant in Mutant::value_variants() {
        let name = mutant.to_possible_value().unwrap().get_name().to_owned();
        let has_scenario = scenarios.iter().any(|(path, _)| path.file_stem().is_some_and(|stem| *stem == *name));
        assert!(
            has_scenario,
            "proof/sim/scenarios/{name}.json is missing: make simulate MUTANTS=1 MUTANT={name} finds a seed on which it is seen, and \
             make simulate SEED=… MUTANT={name} prints the scenario for the file, as small as it can be made"
        );
    }
}
