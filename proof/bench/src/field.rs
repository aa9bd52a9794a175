//! The field: who is measured, and how each is spoken to.

use std::process::Stdio;
use std::time::Duration;

use claimant_core::Error;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::args::Peers;
use crate::contestant::{Answer, MARK, TABLE_VARIABLE};

/// A contestant that says nothing for this long has failed.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// How many messages of a batch a contestant works on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knob {
    /// As many as it is told.
    Set,
    /// One.
    One,
    /// All of the batch.
    All,
}

/// A contestant.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name, and its table's.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) knob: Knob,
}

/// All contestants; claimant is the first.
pub(crate) const FIELD: [Entry; 5] = [
    Entry { name: "claimant", title: "claimant", knob: Knob::Set },
    Entry { name: "hand-serial", title: "loop by hand", knob: Knob::One },
    Entry { name: "hand-join", title: "bounded join by hand", knob: Knob::Set },
    Entry { name: "powertools-python", title: "Powertools (Python)", knob: Knob::One },
    Entry { name: "powertools-typescript", title: "Powertools (TypeScript)", knob: Knob::All },
];

/// The place of claimant in [`FIELD`].
pub(crate) const CLAIMANT: usize = 0;

/// What came of one batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) ran: usize,
    pub(crate) failed: usize,
}

/// A contestant's process. It is killed when this is dropped.
pub(crate) struct Contestant {
    name: &'static str,
    /// What it says it is.
    pub(crate) versions: String,
    // Held for its end.
    _child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Contestant {
    /// Starts a contestant on the store at `endpoint`, and waits until it can begin.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) async fn start(entry: &'static Entry, peers: &Peers, endpoint: &str) -> Result<Self, Error> {
        let name = entry.name;
        let failed = |e: std::io::Error| Error::new(format!("the contestant {name} did not start")).caused_by(e);
        let mut command = command(name, peers).map_err(failed)?;
        let kept = ["PATH", "HOME", "TMPDIR"].into_iter().filter_map(|v| Some((v, std::env::var_os(v)?)));
        let mut child = command
            .env_clear()
            .envs(kept)
            .envs(aws_variables(endpoint))
            .env(TABLE_VARIABLE, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(format!("the contestant {name} has no pipes")));
        };
        let output = BufReader::new(output).lines();
        let mut contestant = Self { name, versions: String::new(), _child: child, input, output };
        match contestant.answer().await? {
            Answer::Ready { ready } => contestant.versions = ready,
            Answer::Done { .. } => return Err(Error::new(format!("the contestant {name} began before it was told"))),
        }
        Ok(contestant)
    }

    /// Has it do one batch.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub(crate) async fn run(&mut self, event: &Value, concurrency: usize) -> Result<Done, Error> {
        let mut task = json!({ "concurrency": concurrency, "event": event }).to_string();
        task.push('\n');
        let sent = timeout(ANSWER_MAX, self.input.write_all(task.as_bytes())).await;
        sent.map_err(|e| self.silent(e))?.map_err(|e| self.silent(e))?;
        match self.answer().await? {
            Answer::Done { wall_ns, cpu_ns, ran, failed } => {
                Ok(Done { wall: Duration::from_nanos(wall_ns), cpu: Duration::from_nanos(cpu_ns), ran, failed })
            }
            Answer::Ready { .. } => Err(Error::new(format!("the contestant {} began twice", self.name))),
        }
    }

    async fn answer(&mut self) -> Result<Answer, Error> {
        loop {
            let line = timeout(ANSWER_MAX, self.output.next_line()).await.map_err(|e| self.silent(e))?;
            let Some(line) = line.map_err(|e| self.silent(e))? else {
                return Err(Error::new(format!("the contestant {} has ended: see its message above", self.name)));
            };
            if let Some(text) = line.strip_prefix(MARK) {
                return serde_json::from_str(text).map_err(|e| self.silent(e));
            }
        }
    }

    fn silent(&self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::new(format!("the contestant {} gave no answer", self.name)).caused_by(cause)
    }
}

fn command(name: &str, peers: &Peers) -> std::io::Result<Command> {
    Ok(match name {
        "powertools-python" => {
            let mut command = Command::new(&peers.python);
            command.arg(&peers.python_source);
            command
        }
        "powertools-typescript" => {
            let mut command = Command::new(&peers.node);
            command.arg(&peers.typescript_source);
            command
        }
        _ => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["contestant", name]);
            command
        }
    })
}

/// What a function's environment has on Lambda, for a store on this machine.
pub(crate) fn aws_variables(endpoint: &str) -> [(&'static str, String); 8] {
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
