//! Completions for shells, and manual pages.

use std::path::Path;

use claimant_local::Error;
use clap::CommandFactory as _;

use crate::args::Args;
use crate::output;

/// Prints the completions of a shell.
pub(crate) fn completions(shell: clap_complete::Shell) {
    let mut written = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "claimant", &mut written);
    output::say(String::from_utf8_lossy(&written).trim_end());
}

/// Writes a manual page for each command into the directory, which is made where it is not there.
pub(crate) fn manual(directory: &Path) -> Result<(), Error> {
    let failed = |e| Error::new(format!("the manual pages cannot be written to {}", directory.display())).caused_by(e);
    std::fs::create_dir_all(directory).map_err(failed)?;
    clap_mangen::generate_to(Args::command(), directory).map_err(failed)
}
