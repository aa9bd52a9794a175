//! The signals that stop a command.

use std::process::Command;

use claimant_local::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, SIGTERM, and SIGHUP of a terminal that is closed.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Nothing where the signal is ignored, as `nohup` has it.
    hangup: Option<Signal>,
}

impl StopSignals {
    /// From here on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Error> {
        let hangup = if ignores_hangups() { None } else { Some(listen(SignalKind::hangup())?) };
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())?, hangup })
    }

    pub(crate) async fn received(&mut self) {
        let Self { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hung_up => {}
        }
    }
}

/// Whether this process was started to ignore SIGHUP. Then so is each that it starts, and such a one survives the signal; there is no
/// other way to ask that all systems have.
fn ignores_hangups() -> bool {
    Command::new("sh").args(["-c", "kill -s HUP $$"]).status().is_ok_and(|status| status.success())
}

fn listen(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|e| Error::new("the signals that stop the command cannot be handled").caused_by(e))
}
