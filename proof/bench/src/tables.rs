//! The tables of speed: each contestant's figures, and how claimant compares.

use std::fmt::Write as _;

use crate::field::{CLAIMANT, FIELD, Knob};
use crate::figures::Ratio;
use crate::measure::{Cell, Grid, Results};
use crate::report::times;
use crate::workload::Workload;

/// What is shown at a glance: fresh messages, at this latency, in batches of these sizes, at this concurrency where it can
/// be set.
pub(crate) const GLANCE: (u64, [usize; 2], usize) = (5, [10, 1_000], 10);

/// The cells at a glance with batches of this size, one for each contestant that was measured.
pub(crate) fn at_a_glance(results: &Results, size: usize) -> Vec<Cell> {
    let (latency_ms, _, concurrency) = GLANCE;
    let shown = |cell: &Cell| {
        (cell.workload, cell.latency_ms, cell.size) == (Workload::Fresh, latency_ms, size)
            && cell.concurrency.is_none_or(|set| set == concurrency)
    };
    results.series.keys().copied().filter(shown).collect()
}

/// A row for each contestant.
pub(crate) fn glance(results: &Results) -> String {
    let (_, sizes, _) = GLANCE;
    let mut text = String::from("| contestant | at once |");
    for size in sizes {
        let _ = write!(text, " {size}: messages/s | requests | processor, µs |");
    }
    let _ = writeln!(text, "\n| --- | ---: |{}", " ---: | ---: | ---: |".repeat(sizes.len()));
    for cell in at_a_glance(results, sizes[0]) {
        let _ = write!(text, "| {} | {} |", FIELD[cell.contestant].title, setting(cell));
        for size in sizes {
            match results.figures(Cell { size, ..cell }) {
                Some(f) => {
                    let _ = write!(text, " {:.0} | {:.2} | {:.0} |", f.messages_per_s, f.requests, f.cpu_us);
                }
                None => text.push_str(" – | – | – |"),
            }
        }
        text.push('\n');
    }
    text
}

pub(crate) fn each_table(
    grid: &Grid,
    results: &Results,
    text: &mut String,
    table: impl Fn(&Results, Workload, u64) -> Option<String>,
) {
    for workload in Workload::ALL {
        for &latency in grid.latencies_ms {
            if let Some(table) = table(results, workload, latency) {
                let _ = writeln!(text, "### {} ms, {}\n\n{table}", latency, workload.title());
            }
        }
    }
}

/// Two tables: of speed, and of processor time.
pub(crate) fn ratios(results: &Results, workload: Workload, latency_ms: u64) -> Option<String> {
    let cells: Vec<Cell> =
        results.of_claimant().filter(|c| (c.workload, c.latency_ms) == (workload, latency_ms)).collect();
    let measured = |other: &usize| results.series.keys().any(|cell| cell.contestant == *other);
    let others: Vec<usize> = (CLAIMANT + 1..FIELD.len()).filter(measured).collect();
    let table = |of: fn(Ratio) -> f64| {
        let mut text = String::from("| batch | concurrency |");
        for other in &others {
            let _ = write!(text, " {} |", FIELD[*other].title);
        }
        let _ = write!(text, "\n| ---: | ---: |{}\n", " ---: |".repeat(others.len()));
        for cell in &cells {
            let _ = write!(text, "| {} | {} |", cell.size, setting(*cell));
            for other in &others {
                let ratio = results.ratio(*cell, *other).map(of);
                let _ = write!(text, " {} |", ratio.map_or("–".to_owned(), times));
            }
            text.push('\n');
        }
        text
    };
    let (speed, cpu) = (table(|ratio| ratio.speed), table(|ratio| ratio.cpu));
    (!cells.is_empty()).then(|| format!("Messages per second:\n\n{speed}\nProcessor time:\n\n{cpu}"))
}

pub(crate) fn figures(results: &Results, workload: Workload, latency_ms: u64) -> Option<String> {
    let mut text = String::from(
        "| batch | contestant | concurrency | messages/s | requests | write units | read units | processor, µs | p50, ms | p99, ms | batches |\n\
         | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut rows = 0;
    for (cell, series) in &results.series {
        if (cell.workload, cell.latency_ms) != (workload, latency_ms) {
            continue;
        }
        let Some(f) = results.figures(*cell) else { continue };
        let fault = if series.faults > 0 { format!(", {} faults", series.faults) } else { String::new() };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} | {:.2} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {}{fault} |",
            cell.size,
            FIELD[cell.contestant].title,
            setting(*cell),
            f.messages_per_s,
            f.requests,
            f.write_units,
            f.read_units,
            f.cpu_us,
            f.p50_ms,
            f.p99_ms,
            series.walls.len(),
        );
        rows += 1;
    }
    (rows > 0).then_some(text)
}

/// How many messages a contestant works on at once.
pub(crate) fn setting(cell: Cell) -> String {
    match (FIELD[cell.contestant].speed, cell.concurrency) {
        (_, Some(concurrency)) => concurrency.to_string(),
        (Ok(Knob::Fixed(concurrency)), None) => concurrency.to_string(),
        (_, None) => "all".to_owned(),
    }
}
