//! What is invoked, and what becomes of it.

use std::fmt;

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

/// What became of one invocation. `Debug` shows a response as text.
#[derive(Clone, PartialEq, Eq)]
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

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(body) => f.debug_tuple("Response").field(&String::from_utf8_lossy(body)).finish(),
            Self::FunctionError { kind, message } => {
                f.debug_struct("FunctionError").field("kind", kind).field("message", message).finish()
            }
            Self::TimedOut => f.write_str("TimedOut"),
            Self::Crashed { status } => f.debug_struct("Crashed").field("status", status).finish(),
        }
    }
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
