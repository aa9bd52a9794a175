//! How the command ends, and its exit codes.

use std::process::ExitCode;

/// How a command ended that had all it needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As it should.
    Well,
    /// Something was found, or what was asked for was refused or not done whole.
    WithFaults,
    /// Nothing of what was asked for could be done, and why was said.
    NotDone,
    /// Ctrl-C or SIGTERM ended it, in order.
    Interrupted,
    /// The command that ran beside the cloud ended with this code.
    Command(u8),
}

/// The command was used wrongly, something it needs is missing, or its output could not be written. Clap uses the same code.
pub(crate) const EXIT_SETUP: u8 = 2;

/// The command was ended by Ctrl-C, for which shells use the same code, or by SIGTERM.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Well => Self::SUCCESS,
            Ended::WithFaults => Self::from(1),
            Ended::NotDone => Self::from(EXIT_SETUP),
            Ended::Interrupted => Self::from(EXIT_INTERRUPTED),
            Ended::Command(code) => Self::from(code),
        }
    }
}
