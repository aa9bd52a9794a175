//! What a function is made of.

use std::time::Duration;

use super::logs::LogSink;
use super::program::Places;
use crate::journal::Journal;

/// The largest number of execution environments of one function.
pub const CONCURRENCY_MAX: usize = 1_000;

/// What a function is made of.
#[derive(Clone)]
pub struct FunctionConfig {
    /// The function's name.
    pub name: String,
    /// The program to run. A new build of it is used from the next start on, and at once after
    /// [`Function::renew`](super::Function::renew).
    pub program: Places,
    /// How long one invocation may take, on a real clock.
    pub timeout: Duration,
    /// Reported to the function, not enforced.
    pub memory_mb: u32,
    /// The variables of the process, beside `PATH`, `HOME` and those that Lambda itself sets.
    pub environment: Vec<(String, String)>,
    /// Execution environments at most, 1 to [`CONCURRENCY_MAX`]; they are started when needed.
    pub concurrency: usize,
    /// Where output of the process goes, line by line.
    pub logs: LogSink,
    /// Where what happens is kept.
    pub journal: Journal,
}
