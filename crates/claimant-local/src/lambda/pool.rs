//! The execution environments of one function: started when needed, used again, replaced when they die.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::config::FunctionConfig;
use super::environment::{Ended, Environment};
use super::invocation::{Call, EVENT_BYTES_MAX, FunctionCounters, Invocation};
use super::processes::Processes;
use super::program::{Look, Program};
use crate::sync::lock;

/// Before the first restart after a crash; doubled with each further crash in a row.
const RESTART_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause before a restart.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Between two looks at whether the program is there.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A function's environments and what is known of them.
pub(super) struct Pool {
    pub(super) config: FunctionConfig,
    pub(super) program: Program,
    permits: Semaphore,
    /// One for each process, for the batches of mappings: what is received has a process that is no other batch's.
    pub(super) batches: Arc<Semaphore>,
    stopped: watch::Sender<bool>,
    // Invariant: an environment is here only while no invocation holds it.
    idle: Mutex<Vec<Environment>>,
    pub(super) processes: Processes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counters: FunctionCounters,
    crashes_in_a_row: u32,
    /// The last build that was said to be gone.
    gone: u64,
}

impl Pool {
    /// A pool without processes; `config.concurrency` is in its range.
    pub(super) fn new(config: FunctionConfig) -> Self {
        Self {
            permits: Semaphore::new(config.concurrency),
            batches: Arc::new(Semaphore::new(config.concurrency)),
            program: Program::new(config.program.clone()),
            config,
            stopped: watch::Sender::new(false),
            idle: Mutex::default(),
            processes: Processes::default(),
            state: Mutex::default(),
        }
    }

    /// Invokes the function, and counts what becomes of it.
    pub(super) async fn invoke(&self, call: &Call) -> Invocation {
        lock(&self.state).counters.invocations += 1;
        let result = self.run(call).await;
        let counters = &mut lock(&self.state).counters;
        match result {
            Invocation::Response(_) => {}
            Invocation::FunctionError { .. } => counters.errors += 1,
            Invocation::TimedOut => counters.timeouts += 1,
            Invocation::Crashed { .. } => counters.crashes += 1,
        }
        result
    }

    pub(super) fn counters(&self) -> FunctionCounters {
        lock(&self.state).counters
    }

    /// Cuts every invocation, kills and reaps every process.
    pub(super) async fn stop(&self) {
        self.stopped.send_replace(true);
        let all = u32::try_from(self.config.concurrency).expect("checked to be CONCURRENCY_MAX or less");
        // An invocation keeps its permit until its process is reaped or idle, so all permits mean none is left.
        let permits = self.permits.acquire_many(all).await;
        let idle = std::mem::take(&mut *lock(&self.idle));
        for environment in idle {
            environment.end().await;
        }
        drop(permits);
    }

