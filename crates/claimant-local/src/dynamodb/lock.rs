//! One process at a time in a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use crate::Error;

/// The file inside the data directory that its user holds locked. It contains that process's id.
const FILE_NAME: &str = "claimant.lock";

/// A directory that is taken, for as long as this lives.
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Lets go at once. To close the file is not enough: a process that is just being started has a copy of it until it runs its program.
    fn drop(&mut self) {
        // OK to fail: the system lets go when the last copy is closed.
        let _ = self.0.unlock();
    }
}

/// Takes the directory; the system lets go of it with the process, however that ends.
///
/// # Errors
/// When another holds it, this process included, or the file cannot be made.
pub(super) fn take(directory: &Path) -> Result<Lock, Error> {
    let path = directory.join(FILE_NAME);
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let failed = |doing: &str, e: std::io::Error| {
        let place = path.display();
        Error::new(format!("the lock of the data directory {place} could not be {doing}: use another directory"))
            .caused_by(e)
    };
    let mut file = opened.map_err(|e| failed("created", e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(held(directory, &mut file)),
        Err(TryLockError::Error(e)) => return Err(failed("taken", e)),
    }
    let write = || {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    let mut write = write;
    write().map_err(|e| failed("written", e))?;
    Ok(Lock(file))
}

fn held(directory: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    // OK to fail: the holder may not have written its id yet.
    let _ = file.read_to_string(&mut text);
    let holder = match text.trim().parse::<u32>() {
        Ok(id) => format!("process {id}"),
        Err(_) => "another process".to_owned(),
    };
    let place = directory.display();
    Error::new(format!(
        "the data directory {place} is in use by {holder}: stop that local cloud, or use another directory with --data"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ends_lets_go_though_another_has_a_copy_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let lock = take(directory.path()).unwrap();
        assert!(take(directory.path()).is_err());
        let copy = lock.0.try_clone().unwrap();
        drop(lock);
        assert!(take(directory.path()).is_ok());
        drop(copy);
    }
}
