//! The handle of a function.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::config::{CONCURRENCY_MAX, FunctionConfig};
use super::invocation::{Call, FunctionCounters, Invocation};
use super::pool::Pool;
use crate::Error;
use crate::journal::{Journal, Texts, What};

/// A function that can be invoked. Clones are the same function; the last one dropped kills its processes.
#[derive(Clone)]
pub struct Function(Arc<Pool>);

impl Function {
    /// A function without processes yet.
    ///
    /// # Errors
    ///
    /// The program does not exist, is not executable or is for another architecture, or the concurrency is out of range.
    pub fn new(config: FunctionConfig) -> Result<Self, Error> {
        let function = Self::awaited(config)?;
        if function.has_program() {
            return Ok(function);
        }
        let FunctionConfig { name, program, .. } = &function.0.config;
        if let Some((path, why)) = program.unusable() {
            return Err(Error::new(format!("function {name}: {} {why}: build it, or name the binary", path.display())));
        }
        let Some(path) = program.all().next() else {
            return Err(Error::new(format!("function {name}: no place for its program is known")));
        };
        let path = path.display();
        Err(Error::new(format!("function {name}: no binary at {path}: build it, such as with `cargo build`")))
    }

    /// As [`new`](Self::new), but the program may be built later: [`ready`](Self::ready) tells when it is there.
    ///
    /// # Errors
    ///
    /// The concurrency is out of range.
    pub fn awaited(config: FunctionConfig) -> Result<Self, Error> {
        let name = &config.name;
        if !(1..=CONCURRENCY_MAX).contains(&config.concurrency) {
            return Err(Error::new(format!(
                "function {name}: concurrency must be 1 to {CONCURRENCY_MAX}, not {}",
                config.concurrency
            )));
        }
        Ok(Self(Arc::new(Pool::new(config))))
    }

    /// The function's name.
    pub fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Whether there is a program to run.
    pub fn has_program(&self) -> bool {
        self.0.program.current().0 > 0
    }

    /// Returns the file that its processes are started from now; `None` where there is none yet.
    pub fn program(&self) -> Option<PathBuf> {
        self.0.program.current().1.map(|build| build.path)
    }

    /// Resolves once there is a program to start processes from, which need not be the one that was there before. Cancel safe.
    pub async fn ready(&self) {
        self.0.ready().await;
    }

    /// Resolves once there is none any more, or another one. Cancel safe.
    pub(crate) async fn gone(&self) {
        self.0.gone().await;
    }

    /// Looks for a new build of the program. If there is one, processes of the old one end: idle ones now, others after
    /// their invocation. Says so in the logs. Cancel safe.
    pub async fn renew(&self) {
        self.0.renew().await;
    }

    /// The variables of its processes, beside those that Lambda itself sets.
    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.0.config.environment
    }

    /// How many invocations can run at the same time.
    pub fn concurrency(&self) -> usize {
        self.0.config.concurrency
    }

    /// Hands `payload` to a free environment, starting one if need be, and waits for the result.
    ///
    /// Waits without limit for a free environment, then for a start at most 10 s, or the timeout where that is longer, and the
    /// timeout for the answer.
    /// Dropping the future kills the process that has the event.
    pub async fn invoke(&self, payload: Vec<u8>) -> Invocation {
        let request_id = Uuid::new_v4().to_string().into();
        self.deliver(Call { request_id, payload: Bytes::from(payload), messages: Texts::default() }).await
    }

    /// Waits until a batch of a mapping has a process of its own, and keeps that until it is dropped. Cancel safe.
    pub(crate) async fn batch(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.0.batches).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// As [`invoke`](Self::invoke), with an event whose messages are known.
    pub(crate) async fn deliver(&self, call: Call) -> Invocation {
        self.0.invoke(&call).await
    }

    /// Where what happens is kept.
    pub fn journal(&self) -> &Journal {
        &self.0.config.journal
    }

    /// Kills a process of it, with all that it started, as a crash would; returns whether it was there.
    pub fn kill(&self, process: u32) -> bool {
        let found = self.0.processes.kill(process);
        if found {
            self.journal().note(|| What::ProcessKilled, |event| event.process(&self.name().into(), process));
        }
        found
    }

    /// Stops a process of it where it is, for the fault of this number; returns whether it ran.
    pub(crate) fn freeze(&self, process: u32, fault: u64) -> bool {
        let found = self.0.processes.freeze(process, fault);
        if found {
            self.journal().note(|| What::ProcessFrozen, |event| event.process(&self.name().into(), process));
        }
        found
    }

    /// Lets a process of it go on that this fault stopped; does nothing to others.
    pub(crate) fn thaw(&self, process: u32, fault: u64) {
        if self.0.processes.thaw(process, fault) {
            self.journal().note(|| What::ProcessResumed, |event| event.process(&self.name().into(), process));
        }
    }

    /// Cuts every invocation, kills and reaps every process. The function cannot be invoked again.
    pub async fn stop(&self) {
        self.0.stop().await;
    }

    /// The ids of the processes that have been started and not been reaped.
    pub fn pids(&self) -> Vec<u32> {
        self.0.processes.ids()
    }

    /// What has happened so far.
    pub fn counters(&self) -> FunctionCounters {
        self.0.counters()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
                journal: Journal::off(),
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
