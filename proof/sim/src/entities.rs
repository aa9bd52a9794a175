//! What a history is about: invocations, runs, requests, processes.

use std::collections::{HashMap, HashSet};

use crate::history::{Call, Delivered, End, InvocationNo, Record, RunNo};
use crate::scenario::{Fate, Scenario, Work};

/// One invocation.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// Its process.
    pub process_run: u32,
    /// What it was given.
    pub batch: Vec<Delivered>,
    /// When it began.
    pub began: u64,
    /// When Lambda gives up on it.
    pub ends: u64,
    /// The first run of each message that it ran.
    pub runs: HashMap<String, RunNo>,
    /// When it returned, and the failures that it reported, unless it was an error.
    pub returned: Option<(u64, Option<Failures>)>,
    /// Whether Lambda gave up on it.
    pub timed_out: bool,
    /// Whether the response was lost.
    pub report_lost: bool,
    /// Requests to store or queue that did not go as they should.
    pub disturbed: usize,
}

impl Invocation {
    /// Whether it ran this message.
    #[must_use]
    pub fn ran(&self, id: &str) -> bool {
        self.runs.contains_key(id)
    }
}

/// The failures that an invocation reported: a batch of ten thousand can have as many, and each is asked for.
#[derive(Debug, Clone, Default)]
pub struct Failures {
    /// Their ids, as they were reported.
    pub listed: Vec<String>,
    ids: HashSet<String>,
}

impl Failures {
    /// These failures.
    #[must_use]
    pub fn new(listed: &[String]) -> Self {
        Self { listed: listed.to_vec(), ids: listed.iter().cloned().collect() }
    }

    /// Whether this message is one of them.
    #[must_use]
    pub fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Whether one is listed twice.
    #[must_use]
    pub fn repeat(&self) -> bool {
        self.ids.len() < self.listed.len()
    }
}

/// One run of the handler.
#[derive(Debug, Clone)]
pub struct Run {
    /// Under which invocation.
    pub invocation: InvocationNo,
    /// In which process.
    pub process_run: u32,
    /// For which work.
    pub key: usize,
    /// Which message.
    pub message_id: String,
    /// Its claim.
    pub fence: u64,
    /// What it does.
    pub work: Work,
    /// Which attempt at its work it is, as it was told.
    pub attempt: u32,
    /// When it began.
    pub start: u64,
    /// When and how it ended.
    pub end: Option<(u64, End)>,
    /// When it had its effect: more than once where a transaction of its own was carried out again, long after the first.
    pub effects: Vec<u64>,
}

impl Run {
    /// The record of its work.
    #[must_use]
    pub fn record(&self, scenario: &Scenario) -> String {
        scenario.record_of(self.key, &self.message_id)
    }

    /// Until when it ran.
    #[must_use]
    pub fn over(&self) -> u64 {
        self.end.map_or(u64::MAX, |(at, _)| at)
    }
}

/// One request to the store.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who asked.
    pub invocation: Option<InvocationNo>,
    /// When.
    pub asked: u64,
    /// The operation.
    pub operation: String,
    /// What for.
    pub calls: Vec<Call>,
    /// What was planned for it.
    pub fate: Option<Fate>,
    /// Whether an operator asked, and no function.
    pub of_operator: bool,
    /// When it arrived, and whether its sender had given up by then.
    pub arrived: Option<(u64, bool)>,
    /// When it was answered, and whether all was done.
    pub answered: Option<(u64, bool)>,
    /// What it changed.
    pub changed: Vec<(String, Option<Record>, Option<Record>)>,
    /// Which calls were refused, and what was seen.
    pub refused: Vec<(usize, Option<Record>)>,
}

/// One process.
#[derive(Debug, Clone, Default)]
pub struct ProcessRun {
    /// Which of the processes it is one of, whose clock it has.
    pub process: usize,
    /// When and why it ended.
    pub died: Option<(u64, &'static str)>,
    /// From when to when it was stopped.
    pub frozen: Vec<(u64, u64)>,
    /// From when to when a handler blocked its thread.
    pub blocked: Vec<(u64, u64)>,
}
