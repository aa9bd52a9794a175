//! What a message asks of the lock table. `tests/it/cost.rs` holds this to what the engine asks.

use crate::load::{Load, Traffic};
use crate::plan::Guarantee;

/// Statements in one request to the table.
const STATEMENTS_MAX: f64 = 25.0;

/// The share of copies above which the engine looks at records before it claims them. It learns the share from answers: one that is
/// hardly above is found half of the time only.
const USUAL: f64 = 0.5;

/// Bytes of a completed record without a result, its key and the names of its attributes included.
pub const RECORD_BYTES: f64 = 300.0;

/// What DynamoDB adds to each item for its index.
const INDEX_BYTES: f64 = 100.0;

/// Units of the table.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    /// Write units.
    pub writes: f64,
    /// Read units.
    pub reads: f64,
}

impl Units {
    /// Returns what the messages of a second ask, in batches of `fill`.
    pub fn a_second(guarantee: Guarantee, load: &Load, fill: f64) -> Self {
        let Traffic { per_second, duplicates, retries, .. } = load.traffic;
        let (copies, fresh, failed) = (per_second * duplicates, per_second * (1.0 - duplicates), per_second * retries);
        // Without a claim, there is no lease. A claim's record has no result yet.
        let leases = if guarantee == Guarantee::Optimistic { 0.0 } else { fresh + failed };
        let mut all = Self { writes: leases * load.work.renewals(), reads: 0.0 };
        all.add(fresh, fresh_message(guarantee, load));
        all.add(copies, copy(guarantee, load, fill));
        all.add(failed, failed_run(guarantee));
        all
    }

    fn add(&mut self, times: f64, each: Self) {
        self.writes += times * each.writes;
        self.reads += times * each.reads;
    }
}

/// Bytes that a record takes in the table.
pub(crate) fn stored_bytes(load: &Load) -> f64 {
    RECORD_BYTES + INDEX_BYTES + load.work.result_bytes
}

/// Write units of a completed record: one for each begun KB.
fn record_units(load: &Load) -> f64 {
    ((RECORD_BYTES + load.work.result_bytes) / 1_024.0).ceil()
}

/// Whether most messages are copies, so that records are read first. Without a claim, it is the transaction that finds a copy, and no
/// answer to a claim.
fn reads_first(guarantee: Guarantee, load: &Load) -> bool {
    guarantee != Guarantee::Optimistic && load.traffic.duplicates > USUAL
}

fn fresh_message(guarantee: Guarantee, load: &Load) -> Units {
    let (done, own) = (record_units(load), load.work.writes);
    // A transaction costs two units for each one.
    let writes = match guarantee {
        Guarantee::AtLeastOnce | Guarantee::AtMostOnce => 1.0 + done,
        Guarantee::Transactional => 1.0 + 2.0 * (done + own),
        Guarantee::Optimistic => 2.0 * (done + own),
    };
    Units { writes, reads: if reads_first(guarantee, load) { 1.0 } else { 0.0 } }
}

/// A second copy of completed work, delivered for the first time. Its record is read, if most messages are copies; else its claim is
/// refused. In a request with others, DynamoDB does not say why: two or more refused ones are read together, a single one is claimed
/// once more by itself.
fn copy(guarantee: Guarantee, load: &Load, fill: f64) -> Units {
    let done = record_units(load);
    let read = ((RECORD_BYTES + load.work.result_bytes) / 4_096.0).ceil();
    let together = fill.clamp(1.0, STATEMENTS_MAX);
    if reads_first(guarantee, load) {
        return Units { writes: 0.0, reads: read };
    }
    if guarantee == Guarantee::Optimistic {
        // Its transaction is cancelled, and counted as charged as if it had been written.
        return Units { writes: 2.0 * (done + load.work.writes), reads: 0.0 };
    }
    if together <= 1.0 {
        return Units { writes: done, reads: 0.0 };
    }
    let alone = (1.0 - load.traffic.duplicates).powf(together - 1.0);
    Units { writes: 1.0 + alone * done, reads: (1.0 - alone) * read }
}

/// A run that failed: its failure is written, and its message's next delivery claims the key again.
fn failed_run(guarantee: Guarantee) -> Units {
    match guarantee {
        // The next delivery reads what there is.
        Guarantee::Optimistic => Units { writes: 1.0, reads: 1.0 },
        _ => Units { writes: 2.0, reads: 0.0 },
    }
}
