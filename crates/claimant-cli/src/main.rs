//! The `claimant` command.

mod args;
mod local;
mod logs;
mod new;
mod output;
mod progress;

use std::error::Error as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};

/// The command's own log. The embedded DynamoDB warns of every refused condition, which are the daily business here.
const LOG_FILTER: &str = "warn,dynoxide=error";

/// The run showed a fault.
const EXIT_FAULT: u8 = 1;
/// The command was used wrongly, something it needs is not there, or what it has to say could not be written. Clap uses the
/// same code.
const EXIT_SETUP: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let Args { command } = match Args::try_parse() {
        Ok(args) => args,
        // Help and the version are no errors, unless nobody can read them.
        Err(e) => {
            let code = if e.print().is_ok() { u8::try_from(e.exit_code()).unwrap_or(EXIT_SETUP) } else { EXIT_SETUP };
            return ExitCode::from(code);
        }
    };
    tracing_subscriber::fmt().with_env_filter(LOG_FILTER).with_writer(std::io::stderr).init();
    let ended = match command {
        Command::Local(options) => local::run(options).await,
        Command::New(options) => new::run(&options).and_then(|ended| output::check(true).map(|()| ended)),
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
