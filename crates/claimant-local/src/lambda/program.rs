//! The file that a function's processes are started from, and when a new build of it counts.
//!
//! A build is recognised by the file's identity, size and times. It counts once it has stopped changing and is whole:
//! linkers and copies write in place, and half a program must not be started.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::sync::lock;

/// How long a file must stay as it is before it counts.
const SETTLE: Duration = Duration::from_millis(200);

/// How long a start waits for a program that is being written, or is gone for the moment.
const WHOLE_MAX: Duration = Duration::from_secs(30);

/// The start of a file that tells what it is.
const HEAD_BYTES: usize = 64;

/// What is said of a program that this machine cannot run.
pub(crate) const FOREIGN: &str = "is for another architecture or system";

/// How an ELF file says that its numbers have 64 bits.
const CLASS_64: u8 = 2;

/// Where a function's program is looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// The first of these that is there is taken.
    pub first: Vec<PathBuf>,
    /// Of these, where none of the first is there, the newest that this machine can run.
    pub others: Vec<PathBuf>,
}

impl Places {
    /// Returns all of them, those that are taken first first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.first.iter().chain(&self.others)
    }

    /// Returns whether a program is there that this machine can run.
    pub(crate) fn have_program(&self) -> bool {
        program(self).is_some()
    }

    /// Returns what is there in place of a program, and why it is none.
    pub(crate) fn unusable(&self) -> Option<(&PathBuf, &'static str)> {
        let path = self.all().find(|path| path.exists())?;
        Some((path, if build(path).is_some() { FOREIGN } else { "is not an executable file" }))
    }
}

impl From<PathBuf> for Places {
    fn from(path: PathBuf) -> Self {
        Self { first: vec![path], others: Vec::new() }
    }
}

/// One build of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    pub(super) path: PathBuf,
    device: u64,
    inode: u64,
    pub(super) bytes: u64,
    modified: (i64, i64),
}

/// The build in use and its number: 0 for none yet, then 1, and one more for each new one.
pub(super) type Current = (u64, Option<Build>);

/// A program that may be built again, or for the first time, while its function runs.
#[derive(Debug)]
pub(super) struct Program {
    places: Places,
    current: watch::Sender<Current>,
    /// Held while a build is judged, so that one judgement counts for all who wait.
    judging: tokio::sync::Mutex<()>,
    /// The last build that was seen and refused, so that it is said once.
    refused: Mutex<Option<Build>>,
}

/// What [`Program::look`] found.
pub(super) enum Look {
    Same,
    New(Build),
    /// A new file that cannot be run, said once.
    Unusable(String),
}

impl Program {
    /// The build that is there now counts without further ado, if this machine can run it.
    pub(super) fn new(places: Places) -> Self {
        let build = program(&places);
        let number = u64::from(build.is_some());
        Self {
            places,
            current: watch::Sender::new((number, build)),
            judging: tokio::sync::Mutex::default(),
            refused: Mutex::default(),
        }
    }

    pub(super) fn current(&self) -> Current {
        self.current.borrow().clone()
    }

    /// Returns the build in use, where it is what the places have now.
    pub(super) fn there(&self) -> Option<(u64, PathBuf)> {
        let (number, current) = self.current();
        current.filter(|current| newest(&self.places).as_ref() == Some(current)).map(|build| (number, build.path))
    }

    /// Looks whether there is a new build, and waits until it has stopped changing. Cancel safe.
    pub(super) async fn look(&self) -> Look {
        let _judging = self.judging.lock().await;
        let Some(build) = newest(&self.places) else { return Look::Same };
        if self.current.borrow().1.as_ref() == Some(&build) {
            return Look::Same;
        }
        sleep(SETTLE).await;
        if newest(&self.places).as_ref() != Some(&build) {
            return Look::Same;
        }
        if let Err(why) = is_whole(&build) {
            let is_said = lock(&self.refused).replace(build.clone()).as_ref() == Some(&build);
            return if is_said { Look::Same } else { Look::Unusable(format!("{}: {why}", build.path.display())) };
        }
        self.current.send_modify(|(number, current)| {
            *number += 1;
            *current = Some(build.clone());
        });
        Look::New(build)
    }

    /// Returns the build to start from: that on the disk, once it is whole, or why there is none. `found` gets each look at it.
    pub(super) async fn settled(&self, found: impl Fn(&Look)) -> Result<(u64, PathBuf), String> {
        let deadline = Instant::now() + WHOLE_MAX;
        loop {
            if let Some(there) = self.there() {
                return Ok(there);
            }
            let there = newest(&self.places);
            if Instant::now() >= deadline {
                let place = there.map_or_else(|| self.first_place(), |build| build.path);
                return Err(format!("{} is not there, or not whole", place.display()));
            }
            if there.is_none() {
                sleep(SETTLE).await;
            }
            found(&self.look().await);
        }
    }

    fn first_place(&self) -> PathBuf {
        self.places.all().next().cloned().unwrap_or_default()
    }
}

/// The build that the places give now, if this machine can run it.
fn program(places: &Places) -> Option<Build> {
    newest(places).filter(|build| runs_here(&build.path))
}

