//! What was wanted, and what came of it.

use std::fmt::Write as _;

use crate::cold::{self, Figures as ColdFigures, Point};
use crate::field::{FIELD, place};
use crate::measure::{Cell, Results};
use crate::report::times;
use crate::workload::Workload;

/// Below one by less than this is noise of the machine, and is said to be.
const NOISE: f64 = 0.05;
/// A concurrency of one is a setting for those who want the plain loop; the goals are for others.
const CONCURRENCY_MIN: usize = 2;
const PYTHON: &str = "powertools-python";
const TYPESCRIPT: &str = "powertools-typescript";

/// The lowest speed that is wanted: at this size and 5 ms, so many times this contestant's.
const SPEEDS: [(usize, &str, f64); 4] =
    [(10, PYTHON, 10.0), (10, TYPESCRIPT, 1.0), (1_000, PYTHON, 20.0), (1_000, TYPESCRIPT, 3.0)];
const LATENCY_MS: u64 = 5;

/// The most requests and write units that are wanted for a batch of fresh messages.
const REQUESTS: [(usize, f64); 2] = [(10, 2.0), (1_000, 80.0)];
const WRITE_UNITS: (usize, f64) = (10, 20.0);

/// The longest start that is wanted, in hello worlds until it asks for work, and in functions by hand until its first answer; and the
/// largest binary.
const START: f64 = 1.5;
const ANSWER: f64 = 1.0;
const BINARY_MB: f64 = 8.0;

/// A table of the goals.
pub(crate) fn table(results: &Results, cold: &[ColdFigures]) -> String {
    let mut text = String::from("| wanted | measured | reached |\n| --- | --- | --- |\n");
    let mut row = |wanted: String, measured: String, reached: &str| {
        let _ = writeln!(text, "| {wanted} | {measured} | {reached} |");
    };
    for (size, name, least) in SPEEDS {
        let other = place(name);
        let title = FIELD[other].title;
        let at = |cell: &Cell| Some((cell.concurrency?, results.ratio(*cell, other)?.speed));
        let found: Vec<_> = fresh(results, size).iter().filter_map(at).collect();
        let wanted = format!("batch of {size} at {LATENCY_MS} ms: at least {least} times {title}");
        row(wanted, listed(&found, times), verdict(&found, |speed| speed >= least));
    }
    for (size, most) in REQUESTS {
        let at = |cell: &Cell| Some((cell.concurrency?, results.figures(*cell)?.requests * size as f64));
        let found: Vec<_> = fresh(results, size).iter().filter_map(at).collect();
        let wanted = format!("batch of {size}: at most {most} requests");
        row(wanted, listed(&found, |n| format!("{n:.1}")), verdict(&found, |n| n <= most));
    }
    let (size, most) = WRITE_UNITS;
    let at = |cell: &Cell| Some((cell.concurrency?, results.figures(*cell)?.write_units * size as f64));
    let found: Vec<_> = fresh(results, size).iter().filter_map(at).collect();
    let wanted = format!("batch of {size}: at most {most} write units");
    row(wanted, listed(&found, |n| format!("{n:.1}")), verdict(&found, |n| n <= most));

    for workload in Workload::ALL {
        let speed = |cell: Cell, other| Some(results.ratio(cell, other)?.speed).filter(|_| cell.workload == workload);
        let (measured, reached) = lowest(results, &[place("hand-join")], speed);
        row(format!("never slower than the bounded join by hand: {}", workload.word()), measured, reached);
    }
    let cpu = |cell, other| Some(results.ratio(cell, other)?.cpu);
    let peers: Vec<usize> = (0..FIELD.len()).filter(|other| !FIELD[*other].ours).collect();
    let (measured, reached) = lowest(results, &peers, cpu);
    row("less processor time per message than every peer".to_owned(), measured, reached);

    let (measured, reached) = point(cold, cold::HELLO, |figures| &figures.asked, START);
    row(format!("cold start, until it asks for work: at most {START} times the {}", cold::HELLO), measured, reached);
    let (measured, reached) = point(cold, cold::BY_HAND, |figures| &figures.answered, ANSWER);
    row(format!("cold start, until its first answer: no later than {}", cold::BY_HAND), measured, reached);
    let (measured, reached) = binary(cold);
    row(format!("binary: at most {BINARY_MB} MB"), measured, reached);
    text
}

