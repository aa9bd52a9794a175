//! The names and values in a line about a message or a batch: text or JSON, as `claimant-lambda` formats them. Pure.

use std::collections::HashMap;
use std::str::FromStr;

use serde_json::Value;

/// What a line is about, and its values as texts.
pub(super) struct Fields<'w> {
    /// The event's own words.
    pub(super) about: &'w str,
    values: HashMap<String, String>,
}

impl<'w> Fields<'w> {
    /// Returns those of a line that says one of these words; `None` of any other.
    pub(super) fn of(line: &str, words: &[&'w str]) -> Option<Self> {
        let mut words = words.iter().filter(|words| line.contains(**words)).peekable();
        words.peek()?;
        if let Ok(Value::Object(fields)) = serde_json::from_str(line) {
            let message = fields.get("message").and_then(Value::as_str)?;
            let about = words.find(|words| **words == message)?;
            let values = fields.into_iter().filter_map(|(name, value)| Some((name, text(value)?)));
            return Some(Self { about, values: values.collect() });
        }
        let (about, rest) = words.find_map(|words| Some((words, after(line, words)?)))?;
        let mut values = HashMap::new();
        for (name, value) in rest.split_whitespace().filter_map(|field| field.split_once('=')) {
            values.entry(name.to_owned()).or_insert_with(|| unquoted(value));
        }
        Some(Self { about, values })
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns a number, or whether something is so.
    pub(super) fn parsed<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// A text in quotes has escapes. One without is as it stands, also where it looks like a number: the consumer's name, and ids.
fn unquoted(value: &str) -> String {
    let quoted = value.starts_with('"').then(|| serde_json::from_str(value).ok());
    quoted.flatten().unwrap_or_else(|| value.to_owned())
}

/// Returns what follows an event's own words in a line of text. Fields of spans stand before them in braces at most: behind a field of the event,
/// they are in what it quotes.
fn after<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let (before, rest) = line.split_once(words)?;
    let has_field = |part: &str| part.split('{').next().is_some_and(|outside| outside.contains('='));
    (!before.split('}').any(has_field)).then_some(rest)
}
