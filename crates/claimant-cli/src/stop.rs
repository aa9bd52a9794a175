//! The signals that stop a command.

use claimant_local::Error;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C and SIGTERM.
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    /// From here on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Error> {
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Listens for a signal, which no longer ends the process by itself from here on.
pub(crate) fn listen(kind: SignalKind) -> Result<Signal, Error> {
    signal(kind).map_err(|e| Error::new("the signals that stop the command cannot be handled").caused_by(e))
}
