//! `make model`: explores worlds and prints what was found.
//!
//! Without an argument, the small worlds and the large one; `small` or `large` for those alone; `ablation` for what breaks
//! without each clause, with the traces.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a report on the terminal")]

use std::process::ExitCode;

use claimant_model::ablation::{ABLATIONS, Breaks};
use claimant_model::configurations::{large, small};
use claimant_model::explore::{Extent, Found, explore};

/// Threads that explore; they share one table of states.
const THREADS: usize = 2;

/// States of the large world that are met at most, unless another number is given after `large`.
const LARGE_STATES_MAX: usize = 1_000_000_000;

fn main() -> ExitCode {
    let what = std::env::args().nth(1).unwrap_or_default();
    let mut sound = true;
    if matches!(what.as_str(), "" | "small") {
        for model in small() {
            sound &= print(explore(model, Extent::whole(THREADS)));
        }
    }
    if matches!(what.as_str(), "" | "large") {
        let states_max = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(LARGE_STATES_MAX);
        let watch = |unique| eprintln!("{unique} unique states so far");
        sound &= print(explore(large(), Extent { threads: THREADS, states_max: Some(states_max), watch }));
    }
    if what == "ablation" {
        sound &= ablate();
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(found: Found) -> bool {
    println!("{found}");
    found.is_sound()
}

/// Prints what breaks without each clause; whether that is what the table says.
fn ablate() -> bool {
    let mut as_said = true;
    for ablation in ABLATIONS {
        let world = ablation.config();
        match (ablation.counterexample(), ablation.breaks) {
            (Some(found), Breaks::Promise(_)) => {
                println!(
                    "Without {:?}, in the world \"{}\", \"{}\" breaks in {} steps:\n{}",
                    ablation.clause, world.name, found.promise, found.steps, found.trace
                );
            }
            (None, Breaks::Nothing(why)) => println!("Without {:?} nothing breaks: {why}.\n", ablation.clause),
            (found, _) => {
                as_said = false;
                println!(
                    "Without {:?}, in the world \"{}\", not as the table says: {found:?}\n",
                    ablation.clause, world.name
                );
            }
        }
    }
    as_said
}
