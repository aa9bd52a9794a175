//! How often each fault of the design's list occurred: a simulation that never met it shows nothing about it.

mod breakers;
mod delays;
mod handlers;
mod invocations;
mod limits;
mod neighbours;
mod operators;
mod requests;

use std::collections::BTreeMap;
use std::fmt;

use crate::history::History;
use crate::scenario::Scenario;
use crate::timeline::Timeline;

/// The fault scenarios, by their numbers.
pub const FAULTS: [&str; 71] = [
    "killed before the claim",
    "killed after the claim applied, before the answer",
    "killed inside the handler",
    "killed after the effect, before complete",
    "killed after complete, before returning",
    "returned, but the deletion fails",
    "claim applied, answer lost, tried again",
    "complete applied, answer lost",
    "completion unresolved until the end",
    "delayed claim lands after its sender gave up",
    "delayed old renewal lands late",
    "delayed renewal lands after settle",
    "lease ends mid-handler, B claims, A completes",
    "stale release after takeover",
    "TTL deletes the record, the stale owner returns",
    "expired record not yet deleted",
    "clock jumps, or is far off",
    "frozen after returning, thawed later",
    "one key twice in a batch",
    "several invocations in one process",
    "duplicate while in progress elsewhere",
    "busy retries near maxReceiveCount",
    "FIFO: a message of a group fails before others",
    "bad body",
    "a record without messageId",
    "some of several claims throttled",
    "handler panics",
    "handler never returns: pending, or blocking",
    "SIGTERM",
    "10,000 messages, all failing",
    "result larger than is kept",
    "store unreachable for the whole invocation",
    "visibility runs out while the handler runs",
    "mapping without ReportBatchItemFailures",
    "dead-lettering fails",
    "a handler aborts its process, with others in its batch",
    "a handler blocks its thread for good, and others come after it",
    "the store is away for more than 10 s after an effect, and is asked again",
    "no key rule: a message is redriven under a new id",
    "another fingerprint rule between a message and its retry or copy",
    "invocations of one process have more to do than it may do at once",
    "no time for a message, and it comes back near maxReceiveCount",
    "a busy key is free while its message waits for it",
    "a busy key is still busy when the wait for it is over",
    "a payload cannot be fetched",
    "some items of a call fail",
    "a call of several items panics, never returns or loses its process",
    "a message for several consumers fails",
    "a kind that no route takes is rejected",
    "a kind that no route takes is ignored",
    "an operator acts on abandoned, parked or rejected work",
    "a record changes between an operator's read and write",
    "an operator dies between reading and writing",
    "an operator wants a key that is busy or completed",
    "a key runs again after an operator acted on it",
    "a breaker opens",
    "a breaker is closed again",
    "a process dies that has opened a breaker, or probes it",
    "a schedule sends a message again",
    "a schedule is made, and its message is not deleted",
    "a message is to be scheduled that has a schedule",
    "a message waits as long as its queue can hide it, and not as long as it should",
    "the intake is paused",
    "a process dies or is stopped between two steps of a pause",
    "a paused intake is resumed before its time",
    "a slot of a limit is refused, since another process has it",
    "a slot of a limit is taken over from a process that let it go, or died",
    "killed while the ending of done work waits for others",
    "a key is looked at before it is claimed, and is done",
    "a dead letter is moved back while faults go on",
    "some of several records are not read, for want of capacity",
];

/// How often each occurred, and how much was simulated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// By the number of the fault.
    pub faults: BTreeMap<usize, u64>,
    /// Scenarios.
    pub scenarios: u64,
    /// Messages delivered, each time counted.
    pub deliveries: u64,
    /// Invocations.
    pub invocations: u64,
    /// Requests to the store.
    pub requests: u64,
    /// Processes that ended.
    pub kills: u64,
}

impl Coverage {
    /// What occurred in this history.
    #[must_use]
    pub fn of(scenario: &Scenario, history: &History) -> Self {
        let timeline = Timeline::of(scenario, history);
        let mut coverage = Self { scenarios: 1, ..Self::default() };
        coverage.invocations = timeline.invocations.len() as u64;
        coverage.deliveries = timeline.invocations.values().map(|invocation| invocation.batch.len() as u64).sum();
        coverage.requests = timeline.requests.len() as u64;
        coverage.kills = timeline.process_runs.values().filter(|process_run| process_run.died.is_some()).count() as u64;
        invocations::count(&timeline, &mut coverage);
        requests::count(&timeline, &mut coverage);
        neighbours::count(&timeline, &mut coverage);
        handlers::count(&timeline, &mut coverage);
        operators::count(&timeline, &mut coverage);
        breakers::count(&timeline, &mut coverage);
        delays::count(&timeline, &mut coverage);
        limits::count(&timeline, &mut coverage);
        coverage
    }

    fn add(&mut self, fault: usize, times: usize) {
        *self.faults.entry(fault).or_default() += times as u64;
    }

    /// Both together.
    pub fn extend(&mut self, other: &Self) {
        for (fault, times) in &other.faults {
            *self.faults.entry(*fault).or_default() += times;
        }
        self.scenarios += other.scenarios;
        self.deliveries += other.deliveries;
        self.invocations += other.invocations;
        self.requests += other.requests;
        self.kills += other.kills;
    }

    /// The faults that did not occur.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        (1..=FAULTS.len()).filter(|fault| self.faults.get(fault).copied().unwrap_or_default() == 0).collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| # | fault | occurred |")?;
        writeln!(f, "| --- | --- | --- |")?;
        for (place, name) in FAULTS.iter().enumerate() {
            let times = self.faults.get(&(place + 1)).copied().unwrap_or_default();
            writeln!(f, "| {} | {name} | {times} |", place + 1)?;
        }
        let Self { scenarios, deliveries, invocations, requests, kills, .. } = self;
        write!(
            f,
            "\n{scenarios} scenarios: {deliveries} messages delivered in {invocations} invocations, {requests} requests to the \
             store, {kills} processes ended."
        )
    }
}
