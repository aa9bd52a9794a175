//! Where the functions' log lines go.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use claimant_local::lambda::LogSink;
use claimant_local::{Error, time_of_day};
use claimant_operate::text::harmless;

use crate::output::note_as_it_is;

const FILE_NAME: &str = "functions.log";
/// Directories tried under the system's temporary one before giving up.
const DIRECTORIES_MAX: u32 = 100;

/// Drops every line.
pub(crate) fn dropped() -> LogSink {
    Arc::new(|_, _| {})
}

/// Standard error, each line behind the time of day in UTC and its function's name, with its own colours.
pub(crate) fn shown() -> LogSink {
    Arc::new(|function, line| note_as_it_is(&format!("{} {function} | {}\n", time_of_day(), in_colours(line))))
}

/// Returns a line with its colours and tabs, and with everything else escaped that a terminal does not print as it is: a function logs texts of
/// messages, which can be anyone's.
fn in_colours(line: &str) -> String {
    const BEGIN: &str = "\x1b[";
    let escaped = |text: &str| text.split('\t').map(harmless).collect::<Vec<_>>().join("\t");
    let is_parameter = |c: char| c.is_ascii_digit() || matches!(c, ';' | ':');
    let mut parts = line.split(BEGIN);
    let before = escaped(parts.next().unwrap_or_default());
    parts.fold(before, |shown, part| {
        let is_colour = part.trim_start_matches(is_parameter).starts_with('m');
        shown + &(if is_colour { BEGIN.to_owned() } else { harmless(BEGIN) }) + &escaped(part)
    })
}

/// A file that takes the lines.
pub(crate) struct LogFile {
    pub(crate) path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl LogFile {
    /// Removes what an earlier run left.
    pub(crate) fn empty(&self) {
        // OK to fail: then the earlier run's lines come before this one's.
        let _ = self.file.lock().unwrap_or_else(PoisonError::into_inner).set_len(0);
    }
}

/// A file in `directory`, or in a new directory under the system's temporary one. What it holds already stays until it is
/// [emptied](LogFile::empty).
pub(crate) fn to_file(directory: Option<&Path>) -> Result<(LogSink, LogFile), Error> {
    let made = match directory {
        Some(directory) => make(directory, true).map(|()| directory.to_owned()),
        None => temporary_directory(),
    };
    let opened = made.and_then(|directory| {
        let path = directory.join(FILE_NAME);
        Ok((File::options().create(true).append(true).open(&path)?, path))
    });
    let (file, path) = opened.map_err(|e| {
        let place = match directory {
            Some(directory) => format!("{}: give another directory with --data", directory.display()),
            None => format!(
                "{}, the directory for temporary files (TMPDIR): give one with --data",
                std::env::temp_dir().display()
            ),
        };
        Error::new(format!(
            "the file for the functions' logs could not be created in {place}, or show them with --logs"
        ))
        .caused_by(e)
    })?;
    let log_file = LogFile { path, file: Arc::new(Mutex::new(file)) };
    let file = Arc::clone(&log_file.file);
    let sink = move |function: &str, line: &str| {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // OK to ignore: a full disk must not stop the run, and its report does not depend on the logs.
        let _ = writeln!(file, "{} {function} | {line}", time_of_day());
    };
    Ok((Arc::new(sink), log_file))
}

fn temporary_directory() -> io::Result<PathBuf> {
    let base = std::env::temp_dir();
    for n in 0..DIRECTORIES_MAX {
        let directory = base.join(format!("claimant-{}-{n}", std::process::id()));
        match make(&directory, false) {
            Ok(()) => return Ok(directory),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "too many old claimant directories there"))
}

/// Readable by its owner alone, where it is made: logs may tell about customers.
fn make(directory: &Path, may_exist: bool) -> io::Result<()> {
    DirBuilder::new().recursive(may_exist).mode(0o700).create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_function_keeps_its_colours_and_steers_no_terminal() {
        for (line, shown) in [
            ("\x1b[2m\x1b[38;5;9mERROR\x1b[0m\tat \x1b[m東京", "\x1b[2m\x1b[38;5;9mERROR\x1b[0m\tat \x1b[m東京"),
            ("\x1b]52;c;eA==\x07 \x1b[2J\x1b[>4;1m\x1b[", "\\u{1b}]52;c;eA==\\u{7} \\u{1b}[2J\\u{1b}[>4;1m\\u{1b}["),
            ("\x1b\x1b[31m\r\u{202e}\u{9b}31m", "\\u{1b}\x1b[31m\\r\\u{202e}\\u{9b}31m"),
        ] {
            assert_eq!(in_colours(line), shown);
        }
    }
}
