//! What is printed, harmless to a terminal, and whether standard output took everything.
//!
//! What a template, a service or a message says can be anyone's, and ends in errors and reports that no one line of this command knows of: so
//! all of it is escaped here, on its way out. The log lines of functions, which have colours of their own, go by `logs`.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::OnceLock;

use claimant_local::Error;
use claimant_operate::text::{harmless, harms};
use rustix::io::Errno;
use serde_json::Value;

/// The first failure to write. What runs goes on, so that it is stopped in order; [`check`] reports it at the end.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints a line, or several.
pub(crate) fn say(line: impl Display) {
    print(&lines(&line.to_string()));
}

/// Prints a JSON document.
pub(crate) fn say_json(document: &Value) {
    print(&json(&format!("{document:#}")));
}

/// Prints a JSON document in one line.
pub(crate) fn say_json_line(document: &Value) {
    print(&json(&document.to_string()));
}

/// Prints a line, or several, to standard error.
pub(crate) fn note(line: impl Display) {
    // OK to ignore: nothing depends on its being read.
    let _ = writeln!(io::stderr().lock(), "{}", lines(&line.to_string()));
}

fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    if let Err(failure) = writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        // OK to be set already: the first failure is reported.
        let _ = FAILED.set(failure);
    }
}

/// Returns text in its lines, each with everything escaped that a terminal does not print as it is.
pub(crate) fn lines(text: &str) -> String {
    text.split('\n').map(harmless).collect::<Vec<_>>().join("\n")
}

/// Returns a JSON document with the same escaped as JSON does: its strings have the same values.
fn json(document: &str) -> String {
    let mut shown = String::with_capacity(document.len());
    for c in document.chars() {
        if c != '\n' && harms(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown.push_str(&format!("\\u{unit:04x}")));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns whether help was written, or its reader has read enough; says so where it could not be.
pub(crate) fn is_written(help: io::Result<()>) -> bool {
    let failure = help.err().filter(|failure| !has_left(failure));
    failure.inspect(|failure| note(format_args!("error: {}", not_written(failure)))).is_none()
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
        Some(failure) if !(reader == Reader::MayLeave && has_left(failure)) => Err(not_written(failure)),
        _ => Ok(()),
    }
}

fn not_written(failure: &io::Error) -> Error {
    Error::new(format!("output could not be written to standard output: {failure}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_steers_no_terminal() {
        let said = "a\x1b]52;c;eA==\x07\u{9b}31m\r\u{202e}b\u{2028}\u{e0041}";
        assert_eq!(
            lines(&format!("error: 1\n  - {said}")),
            "error: 1\n  - a\\u{1b}]52;c;eA==\\u{7}\\u{9b}31m\\r\\u{202e}b\\u{2028}\\u{e0041}"
        );
        let document = serde_json::json!({ said: [said, "Grüße, 東京\n"] });
        for printed in [json(&format!("{document:#}")), json(&document.to_string())] {
            assert!(!printed.contains(|c| c != '\n' && harms(c)), "{printed:?}");
            assert!(printed.contains(r"\u202eb\u2028\udb40\udc41") && printed.contains("東京"), "{printed}");
            assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), document);
        }
    }
}
