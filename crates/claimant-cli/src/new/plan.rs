//! All that is to be written, known and checked before the first byte is.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use claimant_local::Error;

/// Files that are new, and files that change. Paths are relative to one directory.
#[derive(Debug)]
pub(super) struct Plan {
    root: PathBuf,
    /// Path and text, in the order in which they are shown.
    files: Vec<(PathBuf, String)>,
    /// What the files that change are now.
    before: Vec<(PathBuf, String)>,
    /// What is wrong, in words.
    faults: Vec<String>,
    /// What is to be known of it, in sentences.
    notes: Vec<String>,
}

impl Plan {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, files: Vec::new(), before: Vec::new(), faults: Vec::new(), notes: Vec::new() }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Notes that nothing can be written, and why.
    pub(super) fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }

    /// Notes what is to be said with what was written.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Plans a file that is not there yet. One that is there is a fault.
    pub(super) fn add(&mut self, path: impl Into<PathBuf>, text: String) {
        let path = path.into();
        if self.root.join(&path).symlink_metadata().is_ok() {
            self.fault(format!("{} already exists: choose another name, or move the file away", path.display()));
        }
        self.files.push((path, text));
    }

    /// Returns a file as it is planned so far, else as it is; `None` where it is neither, or cannot be read.
    pub(super) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let planned = self.files.iter().find(|(planned, _)| planned == path.as_ref());
        planned.map(|(_, text)| text.clone()).or_else(|| fs::read_to_string(self.root.join(path)).ok())
    }

    /// Plans the change of a file that is there or planned.
    pub(super) fn change(&mut self, path: impl Into<PathBuf>, text: String) {
        let path = path.into();
        if let Some((_, planned)) = self.files.iter_mut().find(|(planned, _)| *planned == path) {
            *planned = text;
            return;
        }
        match fs::read_to_string(self.root.join(&path)) {
            Ok(before) => {
                self.before.push((path.clone(), before));
                self.files.push((path, text));
            }
            Err(e) => self.fault(format!("{} cannot be read: {e}", path.display())),
        }
    }

    /// Returns a line for each file: whether it is new or changed, and how many lines it has, gains, or has changed where it gains none.
    pub(super) fn summary(&self) -> Vec<String> {
        let line = |(path, text): &(PathBuf, String)| {
            let lines = text.lines().count();
            match self.before_of(path) {
                Some(before) => {
                    let (number, became) = match lines.saturating_sub(before.lines().count()) {
                        0 => (text.lines().zip(before.lines()).filter(|(now, then)| now != then).count(), "changed"),
                        more => (more, "added"),
                    };
                    format!("changed  {} ({} {became})", path.display(), count(number))
                }
                None => format!("new      {} ({})", path.display(), count(lines)),
            }
        };
        self.files.iter().map(line).collect()
    }

    fn before_of(&self, path: &Path) -> Option<&str> {
        self.before.iter().find(|(changed, _)| changed == path).map(|(_, before)| before.as_str())
    }

    /// Says whether the plan can be carried out.
    ///
    /// # Errors
    /// One error with everything that is in its way.
    pub(super) fn check(&self) -> Result<(), Error> {
        let root = self.root.display();
        match &self.faults[..] {
            [] => Ok(()),
            [one] => Err(Error::new(format!("nothing was written in {root}: {one}"))),
            faults => Err(Error::new(format!("nothing was written in {root}:\n  - {}", faults.join("\n  - ")))),
        }
    }

    /// Writes everything. Where that fails half-way, what was written is taken back.
    ///
    /// # Errors
    /// As [`check`](Self::check), before anything is written; and when a file cannot be written.
    pub(super) fn write(&self) -> Result<(), Error> {
        self.check()?;
        for (place, (path, text)) in self.files.iter().enumerate() {
            if let Err(e) = self.write_one(path, text) {
                self.take_back(place);
                let why = format!("{} cannot be written, and nothing was", self.root.join(path).display());
                return Err(Error::new(why).caused_by(e));
            }
        }
        Ok(())
    }

    fn write_one(&self, path: &Path, text: &str) -> io::Result<()> {
        let target = self.root.join(path);
        if let Some(before) = self.before_of(path) {
            // Whatever it has become since it was read is not ours to lose.
            if fs::read_to_string(&target)? != before {
                return Err(io::Error::other("another process has just changed it: try again"));
            }
            return fs::write(&target, text);
        }
        if let Some(directory) = target.parent() {
            fs::create_dir_all(directory)?;
        }
        OpenOptions::new().write(true).create_new(true).open(&target)?.write_all(text.as_bytes())
    }

    /// Undoes the first so many files, and the one behind them as far as it is there. OK to fail: then it stays.
    fn take_back(&self, written: usize) {
        for (path, text) in self.files.iter().take(written + 1) {
            let target = self.root.join(path);
            // What has another text is another's.
            let ours = fs::read_to_string(&target).is_ok_and(|there| text.starts_with(&there));
            if let Some(before) = self.before_of(path) {
                if ours {
                    drop(fs::write(&target, before));
                }
                continue;
            }
            if ours {
                drop(fs::remove_file(&target));
            }
            // Only empty ones go, the root among them.
            path.ancestors().skip(1).for_each(|directory| drop(fs::remove_dir(self.root.join(directory))));
        }
    }
}