/// How much later the function with claimant is at a point than this other one.
fn point(cold: &[ColdFigures], other: &str, point: fn(&ColdFigures) -> &Point, most: f64) -> (String, &'static str) {
    let median = |title| {
        let figures = cold.iter().find(|figures| figures.title == title)?;
        Some(point(figures).median()?.as_secs_f64())
    };
    let (Some(other), Some(claimant)) = (median(other), median(cold::CLAIMANT)) else {
        return (String::new(), "not measured");
    };
    (times(claimant / other), if claimant <= most * other { "yes" } else { "no" })
}

fn binary(cold: &[ColdFigures]) -> (String, &'static str) {
    let Some(claimant) = cold.iter().find(|figures| figures.title == cold::CLAIMANT) else {
        return (String::new(), "not measured");
    };
    let megabytes = claimant.bytes as f64 / 1e6;
    (format!("{megabytes:.2} MB"), if megabytes <= BINARY_MB { "yes" } else { "no" })
}

/// claimant's cells with fresh messages in batches of this size, by concurrency.
fn fresh(results: &Results, size: usize) -> Vec<Cell> {
    let wanted = |cell: &Cell| {
        (cell.workload, cell.latency_ms, cell.size) == (Workload::Fresh, LATENCY_MS, size)
            && cell.concurrency >= Some(CONCURRENCY_MIN)
    };
    results.of_claimant().filter(wanted).collect()
}

fn listed(found: &[(usize, f64)], show: impl Fn(f64) -> String) -> String {
    let each = found.iter().map(|(concurrency, value)| format!("{} at concurrency {concurrency}", show(*value)));
    each.collect::<Vec<_>>().join(", ")
}

fn verdict(found: &[(usize, f64)], holds: impl Fn(f64) -> bool) -> &'static str {
    let held = found.iter().filter(|(_, value)| holds(*value)).count();
    match (held, found.len()) {
        (_, 0) => "not measured",
        (0, _) => "no",
        (held, all) if held == all => "yes",
        _ => "in part",
    }
}

/// The lowest ratio of all cells, where it is, and how many are below one.
fn lowest(results: &Results, others: &[usize], ratio: impl Fn(Cell, usize) -> Option<f64>) -> (String, &'static str) {
    let cells = results.of_claimant().flat_map(|cell| others.iter().map(move |other| (cell, *other)));
    let found: Vec<_> = cells.filter_map(|(cell, other)| Some((ratio(cell, other)?, cell, other))).collect();
    let Some((least, cell, other)) = found.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
        return (String::new(), "not measured");
    };
    let below = found.iter().filter(|(ratio, ..)| *ratio < 1.0).count();
    let measured = format!(
        "lowest of {} ratios: {} ({}, {}, {} ms, batch of {}, concurrency {}); {below} below 1",
        found.len(),
        times(*least),
        FIELD[*other].title,
        cell.workload.word(),
        cell.latency_ms,
        cell.size,
        cell.concurrency.unwrap_or(1),
    );
    let reached = match *least {
        least if least >= 1.0 => "yes",
        least if least >= 1.0 - NOISE => "within noise (5 %)",
        _ => "no",
    };
    (measured, reached)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn cold_starts_are_held_to_the_smallest_function_and_first_answers_to_the_one_by_hand() {
        let at = |micros: &[u64]| Point {
            times: micros.iter().copied().map(Duration::from_micros).collect(),
            cpus: Vec::new(),
        };
        let figures =
            |title, bytes, asked, answered| ColdFigures { title, bytes, asked: at(asked), answered: at(answered) };
        let hello = || figures(cold::HELLO, 2_000_000, &[900, 1_000, 5_000], &[1_100]);
        let by_hand = || figures(cold::BY_HAND, 9_000_000, &[5_000], &[8_000]);
        for (bytes, asked, answered, wanted) in [
            (8_000_000, &[1_000, 1_500, 9_000], &[8_000], [("1.5 ×", "yes"), ("1.0 ×", "yes"), ("8.00 MB", "yes")]),
            (8_010_000, &[1_000, 1_600, 1_700], &[8_800], [("1.6 ×", "no"), ("1.1 ×", "no"), ("8.01 MB", "no")]),
        ] {
            let cold = [hello(), by_hand(), figures(cold::CLAIMANT, bytes, asked, answered)];
            let found = [
                point(&cold, cold::HELLO, |figures| &figures.asked, START),
                point(&cold, cold::BY_HAND, |figures| &figures.answered, ANSWER),
                binary(&cold),
            ];
            assert_eq!(found, wanted.map(|(measured, reached)| (measured.to_owned(), reached)));
        }
        let none = [point(&[hello()], cold::HELLO, |figures| &figures.asked, START), binary(&[hello()])];
        assert!(none.iter().all(|(_, reached)| *reached == "not measured"));
    }
}
