//! What is printed, harmless to a terminal, and whether standard output took everything.
//!
//! What a template, a service or a message says can be anyone's, and ends in errors and reports that no one line of this command knows of: so
//! all of it is escaped here, on its way out. The log lines of functions, which have colours of their own, go by `logs`.
//!
//! A command that waits for its reader is what the reader wants; a local cloud is not: once [`on_threads`] was called, others write.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;
use std::sync::OnceLock;
use std::time::Duration;

use claimant_local::Error;
use claimant_operate::text::{harmless, harms};
use rustix::io::Errno;
use serde_json::Value;

use crate::stop::StopSignals;
use crate::writer::{Writer, write_whole};

/// The first failure to write. What runs goes on, so that it is stopped in order; [`check`] reports it at the end.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// What writes to standard output and standard error, where that is to keep no one waiting.
static WRITERS: OnceLock<Writers> = OnceLock::new();

/// How long a reader may take nothing at the end of the command, and what was printed may take where it must be there before something else.
const READ_MAX: Duration = Duration::from_secs(1);

struct Writers {
    out: Writer,
    err: Writer,
}

/// From now on threads of their own write to standard output and standard error: no line waits for its reader. What is printed stays in order within each.
///
/// # Errors
/// When the threads cannot be started.
pub(crate) fn on_threads() -> Result<(), Error> {
    let failed = |e| Error::new("the threads that write the output cannot be started").caused_by(e);
    let out = Writer::start("stdout", write_out).map_err(failed)?;
    let err = Writer::start("stderr", write_err).map_err(failed)?;
    // OK to be set already: those write just as well.
    let _ = WRITERS.set(Writers { out, err });
    Ok(())
}

/// Waits until standard error has taken what was printed: what another process prints to the terminal, or standard output, comes after it. No
/// longer than a second. Cancel safe.
pub(crate) async fn notes_read() {
    if let Some(Writers { err, .. }) = WRITERS.get() {
        // OK to be over: it comes later then.
        let _ = tokio::time::timeout(READ_MAX, read(err, READ_MAX)).await;
    }
}

/// Waits until standard output has taken what was printed, or `stop` resolves; for a reader who may leave as long as each second brings some
/// of it. Where it must be read whole and is not, [`check`] says so. Cancel safe.
pub(crate) async fn all_read(reader: Reader, stop: impl Future<Output = ()>) {
    let Some(Writers { out, .. }) = WRITERS.get() else { return };
    let limit = if reader == Reader::MayLeave { READ_MAX } else { Duration::MAX };
    if !is_read(out, limit, stop).await && reader == Reader::MustStay {
        // OK to be set already: as above.
        let _ = FAILED.set(io::Error::new(ErrorKind::TimedOut, "it is not read"));
    }
}

/// Waits for it; returns whether all was read, also where `stop` resolved: a signal that came meanwhile takes back nothing.
async fn is_read(writer: &Writer, limit: Duration, stop: impl Future<Output = ()>) -> bool {
    tokio::select! {
        is_read = read(writer, limit) => is_read,
        () = stop => writer.is_done(),
    }
}

async fn read(writer: &Writer, limit: Duration) -> bool {
    let writer = writer.clone();
    // The process ends without it, as `main` has it.
    tokio::task::spawn_blocking(move || writer.wait(limit)).await.unwrap_or_default()
}

/// Returns whether all that was printed is written: nothing is left to [`finish`].
pub(crate) fn is_finished() -> bool {
    WRITERS.get().is_none_or(|Writers { out, err }| out.is_done() && err.is_done())
}

/// Waits at the end of the command until what was printed is read, as long as each second brings some of it; until a signal comes.
pub(crate) async fn finish() {
    let Some(Writers { out, err }) = WRITERS.get() else { return };
    let stop = async {
        match StopSignals::listen() {
            Ok(mut stop) => stop.received().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop => {}
        () = async { _ = (read(err, READ_MAX).await, read(out, READ_MAX).await) } => {}
    }
}

/// Waits as [`finish`] does, also where a signal comes. Blocks.
pub(crate) fn finish_unheard() {
    if let Some(Writers { out, err }) = WRITERS.get() {
        _ = (err.wait(READ_MAX), out.wait(READ_MAX));
    }
}

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
    note_as_it_is(&format!("{}\n", lines(&line.to_string())));
}

/// Prints text to standard error that is harmless already and has its line end.
pub(crate) fn note_as_it_is(text: &str) {
    match WRITERS.get() {
        Some(Writers { err, .. }) => err.push(text.as_bytes()),
        None => _ = write_err(text.as_bytes()),
    }
}

/// Prints why the command ends to standard error, which takes it whatever waits there.
pub(crate) fn note_last(line: impl Display) {
    let text = format!("{}\n", lines(&line.to_string()));
    match WRITERS.get() {
        Some(Writers { err, .. }) => err.push_last(text.as_bytes()),
        None => _ = write_err(text.as_bytes()),
    }
}

/// Returns whether standard error has taken all that was printed: what is soon out of date is not to wait there.
pub(crate) fn is_note_read() -> bool {
    WRITERS.get().is_none_or(|Writers { err, .. }| err.is_done())
}

/// Standard error, for whole lines of the command's own log. Never fails: there is no place left to say so.
pub(crate) struct Log;

impl io::Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        note_as_it_is(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn print(text: &str) {
    let line = format!("{text}\n");
    match WRITERS.get() {
        Some(Writers { out, .. }) => out.push(line.as_bytes()),
        None => _ = write_out(line.as_bytes()),
    }
}

/// Returns whether all was written.
fn write_out(text: &[u8]) -> bool {
    // OK to be set already: the first failure is reported.
    write_whole(&mut io::stdout().lock(), text).map_err(|failure| drop(FAILED.set(failure))).is_ok()
}

/// Returns whether all was written: nothing depends on its being read.
fn write_err(text: &[u8]) -> bool {
    write_whole(&mut io::stderr().lock(), text).is_ok()
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
    use std::future::ready;

    use super::*;

    /// Ctrl-C while the local cloud stops: the report was printed before.
    #[tokio::test]
    async fn a_signal_after_the_last_line_leaves_the_report_read() {
        let writer = Writer::start("read", |_| true).unwrap();
        writer.push(b"report\n");
        assert!(writer.wait(Duration::from_secs(60)));
        // Of the two that may come first, neither is preferred.
        for _ in 0..50 {
            assert!(is_read(&writer, Duration::MAX, ready(())).await);
        }
        let (_unread, reader) = std::sync::mpsc::channel::<()>();
        let unread = Writer::start("unread", move |_| reader.recv().is_ok()).unwrap();
        unread.push(b"report\n");
        assert!(!is_read(&unread, Duration::MAX, ready(())).await);
    }

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
