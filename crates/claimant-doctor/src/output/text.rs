//! Text for a terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::finding::{Finding, Level, Report};

/// The narrowest that texts are wrapped to.
const WIDTH_MIN: usize = 40;

/// Returns the report as text: findings of the level and worse, and a last line with what else there is. No line is wider
/// than `width`, words and addresses longer than that aside. A template can hold anything, also what would steer a terminal: who prints this
/// escapes it.
pub fn text(report: &Report, level: Level, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let mut out = String::new();
    let mut explained = BTreeSet::new();
    for finding in report.from(level) {
        show(&mut out, finding, explained.insert(finding.check.number), width);
    }
    for line in &report.not_looked_at {
        wrapped(&mut out, "not looked at: ", line, width);
    }
    if report.unknown() > 0 && !report.unvalued.is_empty() {
        let options = report.unvalued.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let given = format!("may depend on parameters without a value: give {options}");
        wrapped(&mut out, "not known: ", &given, width);
    }
    out.push_str(&last_line(report, level));
    out
}

/// Writes a finding; what is the same for all of its check only the first time.
fn show(out: &mut String, finding: &Finding, explain: bool, width: usize) {
    let Finding { check, level, place, what, fix } = finding;
    let level = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Note => "note",
    };
    let at = match &place.file {
        Some(file) => format!("{file}:{}: ", place.line),
        None => String::new(),
    };
    let head = format!("{at}{level}: {} ({}, check {})", place.id, check.name, check.number);
    wrapped(out, "", &head, usize::MAX);
    wrapped(out, "  what  ", what, width);
    wrapped(out, "  fix   ", fix, width);
    if explain {
        wrapped(out, "  why   ", check.why, width);
        wrapped(out, "  fine  ", check.fine, width);
        wrapped(out, "  see   ", &check.see(), width);
    }
    out.push('\n');
}

/// Writes a text after its label, the lines after the first as far in.
fn wrapped(out: &mut String, label: &str, text: &str, width: usize) {
    let indent = label.chars().count();
    let room = width.saturating_sub(indent).max(20);
    let mut line = String::new();
    let mut begin = label.to_owned();
    let mut put = |line: &mut String| {
        // Nothing can go wrong: a text takes what is written to it.
        let _ = writeln!(out, "{begin}{line}");
        begin = " ".repeat(indent);
        line.clear();
    };
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            put(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    put(&mut line);
}

fn last_line(report: &Report, level: Level) -> String {
    let count = |level| report.findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings, notes) = (count(Level::Error), count(Level::Warning), count(Level::Note));
    let unknown = report.unknown();
    let asked: usize = report.tallies.values().map(|tally| tally.fine + tally.found + tally.unknown).sum();
    let mut line = format!(
        "{} checks, {asked} answers: {}, {}, {}, {} accepted, {unknown} not known",
        report.tallies.len(),
        counted(errors, "error"),
        counted(warnings, "warning"),
        counted(notes, "note"),
        report.accepted.len()
    );
    let hidden = report.findings.len() - report.from(level).count();
    if hidden > 0 {
        let _ = write!(line, "; {hidden} of these not shown (--level note)");
    }
    line.push('\n');
    line
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
