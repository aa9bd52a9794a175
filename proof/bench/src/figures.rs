//! The figures of a cell, and one contestant's over another's.

use crate::field::{CLAIMANT, FIELD, Knob};
use crate::measure::{Cell, Results, Series};

/// What a contestant needs for a message in one cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    /// At the median batch.
    pub(crate) messages_per_s: f64,
    pub(crate) requests: f64,
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    pub(crate) cpu_us: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Figures {
    /// `None` where nothing was measured.
    pub(crate) fn of(series: &Series, size: usize) -> Option<Self> {
        let (p50, p99) = (series.quantile(0.5)?.as_secs_f64(), series.quantile(0.99)?.as_secs_f64());
        // OK because these counts are far below 2^52.
        let each = |total: u64| total as f64 / series.messages as f64;
        Some(Self {
            messages_per_s: size as f64 / p50,
            requests: each(series.counts.requests),
            write_units: each(series.counts.units.writes),
            read_units: each(series.counts.units.read_halves) / 2.0,
            cpu_us: series.cpu.as_secs_f64() * 1e6 / series.messages as f64,
            p50_ms: p50 * 1e3,
            p99_ms: p99 * 1e3,
        })
    }
}

/// How claimant compares with another contestant in one cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    /// How many times as many messages per second claimant does.
    pub(crate) speed: f64,
    /// How many times as much processor time the other needs for a message.
    pub(crate) cpu: f64,
}

impl Results {
    pub(crate) fn figures(&self, cell: Cell) -> Option<Figures> {
        Figures::of(self.series.get(&cell)?, cell.size)
    }

    /// claimant in this cell against a contestant in the cell of the same workload, latency and size; at the same
    /// concurrency, where the other has that knob.
    pub(crate) fn ratio(&self, claimant: Cell, other: usize) -> Option<Ratio> {
        let (ours, theirs) = (self.figures(claimant)?, self.figures(rival(claimant, other))?);
        Some(Ratio { speed: ours.messages_per_s / theirs.messages_per_s, cpu: theirs.cpu_us / ours.cpu_us })
    }

    /// The cells of claimant, in the order of the page.
    pub(crate) fn of_claimant(&self) -> impl Iterator<Item = Cell> {
        self.series.keys().copied().filter(|cell| cell.contestant == CLAIMANT)
    }
}

/// The cell of another contestant that one of claimant is compared with.
pub(crate) fn rival(claimant: Cell, other: usize) -> Cell {
    // A join of one is the loop, which stands before it.
    let joined_alone = FIELD[other].name == "hand-join" && claimant.concurrency == Some(1);
    let other = if joined_alone { other - 1 } else { other };
    let concurrency = claimant.concurrency.filter(|_| FIELD[other].speed == Ok(Knob::Set));
    Cell { contestant: other, concurrency, ..claimant }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    #[test]
    fn each_is_compared_with_what_it_was_measured_at() {
        let cell = |contestant, concurrency| Cell {
            workload: Workload::Fresh,
            latency_ms: 5,
            size: 10,
            contestant,
            concurrency,
        };
        for (other, ours, contestant, concurrency) in
            [(1, 10, 1, None), (2, 10, 2, Some(10)), (2, 1, 1, None), (3, 100, 3, None), (4, 1, 4, None)]
        {
            assert_eq!(rival(cell(CLAIMANT, Some(ours)), other), cell(contestant, concurrency), "{other} at {ours}");
        }
    }
}
