//! A command that runs beside the cloud, and the end of all that it started.

use std::ffi::OsString;
use std::io::{IsTerminal as _, stdin};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use claimant_local::Error;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::exit::Ended;

/// How long what was asked to end may take before it is killed.
const STOP_MAX: Duration = Duration::from_secs(5);

/// Between two looks at whether anything is left of the command.
const LOOK: Duration = Duration::from_millis(20);

/// Variables of a person's own that some SDKs prefer to the access key in the environment: with them, a client that knows no endpoint
/// here would act in a real account.
pub(crate) const OTHER_CREDENTIALS: [&str; 3] = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN"];

/// The least exit code of a command that a signal ended, as shells have it.
const SIGNALLED: i32 = 128;

/// Runs the command with these variables beside its inherited ones, but for other credentials, until it ends or until `stop` resolves. Returns once it
/// and what it started have ended; what has left its process group aside.
///
/// # Errors
/// When it cannot be started.
pub(crate) async fn run(
    command: &[OsString],
    variables: Vec<(String, String)>,
    stop: impl Future<Output = ()>,
) -> Result<Ended, Error> {
    let (program, arguments) = command.split_first().ok_or_else(|| Error::new("there is no command"))?;
    let failed = |what: &str| Error::new(format!("the command {} {what}", program.display()));
    let mut command = Command::new(program);
    for name in OTHER_CREDENTIALS {
        command.env_remove(name);
    }
    command.args(arguments).envs(variables).process_group(0).kill_on_drop(true);
    if stdin().is_terminal() {
        // Reading it would suspend the command: a terminal has one group of processes in the foreground, and that is ours.
        command.stdin(Stdio::null());
    }
    let mut child = command.spawn().map_err(|e| failed("cannot be started").caused_by(e))?;
    let id = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    let group = id.ok_or_else(|| failed("has no process"))?;
    tokio::select! {
        _ = child.wait() => {}
        () = stop => {}
    }
    end(group, &mut child).await;
    let status = child.wait().await.map_err(|e| failed("ended, but not how").caused_by(e))?;
    Ok(Ended::Command(code(status)))
}

/// Ends what is left of the group: it is asked to, and killed if it takes too long.
async fn end(group: Pid, child: &mut Child) {
    // OK to fail, here and below: that means no process is left in the group.
    let _ = kill_process_group(group, Signal::TERM);
    let all_ended = async {
        let _ = child.wait().await;
        while test_kill_process_group(group).is_ok() {
            sleep(LOOK).await;
        }
    };
    if timeout(STOP_MAX, all_ended).await.is_err() {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// What a shell would say of it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
