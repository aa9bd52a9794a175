//! What a batch asked of its store.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what a batch asked of its store. Stores add to it; nothing depends on it.
#[derive(Debug, Default)]
pub struct Meter {
    requests: AtomicU64,
    write_milliunits: AtomicU64,
    read_milliunits: AtomicU64,
}

/// What a [`Meter`] has counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Requests sent, without those that an SDK repeats by itself.
    pub requests: u64,
    /// Write units, if the store tells them; a refused write, for which it does not, counts as one.
    pub write_units: f64,
    /// Read units, if the store tells them.
    pub read_units: f64,
}

impl Meter {
    /// Counts one request.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the units that the store says were consumed.
    pub fn units(&self, write: f64, read: f64) {
        // OK because units are small, not negative, and counted in halves.
        let milli = |units: f64| (units * 1_000.0).round() as u64;
        self.write_milliunits.fetch_add(milli(write), Ordering::Relaxed);
        self.read_milliunits.fetch_add(milli(read), Ordering::Relaxed);
    }

    /// Returns what was counted so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        // OK because the counts stay far below 2^52.
        let units = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64 / 1_000.0;
        Usage {
            requests: self.requests.load(Ordering::Relaxed),
            write_units: units(&self.write_milliunits),
            read_units: units(&self.read_milliunits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_parts_of_units_add_up() {
        let meter = Meter::default();
        (0..3).for_each(|_| meter.request());
        meter.units(2.0, 0.5);
        meter.units(1.0, 1.5);
        let Usage { requests, write_units, read_units } = meter.usage();
        assert_eq!((requests, write_units, read_units), (3, 3.0, 2.0));
        meter.units(0.25, 0.25);
        assert_eq!((meter.usage().write_units, meter.usage().read_units), (3.25, 2.25));
    }
}
