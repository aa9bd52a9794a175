//! One execution environment: a process, its runtime API and its output.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::arn::{self, REGION};
use crate::journal::{ProcessEnd, Text, What};

use super::api::{Event, RuntimeApi};
use super::config::FunctionConfig;
use super::invocation::{Call, Invocation};
use super::logs::{LogSink, forward};
use super::notes::Notes;
use super::processes::{Processes, signal};

/// How long a new process may take until it asks for its first event, unless the function's timeout is longer: Lambda's own limit, after
/// which it starts the process again, and that may take the function's timeout.
const INIT_MAX: Duration = Duration::from_secs(10);

/// How long the output of a dead process is waited for.
const LOGS_DRAIN_MAX: Duration = Duration::from_secs(1);

/// Starts of a binary that is being written, before giving up.
const BUSY_STARTS_MAX: u32 = 20;

const BUSY_PAUSE: Duration = Duration::from_millis(25);

/// What an invocation leaves behind.
pub(super) enum Ended {
    /// The process answered and can take another event.
    Reusable(Invocation),
    /// The process is dead or must be killed.
    Unusable(Invocation),
    /// A process that had answered before has ended without taking this event.
    NotTaken,
}

/// A process and what belongs to it. Dropping it kills the process and everything the process started.
pub(super) struct Environment {
    notes: Notes,
    // Before the child, so that it is dropped first: the group's id is the child's until the child is reaped.
    group: ProcessGroup,
    child: Child,
    api: RuntimeApi,
    output: Vec<JoinHandle<()>>,
    logs: LogSink,
    warm: bool,
    timed_out: bool,
    /// The number of the program's build.
    pub(super) build: u64,
}

/// The process group of a child; its id is the child's process id.
struct ProcessGroup {
    id: u32,
    processes: Processes,
    killed: bool,
}

impl Environment {
    /// Starts the process from this build of the program; it need not be up when this returns.
    pub(super) async fn start(
        config: &FunctionConfig,
        executable: &Path,
        build: u64,
        processes: &Processes,
    ) -> Result<Self, Invocation> {
        let failed = |what: &str, e: io::Error| Invocation::FunctionError {
            kind: kind(&e).to_owned(),
            message: format!("{what} {}: {e}", executable.display()),
        };
        let api = RuntimeApi::start(arn::of_function(&config.name)).await;
        let api = api.map_err(|e| failed("no free port for the runtime API of", e))?;
        let mut command = command(config, executable, &api);
        let mut child = spawn(&mut command).await.map_err(|e| failed("cannot start", e))?;
        let id = child.id().expect("a process that was not waited for has an id");
        processes.insert(id);
        let group = ProcessGroup { id, processes: processes.clone(), killed: false };
        let notes = Notes::new(&config.journal, &config.name, id);
        notes.write(|| What::ProcessStarted);
        let lines = notes.observe(&config.logs);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut output = Vec::new();
        if let Some(stdout) = stdout {
            output.push(tokio::spawn(forward(stdout, config.name.clone(), LogSink::clone(&lines))));
        }
        if let Some(stderr) = stderr {
            output.push(tokio::spawn(forward(stderr, config.name.clone(), lines)));
        }
        Ok(Self {
            notes,
            group,
            child,
            api,
            output,
            logs: LogSink::clone(&config.logs),
            warm: false,
            timed_out: false,
            build,
        })
    }

    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Hands one event to the process and waits for its answer, its end, or the end of its time.
    pub(super) async fn invoke(&mut self, call: &Call, limit: Duration) -> Ended {
        let ended = self.run(call, limit).await;
        if let Ended::Reusable(result) | Ended::Unusable(result) = &ended {
            self.timed_out = *result == Invocation::TimedOut;
            self.notes.ended(call, result);
        }
        ended
    }

    async fn run(&mut self, call: &Call, limit: Duration) -> Ended {
        let request_id = &*call.request_id;
        let (taken_sender, taken) = oneshot::channel();
        let (answer_sender, answer) = oneshot::channel();
        let event = Event {
            request_id: request_id.to_owned(),
            payload: call.payload.clone(),
            timeout: limit,
            taken: taken_sender,
            answer: answer_sender,
        };
        // OK because the channel has room: the event before was taken, or the environment would be gone.
        let _ = self.api.events.try_send(event);
        if let Err(ended) = self.taken(taken, limit, request_id).await {
            return ended;
        }
        self.warm = true;
        self.notes.began(call, limit);
        tokio::select! {
            biased;
            Ok(result) = answer => Ended::Reusable(result),
            status = self.child.wait() => {
                let status = describe(status);
                self.log(&format!("RequestId: {request_id} Error: Runtime exited with error: {status}"));
                Ended::Unusable(Invocation::Crashed { status })
            }
            () = sleep(limit) => self.timed_out(request_id, limit),
        }
    }

