//! The file that discarded letters are saved in.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A new file that letters are saved in before they are discarded. What was [flushed](Write::flush) is on the disk.
#[derive(Debug)]
pub struct SaveFile(File);

impl SaveFile {
    /// Makes the file, for its owner alone.
    ///
    /// # Errors
    /// When it exists, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // OK to fail: the file's name is on the disk a little later, and not every directory can be opened.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(Self(file))
    }

    /// Returns whether nothing was written to it, as far as that is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.metadata().is_ok_and(|file| file.len() == 0)
    }
}

impl Write for SaveFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Waits until all is on the disk. Some file systems say only then that they are full.
    fn flush(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_waits_for_the_disk() {
        // It takes everything, and has no disk.
        let mut null = SaveFile(OpenOptions::new().write(true).open("/dev/null").unwrap());
        assert!(null.write_all(b"x").is_ok() && null.flush().is_err());

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("saved.jsonl");
        let mut file = SaveFile::create(&path).unwrap();
        assert!(file.is_empty() && SaveFile::create(&path).is_err());
        assert!(file.write_all(b"x").is_ok() && file.flush().is_ok() && !file.is_empty());
    }
}
