//! The page: ratios first, then the figures, then how to come by them.

use std::fmt::Write as _;
use std::time::Duration;

use crate::args::Run;
use crate::cold::{Figures as ColdFigures, Point};
use crate::correctness::{Mark, Played, Scenario};
use crate::field::FIELD;
use crate::measure::{Grid, Results};
use crate::tables::setting;
use crate::{chart, goals, locked, machine, tables};

const INTRODUCTION: &str = include_str!("introduction.md");
const WHEN_WRONG: &str = include_str!("when-wrong.md");
const NOT_MEASURED: &str = include_str!("not-measured.md");
/// The crates whose versions matter.
const CRATES: [&str; 4] = ["aws-config", "aws-sdk-dynamodb", "lambda_runtime", "dynoxide-rs"];

/// What the page shows.
pub(crate) struct Measured<'a> {
    pub(crate) grid: &'a Grid,
    pub(crate) results: &'a Results,
    pub(crate) played: &'a [Played],
    pub(crate) cold: &'a [ColdFigures],
    pub(crate) took: Duration,
}

/// The whole page.
pub(crate) fn page(options: &Run, measured: &Measured<'_>) -> String {
    let Measured { grid, results, played, cold, took } = *measured;
    let mut text = format!("{}\n", INTRODUCTION.trim_end());
    let (latency_ms, _, concurrency) = tables::GLANCE;
    let _ = writeln!(
        text,
        "\n## At a glance\n\nFresh messages in batches of 10 and of 1,000, at {latency_ms} ms; where concurrency can be set, it \
         is {concurrency}. Requests and processor time are for each message.\n\n{}\n{}\n",
        tables::glance(results),
        opened(results)
    );
    for (file, alt, _) in chart::all(results) {
        let _ = writeln!(text, "![{alt}]({file})\n");
    }
    let _ = writeln!(
        text,
        "## When something goes wrong\n\n{}\n",
        WHEN_WRONG.trim_end().replace("{table}", &self::played(played))
    );
    let _ = writeln!(text, "## The run\n\n{}", run(options, results, took));
    let _ = writeln!(text, "## What was wanted\n\n{}", goals::table(results, cold));
    let _ = writeln!(text, "## Ratios\n");
    let _ = writeln!(
        text,
        "How many times as many messages per second claimant does, and how many times as much processor time the other \
         needs for a message: more than 1 is in claimant's favour in all tables. The bounded join has claimant's \
         concurrency.\n"
    );
    tables::each_table(grid, results, &mut text, tables::ratios);
    let _ = writeln!(text, "## Figures\n");
    let _ = writeln!(
        text,
        "Messages per second are those of the median batch; requests, units and processor time are means. With fewer \
         than 100 batches p99 is the slowest one.\n"
    );
    tables::each_table(grid, results, &mut text, tables::figures);
    let _ = writeln!(text, "## Cold starts\n\n{}", self::cold(cold));
    let _ = writeln!(text, "## What was not measured\n\n{}\n{}", NOT_MEASURED.trim_end(), left_out(results, played));
    format!("{}\n", text.trim_end())
}

/// The connections of each contestant, in a sentence.
fn opened(results: &Results) -> String {
    let of = FIELD.iter().zip(&results.opened).filter(|(_, opened)| opened.messages > 0).map(|(entry, opened)| {
        // OK because there are a few million of them.
        let per_thousand = opened.connections as f64 * 1e3 / opened.messages as f64;
        format!("{} {per_thousand:.2}", entry.title)
    });
    format!(
        "Connections to the store for 1,000 messages, over the whole run with its warming up; with TLS, each is a handshake: {}.",
        of.collect::<Vec<_>>().join(", ")
    )
}

/// Cold starts, as a table.
pub(crate) fn cold(functions: &[ColdFigures]) -> String {
    let ms = |sorted: &[Duration], share: f64| {
        // OK because there are a few dozen of them.
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.max(1) - 1).map_or("–".to_owned(), |d| format!("{:.1}", d.as_secs_f64() * 1e3))
    };
    let mut text = String::from(
        "| function | asks for work p50, ms | p90, ms | processor time p50, ms | first answer p50, ms | p90, ms | processor time p50, ms | binary, MB |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for f in functions {
        let megabytes = f.bytes as f64 / 1e6;
        let point = |point: &Point| [ms(&point.times, 0.5), ms(&point.times, 0.9), ms(&point.cpus, 0.5)].join(" | ");
        let _ = writeln!(text, "| {} | {} | {} | {megabytes:.2} |", f.title, point(&f.asked), point(&f.answered));
    }
    let starts = functions.first().map_or(0, |f| f.asked.times.len());
    let _ = writeln!(
        text,
        "\nFrom exec to the first request for work, and, in other starts, to the answer to the first message, which waits from the \
         beginning, as at a cold start on Lambda; {starts} starts each, in turns. The first says when Lambda takes a function for started. \
         claimant puts certificates, clients and threads off until then, so the second is what its first message waits for. Until its \
         answer the functions claim the order, send its mail and record it as done, without TLS, at a store and a mailbox on this machine, \
         which share its cores; the hello world asks nobody."
    );
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
        if let Ok(versions) = versions
            && !entry.ours
        {
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

/// What became of messages, as a table: a row for each scenario, a column for each contestant.
pub(crate) fn played(played: &[Played]) -> String {
    let seen: Vec<_> = played.iter().filter_map(|p| Some((p.entry.title, p.seen.as_ref().ok()?))).collect();
    let titles: Vec<&str> = seen.iter().map(|(title, _)| *title).collect();
    let mut text = format!("| | {} |\n| --- |{}\n", titles.join(" | "), " --- |".repeat(titles.len()));
    for (row, scenario) in Scenario::ALL.iter().enumerate() {
        let _ = write!(text, "| {} |", scenario.title());
        for (_, seen) in &seen {
            let mark = match seen[row].mark {
                Mark::Good => '✓',
                Mark::Price => '~',
                Mark::Bad => '✗',
            };
            let _ = write!(text, " {mark} {} |", seen[row].words);
        }
        text.push('\n');
    }
    text
}

/// The contestants that are missing, and the cells that would have taken too long, one line for each contestant and size.
fn left_out(results: &Results, played: &[Played]) -> String {
    let mut text = String::new();
    for (entry, versions) in FIELD.iter().zip(&results.versions) {
        if let Err(why) = versions {
            let _ = writeln!(text, "- {}, its speed: {why}.", entry.title);
        }
    }
    for Played { entry, seen } in played {
        if let Err(why) = seen {
            let _ = writeln!(text, "- {}, what becomes of its messages: {why}.", entry.title);
        }
    }
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
