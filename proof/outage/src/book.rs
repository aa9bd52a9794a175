//! What measurements write into the book.

use std::fs;
use std::path::Path;

/// Returns a table, in Markdown: a row for each name with its cells.
#[must_use]
pub fn markdown<C: IntoIterator<Item = String>>(
    first: &str,
    names: impl IntoIterator<Item = impl Into<String>>,
    rows: impl IntoIterator<Item = (String, C)>,
) -> String {
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    let head = [format!("| {first} | {} |", names.join(" | ")), format!("| ---{} |", " | ---:".repeat(names.len()))];
    let row =
        |(name, cells): (String, C)| format!("| {name} | {} |", cells.into_iter().collect::<Vec<_>>().join(" | "));
    head.into_iter().chain(rows.into_iter().map(row)).collect::<Vec<_>>().join("\n")
}

/// Returns by what a measurement divides its rates: by its only argument, if there is one.
///
/// # Errors
/// When that is no whole number from 1 to `most`, by which something becomes 0: a sentence that names it.
pub fn divisor(argument: Option<String>, most: u32) -> Result<Option<u32>, String> {
    let read = |text: String| match text.parse() {
        Ok(by) if (1..=most).contains(&by) => Ok(by),
        _ => Err(format!("{text:?}: rates are divided by a whole number from 1 to {most}")),
    };
    argument.map(read).transpose()
}

/// Writes parts into a chapter, whose path begins at the top of the repository: each between its two markers, and all or none.
///
/// # Errors
/// When the chapter lacks a marker, or cannot be read or written: a sentence that names it.
pub fn write_into(chapter: &str, parts: &[([&str; 2], &str)]) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(chapter);
    let mut text = fs::read_to_string(&path).map_err(|e| format!("{chapter} cannot be read: {e}"))?;
    for ([from, to], new) in parts {
        let (before, rest) = text.split_once(from).ok_or_else(|| format!("{chapter} lacks {from:?}"))?;
        let (_, after) = rest.split_once(to).ok_or_else(|| format!("{chapter} lacks {to:?}"))?;
        text = format!("{before}{from}{new}{to}{after}");
    }
    fs::write(&path, text).map_err(|e| format!("{chapter} cannot be written: {e}"))
}
