//! Standard output, and whether it took everything.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::OnceLock;

use claimant_local::Error;
use rustix::io::Errno;

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
    /// A reader that has read enough is no failure, nor is a terminal that was closed.
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
        Some(failure) if !(reader == Reader::MayLeave && has_left(failure)) => {
            Err(Error::new(format!("output could not be written to standard output: {failure}")))
        }
        _ => Ok(()),
    }
}

/// Whether a failure to write means that the reader is gone: of a pipe, or at a terminal. For a file, the same error as that of a closed
/// terminal is one of its disk.
fn has_left(failure: &io::Error) -> bool {
    let is_device = || {
        let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        stdout.and_then(|stdout| stdout.metadata()).is_ok_and(|metadata| metadata.file_type().is_char_device())
    };
    let is_terminals = || failure.raw_os_error() == Some(Errno::IO.raw_os_error()) && is_device();
    failure.kind() == ErrorKind::BrokenPipe || is_terminals()
}