    async fn run(&self, call: &Call) -> Invocation {
        if call.payload.len() > EVENT_BYTES_MAX {
            return Invocation::FunctionError {
                kind: "RequestTooLargeException".to_owned(),
                message: format!("{} bytes are over the {EVENT_BYTES_MAX} byte limit of an event", call.payload.len()),
            };
        }
        let mut stopped = self.stopped.subscribe();
        let _permit = self.permits.acquire().await.expect("the semaphore is never closed");
        loop {
            let mut environment = match self.environment(&mut stopped).await {
                Ok(environment) => environment,
                Err(refused) => return refused,
            };
            let ended = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => Ended::Unusable(stopped_error()),
                ended = environment.invoke(call, self.config.timeout) => ended,
            };
            match ended {
                Ended::Reusable(result) => {
                    lock(&self.state).crashes_in_a_row = 0;
                    if self.is_current(&environment) {
                        lock(&self.idle).push(environment);
                    } else {
                        environment.end().await;
                    }
                    return result;
                }
                Ended::Unusable(result) => {
                    environment.end().await;
                    self.note_end(&result);
                    return result;
                }
                Ended::NotTaken => environment.end().await,
            }
        }
    }

    /// A living idle environment, or else a new one.
    async fn environment(&self, stopped: &mut watch::Receiver<bool>) -> Result<Environment, Invocation> {
        loop {
            // Taken out in its own statement: the lock must not be held across an await.
            let idle = lock(&self.idle).pop();
            let Some(mut environment) = idle else { break };
            if environment.is_running() && self.is_current(&environment) {
                return Ok(environment);
            }
            environment.end().await;
        }
        let pause = restart_pause(lock(&self.state).crashes_in_a_row);
        tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return Err(stopped_error()),
            () = tokio::time::sleep(pause) => {}
        }
        let settled = tokio::select! {
            biased;
            _ = stopped.wait_for(|stopped| *stopped) => return Err(stopped_error()),
            settled = self.program.settled(|look| self.note_build(look)) => settled,
        };
        lock(&self.state).counters.cold_starts += 1;
        let started = match settled {
            Ok((build, executable)) => Environment::start(&self.config, &executable, build, &self.processes).await,
            Err(message) => Err(Invocation::FunctionError { kind: "Runtime.InvalidEntrypoint".to_owned(), message }),
        };
        if let Err(result) = &started {
            self.note_end(result);
            self.log(&format!("cannot start: {result:?}"));
        }
        started
    }

    /// Resolves once there is a program to start processes from. Says so where the one in use is gone.
    pub(super) async fn ready(&self) {
        while self.program.there().is_none() {
            self.renew().await;
            if self.program.there().is_some() {
                return;
            }
            self.note_gone();
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Resolves once the program in use is gone, or replaced.
    pub(super) async fn gone(&self) {
        while self.program.there().is_some() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks for a new build, and ends idle processes of an old one.
    pub(super) async fn renew(&self) {
        let look = self.program.look().await;
        self.note_build(&look);
        let old: Vec<_> = {
            let mut idle = lock(&self.idle);
            idle.extract_if(.., |environment| !self.is_current(environment)).collect()
        };
        for environment in old {
            environment.end().await;
        }
    }

    fn is_current(&self, environment: &Environment) -> bool {
        environment.build == self.program.current().0
    }

    fn note_build(&self, look: &Look) {
        match look {
            Look::Same => {}
            Look::New(build) => {
                // What a new build does wrong is its own.
                lock(&self.state).crashes_in_a_row = 0;
                self.log(&format!(
                    "claimant: runs the new build {} ({} bytes); older processes end after their invocation",
                    build.path.display(),
                    build.bytes
                ));
            }
            Look::Unusable(why) => self.log(&format!("claimant: does not run a new build: {why}")),
        }
    }

    /// Says that a build is gone, once; of one that has not been there yet it was said before.
    fn note_gone(&self) {
        let (build, _) = self.program.current();
        if std::mem::replace(&mut lock(&self.state).gone, build) != build {
            self.log(
                "claimant: waits for its program, which is gone or is being written; messages wait in their queues",
            );
        }
    }

    fn log(&self, line: &str) {
        (self.config.logs)(&self.config.name, line);
    }

    /// A timeout needs no pause: it has taken its time already.
    fn note_end(&self, result: &Invocation) {
        let how = match result {
            Invocation::Crashed { status } => status,
            Invocation::FunctionError { kind, .. } => kind,
            Invocation::Response(_) | Invocation::TimedOut => return,
        };
        let crashes = {
            let mut state = lock(&self.state);
            state.crashes_in_a_row = state.crashes_in_a_row.saturating_add(1);
            state.crashes_in_a_row
        };
        let pause_ms = restart_pause(crashes).as_millis();
        self.log(&format!(
            "claimant: its process ended, {crashes} times in a row now: {how}; the next one starts after {pause_ms} ms at the earliest"
        ));
    }
}

fn restart_pause(crashes_in_a_row: u32) -> Duration {
    match crashes_in_a_row {
        0 => Duration::ZERO,
        n => RESTART_PAUSE.saturating_mul(1_u32.checked_shl(n - 1).unwrap_or(u32::MAX)).min(RESTART_PAUSE_MAX),
    }
}

fn stopped_error() -> Invocation {
    Invocation::FunctionError { kind: "Function.Stopped".to_owned(), message: "the function was stopped".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_before_a_restart_grows_and_is_bounded() {
        let pauses_ms: Vec<_> = [0, 1, 2, 3, 6, 7, 33, u32::MAX].map(|n| restart_pause(n).as_millis()).into();
        assert_eq!(pauses_ms, [0, 50, 100, 200, 1_600, 2_000, 2_000, 2_000]);
    }
}
