//! Standard output, and whether it took everything.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};
use std::sync::OnceLock;

use claimant_local::Error;

/// The first failure to write. What runs goes on, so that it is stopped in order; [`check`] tells of it at the end.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line.
pub(crate) fn say(line: impl Display) {
    let mut stdout = io::stdout().lock();
    if let Err(failure) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        // OK to be set already: the first failure is the one that is told.
        let _ = FAILED.set(failure);
    }
}

/// Tells whether everything was written. Where `reader_may_go`, one that has read enough is no failure.
///
/// # Errors
/// When something was not written.
pub(crate) fn check(reader_may_go: bool) -> Result<(), Error> {
    match FAILED.get() {
        Some(failure) if !(reader_may_go && failure.kind() == ErrorKind::BrokenPipe) => {
            Err(Error::new(format!("what was to be printed could not be written to standard output: {failure}")))
        }
        _ => Ok(()),
    }
}
