//! Standard output, and whether it took everything.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write as _};
use std::sync::OnceLock;

use claimant_local::Error;

/// The first failure to write. What runs goes on, so that it is stopped in order; [`check`] reports it at the end.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line.
pub(crate) fn say(line: impl Display) {
    let mut stdout = io::stdout().lock();
    if let Err(failure) = writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        // OK to be set already: the first failure is reported.
        let _ = FAILED.set(failure);
    }
}

/// Prints a JSON document.
pub(crate) fn say_json(document: &serde_json::Value) {
    say(format_args!("{document:#}"));
}

/// Prints a line to standard error.
pub(crate) fn note(line: impl Display) {
    // OK to ignore: nothing depends on its being read.
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Whether the reader of standard output may leave before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// A reader that has read enough is no failure.
    MayLeave,
    /// Everything must be written.
    MustStay,
}

/// Checks that everything was written.
///
/// # Errors
/// When something was not written.
pub(crate) fn check(reader: Reader) -> Result<(), Error> {
    match FAILED.get() {
        Some(failure) if !(reader == Reader::MayLeave && failure.kind() == ErrorKind::BrokenPipe) => {
            Err(Error::new(format!("output could not be written to standard output: {failure}")))
        }
        _ => Ok(()),
    }
}
