//! The handler of all Rust contestants: instant, unless the message says that it is told what to do.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Answer, Purchase, RAN, say};

/// The variable that names the directory where a worker's handlers are told what to do.
pub(crate) const TOLD_VARIABLE: &str = "CLAIMANT_BENCH_TOLD";
/// How a handler ends, as its file says.
pub(crate) const COMPLETE: &str = "complete";
/// See [`COMPLETE`].
pub(crate) const FAIL: &str = "fail";

/// How often a handler looks for its file.
const LOOK: Duration = Duration::from_millis(5);

/// Why a handler fails: it was told to.
#[derive(Debug)]
pub(super) struct ToldToFail;

impl std::fmt::Display for ToldToFail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the handler was told to fail")
    }
}

impl std::error::Error for ToldToFail {}

/// Counts. With a name in the message it also says that it has begun, and blocks its thread until the file of that name
/// in the worker's directory says how it ends.
pub(super) fn handle(purchase: &Purchase) -> Result<(), ToldToFail> {
    RAN.fetch_add(1, Ordering::Relaxed);
    let Some(name) = &purchase.told else { return Ok(()) };
    // Without a listener nothing would end this.
    say(&Answer::Began { began: name.clone() }).map_err(|_| ToldToFail)?;
    let directory = std::env::var_os(TOLD_VARIABLE).unwrap_or_default();
    let file = Path::new(&directory).join(name);
    loop {
        match std::fs::read_to_string(&file).unwrap_or_default().as_str() {
            COMPLETE => return Ok(()),
            FAIL => return Err(ToldToFail),
            _ => std::thread::sleep(LOOK),
        }
    }
}
