//! What Linux tells of a process.

use std::time::Duration;

/// Ticks of processor time in a second: the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The most memory that a process (`self`, or its id) has had so far, in KiB; 0 where the system does not tell.
pub(crate) fn peak_kb(process: &str) -> u64 {
    status(process, "VmHWM:")
}

/// The memory that a process has now, in KiB; 0 where it is gone.
pub(crate) fn resident_kb(process: u32) -> u64 {
    status(&process.to_string(), "VmRSS:")
}

/// The processor time of a process so far, of threads that have ended too; `None` where it is gone.
pub(crate) fn cpu(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything; behind the last one come the state and ten numbers, then user and system time.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

fn status(process: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
