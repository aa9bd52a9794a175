//! The measurement: every cell of the grid, its contestants in turns, so that ratios hold on a noisy machine.

use std::collections::BTreeMap;
use std::time::Duration;

use claimant_core::Error;

use crate::args::Peers;
use crate::field::{Contestant, Done, Entry, FIELD, Knob};
use crate::store::{Counts, Store};
use crate::workload::{self, Workload};

/// The batch that a contestant begins with, unmeasured, without latency: connections, caches, compilers.
const WARM_UP_SIZE: usize = 500;
/// Batches up to this size are preceded by two unmeasured ones in each cell.
const WARM_UP_MAX: usize = 100;
/// A series ends when it has taken this long, but not before its first batch has.
const SERIES_MAX: Duration = Duration::from_secs(2);

/// What is measured.
#[derive(Debug)]
pub(crate) struct Grid {
    pub(crate) latencies_ms: &'static [u64],
    /// The size of a batch, how many are wanted, and how long one may be expected to take before it is left out.
    pub(crate) sizes: &'static [(usize, usize, Duration)],
    pub(crate) concurrencies: &'static [usize],
    /// Redeliveries differ from other duplicates by design only, so one latency and three sizes show it.
    pub(crate) redelivered: (u64, &'static [usize]),
}

pub(crate) const FULL: Grid = Grid {
    latencies_ms: &[5, 2, 0],
    sizes: &[
        (1, 100, Duration::from_secs(10)),
        (10, 50, Duration::from_secs(10)),
        (100, 12, Duration::from_secs(10)),
        (1_000, 5, Duration::from_secs(30)),
        (10_000, 3, Duration::from_secs(22)),
    ],
    concurrencies: &[1, 10, 100],
    redelivered: (5, &[10, 100, 1_000]),
};

pub(crate) const QUICK: Grid = Grid {
    latencies_ms: &[5],
    sizes: &[(10, 12, Duration::from_secs(10)), (100, 4, Duration::from_secs(10)), (1_000, 1, Duration::from_secs(30))],
    concurrencies: &[10, 100],
    redelivered: (5, &[]),
};

/// Which figures these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    pub(crate) workload: Workload,
    pub(crate) latency_ms: u64,
    pub(crate) size: usize,
    /// The place in [`FIELD`].
    pub(crate) contestant: usize,
    /// `None` where the contestant has no such knob.
    pub(crate) concurrency: Option<usize>,
}

/// The figures of one contestant in one cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    /// How long each batch took, shortest first once the cell is done.
    pub(crate) walls: Vec<Duration>,
    pub(crate) cpu: Duration,
    pub(crate) counts: Counts,
    pub(crate) messages: u64,
    /// Messages reported failed, and handlers that ran too often or too seldom: none, if all is well.
    pub(crate) faults: usize,
    /// How long one batch was expected to take, if that was too long.
    pub(crate) too_long: Option<Duration>,
    /// The number of the orders in the last batch.
    orders: u64,
}

impl Series {
    fn add(&mut self, done: Done, counts: Counts, size: usize, wanted_runs: usize) {
        self.walls.push(done.wall);
        self.cpu += done.cpu;
        self.counts = self.counts.plus(counts);
        self.messages += size as u64;
        self.faults += done.failed.len() + done.ran.abs_diff(wanted_runs);
    }

    /// The batch that this share of all took at most: nearest rank.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        // OK because there are a few dozen of them.
        let rank = (share * self.walls.len() as f64).ceil() as usize;
        self.walls.get(rank.max(1) - 1).copied()
    }
}

/// What a contestant has opened since it began, for how many messages.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Opened {
    pub(crate) connections: u64,
    pub(crate) messages: u64,
}

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) series: BTreeMap<Cell, Series>,
    /// What each contestant says it is, or why it was not measured, in the order of [`FIELD`].
    pub(crate) versions: Vec<Result<String, String>>,
    /// Connections that each contestant has opened to the store, and the messages that it got, in the order of [`FIELD`].
    pub(crate) opened: [Opened; FIELD.len()],
    /// How long requests were really held back, in milliseconds, by latency.
    pub(crate) held_back_ms: BTreeMap<u64, f64>,
}

