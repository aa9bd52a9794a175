//! How the command ends, and its exit codes.

use std::process::ExitCode;

/// How a command ended that had all it needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As it should.
    Well,
    /// Something was found, or what was asked for was refused or not done whole.
    WithFaults,
    /// The command that ran beside the cloud ended with this code.
    Command(u8),
}

/// The command was used wrongly, something it needs is missing, or its output could not be written. Clap uses the same code.
pub(crate) const EXIT_SETUP: u8 = 2;

impl From<Ended> for ExitCode {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Well => Self::SUCCESS,
            Ended::WithFaults => Self::from(1),
            Ended::Command(code) => Self::from(code),
        }
    }
}
