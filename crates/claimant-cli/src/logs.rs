//! Where the functions' log lines go.

use std::fs::{DirBuilder, File};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use claimant_local::lambda::LogSink;
use claimant_local::{Error, time_of_day};

const FILE_NAME: &str = "functions.log";
/// Directories tried under the system's temporary one before giving up.
const DIRECTORIES_MAX: u32 = 100;

/// Drops every line.
pub(crate) fn dropped() -> LogSink {
    Arc::new(|_, _| {})
}

/// Standard error, each line behind the time of day in UTC and its function's name.
pub(crate) fn shown() -> LogSink {
    Arc::new(|function, line| {
        // OK to ignore: without standard error there is no place left for the line.
        let _ = writeln!(io::stderr().lock(), "{} {function} | {line}", time_of_day());
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
    let path = match directory {
        Some(directory) => make(directory, true).map(|()| directory.join(FILE_NAME)),
        None => temporary_directory().map(|directory| directory.join(FILE_NAME)),
    };
    let opened = path.and_then(|path| Ok((File::options().create(true).append(true).open(&path)?, path)));
    let (file, path) = opened.map_err(|e| {
        Error::new("the file for the functions' logs could not be created: give a directory for it with --data, or show them with --logs")
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
