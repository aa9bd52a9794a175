//! The page: ratios first, then the figures, then how to come by them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::args::Run;
use crate::cold::Figures as ColdFigures;
use crate::field::{CLAIMANT, FIELD, Knob};
use crate::measure::{Cell, Grid, Results};
use crate::workload::Workload;
use crate::{goals, locked, machine};

const INTRODUCTION: &str = include_str!("introduction.md");
const NOT_MEASURED: &str = include_str!("not-measured.md");
/// The crates whose versions matter.
const CRATES: [&str; 4] = ["aws-config", "aws-sdk-dynamodb", "lambda_runtime", "dynoxide-rs"];

/// The whole page.
pub(crate) fn page(options: &Run, grid: &Grid, results: &Results, cold: &[ColdFigures], took: Duration) -> String {
    let mut text = format!("{}\n", INTRODUCTION.trim_end());
    let _ = writeln!(text, "\n## The run\n\n{}", run(options, results, took));
    let _ = writeln!(text, "## What was wanted\n\n{}", goals::table(results, cold));
    let _ = writeln!(text, "## Ratios\n");
    let _ = writeln!(
        text,
        "How many times as many messages per second claimant does, and how many times as much processor time the other \
         needs for a message: more than 1 is in claimant's favour in all columns. The bounded join has claimant's \
         concurrency.\n"
    );
    each_table(grid, results, &mut text, ratios);
    let _ = writeln!(text, "## Figures\n");
    let _ = writeln!(
        text,
        "Messages per second are those of the median batch; requests, units and processor time are means. With fewer \
         than 100 batches p99 is the slowest one.\n"
    );
    each_table(grid, results, &mut text, figures);
    let _ = writeln!(text, "## Cold starts\n\n{}", self::cold(cold));
    let _ = writeln!(text, "## What was not measured\n\n{}\n{}", NOT_MEASURED.trim_end(), left_out(results));
    format!("{}\n", text.trim_end())
}

/// Cold starts, as a table.
pub(crate) fn cold(functions: &[ColdFigures]) -> String {
    let ms = |sorted: &[Duration], share: f64| {
        // OK because there are a few dozen of them.
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).map_or("–".to_owned(), |d| format!("{:.1}", d.as_secs_f64() * 1e3))
    };
    let mut text = String::from(
        "| function | start p50, ms | start p90, ms | processor time p50, ms | binary, MB |\n| --- | ---: | ---: | ---: | ---: |\n",
    );
    for f in functions {
        let megabytes = f.bytes as f64 / 1e6;
        let (p50, p90, cpu) = (ms(&f.starts, 0.5), ms(&f.starts, 0.9), ms(&f.cpus, 0.5));
        let _ = writeln!(text, "| {} | {p50} | {p90} | {cpu} | {megabytes:.2} |", f.title);
    }
    let starts = functions.first().map_or(0, |f| f.starts.len());
    let _ = writeln!(text, "\nFrom exec to the first request for work, {starts} starts each, in turns.");
    text
}

/// A ratio.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        r if r >= 19.95 => format!("{r:.0} ×"),
        r if r >= 0.95 => format!("{r:.1} ×"),
        r => format!("{r:.2} ×"),
    }
}

fn run(options: &Run, results: &Results, took: Duration) -> String {
    let crates: Vec<String> = CRATES.iter().map(|name| format!("{name} {}", locked::version(name))).collect();
    let quick = if options.quick { " --quick" } else { "" };
    let command = if options.quick { "scripts/bench --quick" } else { "make bench" };
    let mut text = String::new();
    let mut row = |what: &str, value: &str| {
        let _ = writeln!(text, "- {what}: {value}");
    };
    row(
        "Command",
        &format!(
            "`{command}`, {:.0} s without building{}",
            took.as_secs_f64(),
            if quick.is_empty() { "" } else { " (the short form: fewer cells and batches)" }
        ),
    );
    row("Date", &options.date);
    row("Commit", &options.commit);
    row("Machine", &machine::line());
    row("Rust", &format!("{}, release profile; {}", options.compiler, crates.join(", ")));
    for (entry, versions) in FIELD.iter().zip(&results.versions) {
        if matches!(entry.name, "powertools-python" | "powertools-typescript") {
            row(entry.title, versions);
        }
    }
    let held: Vec<String> = results
        .held_back_ms
        .iter()
        .filter(|(latency, _)| **latency > 0)
        .map(|(latency, mean)| format!("{mean:.2} ms at {latency} ms"))
        .collect();
    row("Latency really added, mean", &held.join(", "));
    let faults: usize = results.series.values().map(|series| series.faults).sum();
    row("Messages failed, or handlers run too often or too seldom", &faults.to_string());
    text
}

fn each_table(
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

fn ratios(results: &Results, workload: Workload, latency_ms: u64) -> Option<String> {
    let others = CLAIMANT + 1..FIELD.len();
    let titles: Vec<&str> = others.clone().map(|other| FIELD[other].title).collect();
    let mut text = String::from("| batch | concurrency |");
    for what in ["", "processor: "] {
        titles.iter().for_each(|title| {
            let _ = write!(text, " {what}{title} |");
        });
    }
    let _ = write!(text, "\n| ---: | ---: |{}\n", " ---: |".repeat(2 * titles.len()));
    let mut rows = 0;
    for cell in results.of_claimant().filter(|c| (c.workload, c.latency_ms) == (workload, latency_ms)) {
        let ratios: Vec<_> = others.clone().map(|other| results.ratio(cell, other)).collect();
        let show = |value: Option<f64>| value.map_or("–".to_owned(), times);
        let _ = write!(text, "| {} | {} |", cell.size, setting(cell));
        for ratio in &ratios {
            let _ = write!(text, " {} |", show(ratio.map(|r| r.speed)));
        }
        for ratio in &ratios {
            let _ = write!(text, " {} |", show(ratio.map(|r| r.cpu)));
        }
        text.push('\n');
        rows += 1;
    }
    (rows > 0).then_some(text)
}

fn figures(results: &Results, workload: Workload, latency_ms: u64) -> Option<String> {
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

fn setting(cell: Cell) -> String {
    match (FIELD[cell.contestant].knob, cell.concurrency) {
        (_, Some(concurrency)) => concurrency.to_string(),
        (Knob::All, None) => "all".to_owned(),
        (_, None) => "1".to_owned(),
    }
}

/// The cells that would have taken too long, one line for each contestant and size.
fn left_out(results: &Results) -> String {
    let mut text = String::new();
    for (cell, series) in &results.series {
        if let Some(expected) = series.too_long {
            let _ = writeln!(
                text,
                "- {}, {}, {} ms, batch of {}, concurrency {}: one batch would take about {:.0} s by the next smaller size.",
                FIELD[cell.contestant].title,
                cell.workload.word(),
                cell.latency_ms,
                cell.size,
                setting(*cell),
                expected.as_secs_f64(),
            );
        }
    }
    text
}