struct Bench {
    store: Store,
    /// In the order of [`FIELD`]; `None` for one that is not measured.
    contestants: Vec<Option<Contestant>>,
    grid: &'static Grid,
    results: Results,
    /// Numbers every event.
    events: u64,
    /// Draws whose turn comes next: who runs after a large process finds the caches cold.
    order: fastrand::Rng,
}

/// Measures the whole grid.
///
/// # Errors
/// When the store or a contestant fails. One that reports failures goes on, and the figures say so.
pub(crate) async fn run(grid: &'static Grid, peers: &Peers) -> Result<Results, Error> {
    let store = Store::start(&FIELD.each_ref().map(|entry| entry.name)).await?;
    let (mut contestants, mut versions) = (Vec::new(), Vec::new());
    for entry in &FIELD {
        let started = start(entry, peers, &store).await?;
        versions.push(started.as_ref().map(|contestant| contestant.versions.clone()).map_err(Clone::clone));
        contestants.push(started.ok());
    }
    let results = Results { versions, ..Results::default() };
    let mut bench = Bench { store, contestants, grid, results, events: 0, order: fastrand::Rng::with_seed(0) };
    bench.warm_up().await?;
    for &latency_ms in grid.latencies_ms {
        bench.store.set_latency(latency_ms);
        let before = bench.store.counts();
        for &(size, rounds, longest) in grid.sizes {
            for workload in Workload::ALL {
                if workload != Workload::Redelivered || grid.redelivered.covers(latency_ms, size) {
                    eprintln!("bench: {latency_ms} ms, batches of {size}, {}", workload.title());
                    bench.cell(workload, latency_ms, size, rounds, longest).await?;
                }
            }
        }
        let passed = bench.store.counts().since(before);
        let mean_ms = passed.held_back.as_secs_f64() * 1e3 / passed.requests.max(1) as f64;
        bench.results.held_back_ms.insert(latency_ms, mean_ms);
    }
    Ok(bench.results)
}

/// A contestant, or why there is none to measure.
async fn start(entry: &'static Entry, peers: &Peers, store: &Store) -> Result<Result<Contestant, String>, Error> {
    if let Err(why) = entry.speed {
        return Ok(Err(why.to_owned()));
    }
    match Contestant::start(entry, peers, &store.endpoint(), None).await {
        Err(e) if entry.ours => Err(e),
        Err(e) => {
            eprintln!("bench: {} is left out: {e:?}", entry.title);
            Ok(Err(format!("it did not start ({e})")))
        }
        Ok(contestant) => Ok(Ok(contestant)),
    }
}

trait Covers {
    fn covers(&self, latency_ms: u64, size: usize) -> bool;
}

impl Covers for (u64, &[usize]) {
    fn covers(&self, latency_ms: u64, size: usize) -> bool {
        self.0 == latency_ms && self.1.contains(&size)
    }
}

impl Bench {
    async fn warm_up(&mut self) -> Result<(), Error> {
        eprintln!("bench: warming up");
        for contestant in 0..FIELD.len() {
            for concurrency in self.settings_of(contestant) {
                self.batch(Workload::Fresh, WARM_UP_SIZE, contestant, concurrency, None).await?;
            }
        }
        Ok(())
    }

    /// The values of a contestant's knob; none, if it is not measured.
    fn settings_of(&self, contestant: usize) -> Vec<Option<usize>> {
        match FIELD[contestant].speed.ok().filter(|_| self.contestants[contestant].is_some()) {
            Some(Knob::Set) => self.grid.concurrencies.iter().copied().map(Some).collect(),
            Some(Knob::Fixed(_) | Knob::All) => vec![None],
            None => Vec::new(),
        }
    }

