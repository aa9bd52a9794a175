//! What a message asks of the lock table. `tests/it/cost.rs` holds this to what the engine asks.

use crate::load::{Load, Traffic};
use crate::plan::Guarantee;

/// Statements in one request to the table.
const STATEMENTS_MAX: f64 = 25.0;

/// Bytes of a completed record without a result, its key and the names of its attributes included.
pub const RECORD_BYTES: f64 = 300.0;

/// What DynamoDB adds to each item for its index.
const INDEX_BYTES: f64 = 100.0;

/// Requests to the table and units of it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Units {
    /// At least: claims and settlements share requests where they are made together.
    pub requests: f64,
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
        let renewed = fresh * load.work.renewals();
        let mut all = Self { requests: renewed, writes: renewed * record_units(load), reads: 0.0 };
        all.add(fresh, fresh_message(guarantee, load, fill));
        all.add(copies, copy(guarantee, load, fill));
        all.add(failed, failed_run(guarantee, fill));
        all
    }

    fn add(&mut self, times: f64, each: Self) {
        self.requests += times * each.requests;
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

/// A claim or a settlement's share of a request, where a batch has `fill` of them.
fn share(fill: f64) -> f64 {
    let fill = fill.max(1.0);
    (fill / STATEMENTS_MAX).ceil() / fill
}

fn fresh_message(guarantee: Guarantee, load: &Load, fill: f64) -> Units {
    let (done, own) = (record_units(load), load.work.writes);
    let share = share(fill);
    // A transaction costs two units for each one.
    let (requests, writes) = match guarantee {
        Guarantee::AtLeastOnce | Guarantee::AtMostOnce => (2.0 * share, 1.0 + done),
        Guarantee::Transactional => (share + 1.0, 1.0 + 2.0 * (done + own)),
        Guarantee::Optimistic => (1.0, 2.0 * (done + own)),
    };
    Units { requests, writes, reads: 0.0 }
}

/// A second copy of completed work, delivered for the first time: its claim is refused. In a request with others, DynamoDB does not
/// say why: two or more refused ones are read together, a single one is claimed once more by itself.
fn copy(guarantee: Guarantee, load: &Load, fill: f64) -> Units {
    let done = record_units(load);
    let together = fill.clamp(1.0, STATEMENTS_MAX);
    if guarantee == Guarantee::Optimistic {
        // Its transaction is cancelled, and counted as charged as if it had been written.
        return Units { requests: 1.0, writes: 2.0 * (done + load.work.writes), reads: 0.0 };
    }
    if together <= 1.0 {
        return Units { requests: 1.0, writes: done, reads: 0.0 };
    }
    let alone = (1.0 - load.traffic.duplicates).powf(together - 1.0);
    let read = ((RECORD_BYTES + load.work.result_bytes) / 4_096.0).ceil();
    Units {
        requests: share(fill) + alone + (1.0 - alone) * share(fill * load.traffic.duplicates),
        writes: 1.0 + alone * done,
        reads: (1.0 - alone) * read,
    }
}

/// A run that failed: its failure is written, and its message's next delivery claims the key again.
fn failed_run(guarantee: Guarantee, fill: f64) -> Units {
    match guarantee {
        // The next delivery reads what there is.
        Guarantee::Optimistic => Units { requests: 2.0, writes: 1.0, reads: 1.0 },
        _ => Units { requests: 1.0 + share(fill), writes: 2.0, reads: 0.0 },
    }
}
