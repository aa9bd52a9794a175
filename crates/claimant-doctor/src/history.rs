//! What the last day's metrics say.

use std::collections::BTreeMap;

/// What the last day's metrics say, by the ids of queues, functions, mappings and tables.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Of each queue.
    pub queues: BTreeMap<String, QueueHistory>,
    /// Of each function.
    pub functions: BTreeMap<String, FunctionHistory>,
    /// Of each mapping: events that it deleted, less those that its filters dropped; none where its metrics are off.
    pub deleted: BTreeMap<String, u64>,
    /// Of each table.
    pub tables: BTreeMap<String, TableHistory>,
    /// Whether a request for metrics was refused: what is not here is not known then.
    pub is_refused: bool,
}

/// A queue's last day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct QueueHistory {
    /// Messages in flight at most.
    pub in_flight_max: f64,
    /// Messages sent in the busiest minute.
    pub sent_per_minute_max: f64,
    /// Age of the oldest message at most, in seconds.
    pub oldest_s_max: f64,
    /// FIFO: groups with messages in flight at most.
    pub groups_max: f64,
}

/// A function's last day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FunctionHistory {
    /// Invocations that were refused for want of concurrency.
    pub throttles: f64,
    /// The longest invocation, in milliseconds.
    pub duration_ms_max: f64,
    /// Invocations that were stopped as part of a loop.
    pub loops_stopped: f64,
    /// Executions at once at most.
    pub concurrent_max: f64,
    /// Messages that claimant reported as done; none if it reports nothing.
    pub done: Option<f64>,
}

/// A table's last day.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TableHistory {
    /// Requests that were throttled.
    pub throttled: f64,
    /// Write units of the busiest minute.
    pub write_units_per_minute_max: f64,
}
