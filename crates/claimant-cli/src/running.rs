//! The local clouds that run on this machine: each leaves the address of its control endpoint in a file of its own, which it holds locked
//! for as long as it runs, however it ends.
//!
//! The files are in a directory that belongs to this user and that no other may read or write, so no other user of the machine
//! can have commands sent elsewhere.

use std::fs::{self, DirBuilder, File, Metadata, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// The variable that names the control endpoint of a cloud, for commands that it runs and for those who choose one of several.
pub(crate) const VARIABLE: &str = "CLAIMANT_LOCAL_URL";

/// Files of a directory that are looked at.
const FILES_MAX: usize = 1_000;

/// What the name of a file ends with until it is locked.
const NEW: &str = "new";

/// A cloud that can be found until this is dropped.
pub(crate) struct Announced {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl Drop for Announced {
    fn drop(&mut self) {
        // OK to fail: who finds the file sees that no process holds it.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a cloud of this process known by its control endpoint.
///
/// # Errors
/// When that cannot be written: then the cloud is found by its address only.
pub(crate) fn announce(url: &str) -> io::Result<Announced> {
    let path = of_session().map_or_else(temporary, Ok)?.join(std::process::id().to_string());
    let new = path.with_extension(NEW);
    fs::write(&new, url)?;
    let file = File::open(&new)?;
    file.try_lock()?;
    fs::rename(&new, &path)?;
    Ok(Announced { path, _file: file })
}

/// Returns the control endpoints of the clouds that run.
pub(crate) fn found() -> Vec<String> {
    let entries = places().into_iter().filter_map(|directory| fs::read_dir(directory).ok());
    let entries = entries.flat_map(|entries| entries.flatten().take(FILES_MAX));
    let mut urls: Vec<_> = entries.filter_map(|entry| url_of(&entry.path())).collect();
    urls.sort();
    urls
}

/// Returns the directories in which clouds are looked for.
pub(crate) fn places() -> Vec<PathBuf> {
    of_session().into_iter().chain(temporary()).collect()
}

/// The address in a file that its process holds locked; where none does, the file is removed.
fn url_of(path: &Path) -> Option<String> {
    if path.extension().is_some() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    // Commands that look at the same time share it.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        Ok(()) => {
            // OK to fail: another command may have removed it.
            let _ = fs::remove_file(path);
            return None;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    let mut url = String::new();
    file.read_to_string(&mut url).ok()?;
    Some(url.trim().to_owned())
}

/// Returns the session's directory. It may have none, or one of another user or of long ago, as after `su` and in containers.
fn of_session() -> Option<PathBuf> {
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty())?;
    private(PathBuf::from(of_session).join("claimant")).ok()
}

/// Returns the one in the temporary directory, where a cloud is that found no session's.
fn temporary() -> io::Result<PathBuf> {
    private(std::env::temp_dir().join(format!("claimant-{}", geteuid().as_raw())))
}

/// Makes a directory where it is not there. An error where another user could write to it.
fn private(directory: PathBuf) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(&directory) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    if is_private(&fs::symlink_metadata(&directory)?) {
        Ok(directory)
    } else {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "the directory belongs to others as well"))
    }
}

fn is_private(metadata: &Metadata) -> bool {
    metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.permissions().mode() & 0o077 == 0
}