    async fn cell(
        &mut self,
        workload: Workload,
        latency_ms: u64,
        size: usize,
        rounds: usize,
        longest: Duration,
    ) -> Result<(), Error> {
        let mut open = Vec::new();
        for (contestant, entry) in FIELD.iter().enumerate() {
            for concurrency in self.settings_of(contestant) {
                // A join of one is the loop.
                if entry.name == "hand-join" && concurrency == Some(1) {
                    continue;
                }
                let cell = Cell { workload, latency_ms, size, contestant, concurrency };
                let mut series = Series { too_long: self.too_long(cell, longest), ..Series::default() };
                if series.too_long.is_none() {
                    if size <= WARM_UP_MAX {
                        // Two, after which claimant has forgotten what the orders before were.
                        self.batch(Workload::Fresh, size, contestant, concurrency, None).await?;
                        series.orders = self.batch(Workload::Fresh, size, contestant, concurrency, None).await?.2;
                    }
                    if workload != Workload::Fresh {
                        let fresh = Cell { workload: Workload::Fresh, ..cell };
                        series.orders = self.results.series.get(&fresh).map_or(series.orders, |s| s.orders);
                    }
                    open.push(cell);
                }
                self.results.series.insert(cell, series);
            }
        }
        let mut turns = open.clone();
        for _ in 0..rounds {
            self.order.shuffle(&mut turns);
            for &cell in &turns {
                self.turn(cell).await?;
            }
        }
        for cell in open {
            self.results.series.entry(cell).and_modify(|series| series.walls.sort_unstable());
        }
        Ok(())
    }

    /// One batch of a series that still has time.
    async fn turn(&mut self, cell: Cell) -> Result<(), Error> {
        let Some(series) = self.results.series.get(&cell) else { return Ok(()) };
        if series.walls.iter().sum::<Duration>() > SERIES_MAX {
            return Ok(());
        }
        let again = (cell.workload != Workload::Fresh).then_some(series.orders);
        let Cell { workload, size, contestant, concurrency, .. } = cell;
        let (done, counts, orders) = self.batch(workload, size, contestant, concurrency, again).await?;
        let series = self.results.series.entry(cell).or_default();
        series.add(done, counts, size, workload.runs(size));
        series.orders = orders;
        Ok(())
    }

    async fn batch(
        &mut self,
        workload: Workload,
        size: usize,
        contestant: usize,
        concurrency: Option<usize>,
        again: Option<u64>,
    ) -> Result<(Done, Counts, u64), Error> {
        self.events += 1;
        let orders = again.unwrap_or(self.events);
        let event = workload::event(workload, orders, self.events, size);
        let before = self.store.counts();
        let Some(running) = &mut self.contestants[contestant] else {
            return Err(Error::new(format!("{} is not there to be measured", FIELD[contestant].title)));
        };
        let done = running.run(&event, concurrency.unwrap_or(size)).await?;
        let counts = self.store.counts().since(before);
        let opened = &mut self.results.opened[contestant];
        opened.connections += counts.connections;
        opened.messages += size as u64;
        Ok((done, counts, orders))
    }

    /// How long a batch is expected to take by the series of the next smaller size, if that is too long; or the
    /// expectation that kept that one out.
    fn too_long(&self, cell: Cell, longest: Duration) -> Option<Duration> {
        let sizes = self.grid.sizes.iter().map(|(size, ..)| *size);
        let smaller = sizes.filter(|size| *size < cell.size).max()?;
        // Duplicates need the finished orders of the fresh series.
        let fresh = Cell { workload: Workload::Fresh, ..cell };
        if cell.workload != Workload::Fresh
            && let Some(too_long) = self.results.series.get(&fresh).and_then(|s| s.too_long)
        {
            return Some(too_long);
        }
        let series = self.results.series.get(&Cell { size: smaller, ..cell })?;
        let times = u32::try_from(cell.size / smaller).unwrap_or(u32::MAX);
        let expected = series.too_long.or(series.quantile(0.5)).map(|one| one.saturating_mul(times))?;
        (expected > longest).then_some(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let of = |n: u64| Series { walls: (1..=n).map(Duration::from_secs).collect(), ..Series::default() };
        for (n, share, wanted) in [(1, 0.5, 1), (4, 0.5, 2), (5, 0.5, 3), (24, 0.99, 24), (100, 0.99, 99)] {
            assert_eq!(of(n).quantile(share), Some(Duration::from_secs(wanted)), "{share} of {n}");
        }
        assert_eq!(of(0).quantile(0.5), None);
    }
}
