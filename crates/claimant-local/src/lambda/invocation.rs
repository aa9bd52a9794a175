//! What is invoked, and what becomes of it.

use axum::body::Bytes;

use crate::journal::{Text, Texts};

/// The largest event, in bytes: Lambda's 6 MB for a synchronous invocation.
pub const EVENT_BYTES_MAX: usize = 6 * 1024 * 1024;

/// One event for a function.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) request_id: Text,
    pub(crate) payload: Bytes,
    /// The messages in it.
    pub(crate) messages: Texts,
}

/// What became of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// The function answered with these bytes.
    Response(Vec<u8>),
    /// The function reported an error, or could not be started, or was stopped.
    FunctionError {
        /// The error's type, such as `Runtime.InitError`.
        kind: String,
        /// What it says.
        message: String,
    },
    /// The timeout passed without an answer; the process has been killed.
    TimedOut,
    /// The process ended in mid-invocation.
    Crashed {
        /// How it ended, such as `signal: 9 (SIGKILL)`.
        status: String,
    },
}

/// What has happened to a function so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionCounters {
    /// Invocations begun.
    pub invocations: u64,
    /// Of these, ended with [`Invocation::FunctionError`].
    pub errors: u64,
    /// Of these, ended with [`Invocation::TimedOut`].
    pub timeouts: u64,
    /// Of these, ended with [`Invocation::Crashed`].
    pub crashes: u64,
    /// Processes started.
    pub cold_starts: u64,
}
