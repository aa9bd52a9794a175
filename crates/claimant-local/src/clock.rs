//! The clock: everything here that needs the time of day asks it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
#[allow(clippy::disallowed_methods, reason = "the clock")]
pub(crate) fn wall_clock_ms() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_millis()).expect("the year is below 500 million")
}
