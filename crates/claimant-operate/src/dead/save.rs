//! The file that discarded letters are saved in.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A new file that letters are saved in before they are discarded. What was [flushed](Write::flush) is on the disk; after an error, nothing
/// else is in the file, or where that could not be removed, nothing is written to it any more. Its errors name it.
#[derive(Debug)]
pub struct SaveFile {
    file: File,
    path: PathBuf,
    written_bytes: u64,
    flushed_bytes: u64,
    /// It may end with a part of a letter: the next one would be joined to that.
    is_torn: bool,
}

impl SaveFile {
    /// Makes the file, for its owner alone.
    ///
    /// # Errors
    /// When it exists, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // OK to fail: the file's name is on the disk a little later, and not every directory can be opened.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(Self::of(file, path))
    }

    fn of(file: File, path: &Path) -> Self {
        Self { file, path: path.to_owned(), written_bytes: 0, flushed_bytes: 0, is_torn: false }
    }

    /// Returns whether nothing was written to it, as far as that is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.len() == 0)
    }

    /// Removes what was not flushed, such as the first half of a letter on a disk that is full.
    fn undone(&mut self, error: &io::Error) -> io::Error {
        self.is_torn = self.file.set_len(self.flushed_bytes).is_err();
        self.written_bytes = self.flushed_bytes;
        io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
    }

    fn check_whole(&self) -> io::Result<()> {
        let place = self.path.display();
        match self.is_torn {
            true => Err(io::Error::other(format!("{place}: an earlier failure may have left half a line at its end"))),
            false => Ok(()),
        }
    }
}

impl Write for SaveFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_whole()?;
        match self.file.write(bytes) {
            Ok(written) => {
                self.written_bytes += written as u64;
                Ok(written)
            }
            // It is asked again, and wrote nothing.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => Err(self.undone(&error)),
        }
    }

    /// Waits until all is on the disk. Some file systems say only then that they are full.
    fn flush(&mut self) -> io::Result<()> {
        self.check_whole()?;
        self.file.sync_data().map_err(|error| self.undone(&error))?;
        self.flushed_bytes = self.written_bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_the_disk() {
        // It takes everything, and has no disk.
        let opened = |path: &str| SaveFile::of(OpenOptions::new().append(true).open(path).unwrap(), Path::new(path));
        let mut null = opened("/dev/null");
        assert!(null.write_all(b"x").is_ok());
        assert!(null.flush().unwrap_err().to_string().starts_with("/dev/null: "));
        // Nor can it be cut: what comes now would be joined to what failed.
        let torn = null.write_all(b"y").unwrap_err().to_string();
        assert!(torn.starts_with("/dev/null: ") && torn.contains("half a line"), "{torn}");
        assert!(null.flush().is_err());
        let full = opened("/dev/full").write_all(b"x").unwrap_err();
        assert!(full.to_string().starts_with("/dev/full: "), "{full}");

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("saved.jsonl");
        let mut file = SaveFile::create(&path).unwrap();
        assert!(file.is_empty() && SaveFile::create(&path).is_err());
        assert!(file.write_all(b"x").is_ok() && file.flush().is_ok() && !file.is_empty());
        // The second letter's first half is removed, and what comes then follows the first letter.
        file.write_all(b"y").unwrap();
        file.undone(&io::ErrorKind::StorageFull.into());
        assert!(file.write_all(b"z").is_ok() && file.flush().is_ok());
        assert_eq!(std::fs::read(&path).unwrap(), b"xz");
    }
}
