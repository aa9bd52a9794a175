//! `make simulate`: many seeds with progress, or one with its trace.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use claimant_sim::draw::draw;
use claimant_sim::judge::{Failure, Summary, Verdict, judge, judge_many, seen_by, smallest};
use claimant_sim::mutant::Mutant;
use claimant_sim::scenario::Scenario;
use clap::error::ErrorKind;
use clap::{ArgGroup, CommandFactory as _, Parser, ValueEnum as _};

/// From so many seeds on, each fault must have occurred.
const ALL_FAULTS_SEEDS: u64 = 10_000;

/// So many failures are shown in full.
const SHOWN_MAX: usize = 3;

/// Within so many seeds each mutant must be seen.
const MUTANT_SEEDS: u64 = 600;

/// Simulate claimant's whole runtime on virtual time under faults, and check what happened
#[derive(Debug, Parser)]
#[command(group(ArgGroup::new("with_it").args(["seed", "scenario", "mutants"])))]
struct Args {
    /// Run this seed, and print its scenario and its trace
    #[arg(long)]
    seed: Option<u64>,
    /// Run the scenario in this JSON file, and print its trace
    #[arg(long)]
    scenario: Option<PathBuf>,
    /// How many seeds to run [default: 10000, or 600 for each bug of --mutants]
    #[arg(long, conflicts_with_all = ["seed", "scenario"], value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// The first seed
    #[arg(long, conflicts_with_all = ["seed", "scenario"], default_value_t = 0)]
    from: u64,
    /// Run with this bug in the runtime, with --seed, --scenario or --mutants
    #[arg(long, requires = "with_it")]
    mutant: Option<Mutant>,
    /// Check that each bug, or the one of --mutant, is reported within some seed
    #[arg(long)]
    mutants: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let seeds = args.seeds.unwrap_or(if args.mutants { MUTANT_SEEDS } else { ALL_FAULTS_SEEDS });
    if args.from.checked_add(seeds).is_none() {
        let why = format!("from {} on, there are not {seeds} seeds", args.from);
        Args::command().error(ErrorKind::ValueValidation, why).exit();
    }
    let good = match (&args.seed, &args.scenario) {
        (Some(seed), _) => show(&draw(*seed), args.mutant),
        (None, Some(path)) => match read(path) {
            Ok(scenario) => show(&scenario, args.mutant),
            Err(why) => {
                eprintln!("{}: {why}", path.display());
                false
            }
        },
        _ if args.mutants => mutants(args.mutant, args.from, seeds),
        _ => many(args.from, seeds),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(path: &PathBuf) -> Result<Scenario, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// One scenario with its trace; a failing one is made small.
fn show(scenario: &Scenario, mutant: Option<Mutant>) -> bool {
    let Verdict { history, violations } = judge(scenario, mutant);
    println!("{}\n\n{history}", as_json(scenario));
    for violation in &violations {
        println!("{violation}");
    }
    let Some(first) = violations.first() else {
        println!("every rule held (trace {:016x})", history.hash());
        return true;
    };
    let small = smallest(scenario, first.rule, mutant);
    if small != *scenario {
        let Verdict { history, violations } = judge(&small, mutant);
        println!("\nThe same with as little as possible; keep it in proof/sim/scenarios:\n");
        println!("{}\n\n{history}", as_json(&small));
        violations.iter().for_each(|violation| println!("{violation}"));
    }
    false
}

fn as_json(scenario: &Scenario) -> String {
    serde_json::to_string(scenario).unwrap_or_default()
}

fn many(from: u64, seeds: u64) -> bool {
    let start = Instant::now();
    let (shows, step) = (std::io::stderr().is_terminal(), (seeds / 100).max(1));
    let progress = |done: u64, failed: Option<&Failure>, summary: &Summary| {
        if let Some(failure) = failed {
            eprintln!("seed {}: {}", failure.seed, first_of(failure));
        }
        if done.is_multiple_of(step) || done == seeds {
            let per_s = done as f64 / start.elapsed().as_secs_f64();
            let (line_end, failures) = (if shows { "\r" } else { "\n" }, summary.failures.len());
            eprint!("{done} of {seeds} seeds, {per_s:.0} a second, {failures} failed {line_end}");
            // Progress that cannot be shown is no reason to stop.
            let _ = std::io::stderr().flush();
        }
    };
    let summary = judge_many(from, seeds, progress);
    eprintln!();
    println!("{}\n", summary.coverage);
    for failure in &summary.failures {
        println!("seed {}: {}", failure.seed, first_of(failure));
    }
    for failure in summary.failures.iter().take(SHOWN_MAX) {
        println!("\n--- seed {}: make simulate SEED={}\n", failure.seed, failure.seed);
        let rule = failure.violations.first().map_or("", |violation| violation.rule);
        let small = smallest(&draw(failure.seed), rule, None);
        let Verdict { history, violations } = judge(&small, None);
        println!("{}\n\n{history}", as_json(&small));
        violations.iter().for_each(|violation| println!("{violation}"));
    }
    let missing = summary.coverage.missing();
    if seeds >= ALL_FAULTS_SEEDS && !missing.is_empty() {
        println!("these faults never occurred: {missing:?}");
    }
    let took = start.elapsed().as_secs_f64();
    println!("{} of {seeds} seeds failed; {took:.0} s", summary.failures.len());
    summary.failures.is_empty() && (seeds < ALL_FAULTS_SEEDS || missing.is_empty())
}

fn first_of(failure: &Failure) -> String {
    failure.violations.first().map_or_else(String::new, ToString::to_string)
}

fn mutants(only: Option<Mutant>, from: u64, seeds: u64) -> bool {
    println!("| wrong runtime | first seen at seed | seen in, of {seeds} seeds, by rule |");
    println!("| --- | --- | --- |");
    let mut all = true;
    for mutant in Mutant::value_variants().iter().filter(|mutant| only.is_none_or(|only| only == **mutant)) {
        let (first, rules) = seen_by(*mutant, from..from + seeds);
        all &= first.is_some();
        let first = first.map_or_else(|| "never".to_owned(), |seed| seed.to_string());
        let rules: Vec<_> = rules.into_iter().map(|(rule, times)| format!("{rule}: {times}")).collect();
        println!("| {mutant:?} | {first} | {} |", rules.join(", "));
    }
    all
}
