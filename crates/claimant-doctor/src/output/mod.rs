//! A report as text for a terminal, as JSON for programs, and as SARIF 2.1.0 for code scanning.

mod sarif;
mod text;

use serde_json::{Value, json};

use crate::finding::{Finding, Level, Report};

pub use sarif::sarif;
pub use text::text;

/// Returns the report as JSON: findings of the level and worse, accepted ones, tallies by check.
pub fn json(report: &Report, level: Level) -> Value {
    let accepted = report.accepted.iter().map(|accepted| {
        let mut value = finding(&accepted.finding);
        value["reason"] = accepted.reason.clone().into();
        value
    });
    let tallies = report.tallies.iter().map(|(number, tally)| {
        let check = &crate::CATALOG[usize::from(*number) - 1];
        json!({"check": check.name, "number": number, "fine": tally.fine, "found": tally.found, "unknown": tally.unknown})
    });
    json!({
        "findings": report.from(level).map(finding).collect::<Vec<_>>(),
        "accepted": accepted.collect::<Vec<_>>(),
        "checks": tallies.collect::<Vec<_>>(),
        "not_looked_at": report.not_looked_at,
    })
}

fn finding(finding: &Finding) -> Value {
    let Finding { check, level, place, what, fix } = finding;
    json!({
        "check": check.name,
        "number": check.number,
        "level": level,
        "file": place.file.as_deref(),
        "line": Some(place.line).filter(|line| *line > 0),
        "resource": &*place.id,
        "what": what,
        "why": check.why,
        "fine_when": check.fine,
        "fix": fix,
        "source": check.source,
    })
}
