//! `make storm`: the built functions in the local cloud, under a storm.
//!
//! Processes are killed and stopped at random moments, the line to DynamoDB delays, loses and cuts, and each message is sent
//! one to five times. Then the storm ends, the queues have to drain, and every effect is held against what was sent.
//! Everything printed meanwhile is searched for secrets that were planted in the messages.
//!
//! | module | holds |
//! | --- | --- |
//! | `plan` | what is sent, and what must become of it |
//! | `worker` | a function whose messages can abort its process |
//! | `line`, `killer` | the storm |
//! | `operator` | who moves good dead letters back when it is over |
//! | `database`, `seen` | what became of it, as seen from outside |
//! | `check` | what is wrong with it |
//! | `transcript` | the search for secrets |
//! | `storm` | all of it, from one seed |
//! | `report` | the table |
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a report on the terminal")]

mod check;
mod database;
mod killer;
mod line;
mod operator;
mod plan;
mod report;
mod seen;
mod storm;
mod transcript;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use storm::{Engine, Settings};

/// The longest storm, in seconds: the local mailbox keeps 10,000 mails, and the journal about what happens in an hour. Where it has
/// dropped some, the storm fails.
const SECONDS_MAX: u64 = 3_600;

/// Kill, stop and cut off the built functions in the local cloud, and check what became of every message
#[derive(Debug, Parser)]
struct Args {
    /// How long the storm lasts
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(5..=SECONDS_MAX))]
    seconds: u64,
    /// Decides what is sent and which faults occur when, not how processes interleave [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// The DynamoDB that the functions use, behind a connection that fails
    #[arg(long, value_enum, default_value = "local")]
    dynamodb: Engine,
    /// The directory with template.yaml
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// The directory with the functions' binaries [default: the one this command is in]
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// A file for everything that the functions and the local cloud print
    #[arg(long)]
    log: Option<PathBuf>,
    /// A parameter of the template; GatewayUrl=https://gateway.example/legacy makes payments double
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    parameter: Vec<(String, String)>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let settings = Settings {
        seed: args.seed.unwrap_or_else(|| fastrand::u64(..) >> 32),
        storm: Duration::from_secs(args.seconds),
        engine: args.dynamodb,
        binaries: args.binaries.or_else(own_directory).unwrap_or_else(|| PathBuf::from("target/debug")),
        root: args.root,
        log: args.log,
        parameters: args.parameter.into_iter().collect(),
    };
    println!("storm: {} s, seed {}", args.seconds, settings.seed);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    match runtime.block_on(storm::run(settings)) {
        Ok(outcome) => {
            print!("{outcome}");
            if outcome.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => failed(&error),
    }
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("give it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::from(2)
}

fn own_directory() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.parent()?.to_owned())
}
