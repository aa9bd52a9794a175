//! `make model`: explores worlds and prints what was found.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a report on the terminal")]

use std::process::ExitCode;

use claimant_model::ablation::{ABLATIONS, Breaks};
use claimant_model::configurations::{large, small};
use claimant_model::explore::{Extent, explore};
use clap::{Parser, ValueEnum};

/// Threads that explore; they share one table of states.
const THREADS: usize = 2;

/// As many states, counting those met again, as there is time and memory for. A world that has more is not explored whole, and that is
/// a failure.
const STATES_MAX: usize = 1_000_000_000;

/// Explore every interleaving of the protocol in small worlds, and check what is promised in each state
#[derive(Debug, Parser)]
struct Args {
    /// What to explore [default: the small worlds, then the large one]
    world: Option<World>,

    /// The most states of the large world to visit, and that need not be all [default: all, and at most 1,000,000,000]
    #[arg(long)]
    states_max: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum World {
    /// The small worlds
    Small,
    /// The large world, which takes about 20 minutes
    Large,
    /// Each clause of the protocol left out in turn, and the trace of what breaks without it
    Ablation,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let wanted = |world| args.world.is_none_or(|only| only == world);
    let mut sound = true;
    if wanted(World::Small) {
        for model in small() {
            let found = explore(model, Extent::whole(THREADS));
            println!("{found}");
            sound &= found.is_sound();
        }
    }
    if wanted(World::Large) {
        let watch = |unique| eprintln!("{unique} unique states so far");
        let states_max = Some(args.states_max.unwrap_or(STATES_MAX));
        let found = explore(large(), Extent { threads: THREADS, states_max, watch });
        println!("{found}");
        sound &= if args.states_max.is_some() { found.holds() } else { found.is_sound() };
    }
    if args.world == Some(World::Ablation) {
        sound &= ablate();
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
