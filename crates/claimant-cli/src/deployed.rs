//! `claimant console`: the console of a deployed stack.

use std::error::Error as StdError;
use std::time::Duration;

use claimant_console::Console;
use claimant_console::source::Deployed;
use claimant_core::Error;

use crate::console;
use crate::exit::Ended;
use crate::operate::options::TargetOptions;
use crate::operate::parse;
use crate::output::say;
use crate::stop::StopSignals;

/// Serve pages on 127.0.0.1 that show a deployed stack: queues, mappings, keys, dead letters.
///
/// They show what AWS's APIs and the table can tell, and say what these cannot. Nothing is changed unless --allow-writes is given; then pages
/// send, pause and resume, release, reset, forget and resolve keys, redrive and discard, as the commands of these names do. A local cloud
/// serves a console of its own: the first line of `claimant local` has its address.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each look at a page is made of requests with your credentials, and no page asks again by itself. To read dead letters is to receive them: \
they are hidden from other readers for a moment, and their receive count grows.

Whoever can open a connection on this machine can use the console while it runs.

Ctrl-C, SIGTERM or the end of its terminal stops it, after what a page has begun: of dead letters, and of messages that are sent, that \
is the part of them that is under way. The second cuts it off, and so do 11 s.

Exit codes: 0 when it is stopped, 2 where it could not start.")]
pub(crate) struct DeployedConsole {
    #[command(flatten)]
    target: TargetOptions,

    /// Let pages change things; without it they only show
    #[arg(long)]
    allow_writes: bool,

    /// Also read the functions' log lines about a message, from CloudWatch, that are no older than this [24h if no time is given; without the option none are read]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "24h", value_parser = parse::time)]
    logs: Option<Duration>,

    /// The port of the console; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    console_port: u16,

    /// Open the console in a browser
    #[arg(long)]
    open: bool,
}

/// Serves until stopped.
pub(crate) async fn run(options: DeployedConsole) -> Result<Ended, Box<dyn StdError>> {
    let mut stop = StopSignals::listen()?;
    let place = tokio::select! {
        place = options.target.open_with_dead_letters() => place?,
        () = stop.received() => return Ok(Ended::Well),
    };
    if place.is_local() {
        return Err(Error::invalid(format!(
            "{} serves a console of its own: its address is the first line of `claimant local`. For a deployed stack give --stack NAME",
            place.name
        ))
        .into());
    }
    let (name, writes) = (place.name_and_whereabouts(), options.allow_writes);
    let shown = match writes {
        true => format!("          {name}: pages can change it"),
        false => format!("          {name}, read-only: --allow-writes lets pages change it"),
    };
    let source = Deployed::new(place, writes, options.target.skew, options.logs);
    let served = console::serve_on(Console::new(source), options.console_port, options.open).await?;
    served.lines().iter().for_each(say);
    say(shown);
    say("          Ctrl-C stops it.");
    stop.received().await;
    served.stop(&mut stop).await;
    Ok(Ended::Well)
}
