//! The `claimant` command.

mod args;
mod command;
mod console;
mod cost;
mod deployed;
mod doctor;
mod exit;
mod files;
mod local;
mod logs;
mod new;
mod operate;
mod output;
mod progress;
mod running;
mod shell;
mod stop;
mod template;
mod writer;

use std::error::Error as StdError;
use std::process::ExitCode;

use clap::Parser as _;

use args::{Args, Command};
use claimant_core::error::Chain;
use claimant_core::protocol::Act;
use exit::{EXIT_SETUP, Ended};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// What of the command's own log is left to errors. The embedded DynamoDB warns of every condition that fails, which is normal here; and
/// `aws_config`, at length, of every place without credentials, which the command's error says in a word.
const ERRORS_ONLY: [&str; 2] = ["aws_config", "dynoxide"];

fn main() -> ExitCode {
    let Args { command } = match Args::try_parse() {
        Ok(args) => args,
        // Help and the version are no errors, unless they could not be written.
        Err(e) => {
            let code = u8::try_from(e.exit_code()).unwrap_or(EXIT_SETUP);
            return ExitCode::from(if output::is_written(e.print()) { code } else { EXIT_SETUP });
        }
    };
    let quiet = ERRORS_ONLY.map(|target| (target, LevelFilter::ERROR));
    // What PostgreSQL's triggers and functions say can hold data.
    let notices = ("sqlx::postgres::notice", LevelFilter::OFF);
    let logged = Targets::new().with_default(LevelFilter::WARN).with_targets(quiet).with_targets([notices]);
    tracing_subscriber::fmt().with_writer(|| output::Log).finish().with(logged).init();
    let code = match run(command) {
        Ok(ended) => ended.into(),
        Err(e) => {
            output::note_last(format_args!("error: {}", Chain(&*e)));
            ExitCode::from(EXIT_SETUP)
        }
    };
    // Without a runtime, as where no more files can be open, no signal is heard.
    if !output::is_finished() && block_on(output::finish()).is_err() {
        output::finish_unheard();
    }
    code
}

fn run(command: Command) -> Result<Ended, Box<dyn StdError>> {
    let ended = match command {
        Command::Console(options) => block_on(deployed::run(*options))??,
        Command::Cost(options) => cost::run(&options)?,
        Command::Doctor(options) => block_on(doctor::run(&options))??,
        Command::New(options) => {
            new::run(&options)?;
            Ended::Well
        }
        // It looks after its output itself: a report must be read whole.
        Command::Local(options) => return Ok(block_on(local::run(options))??),
        Command::Dead(options) => block_on(operate::dead::run(*options))??,
        Command::Pause(options) => block_on(operate::intake::run(false, options))??,
        Command::Resume(options) => block_on(operate::intake::run(true, options))??,
        Command::Limit(options) => block_on(operate::limit::run(*options))??,
        Command::List(options) => block_on(operate::list::run(options))??,
        Command::Inspect(options) => block_on(operate::inspect::run(options))??,
        Command::Release(options) => block_on(operate::act::run(Act::Release, options))??,
        Command::Reset(options) => block_on(operate::act::run(Act::Reset, options))??,
        Command::Forget(options) => block_on(operate::act::run(Act::Forget, options))??,
        Command::Resolve(options) => block_on(operate::act::run(Act::Resolve, options))??,
        Command::Send(options) => block_on(operate::send::run(*options))??,
        Command::Effects(options) => block_on(operate::effects::run(options))??,
        Command::Fault(options) => block_on(operate::fault::run(*options))??,
        Command::Demo(options) => block_on(operate::demo::run(options))??,
        Command::Tail(options) => block_on(operate::tail::run(options))??,
        Command::Completions(options) => {
            shell::completions(options.shell);
            Ended::Well
        }
        Command::Man(options) => {
            shell::manual(&options.directory)?;
            Ended::Well
        }
    };
    output::check(output::Reader::MayLeave)?;
    Ok(ended)
}

/// Runs what needs an async runtime.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, claimant_local::Error> {
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|e| claimant_local::Error::new("the async runtime cannot start").caused_by(e))?;
    let value = runtime.block_on(future);
    // Reading a template from a pipe cannot be cancelled: the process ends without it.
    runtime.shutdown_background();
    Ok(value)
}
