//! What `make bench` runs: claimant beside what one would use instead. `make growth` measures on the same store.
//!
//! | module | holds |
//! | --- | --- |
//! | `args` | the command line |
//! | `measure` | every cell of the grid, its contestants in turns |
//! | `field` | who is measured |
//! | [`process`] | processes that are measured, and how each is spoken to |
//! | `contestant`, `hand` | the Rust contestants, each a process of its own |
//! | [`workload`] | the messages |
//! | [`store`], [`units`] | the embedded DynamoDB behind latency, and what requests cost |
//! | `correctness` | what becomes of messages when something goes wrong |
//! | `cold`, `runtime_api` | cold starts and binary sizes |
//! | `figures`, `goals`, `report`, `tables`, `chart`, [`machine`], `locked` | the page about it |

mod args;
mod chart;
mod cold;
mod contestant;
mod correctness;
mod field;
mod figures;
mod goals;
mod hand;
mod locked;
pub mod machine;
mod measure;
pub mod process;
mod report;
mod runtime_api;
pub mod store;
mod tables;
pub mod units;
pub mod workload;

use std::process::ExitCode;

use claimant_core::Error;
use clap::Parser as _;
use tokio::runtime::Builder;

use args::{Args, Command, Run};
use field::{CLAIMANT, FIELD};

/// Does what the command line says.
pub fn main() -> ExitCode {
    let command = Args::parse().command;
    let mut threads = match &command {
        // As `claimant new` makes functions. All others have what `#[tokio::main]` gives them.
        Command::Contestant { name } if name == FIELD[CLAIMANT].name => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    match threads.enable_all().build() {
        Ok(runtime) => runtime.block_on(run_command(command)),
        Err(e) => {
            eprintln!("error: no threads could be started: {e}");
            ExitCode::FAILURE
        }
    }
}

async fn run_command(command: Command) -> ExitCode {
    let ended = match command {
        Command::Run(options) => run(*options).await,
        Command::Cold(options) => cold::run(&options).await.map(|figures| println!("{}", report::cold(&figures))),
        Command::Correctness(peers) => {
            correctness::run(&peers).await.map(|played| println!("{}", report::played(&played)))
        }
        Command::Contestant { name } => contestant::run(&name).await,
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:?}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Run) -> Result<(), Error> {
    let since = std::time::Instant::now();
    let cold = cold::run(&options.cold).await?;
    let grid = if options.quick { &measure::QUICK } else { &measure::FULL };
    let results = measure::run(grid, &options.peers).await?;
    let played = correctness::run(&options.peers).await?;
    let (grid, results, played, cold) = (grid, &results, &played, &cold);
    let page = report::page(&options, &report::Measured { grid, results, played, cold, took: since.elapsed() });
    let Some(file) = &options.output else {
        print!("{page}");
        return Ok(());
    };
    write(file, &page)?;
    for (name, _, svg) in chart::all(results) {
        write(&file.with_file_name(name), &svg)?;
    }
    Ok(())
}

fn write(file: &std::path::Path, text: &str) -> Result<(), Error> {
    std::fs::write(file, text).map_err(|e| Error::new(format!("{} could not be written", file.display())).caused_by(e))
}
