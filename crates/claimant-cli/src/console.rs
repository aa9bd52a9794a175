//! The console of a local cloud: served in its process.

use std::process::Stdio;
use std::time::Duration;

use claimant_console::source::LocalCloud;
use claimant_console::{Console, bind, serve};
use claimant_local::Error;
use claimant_local::cloud::Cloud;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::output::note;
use crate::stop::StopSignals;

/// After so long it is said that the console has not stopped yet.
const QUIET_MAX: Duration = Duration::from_secs(1);

/// How long after that what pages have begun may take: an act that is cut off is half done. To pause a function takes so long.
const STOP_MAX: Duration = Duration::from_secs(10);

/// What opens an address on this system: the first that is there.
const OPENERS: [&str; 2] = if cfg!(target_os = "macos") { ["open", "xdg-open"] } else { ["xdg-open", "open"] };

#[derive(Debug, clap::Args)]
pub(crate) struct ConsoleOptions {
    /// The port of the console; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) console_port: u16,

    /// Open the console in a browser
    #[arg(long, conflicts_with = "no_console")]
    pub(crate) open: bool,

    /// Serve no console
    #[arg(long)]
    pub(crate) no_console: bool,
}

/// A console that is served, if one was asked for.
pub(crate) struct Served(Option<Running>);

struct Running {
    url: String,
    /// Dropped to stop it.
    stop: oneshot::Sender<()>,
    server: JoinHandle<Result<(), claimant_core::Error>>,
    opened: Result<(), String>,
}

/// Serves the console of this cloud until it is stopped.
///
/// # Errors
/// When its port is in use, or the cloud gives no answer.
pub(crate) async fn start(cloud: &Cloud, options: &ConsoleOptions) -> Result<Served, Error> {
    if options.no_console {
        return Ok(Served(None));
    }
    let failed = |e| Error::new("the console did not start: go without it with --no-console").caused_by(e);
    let console = Console::new(LocalCloud::open(cloud.view()).await.map_err(failed)?);
    serve_on(console, options.console_port, options.open).await.map_err(failed)
}

/// Serves a console on this port of 127.0.0.1, or on a free one, until it is stopped; `open_it` in a browser.
///
/// # Errors
/// When the port is in use.
pub(crate) async fn serve_on(console: Console, port: u16, open_it: bool) -> Result<Served, claimant_core::Error> {
    let (listener, url) = bind(port).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(serve(console, listener, async { drop(stopped.await) }));
    let opened = if open_it { open(&url) } else { Ok(()) };
    Ok(Served(Some(Running { url, stop, server, opened })))
}

impl Served {
    /// Returns what a person needs to open it, line by line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(running) = &self.0 else { return Vec::new() };
        let failed = running.opened.as_ref().err().map(|why| format!("          {why}: open it yourself"));
        [format!("console   {}", running.url)].into_iter().chain(failed).collect()
    }

    /// Stops it: its pages get no answer any more. What they have begun comes to an end before that, unless it takes long or another
    /// signal comes.
    pub(crate) async fn stop(self, signals: &mut StopSignals) {
        let Some(running) = self.0 else { return };
        drop(running.stop);
        let mut server = running.server;
        if timeout(QUIET_MAX, &mut server).await.is_ok() {
            return;
        }
        note("Stopping when what a page of the console has begun is at an end; Ctrl-C again cuts it off.");
        tokio::select! {
            stopped = timeout(STOP_MAX, &mut server) => {
                if stopped.is_err() {
                    note("It was cut off after 11 s: look at what became of it before you do it again.");
                }
            }
            () = signals.received() => {}
        }
        server.abort();
    }
}

/// Has the system open an address.
fn open(url: &str) -> Result<(), String> {
    let start = |opener: &&str| {
        let quiet =
            Command::new(opener).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        quiet.is_ok()
    };
    if OPENERS.iter().any(start) { Ok(()) } else { Err(format!("neither {} is here", OPENERS.join(" nor "))) }
}
