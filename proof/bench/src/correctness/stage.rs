//! A contestant's workers, the messages they get, and what their handlers are told.

use std::path::PathBuf;
use std::time::Duration;

use claimant_core::Error;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::args::Peers;
use crate::contestant::{COMPLETE, REMAINING_MS};
use crate::field::{Contestant, Done, Entry, Step, Told};
use crate::workload::message;

/// Which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    A,
    B,
    C,
    /// Its key is made of two fields.
    D,
}

/// What is left of an invocation whose lease has to end: the lease is about as long.
pub(super) const SHORT_MS: u64 = 3_000;
/// A message that is never taken over is not asked for longer than this.
const TAKEOVER_MAX: Duration = Duration::from_secs(30);
/// How long after one delivery the next one comes.
const REDELIVERY: Duration = Duration::from_millis(200);
/// How many messages a worker works on at once.
const CONCURRENCY: usize = 10;

/// What came of one message, delivered once to a worker whose handler completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Its handler ran.
    Ran,
    /// Its handler did not run, and it is reported failed: it comes back.
    Back,
    /// Its handler did not run, and it is acknowledged.
    Gone,
}

/// A message. Its name is in its body's field `told`.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) body: String,
    pub(super) receive_count: u32,
}

impl Message {
    /// The same message, delivered once more.
    pub(super) fn again(&self) -> Self {
        Self { receive_count: self.receive_count + 1, ..self.clone() }
    }
}

struct Worker {
    contestant: Contestant,
    directory: PathBuf,
}

/// The workers of one contestant.
pub(super) struct Stage<'a> {
    entry: &'static Entry,
    peers: &'a Peers,
    endpoint: &'a str,
    directory: TempDir,
    workers: Vec<Worker>,
    /// Numbers messages and workers.
    count: u32,
}

impl<'a> Stage<'a> {
    pub(super) async fn new(entry: &'static Entry, peers: &'a Peers, endpoint: &'a str) -> Result<Self, Error> {
        let directory = TempDir::new().map_err(failed)?;
        let mut stage = Self { entry, peers, endpoint, directory, workers: Vec::new(), count: 0 };
        for who in [Who::A, Who::B, Who::C, Who::D] {
            let worker = stage.worker(who).await?;
            stage.workers.push(worker);
        }
        Ok(stage)
    }

    async fn worker(&mut self, who: Who) -> Result<Worker, Error> {
        self.count += 1;
        let directory = self.directory.path().join(format!("worker-{}", self.count));
        std::fs::create_dir(&directory).map_err(failed)?;
        let told = Told { directory: &directory, two_fields: who == Who::D };
        let contestant = Contestant::start(self.entry, self.peers, self.endpoint, Some(&told)).await?;
        Ok(Worker { contestant, directory })
    }

    /// A message with this order, never delivered before. Copies of an order are the same but for their ids.
    pub(super) fn order(&mut self, order: &str, note: &str) -> Message {
        self.message(order, json!({ "order_id": order, "line": 1, "note": note, "told": order }).to_string())
    }

    /// A message with this body.
    pub(super) fn message(&mut self, name: &str, body: String) -> Message {
        self.count += 1;
        let id = format!("00000000-0000-4000-8000-{:012}", self.count);
        Message { name: name.to_owned(), id, body, receive_count: 1 }
    }

    /// Tells a worker how the handler of this message ends.
    pub(super) fn tell(&self, who: Who, message: &Message, how: &str) -> Result<(), Error> {
        std::fs::write(self.workers[who as usize].directory.join(&message.name), how).map_err(failed)
    }

    /// Kills a worker, and starts another in its stead.
    pub(super) async fn kill(&mut self, who: Who) -> Result<(), Error> {
        let fresh = self.worker(who).await?;
        std::mem::replace(&mut self.workers[who as usize], fresh).contestant.kill().await
    }

