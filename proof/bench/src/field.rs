//! The field: who is measured.

use std::time::Duration;

use claimant_core::Error;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::args::Peers;
use crate::contestant::{Answer, TABLE_VARIABLE};
use crate::process::Measured;

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
    /// What it says it is.
    pub(crate) versions: String,
    process: Measured,
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
        command.env(TABLE_VARIABLE, name);
        let mut process = Measured::start(format!("the contestant {name}"), command, endpoint)?;
        match process.answer().await? {
            Answer::Ready { ready } => Ok(Self { versions: ready, process }),
            Answer::Done { .. } => Err(Error::new(format!("the contestant {name} began before it was told"))),
        }
    }

    /// Has it do one batch.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub(crate) async fn run(&mut self, event: &Value, concurrency: usize) -> Result<Done, Error> {
        match self.process.ask(&json!({ "concurrency": concurrency, "event": event })).await? {
            Answer::Done { wall_ns, cpu_ns, ran, failed } => {
                Ok(Done { wall: Duration::from_nanos(wall_ns), cpu: Duration::from_nanos(cpu_ns), ran, failed })
            }
            Answer::Ready { .. } => Err(Error::new("a contestant began twice")),
        }
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
