//! The limit of open files. A local cloud has some for each process of a function and for each connection to an endpoint.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// With so many, the functions of a template run side by side.
const ENOUGH: u64 = 1_024;

/// The limit is raised so far at most: macOS grants no more, and some programs go through every number up to it when they start another.
const RAISED_TO: u64 = 10_240;

/// Raises the soft limit of this process, and of those that it starts, as far as the hard one lets it. Returns the limit where it is too low for
/// many functions all the same.
pub(crate) fn raise_limit() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Without a number there is no limit.
    let current = current?;
    let wanted = maximum.map_or(RAISED_TO, |hard| hard.min(RAISED_TO));
    let is_raised = wanted > current && setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok();
    Some(if is_raised { wanted } else { current }).filter(|limit| *limit < ENOUGH)
}

/// Returns what is said of a limit that is too low.
pub(crate) fn too_low(limit: u64) -> String {
    format!(
        "At most {limit} files can be open here (`ulimit -H -n`), which can be too few where functions run side by side: {ENOUGH} are enough."
    )
}
