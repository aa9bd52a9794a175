//! Lambda on this machine: function binaries as processes behind the Lambda runtime API.
//!
//! Each execution environment is one process with a runtime API of its own on loopback. It takes one event at a time,
//! has until a real deadline to answer, and is killed, with everything it started, when it does not.
//!
//! | module | holds |
//! | --- | --- |
//! | `pool` | the environments of one function: started when needed, used again, replaced |
//! | `program` | the file that the processes are started from, and when a new build of it counts |
//! | `environment` | one process: start, one invocation at a time, the end |
//! | `api` | the runtime API the process speaks to |
//! | `logs` | its output, line by line |
//!
//! Not imitated, on purpose: memory limits, freezing between invocations, extensions, SnapStart, response streaming.

mod api;
mod environment;
mod logs;
mod pool;
mod program;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use tokio::sync::{Semaphore, watch};

use crate::Error;

use pool::Pool;
use program::Program;

pub use logs::LogSink;
pub use program::Places;

/// The largest event, in bytes: Lambda's 6 MB for a synchronous invocation.
pub const EVENT_BYTES_MAX: usize = 6 * 1024 * 1024;

/// The largest number of execution environments of one function.
pub const CONCURRENCY_MAX: usize = 1_000;

/// What a function is made of.
#[derive(Clone)]
pub struct FunctionConfig {
    /// The function's name.
    pub name: String,
    /// The program to run. A new build of it is used from the next start on, and at once after [`Function::renew`].
    pub program: Places,
    /// How long one invocation may take, on a real clock.
    pub timeout: Duration,
    /// Told to the function, not enforced.
    pub memory_mb: u32,
    /// The variables of the process, beside `PATH`, `HOME` and those that Lambda itself sets.
    pub environment: Vec<(String, String)>,
    /// Execution environments at most, 1 to [`CONCURRENCY_MAX`]; they are started when needed.
    pub concurrency: usize,
    /// Where output of the process goes, line by line.
    pub logs: LogSink,
}

/// A function that can be invoked. Clones are the same function; the last one dropped kills its processes.
#[derive(Clone)]
pub struct Function(Arc<Pool>);

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

/// The processes of a function that have not been reaped.
type Pids = Arc<Mutex<BTreeSet<u32>>>;

impl Function {
    /// A function without processes yet.
    ///
    /// # Errors
    ///
    /// The program does not exist or is not executable, or the concurrency is out of range.
    pub fn new(config: FunctionConfig) -> Result<Self, Error> {
        let function = Self::awaited(config)?;
        if function.has_program() {
            return Ok(function);
        }
        let FunctionConfig { name, program, .. } = &function.0.config;
        let Some(path) = program.first.iter().chain(&program.others).next() else {
            return Err(Error::new(format!("function {name}: no place for its program is known")));
        };
        let path = path.display();
        if program.first.iter().chain(&program.others).any(|path| path.exists()) {
            return Err(Error::new(format!(
                "function {name}: {path} is not an executable file: build it, or name the binary"
            )));
        }
        Err(Error::new(format!("function {name}: no binary at {path}: build it, such as with `cargo build`")))
    }

    /// As [`new`](Self::new), but the program may be built later: [`ready`](Self::ready) tells when it is there.
    ///
    /// # Errors
    ///
    /// The concurrency is out of range.
    pub fn awaited(config: FunctionConfig) -> Result<Self, Error> {
        let name = &config.name;
        let program = Program::new(config.program.clone());
        if !(1..=CONCURRENCY_MAX).contains(&config.concurrency) {
            return Err(Error::new(format!(
                "function {name}: concurrency must be 1 to {CONCURRENCY_MAX}, not {}",
                config.concurrency
            )));
        }
        Ok(Self(Arc::new(Pool {
            permits: Semaphore::new(config.concurrency),
            config,
            program,
            stopped: watch::Sender::new(false),
            idle: Mutex::default(),
            pids: Pids::default(),
            state: Mutex::default(),
        })))
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Whether there is a program to run.
    pub fn has_program(&self) -> bool {
        self.0.program.current().0 > 0
    }

    /// Resolves once there is a program to run. Cancel safe.
    pub async fn ready(&self) {
        self.0.program.ready().await;
    }

    /// Looks for a new build of the program. If there is one, processes of the old one end: idle ones now, others after
    /// their invocation. Says so in the logs. Cancel safe.
    pub async fn renew(&self) {
        self.0.renew().await;
    }

    /// How many invocations can run at the same time.
    pub fn concurrency(&self) -> usize {
        self.0.config.concurrency
    }

    /// Hands `payload` to a free environment, starting one if need be, and waits for the result.
    ///
    /// Waits without limit for a free environment, then at most 10 s for a start and the timeout for the answer.
    /// Dropping the future kills the process that has the event.
    pub async fn invoke(&self, payload: Vec<u8>) -> Invocation {
        lock(&self.0.state).counters.invocations += 1;
        let result = self.0.invoke(Bytes::from(payload)).await;
        let counters = &mut lock(&self.0.state).counters;
        match result {
            Invocation::Response(_) => {}
            Invocation::FunctionError { .. } => counters.errors += 1,
            Invocation::TimedOut => counters.timeouts += 1,
            Invocation::Crashed { .. } => counters.crashes += 1,
        }
        result
    }

    /// Cuts every invocation, kills and reaps every process. The function cannot be invoked again.
    pub async fn stop(&self) {
        self.0.stopped.send_replace(true);
        let all = u32::try_from(self.0.config.concurrency).expect("checked to be CONCURRENCY_MAX or less");
        // An invocation keeps its permit until its process is reaped or idle, so all permits mean none is left.
        let permits = self.0.permits.acquire_many(all).await;
        let idle = std::mem::take(&mut *lock(&self.0.idle));
        for environment in idle {
            environment.end().await;
        }
        drop(permits);
    }

    /// The ids of the processes that have been started and not been reaped.
    pub fn pids(&self) -> Vec<u32> {
        lock(&self.0.pids).iter().copied().collect()
    }

    /// What has happened so far.
    pub fn counters(&self) -> FunctionCounters {
        lock(&self.0.state).counters
    }
}

/// What these locks guard is whole after every statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_function_that_cannot_run_is_refused() {
        let check = |executable: &str, concurrency, expected: &str| {
            let config = FunctionConfig {
                name: "confirm".to_owned(),
                program: PathBuf::from(executable).into(),
                timeout: Duration::from_secs(1),
                memory_mb: 128,
                environment: Vec::new(),
                concurrency,
                logs: Arc::new(|_, _| {}),
            };
            let error = Function::new(config).err().expect("refused").to_string();
            assert!(error.contains("confirm") && error.contains(expected), "{error}");
        };
        check("/nowhere/bootstrap", 1, "build it");
        check("/tmp", 1, "not an executable file");
        check("/etc/passwd", 1, "not an executable file");
        check("/bin/sh", 0, "1 to 1000");
        check("/bin/sh", 1_001, "1 to 1000");
    }
}
