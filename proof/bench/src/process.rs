//! A process that is measured, and how it is spoken to: a line of JSON for each task, a line of JSON for each answer.

use std::process::Stdio;
use std::time::Duration;

use claimant_core::Error;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// What the lines of a process start with that are answers; it may print others.
pub const MARK: &str = "claimant-bench ";

/// A process that says nothing for this long has failed, unless it is given longer.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// A process that is measured. It is killed when this is dropped.
#[derive(Debug)]
pub struct Measured {
    /// For messages.
    name: String,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    answer_max: Duration,
}

impl Measured {
    /// Starts a process on the AWS at `endpoint`, with nothing else of this one's environment than it needs.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(name: String, mut command: Command, endpoint: &str) -> Result<Self, Error> {
        let kept = ["PATH", "HOME", "TMPDIR"].into_iter().filter_map(|v| Some((v, std::env::var_os(v)?)));
        let own: Vec<_> = command.as_std().get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
        command.env_clear().envs(kept).envs(aws_variables(endpoint));
        command.envs(own.into_iter().filter_map(|(k, v)| Some((k, v?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|e| Error::new(format!("{name} did not start")).caused_by(e))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(format!("{name} has no pipes")));
        };
        Ok(Self { name, child, input, output: BufReader::new(output).lines(), answer_max: ANSWER_MAX })
    }

    /// Waits this long for an answer.
    #[must_use]
    pub fn within(mut self, answer_max: Duration) -> Self {
        self.answer_max = answer_max;
        self
    }

    /// Its id, while it runs.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Gives it a task, and waits for the answer.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub async fn ask<T: DeserializeOwned>(&mut self, task: &impl Serialize) -> Result<T, Error> {
        self.tell(task).await?;
        self.answer().await
    }

    /// Gives it a task.
    ///
    /// # Errors
    /// When it has ended.
    pub async fn tell(&mut self, task: &impl Serialize) -> Result<(), Error> {
        let mut task = serde_json::to_string(task).map_err(|e| self.silent(e))?;
        task.push('\n');
        let sent = timeout(self.answer_max, self.input.write_all(task.as_bytes())).await;
        sent.map_err(|e| self.silent(e))?.map_err(|e| self.silent(e))
    }

    /// Kills it, as it stands.
    ///
    /// # Errors
    /// When the system does not.
    pub async fn kill(mut self) -> Result<(), Error> {
        self.child.kill().await.map_err(|e| self.silent(e))
    }

    /// Waits for an answer.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub async fn answer<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        loop {
            let line = timeout(self.answer_max, self.output.next_line()).await.map_err(|e| self.silent(e))?;
            let Some(line) = line.map_err(|e| self.silent(e))? else {
                return Err(Error::new(format!("{} has ended: see its message above", self.name)));
            };
            if let Some(text) = line.strip_prefix(MARK) {
                return serde_json::from_str(text).map_err(|e| self.silent(e));
            }
        }
    }

    fn silent(&self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(format!("{} gave no answer", self.name)).caused_by(cause)
    }
}

/// What a function's environment has on Lambda, for a store on this machine.
#[must_use]
pub fn aws_variables(endpoint: &str) -> [(&'static str, String); 8] {
    [
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_DEFAULT_REGION", "us-east-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "local".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
        ("AWS_CONFIG_FILE", "/dev/null".to_owned()),
        ("AWS_ENDPOINT_URL_DYNAMODB", endpoint.to_owned()),
        ("AWS_LAMBDA_FUNCTION_NAME", "order-confirmation".to_owned()),
        ("POWERTOOLS_SERVICE_NAME", "order-confirmation".to_owned()),
    ]
}

/// Answers, from within the process.
///
/// # Errors
/// When the answer is no JSON.
pub fn say(answer: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string(answer).map_err(|e| Error::new("an answer is no JSON").caused_by(e))?;
    println!("{MARK}{text}");
    Ok(())
}

/// The processor time of this process so far.
#[must_use]
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    // OK because processor time is not negative, and its nanoseconds are below a second.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
