//! What measurements write into the book.

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

/// Returns a chapter's text with this between its markers.
///
/// # Errors
/// When it lacks one of them: a sentence.
pub fn between(text: &str, [from, to]: [&str; 2], new: &str) -> Result<String, String> {
    let (before, rest) = text.split_once(from).ok_or_else(|| format!("the chapter lacks {from:?}"))?;
    let (_, after) = rest.split_once(to).ok_or_else(|| format!("the chapter lacks {to:?}"))?;
    Ok(format!("{before}{from}{new}{to}{after}"))
}