    /// Hands a batch to a worker, with so much left of its invocation.
    pub(super) async fn hand_over(&mut self, who: Who, batch: &[&Message], remaining_ms: u64) -> Result<(), Error> {
        self.count += 1;
        let receipt = format!("receipt-{}", self.count);
        let records: Vec<Value> =
            batch.iter().map(|m| message(&m.id, &format!("{receipt}-{}", m.id), &m.body, m.receive_count)).collect();
        let event = json!({ "Records": records });
        self.workers[who as usize].contestant.hand_over(&event, CONCURRENCY, remaining_ms).await
    }

    /// What a worker says next.
    pub(super) async fn step(&mut self, who: Who) -> Result<Step, Error> {
        self.workers[who as usize].contestant.step().await
    }

    /// Waits until a worker's batch is done. Which handlers have begun in the meantime comes with it.
    pub(super) async fn end(&mut self, who: Who) -> Result<(Vec<String>, Done), Error> {
        let mut began = Vec::new();
        loop {
            match self.step(who).await? {
                Step::Began(name) => began.push(name),
                Step::Done(done) => return Ok((began, done)),
            }
        }
    }

    /// Has a worker begin with a message, and stay at it.
    pub(super) async fn begin(&mut self, who: Who, message: &Message, remaining_ms: u64) -> Result<(), Error> {
        self.hand_over(who, &[message], remaining_ms).await?;
        match self.step(who).await? {
            Step::Began(_) => Ok(()),
            Step::Done(done) => Err(Error::new(format!("{} did not begin with a message: {done:?}", self.entry.title))),
        }
    }

    /// Delivers a batch to a worker whose handlers all complete.
    pub(super) async fn deliver(&mut self, who: Who, batch: &[&Message]) -> Result<(Vec<String>, Done), Error> {
        for message in batch {
            self.tell(who, message, COMPLETE)?;
        }
        self.hand_over(who, batch, REMAINING_MS).await?;
        self.end(who).await
    }

    /// Has a worker do the work of a message.
    pub(super) async fn complete(&mut self, who: Who, message: &Message) -> Result<(), Error> {
        let (_, done) = self.deliver(who, &[message]).await?;
        if done.ran != 1 || !done.failed.is_empty() {
            return Err(Error::new(format!("{} did not do the work of a message: {done:?}", self.entry.title)));
        }
        Ok(())
    }

    /// Delivers one message to a worker whose handler completes.
    pub(super) async fn fate(&mut self, who: Who, message: &Message) -> Result<Fate, Error> {
        let (_, done) = self.deliver(who, &[message]).await?;
        Ok(match (done.ran, done.failed.is_empty()) {
            (0, true) => Fate::Gone,
            (0, false) => Fate::Back,
            _ => Fate::Ran,
        })
    }

    /// Delivers a message again and again to a worker whose handler completes, as long as it comes back.
    pub(super) async fn fate_at_last(&mut self, who: Who, message: &Message) -> Result<Fate, Error> {
        let since = Instant::now();
        loop {
            let fate = self.fate(who, message).await?;
            if fate != Fate::Back || since.elapsed() > TAKEOVER_MAX {
                return Ok(fate);
            }
            sleep(REDELIVERY).await;
        }
    }

    /// Delivers a message again and again to a worker, until its handler begins and stays at it. `false` if it never does.
    pub(super) async fn take_over(&mut self, who: Who, message: &Message) -> Result<bool, Error> {
        let since = Instant::now();
        loop {
            self.hand_over(who, &[message], REMAINING_MS).await?;
            match self.step(who).await? {
                Step::Began(_) => return Ok(true),
                Step::Done(done) if done.failed.is_empty() || since.elapsed() > TAKEOVER_MAX => return Ok(false),
                Step::Done(_) => sleep(REDELIVERY).await,
            }
        }
    }
}

fn failed(cause: std::io::Error) -> Error {
    Error::new("the workers of a contestant cannot be told what to do").caused_by(cause)
}
