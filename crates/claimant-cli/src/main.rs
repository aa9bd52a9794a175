//! The `claimant` command.

mod args;
mod local;
mod logs;
mod progress;

use std::error::Error as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

/// The command's own log. The embedded DynamoDB warns of every refused condition, which are the daily business here.
const LOG_FILTER: &str = "warn,dynoxide=error";

/// The run showed a fault.
const EXIT_FAULT: u8 = 1;
/// The command was used wrongly, or something it needs is not there. Clap uses the same code.
const EXIT_SETUP: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let Args { command } = Args::parse();
    tracing_subscriber::fmt().with_env_filter(LOG_FILTER).with_writer(std::io::stderr).init();
    let ended = match command {
        Command::Local(options) => local::run(options).await,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_FAULT),
        Err(e) => {
            eprintln!("error: {}", with_causes(&e));
            ExitCode::from(EXIT_SETUP)
        }
    }
}

/// The error and what caused it, on one line.
fn with_causes(error: &claimant_local::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
