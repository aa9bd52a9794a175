//! What was measured, as tables for the book, each row with a verdict.

use claimant_bench::store::Counts;
use claimant_outage::markdown;

use crate::lab::Sum;
use crate::worker::median_us;

/// Up to how many times the least of all rows before a measure is called flat: where the first row is the dearest, as a batch of one is,
/// what comes after it would never be more than that.
const COUNT_MOST: f64 = 1.05;
const TIME_MOST: f64 = 1.3;
const MEMORY_MOST: f64 = 1.3;

/// Less than this is nothing, in a measure that was nothing in a row before.
const NOTHING: f64 = 0.01;

/// One step of a dimension.
#[derive(Debug, Clone)]
pub struct Row {
    /// What is there more of than in the row before.
    pub step: String,
    /// For each message.
    pub requests: f64,
    /// For each message.
    pub write_units: f64,
    /// For each message.
    pub read_units: f64,
    /// For each message.
    pub allocations: f64,
    /// For each message: processor time of claimant's processes.
    pub cpu_us: f64,
    /// For each message: time.
    pub time_us: f64,
    /// The most that a process of claimant had in memory.
    pub peak_mib: f64,
    /// What only this dimension shows.
    pub more: Vec<String>,
}

/// A dimension: what costs, with more and more of one thing.
#[derive(Debug, Clone)]
pub struct Table {
    /// What there is more of.
    pub title: &'static str,
    /// What is held fixed, and what is measured.
    pub text: String,
    /// What a step is.
    pub step: &'static str,
    /// What only this dimension shows.
    pub more: &'static [&'static str],
    /// One for each step.
    pub rows: Vec<Row>,
}

impl Row {
    pub(crate) fn new(step: String, mut sum: Sum, counts: Counts) -> Self {
        let each = |n: f64| n / sum.messages.max(1) as f64;
        Self {
            step,
            requests: each(counts.requests as f64),
            write_units: each(counts.units.writes as f64),
            read_units: each(counts.units.read_halves as f64 / 2.0),
            allocations: each(sum.allocations as f64),
            cpu_us: each(sum.cpu.as_secs_f64() * 1e6),
            time_us: median_us(&mut sum.times),
            peak_mib: sum.peak_kb as f64 / 1024.0,
            more: Vec::new(),
        }
    }

    /// Returns what grew more than is called flat since it was least.
    #[must_use]
    pub fn verdict(&self, least: &Self) -> String {
        let measures = [
            ("requests", least.requests, self.requests, COUNT_MOST),
            ("write units", least.write_units, self.write_units, COUNT_MOST),
            ("read units", least.read_units, self.read_units, COUNT_MOST),
            ("allocations", least.allocations, self.allocations, COUNT_MOST),
            ("processor", least.cpu_us, self.cpu_us, TIME_MOST),
            ("time", least.time_us, self.time_us, TIME_MOST),
            ("memory", least.peak_mib, self.peak_mib, MEMORY_MOST),
        ];
        let grown = measures.into_iter().filter_map(|(name, before, now, most)| match now / before {
            _ if now < NOTHING => None,
            _ if before < NOTHING => Some(format!("{name}, from 0")),
            ratio if ratio > most => Some(format!("{name} {ratio:.2} ×")),
            _ => None,
        });
        match grown.collect::<Vec<_>>() {
            grown if grown.is_empty() => "flat".to_owned(),
            grown => format!("grows: {}", grown.join(", ")),
        }
    }

    /// Returns the lesser of both, measure by measure.
    fn or_less(&self, other: &Self) -> Self {
        Self {
            step: String::new(),
            requests: self.requests.min(other.requests),
            write_units: self.write_units.min(other.write_units),
            read_units: self.read_units.min(other.read_units),
            allocations: self.allocations.min(other.allocations),
            cpu_us: self.cpu_us.min(other.cpu_us),
            time_us: self.time_us.min(other.time_us),
            peak_mib: self.peak_mib.min(other.peak_mib),
            more: Vec::new(),
        }
    }
}

impl Table {
    /// Returns the dimension as a section of the page.
    #[must_use]
    pub fn section(&self) -> String {
        let names = ["requests", "write units", "read units", "allocations", "processor, µs", "time, µs", "peak, MiB"];
        let names = names.iter().chain(self.more).chain([&"verdict"]).copied();
        let mut least = self.rows[0].clone();
        let rows = self.rows.iter().map(|row| {
            let first = &self.rows[0];
            let time = |now: f64, before: f64| format!("{now:.0} ({:.2} ×)", now / before);
            let mut cells = vec![
                short(row.requests),
                short(row.write_units),
                short(row.read_units),
                format!("{:.1}", row.allocations),
                time(row.cpu_us, first.cpu_us),
                time(row.time_us, first.time_us),
                format!("{:.1}", row.peak_mib),
            ];
            cells.extend(row.more.iter().cloned());
            cells.push(row.verdict(&least));
            least = least.or_less(row);
            (row.step.clone(), cells)
        });
        format!("### {}\n\n{}\n\n{}", self.title, self.text, markdown(self.step, names, rows))
    }
}

/// What is called flat, for the page.
#[must_use]
pub fn bounds() -> String {
    format!(
        "A row is `flat` where no measure is more than so many times the least of all rows before it: {COUNT_MOST} × for requests, units \
         and allocations, {TIME_MOST} × for times, {MEMORY_MOST} × for memory. Otherwise the verdict names what grows, and by how much \
         since that least."
    )
}

fn short(n: f64) -> String {
    if n < NOTHING { "0".to_owned() } else { format!("{n:.2}") }
}
