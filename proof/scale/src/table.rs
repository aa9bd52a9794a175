//! What was measured, as tables for the book.

use std::time::Duration;

use claimant_outage::{markdown, number, time};

use crate::case::Case;
use crate::seen::{Sample, Seen};

/// Returns the table of all cases, in Markdown: a row for each.
#[must_use]
pub fn table(runs: &[(Case, Seen)]) -> String {
    type Column = (&'static str, fn(&Case, &Seen) -> String);
    const COLUMNS: [Column; 10] = [
        ("size", |case, _| if case.divided_by == 1 { "1".to_owned() } else { format!("1/{}", case.divided_by) }),
        ("throttled", |_, seen| share(seen.counts().throttled, seen.asked())),
        ("from, to", |_, seen| seen.throttled().map_or_else(|| "–".to_owned(), |(from, to)| format!("{from}, {to} s"))),
        ("units a message", |_, seen| format!("{:.2}", seen.counts().writes as f64 / seen.sent as f64)),
        ("waiting, at most", |_, seen| number(seen.most(|sample| sample.visible) as u64)),
        ("invocations at once", |_, seen| number(seen.most(|sample| sample.invocations) as u64)),
        ("done after: half, 99 %, all", |_, seen| {
            format!("{}, {}, {}", short(seen.age(500)), short(seen.age(990)), short(seen.age(1_000)))
        }),
        ("received again", |_, seen| share(seen.receives - seen.sent as u64, seen.sent as u64)),
        ("run again", |_, seen| number(seen.repeated)),
        ("dead-lettered", |_, seen| number(seen.dead as u64)),
    ];
    let rows = runs.iter().map(|(case, seen)| (case.name.to_owned(), COLUMNS.map(|(_, cell)| cell(case, seen))));
    markdown("", COLUMNS.map(|(name, _)| name), rows)
}

/// Returns one run by its minutes, in Markdown: a row for each so many.
#[must_use]
pub fn minutes(case: &Case, seen: &Seen, by: usize) -> String {
    let rows = seen.samples.chunks(60 * by).enumerate().map(|(index, samples)| {
        let all = Seen { samples: samples.to_vec(), ..Seen::default() };
        let (counts, end) = (all.counts(), samples.last().copied().unwrap_or_default());
        let Sample { partitions, visible, .. } = end;
        let per_s = counts.writes * case.divided_by / samples.len() as u64;
        let visible = visible as u64 * case.divided_by;
        let cells = [partitions as u64, per_s, visible].map(number);
        let [partitions, per_s, visible] = cells;
        let name = format!("{} to {}", index * by, (index + 1) * by);
        (name, [partitions, per_s, share(counts.throttled, all.asked()), visible])
    });
    markdown("minutes", ["partitions, at the end", "write units a second", "throttled", "waiting, at the end"], rows)
}

fn share(part: u64, all: u64) -> String {
    match part as f64 / all.max(1) as f64 * 100.0 {
        _ if part == 0 => "0".to_owned(),
        percent if percent < 0.01 => "< 0.01 %".to_owned(),
        percent if percent < 2.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.0} %"),
    }
}

fn short(age: Duration) -> String {
    if age < Duration::from_secs(10) { format!("{:.2} s", age.as_secs_f64()) } else { time(age) }
}
