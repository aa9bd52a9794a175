//! PartiQL, as far as claimant uses it: one `INSERT … VALUE {…}` or one `UPDATE … SET … REMOVE … WHERE …`, all values as parameters.

use serde_json::Value;

use super::expression::{Item, Unknown};

/// A statement with its values.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) table: String,
    pub(super) id: String,
    pub(super) inserts: bool,
    /// What is set; for an `INSERT`, the whole item.
    pub(super) set: Item,
    /// What is removed.
    pub(super) removed: Vec<String>,
    /// What must be there.
    pub(super) guards: Item,
}

impl Statement {
    pub(super) fn parse(request: &Value) -> Result<Self, Unknown> {
        let text = request["Statement"].as_str().unwrap_or_default();
        let unknown = || Unknown(format!("the statement {text:?}"));
        let mut values = request["Parameters"].as_array().into_iter().flatten().cloned();
        let mut named = |part: &str, quote: char| -> Option<Item> {
            let names: Vec<String> = quoted(part, quote);
            names.into_iter().map(|name| Some((name, values.next()?))).collect()
        };
        let table = quoted(text, '"').into_iter().next().ok_or_else(unknown)?;
        let (inserts, set, removed, guards) = if text.starts_with("INSERT INTO ") {
            (true, named(text, '\'').ok_or_else(unknown)?, Vec::new(), Item::new())
        } else {
            let (set, guards) = text.split_once(" WHERE ").ok_or_else(unknown)?;
            let (_, set) = set.split_once(" SET ").filter(|_| text.starts_with("UPDATE ")).ok_or_else(unknown)?;
            let (set, removed) = set.split_once(" REMOVE ").unwrap_or((set, ""));
            let (set, guards) = (named(set, '"').ok_or_else(unknown)?, named(guards, '"').ok_or_else(unknown)?);
            (false, set, quoted(removed, '"'), guards)
        };
        let id = if inserts { set.get("id") } else { guards.get("id") };
        let id = id.and_then(|id| id["S"].as_str()).ok_or_else(unknown)?.to_owned();
        Ok(Self { table, id, inserts, set, removed, guards })
    }
}

/// What stands in quotes, in order; no name here has a quote in it.
fn quoted(text: &str, quote: char) -> Vec<String> {
    text.split(quote).skip(1).step_by(2).map(str::to_owned).collect()
}