/// The build that the places give now; of the first places, whatever it is for, so that it is said what is wrong with it.
fn newest(places: &Places) -> Option<Build> {
    let first = places.first.iter().find_map(|path| build(path));
    let newest = || {
        let builds = places.others.iter().filter_map(|path| build(path));
        builds.filter(|build| runs_here(&build.path)).max_by_key(|build| build.modified)
    };
    first.or_else(newest)
}

fn build(path: &Path) -> Option<Build> {
    let path = path.canonicalize().ok()?;
    let metadata =
        path.metadata().ok().filter(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)?;
    Some(Build {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        path,
    })
}

/// False for a program of another architecture or system: `sam build` and cargo-lambda build for Linux, often for arm64.
fn runs_here(path: &Path) -> bool {
    // This program cannot be read where it was built again since it started.
    let own = std::env::current_exe().ok().and_then(|own| head(&own));
    runs_beside(head(path).as_deref(), own.as_deref())
}

/// Whether a program that begins so runs where this one does: an ELF file only beside one of the same architecture.
fn runs_beside(program: Option<&[u8]>, own: Option<&[u8]>) -> bool {
    let (Some(of), Some(own)) = (program.and_then(machine), own) else { return true };
    machine(own) == Some(of)
}

fn head(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    File::open(path).ok()?.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The architecture that an ELF file is for.
fn machine(head: &[u8]) -> Option<[u8; 2]> {
    head.starts_with(b"\x7fELF").then(|| head.get(18..20))??.try_into().ok()
}

/// Whether the file has an end: the section headers of an ELF file are the last that is written.
fn is_whole(build: &Build) -> Result<(), &'static str> {
    let head = head(&build.path).ok_or("cannot be read")?;
    if head.is_empty() {
        return Err("is empty");
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(());
    }
    if !runs_here(&build.path) {
        return Err(FOREIGN);
    }
    let number = |at: usize, bytes: usize| {
        let field = head.get(at..at + bytes)?;
        Some(field.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    if head.get(4) != Some(&CLASS_64) {
        return if head.len() < HEAD_BYTES { Err("is not whole") } else { Ok(()) };
    }
    // The offset of the section headers, the size of one, and how many there are.
    let end = || Some(number(40, 8)?.saturating_add(number(58, 2)? * number(60, 2)?));
    match end() {
        Some(end) if end <= build.bytes => Ok(()),
        _ => Err("is not whole"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn executable(path: &Path, content: &[u8]) {
        fs::write(path, content).expect("the directory is ours");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    }

    #[test]
    fn half_a_program_is_not_whole() {
        let own = std::env::current_exe().expect("this test is a program");
        let content = fs::read(own).expect("it can be read");
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("bootstrap");
        let table: [(&[u8], Result<(), &str>); 5] = [
            (&content, Ok(())),
            (&content[..content.len() / 2], Err("is not whole")),
            (&content[..20], Err("is not whole")),
            (b"", Err("is empty")),
            (b"#!/bin/sh\n", Ok(())),
        ];
        for (content, expected) in table {
            executable(&path, content);
            assert_eq!(is_whole(&build(&path).expect("there")), expected, "{} bytes", content.len());
        }
        let mut foreign = content.clone();
        foreign[18] ^= 0xff;
        executable(&path, &foreign);
        assert!(!runs_here(&path));
    }

    #[test]
    fn a_program_of_another_system_does_not_run_here() {
        let elf = |machine: u8| [&b"\x7fELF"[..], &[0; 14], &[machine, 0], &[0; 44]].concat();
        let (x86, arm, mac) = (elf(62), elf(183), b"\xcf\xfa\xed\xfe".to_vec());
        for (program, own, runs) in [
            (&x86[..], Some(&x86[..]), true),
            (&arm, Some(&x86), false),
            (&x86, Some(&mac), false),
            (&mac, Some(&mac), true),
            (b"#!/bin/sh\n", Some(&mac), true),
            (&x86, None, true),
        ] {
            assert_eq!(runs_beside(Some(program), own), runs, "{program:?} beside {own:?}");
        }
    }

    #[test]
    fn the_first_place_counts_then_the_newest() {
        let directory = tempfile::tempdir().expect("a directory");
        let paths = ["a", "b", "c"].map(|name| directory.path().canonicalize().expect("there").join(name));
        let [a, b, c] = &paths;
        let places = Places { first: vec![a.clone()], others: vec![b.clone(), c.clone()] };
        assert_eq!(newest(&places), None);
        let mut foreign = b"\x7fELF".to_vec();
        foreign.resize(HEAD_BYTES, 0xee);
        executable(c, &foreign);
        assert_eq!(newest(&places), None, "not for this machine");
        for (path, at) in [(b, 10), (c, 20)] {
            executable(path, b"#!/bin/sh\n");
            let time = std::time::UNIX_EPOCH + Duration::from_secs(at);
            File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("the file is ours");
        }
        assert_eq!(newest(&places).map(|build| build.path), Some(c.clone()));
        executable(a, b"");
        assert_eq!(newest(&places).map(|build| build.path), Some(a.clone()));
    }
}
