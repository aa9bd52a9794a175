//! How often each fault of the design's list occurred: a simulation that never met it shows nothing about it.

mod breakers;
mod delays;
mod handlers;
mod invocations;
mod limits;
mod neighbours;
mod occurrence;
mod operators;
mod requests;

use std::collections::BTreeMap;
use std::fmt;

pub use occurrence::Occurrence;

use crate::history::History;
use crate::scenario::Scenario;
use crate::timeline::Timeline;

/// How often each occurred, and how much was simulated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// What went wrong.
    pub faults: BTreeMap<Occurrence, u64>,
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

    fn add(&mut self, fault: Occurrence, times: usize) {
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
    pub fn missing(&self) -> Vec<Occurrence> {
        Occurrence::ALL.iter().copied().filter(|fault| self.times(*fault) == 0).collect()
    }

    fn times(&self, fault: Occurrence) -> u64 {
        self.faults.get(&fault).copied().unwrap_or_default()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| # | fault | occurred |")?;
        writeln!(f, "| --- | --- | --- |")?;
        for fault in Occurrence::ALL {
            writeln!(f, "| {} | {} | {} |", fault.number(), fault.text(), self.times(*fault))?;
        }
        let Self { scenarios, deliveries, invocations, requests, kills, .. } = self;
        write!(
            f,
            "\n{scenarios} scenarios: {deliveries} messages delivered in {invocations} invocations, {requests} requests to the \
             store, {kills} processes ended."
        )
    }
}