/// A number of lines, in words.
fn count(lines: usize) -> String {
    if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("claimant-plan-{}-{name}", std::process::id()));
        drop(fs::remove_dir_all(&directory));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("old"), "a\n").unwrap();
        directory
    }

    #[test]
    fn all_is_written_and_shown() {
        let mut plan = Plan::new(scratch("whole"));
        plan.add("deep/new", "1\n2\n".into());
        plan.change("old", "a\nb\n".into());
        plan.change("deep/new", plan.text("deep/new").unwrap() + "3\n");
        assert_eq!(plan.summary(), ["new      deep/new (3 lines)", "changed  old (1 line added)"]);
        let mut other = Plan::new(plan.root().to_owned());
        other.change("old", "b\n".into());
        assert_eq!(other.summary(), ["changed  old (1 line changed)"]);
        plan.write().unwrap();
        let read = |path: &str| fs::read_to_string(plan.root().join(path)).unwrap();
        assert_eq!((read("deep/new").as_str(), read("old").as_str()), ("1\n2\n3\n", "a\nb\n"));
        fs::remove_dir_all(plan.root()).unwrap();
    }

    #[test]
    fn what_is_in_the_way_is_all_said_and_nothing_written() {
        let mut plan = Plan::new(scratch("in-the-way"));
        plan.add("new", "1\n".into());
        plan.add("old", "2\n".into());
        plan.change("nowhere", "3\n".into());
        plan.fault("and more");
        let error = plan.write().unwrap_err().to_string();
        for wanted in ["nothing was written", "old already exists", "nowhere cannot be read", "\n  - and more"] {
            assert!(error.contains(wanted), "{wanted} in {error}");
        }
        assert!(!plan.root().join("new").exists());
        fs::remove_dir_all(plan.root()).unwrap();
    }

    #[test]
    fn what_fails_half_way_is_taken_back() {
        let mut plan = Plan::new(scratch("half-way"));
        plan.add("deep/new", "1\n".into());
        plan.change("old", "b\n".into());
        plan.add("old/below-a-file", "2\n".into());
        let error = plan.write().unwrap_err().to_string();
        assert!(error.contains("old/below-a-file"), "{error}");
        assert!(!plan.root().join("deep").exists());
        assert_eq!(fs::read_to_string(plan.root().join("old")).unwrap(), "a\n");
        // Nor does a new root stay, which would be in the way of the next attempt.
        let mut new = Plan::new(plan.root().join("project"));
        new.add("file", "1\n".into());
        new.add("file/below-a-file", "2\n".into());
        new.write().unwrap_err();
        assert!(!new.root().exists());
        // Nor is a change lost that another process made in between.
        let mut plan = Plan::new(plan.root().to_owned());
        plan.add("new", "1\n".into());
        plan.change("old", "b\n".into());
        fs::write(plan.root().join("old"), "theirs\n").unwrap();
        plan.write().unwrap_err();
        assert!(!plan.root().join("new").exists());
        assert_eq!(fs::read_to_string(plan.root().join("old")).unwrap(), "theirs\n");
        fs::remove_dir_all(plan.root()).unwrap();
    }
}
