//! What was measured, as a table for the book.

use std::time::Duration;

use crate::seen::Seen;
use crate::setting::{Means, Setting};

/// Returns the table, in Markdown: a column for each run.
#[must_use]
pub fn table(setting: &Setting, runs: &[(Means, Seen)]) -> String {
    type Row = (&'static str, fn(&Setting, &Seen) -> String);
    const ROWS: [Row; 14] = [
        ("messages sent", |_, seen| number(seen.sent as u64)),
        ("dead-lettered", |_, seen| number(seen.dead.len() as u64)),
        ("lost, done twice", |_, seen| format!("{}, {}", number(seen.lost() as u64), number(seen.doubled() as u64))),
        ("in flight at once, at most", |_, seen| number(seen.in_flight_most() as u64)),
        ("time in which the queue was full of them", |setting, seen| time(seen.full(setting.in_flight_max))),
        ("calls of the system while it was away", |_, seen| number(seen.calls_away)),
        ("hours of invocations while it was away", |_, seen| {
            format!("{:.1}", seen.invoked_away.as_secs_f64() / 3_600.0)
        }),
        ("calls in one second once it was back, at most", |_, seen| number(seen.calls_most().into())),
        ("calls in a second while the backlog was worked off, by ten seconds", |setting, seen| pace(setting, seen, 10)),
        ("the same by minutes", |setting, seen| pace(setting, seen, 60)),
        ("backlog gone, after it was back", |setting, seen| {
            seen.drained(setting.sent_per_s).map_or_else(|| "never".into(), time)
        }),
        ("last message done, after it was back", |_, seen| time(seen.empty - seen.back)),
        ("pauses", |_, seen| number(seen.pauses.into())),
        ("requests for breaker and limit: reads, writes", |_, seen| {
            format!("{}, {}", number(seen.asked.0), number(seen.asked.1))
        }),
    ];
    let names: Vec<_> = runs.iter().map(|(means, _)| means.name()).collect();
    let mut lines = vec![format!("| | {} |", names.join(" | ")), format!("| ---{} |", " | ---:".repeat(runs.len()))];
    for (what, cell) in ROWS {
        let cells: Vec<_> = runs.iter().map(|(_, seen)| cell(setting, seen)).collect();
        lines.push(format!("| {what} | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

fn pace(setting: &Setting, seen: &Seen, by: usize) -> String {
    let pace = seen.pace(setting.sent_per_s, by);
    pace.map_or_else(String::new, |(least, most)| format!("{} to {}", number(least), number(most)))
}

/// Returns a number with its thousands apart.
#[must_use]
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns a time in seconds, or in minutes and seconds.
#[must_use]
pub fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
