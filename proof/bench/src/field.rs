//! The field: who is measured.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use claimant_core::Error;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::args::Peers;
use crate::contestant::{Answer, KEY_VARIABLE, REMAINING_MS, TABLE_VARIABLE, TOLD_VARIABLE, TWO_FIELDS};
use crate::process::Measured;

/// How many messages of a batch a contestant works on at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knob {
    /// As many as it is told.
    Set,
    /// So many, whatever it is told.
    Fixed(usize),
    /// All of the batch.
    All,
}

/// A contestant.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its name, and its table's.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Whether it is one of this repository's own, which is never missing.
    pub(crate) ours: bool,
    /// How its speed is measured, or why it is not.
    pub(crate) speed: Result<Knob, &'static str>,
    /// Why what becomes of its messages is not looked at, if it is not.
    pub(crate) not_played: Option<&'static str>,
}

const fn ours(name: &'static str, title: &'static str, knob: Knob) -> Entry {
    Entry { name, title, ours: true, speed: Ok(knob), not_played: None }
}

const fn peer(name: &'static str, title: &'static str, knob: Knob) -> Entry {
    Entry { ours: false, ..ours(name, title, knob) }
}

/// All contestants; claimant is the first.
pub(crate) const FIELD: [Entry; 8] = [
    ours("claimant", "claimant", Knob::Set),
    ours("hand-serial", "loop by hand", Knob::Fixed(1)),
    ours("hand-join", "bounded join by hand", Knob::Set),
    peer("powertools-python", "Powertools (Python)", Knob::Fixed(1)),
    peer("powertools-typescript", "Powertools (TypeScript)", Knob::All),
    Entry {
        not_played: Some("a version of 2023; what goes wrong with it was fixed since, in part"),
        ..peer("powertools-java", "Powertools (Java 1.15)", Knob::Fixed(1))
    },
    peer("sqs-consumer", "sqs-consumer, own store", Knob::Fixed(10)),
    Entry {
        speed: Err("it does not deduplicate, so its speed says nothing"),
        ..peer("lambda-sqs", "lambda_sqs", Knob::Fixed(1))
    },
];

/// The place of claimant in [`FIELD`].
pub(crate) const CLAIMANT: usize = 0;

/// The place of a contestant in [`FIELD`].
pub(crate) fn place(name: &str) -> usize {
    // OK because the names are constants of this crate, and a test looks up each.
    FIELD.iter().position(|entry| entry.name == name).unwrap_or(CLAIMANT)
}

/// What came of one batch.
#[derive(Debug, Clone)]
pub(crate) struct Done {
    pub(crate) wall: Duration,
    pub(crate) cpu: Duration,
    pub(crate) ran: usize,
    /// The ids of the messages that were reported failed.
    pub(crate) failed: Vec<String>,
}

/// What a worker is told from outside.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    /// Where its handlers are told how to end.
    pub(crate) directory: &'a Path,
    /// Whether the key is made of two fields, the order's id and its line, and not of the first alone.
    pub(crate) two_fields: bool,
}

/// What a contestant says of a batch.
#[derive(Debug)]
pub(crate) enum Step {
    /// The handler of the message with this name runs, and waits until it is told how to end.
    Began(String),
    Done(Done),
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
    pub(crate) async fn start(
        entry: &'static Entry,
        peers: &Peers,
        endpoint: &str,
        told: Option<&Told<'_>>,
    ) -> Result<Self, Error> {
        let name = entry.name;
        let failed = |e: std::io::Error| Error::new(format!("the contestant {name} did not start")).caused_by(e);
        let mut command = command(name, peers).map_err(failed)?;
        command
            .env(TABLE_VARIABLE, name)
            .envs(told.map(|told| (TOLD_VARIABLE, told.directory)))
            .envs(told.filter(|told| told.two_fields).map(|_| (KEY_VARIABLE, TWO_FIELDS)))
            // Where things go wrong on purpose, what it logs of them is of no use.
            .stderr(if told.is_some() { Stdio::null() } else { Stdio::inherit() });
        let mut process = Measured::start(format!("the contestant {name}"), command, endpoint)?;
        match process.answer().await? {
            Answer::Ready { ready } => Ok(Self { versions: ready, process }),
            Answer::Began { .. } | Answer::Done { .. } => {
                Err(Error::new(format!("the contestant {name} began before it was told")))
            }
        }
    }

    /// Has it do one batch.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub(crate) async fn run(&mut self, event: &Value, concurrency: usize) -> Result<Done, Error> {
        self.hand_over(event, concurrency, REMAINING_MS).await?;
        loop {
            if let Step::Done(done) = self.step().await? {
                return Ok(done);
            }
        }
    }

    /// Hands it a batch, with so much left of the invocation.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) async fn hand_over(
        &mut self,
        event: &Value,
        concurrency: usize,
        remaining_ms: u64,
    ) -> Result<(), Error> {
        let task = json!({ "concurrency": concurrency, "remaining_ms": remaining_ms, "event": event });
        self.process.tell(&task).await
    }

    /// What it says next of the batch that it has.
    ///
    /// # Errors
    /// When it ends, or does not answer in time.
    pub(crate) async fn step(&mut self) -> Result<Step, Error> {
        match self.process.answer().await? {
            Answer::Began { began } => Ok(Step::Began(began)),
            Answer::Done { wall_ns, cpu_ns, ran, failed } => {
                let (wall, cpu) = (Duration::from_nanos(wall_ns), Duration::from_nanos(cpu_ns));
                Ok(Step::Done(Done { wall, cpu, ran, failed }))
            }
            Answer::Ready { .. } => Err(Error::new("a contestant began twice")),
        }
    }

    /// Kills it, as it stands.
    ///
    /// # Errors
    /// When the system does not.
    pub(crate) async fn kill(self) -> Result<(), Error> {
        self.process.kill().await
    }
}

/// How a contestant is started: what `scripts/tools bench` and `scripts/bench` have put in place.
fn command(name: &str, peers: &Peers) -> std::io::Result<Command> {
    let at = |path: &str| peers.peers.join(path);
    let with = |program: &Path, arguments: &[std::path::PathBuf]| {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    };
    Ok(match name {
        "powertools-python" => with(&at("venv/bin/python"), &[at("contestant.py")]),
        "powertools-typescript" => with(&peers.node, &[at("node/powertools.mjs")]),
        "sqs-consumer" => with(&peers.node, &[at("node/sqs-consumer.mjs")]),
        "powertools-java" => {
            let mut command = Command::new(&peers.java);
            // As Lambda's java17 runtime starts it.
            command.args(["-XX:+TieredCompilation", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"]);
            command.arg("-cp").arg(format!("{}:{}/*", at("java/classes").display(), at("java/lib").display()));
            command.arg("Contestant");
            command
        }
        "lambda-sqs" => with(&peers.rust_peers.join("lambda-sqs"), &[]),
        _ => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["contestant", name]);
            command
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_place() {
        for (index, entry) in FIELD.iter().enumerate() {
            assert_eq!(place(entry.name), index, "{}", entry.name);
        }
    }
}
