//! The load, the function and the tables of a run.

use std::time::Duration;

use claimant_outage::queue::Limits;

use crate::capacity::Rules;

/// A table on demand as it is when the load begins.
#[derive(Debug, Clone)]
pub struct TableSpec {
    /// Write units in a second that it takes from the beginning.
    pub units: u64,
    /// Partitions that it has.
    pub partitions: u32,
}

impl TableSpec {
    /// Returns a table on demand for so many write units: a partition for each thousand.
    #[must_use]
    pub fn on_demand(units: u64) -> Self {
        // OK because no table has four billion partitions.
        Self { units, partitions: units.div_ceil(Case::PARTITION_UNITS) as u32 }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is called in the table.
    pub name: &'static str,
    /// Messages that are sent in a second.
    pub sent_per_s: u64,
    /// For so long they are sent.
    pub sent_for: Duration,
    /// How many of a hundred messages have the same key.
    pub hot_percent: u32,
    /// The tables.
    pub tables: Vec<TableSpec>,
    /// What holds for them.
    pub rules: Rules,
    /// `MaximumConcurrency` of the event source mapping: invocations at once, each in a process of its own.
    pub invocations: usize,
    /// The mapping's batch size; beyond ten with as much concurrency, and a window of a second.
    pub batch: usize,
    /// Messages that all processes together may start in a second.
    pub limit_per_s: Option<u32>,
    /// By what all rates are divided.
    pub divided_by: u64,
}

impl Case {
    /// Write units that a partition takes in a second.
    pub const PARTITION_UNITS: u64 = 1_000;
    /// Write units that a new table on demand takes in a second.
    pub const NEW_TABLE_UNITS: u64 = 4_000;
    /// The key that many messages have.
    pub const HOT: u32 = 1_000_000_000;
    /// The function's timeout.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// What the function keeps of it for itself.
    pub const MARGIN: Duration = Duration::from_millis(800);
    /// How long a handler takes.
    pub const HANDLER: Duration = Duration::from_millis(20);
    /// How long a request takes, one way, in milliseconds.
    pub const WAY_MS: (u64, u64) = (1, 4);

    /// Returns a case on a new table: 20,000 messages a second for two minutes, in batches of ten.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            sent_per_s: 20_000,
            sent_for: Duration::from_secs(120),
            hot_percent: 0,
            tables: vec![TableSpec::on_demand(Self::NEW_TABLE_UNITS)],
            rules: Rules {
                partition_writes: Self::PARTITION_UNITS,
                partition_reads: 3 * Self::PARTITION_UNITS,
                quota: 200_000,
                grows_after_min: 10,
                partition_holds_s: 1,
            },
            invocations: 1_000,
            batch: 10,
            limit_per_s: None,
            divided_by: 1,
        }
    }

    /// Returns it with these tables.
    #[must_use]
    pub fn tables(self, tables: &[TableSpec]) -> Self {
        Self { tables: tables.to_vec(), ..self }
    }

    /// Returns it with all rates divided: what is sent, what partitions and tables take, invocations at once.
    #[must_use]
    pub fn divided(mut self, by: u64) -> Self {
        self.sent_per_s /= by;
        self.limit_per_s = self.limit_per_s.map(|limit| limit / by as u32);
        self.tables.iter_mut().for_each(|table| table.units /= by);
        self.rules.partition_writes /= by;
        self.rules.partition_reads /= by;
        self.rules.quota /= by;
        self.invocations = (self.invocations / by as usize).max(1);
        self.divided_by *= by;
        self
    }

    /// Returns the queue's settings, as the template has them: hidden for six times the timeout, five receives.
    #[must_use]
    pub fn queue(&self) -> Limits {
        let in_flight = 120_000 / self.divided_by as usize;
        Limits { batch: self.batch, visibility: Self::TIMEOUT * 6, receives: 5, in_flight }
    }

    /// Returns for how long the mapping waits until a batch is full.
    #[must_use]
    pub fn window(&self) -> Duration {
        if self.batch > 10 { Duration::from_secs(1) } else { Duration::from_millis(100) }
    }

    /// Returns whether a message has the key that many have.
    #[must_use]
    pub fn is_hot(&self, message: u32) -> bool {
        // Spread over all batches.
        (message.wrapping_mul(2_654_435_769) >> 16) % 100 < self.hot_percent
    }

    /// Returns the key of a message.
    #[must_use]
    pub fn key(&self, message: u32) -> u32 {
        if self.is_hot(message) { Self::HOT } else { message }
    }
}
