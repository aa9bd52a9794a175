//! Where costs are measured: one store, and workers on it, each a process of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use claimant_bench::process::Measured;
use claimant_bench::store::{Counts, Store};
use claimant_bench::workload::record;
use claimant_core::Error;
use claimant_local::dynamodb::{DynamoDb, Item};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::worker::{Bare, Done, PREFIX, TABLE};

/// Invocations of a worker before it is measured: they open its connections, and it learns how long handlers take.
const WARM_UPS: usize = 3;

/// The store, in this process, and the program that its workers run.
pub(crate) struct Lab {
    program: PathBuf,
    database: DynamoDb,
    store: Store,
    /// A record of finished work, as claimant wrote it.
    like: OnceLock<Item>,
}

/// One delivery of a message.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) key: String,
    pub(crate) id: String,
    /// Its group, of a FIFO queue.
    pub(crate) group: Option<String>,
    pub(crate) receives: u32,
}

/// A process that is measured.
pub(crate) struct Worker(Measured);

/// What invocations took, all together.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(crate) messages: usize,
    /// How often each key's handler ran.
    pub(crate) runs: BTreeMap<String, u32>,
    /// Messages that were reported failed: their keys were busy in another process.
    pub(crate) busy: usize,
    pub(crate) allocations: u64,
    pub(crate) cpu: Duration,
    /// Of each invocation, for each of its messages.
    pub(crate) times: Vec<Duration>,
    pub(crate) peak_kb: u64,
}

impl Lab {
    pub(crate) async fn start(program: PathBuf) -> Result<Self, Error> {
        let failed = |e| Error::new("the store did not start").caused_by(e);
        let database = DynamoDb::in_memory().map_err(failed)?;
        let store = Store::of(database.clone(), &[TABLE]).await?;
        Ok(Self { program, database, store, like: OnceLock::new() })
    }

    pub(crate) fn counts(&self) -> Counts {
        self.store.counts()
    }

    /// A new worker, warmed up with batches of this size; `name` tells its keys from those of others.
    pub(crate) async fn worker(&self, name: &str, size: usize) -> Result<Worker, Error> {
        let mut command = Command::new(&self.program);
        command.arg("worker");
        let mut worker = Worker(Measured::start(format!("the worker {name}"), command, &self.store.endpoint())?);
        for round in 0..WARM_UPS {
            worker.deliver(&fresh(&format!("{name}-warm-{round}"), size)).await?;
        }
        Ok(worker)
    }

    /// Makes records of finished work for the keys with these numbers, all like the one of a key that claimant has completed here.
    pub(crate) fn fill(&self, numbers: std::ops::Range<u64>) -> Result<(), Error> {
        let failed = |e| Error::new("the store could not be filled").caused_by(e);
        if self.like.get().is_none() {
            let mut like = None;
            let mut take = |items: Vec<Item>| {
                let mut completed = items.into_iter().filter(|item| item.text("status") == Some("COMPLETED"));
                like = like.take().or_else(|| completed.next());
                Ok(())
            };
            self.database.pages(TABLE, &mut take).map_err(failed)?;
            let like = like.ok_or_else(|| Error::new("the store has no completed record to be copied"))?;
            self.like.get_or_init(|| like);
        }
        let Some(like) = self.like.get() else { return Ok(()) };
        let ids = numbers.map(|number| format!("{PREFIX}{}", filled(number)));
        self.database.copy_items(TABLE, like, "id", ids).map_err(failed)
    }
}

/// The key of the record with this number.
pub(crate) fn filled(number: u64) -> String {
    format!("filled-{number:010}")
}

impl Message {
    /// The first delivery of this key; `copy` tells it from other messages with the same key.
    pub(crate) fn new(key: String, copy: &str) -> Self {
        Self { id: format!("{key}/{copy}"), key, group: None, receives: 1 }
    }
}

/// Messages of new keys; `name` tells them from others.
pub(crate) fn fresh(name: &str, size: usize) -> Vec<Message> {
    (0..size).map(|n| Message::new(format!("{name}-{n:06}"), "1")).collect()
}

fn event(messages: &[Message]) -> Value {
    let record = |message: &Message| {
        let mut record = record(&message.key, &message.id, &"AQEB".repeat(90), message.receives);
        if let Some(group) = &message.group {
            record["eventSourceARN"] = json!("arn:aws:sqs:us-east-1:000000000000:orders.fifo");
            record["attributes"]["MessageGroupId"] = json!(group);
        }
        record
    };
    json!({ "Records": messages.iter().map(record).collect::<Vec<_>>() })
}

impl Worker {
    /// One invocation with these messages.
    pub(crate) async fn deliver(&mut self, messages: &[Message]) -> Result<Done, Error> {
        self.0.ask(&json!({ "event": event(messages) })).await
    }

    /// What the store takes for requests for the records of these keys, without claimant.
    pub(crate) async fn probe(&mut self, keys: impl Iterator<Item = String>) -> Result<Bare, Error> {
        let ids: Vec<_> = keys.map(|key| format!("{PREFIX}{key}")).collect();
        self.0.ask(&json!({ "probe": ids })).await
    }
}

impl Sum {
    /// Adds an invocation with so many messages: 0 where all of them came back, and have been counted.
    pub(crate) fn add(&mut self, messages: usize, done: Done) {
        self.messages += messages;
        self.busy += done.failed.len();
        self.allocations += done.allocations;
        self.cpu += Duration::from_nanos(done.cpu_ns);
        if let Some(each) = done.wall_ns.checked_div(messages as u64) {
            self.times.push(Duration::from_nanos(each));
        }
        self.peak_kb = self.peak_kb.max(done.peak_kb);
        done.ran.into_iter().for_each(|key| *self.runs.entry(key).or_default() += 1);
    }

    /// Adds what another process did.
    pub(crate) fn merge(&mut self, other: Self) {
        self.messages += other.messages;
        self.busy += other.busy;
        self.allocations += other.allocations;
        self.cpu += other.cpu;
        self.times.extend(other.times);
        self.peak_kb = self.peak_kb.max(other.peak_kb);
        other.runs.into_iter().for_each(|(key, runs)| *self.runs.entry(key).or_default() += runs);
    }

    /// Whether the handlers of so many keys ran, each once.
    ///
    /// # Errors
    /// When one ran twice, or not at all.
    pub(crate) fn check(&self, what: &str, keys: usize) -> Result<(), Error> {
        let twice = self.runs.values().filter(|runs| **runs > 1).count();
        match (self.runs.len(), twice) {
            (ran, 0) if ran == keys => Ok(()),
            (ran, twice) => Err(Error::new(format!("{what}: of {keys} keys, {ran} ran, and {twice} more than once"))),
        }
    }
}