    /// Waits until the process has asked for the event.
    async fn taken(&mut self, taken: oneshot::Receiver<()>, limit: Duration, request_id: &str) -> Result<(), Ended> {
        let limit = if self.warm { limit } else { INIT_MAX.max(limit) };
        let failure = tokio::select! {
            biased;
            Ok(()) = taken => return Ok(()),
            Ok(report) = &mut self.api.init_error, if !self.warm => report,
            status = self.child.wait() => {
                if self.warm {
                    return Err(Ended::NotTaken);
                }
                Invocation::FunctionError {
                    kind: "Runtime.ExitError".to_owned(),
                    message: format!("the process ended before it asked for an event: {}", describe(status)),
                }
            }
            () = sleep(limit) => {
                if self.warm {
                    return Err(self.timed_out(request_id, limit));
                }
                Invocation::FunctionError {
                    kind: "Runtime.InitTimeout".to_owned(),
                    message: format!("the process did not ask for an event within {} s", limit.as_secs()),
                }
            }
        };
        if let Invocation::FunctionError { kind, message } = &failure {
            self.log(&format!("INIT_REPORT Status: error Error Type: {kind} {message}"));
        }
        Err(Ended::Unusable(failure))
    }

    /// Kills what is left, reaps it, and waits a moment for the last of its output.
    pub(super) async fn end(mut self) {
        let died = matches!(self.child.try_wait(), Ok(Some(_)));
        self.group.kill();
        // An error means that it was reaped already.
        let status = self.child.wait().await.ok();
        // From here on its id can be another process's.
        let killed = self.group.processes.remove(self.group.id);
        let why = match (killed, died, self.timed_out) {
            (true, ..) => ProcessEnd::Killed,
            (false, true, _) => ProcessEnd::Died,
            (false, false, true) => ProcessEnd::TimedOut,
            (false, false, false) => ProcessEnd::Stopped,
        };
        let status = status.map(|status| Text::from(status.to_string()));
        for output in std::mem::take(&mut self.output) {
            let _ = timeout(LOGS_DRAIN_MAX, output).await;
        }
        // After the last of its lines.
        self.notes.write(|| What::ProcessEnded { why, status });
    }

    fn timed_out(&self, request_id: &str, limit: Duration) -> Ended {
        let seconds = limit.as_secs_f64();
        self.log(&format!("{request_id} Task timed out after {seconds:.2} seconds"));
        Ended::Unusable(Invocation::TimedOut)
    }

    fn log(&self, line: &str) {
        (self.logs)(&self.notes.function, line);
    }
}

impl ProcessGroup {
    /// At most once: after the child is reaped its id could be given to another process.
    fn kill(&mut self) {
        if std::mem::replace(&mut self.killed, true) {
            return;
        }
        // OK to fail: that means no process is left in the group.
        let _ = signal(self.id, Signal::KILL);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
        self.processes.remove(self.id);
    }
}

fn command(config: &FunctionConfig, executable: &Path, api: &RuntimeApi) -> Command {
    let task_root = executable.parent().unwrap_or(Path::new("/"));
    let mut command = Command::new(executable);
    command.env_clear();
    for inherited in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(inherited) {
            command.env(inherited, value);
        }
    }
    command
        .env("AWS_REGION", REGION)
        .env("AWS_DEFAULT_REGION", REGION)
        .env("TZ", ":UTC")
        // On Lambda there are no profiles. With HOME, the SDK would find the person's, and take from them what suits no endpoint here.
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .envs(config.environment.iter().map(|(name, value)| (name, value)))
        // Lambda does not let a function's own variables override these.
        .env("AWS_LAMBDA_RUNTIME_API", api.address.to_string())
        .env("AWS_LAMBDA_FUNCTION_NAME", &config.name)
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", config.memory_mb.to_string())
        .env("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", config.name))
        .env("AWS_LAMBDA_LOG_STREAM_NAME", format!("local/[$LATEST]{}", Uuid::new_v4().simple()))
        .env("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        .env("_HANDLER", "bootstrap")
        .env("LAMBDA_TASK_ROOT", task_root)
        .current_dir(task_root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// A binary that cargo is just writing, or replacing, cannot be run; that passes within moments.
async fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 1..BUSY_STARTS_MAX {
        match command.spawn() {
            Err(e) if matches!(e.kind(), io::ErrorKind::ExecutableFileBusy | io::ErrorKind::NotFound) => {
                sleep(BUSY_PAUSE).await
            }
            result => return result,
        }
    }
    command.spawn()
}

/// Returns the kind of error of a function whose process cannot be started: it is not to blame where no more files can be open.
fn kind(error: &io::Error) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => "Local.TooManyOpenFiles",
        _ => "Runtime.InvalidEntrypoint",
    }
}

fn describe(status: io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(e) => format!("unknown: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_not_to_blame_for_the_limit_of_open_files() {
        for (errno, expected) in [(Errno::MFILE, "Local.TooManyOpenFiles"), (Errno::NOENT, "Runtime.InvalidEntrypoint")]
        {
            assert_eq!(kind(&errno.into()), expected);
        }
    }
}
