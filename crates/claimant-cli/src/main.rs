//! The `claimant` command.

mod args;
mod command;
mod exit;
mod local;
mod logs;
mod new;
mod output;
mod progress;

use std::error::Error as _;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use claimant_local::Error;
use exit::{EXIT_SETUP, Ended};

/// The command's own log. The embedded DynamoDB warns of every condition that fails, which is normal here.
const LOG_FILTER: &str = "warn,dynoxide=error";

fn main() -> ExitCode {
    let Args { command } = match Args::try_parse() {
        Ok(args) => args,
        // Help and the version are no errors, unless they could not be written.
        Err(e) => {
            let code = if e.print().is_ok() { u8::try_from(e.exit_code()).unwrap_or(EXIT_SETUP) } else { EXIT_SETUP };
            return ExitCode::from(code);
        }
    };
    tracing_subscriber::fmt().with_env_filter(LOG_FILTER).with_writer(std::io::stderr).init();
    match run(command) {
        Ok(ended) => ended.into(),
        Err(e) => {
            eprintln!("error: {}", with_causes(&e));
            ExitCode::from(EXIT_SETUP)
        }
    }
}

fn run(command: Command) -> Result<Ended, Error> {
    match command {
        Command::New(options) => {
            new::run(&options)?;
            output::check(output::Reader::MayLeave)?;
            Ok(Ended::Well)
        }
        Command::Local(options) => {
            let runtime = tokio::runtime::Runtime::new();
            let runtime = runtime.map_err(|e| Error::new("the async runtime cannot start").caused_by(e))?;
            let ended = runtime.block_on(local::run(options));
            // Reading a template from a pipe cannot be cancelled: the process ends without it.
            runtime.shutdown_background();
            ended
        }
    }
}

/// The error and what caused it, on one line.
fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
