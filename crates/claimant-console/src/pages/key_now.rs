//! A key of a message, at this moment, and what would become of the message.

use claimant_core::error::Chain;
use claimant_core::{Error, RecordId};
use claimant_operate::open::find;
use maud::{Markup, html};
use serde::Serialize;

use crate::console::Console;
use crate::timeline::words::sentence;
use crate::ui::state::of_record;
use crate::ui::text;

/// Keys of a message whose records are read: a message of several events has several.
const KEYS_MAX: usize = 10;

/// A key of the message, at this moment.
#[derive(Serialize)]
pub(super) struct KeyNow {
    pub(super) record: String,
    pub(super) state: Option<&'static str>,
    says: String,
    /// What would become of the message if it came now.
    next: Option<String>,
}

/// Returns these keys of a message, ten at most, whose last outcome is known or not. One that cannot be read says why.
pub(super) async fn of(
    console: &Console,
    keys: impl Iterator<Item = &str>,
    message: &str,
    outcome: Option<&str>,
) -> Vec<KeyNow> {
    let mut now = Vec::new();
    for key in keys.take(KEYS_MAX) {
        let not_read = |error: Error| KeyNow {
            record: key.to_owned(),
            state: None,
            says: sentence(&format!("its record was not read: {}", Chain(&error))),
            next: None,
        };
        now.push(key_now(console, key, message, outcome).await.unwrap_or_else(not_read));
    }
    now
}

async fn key_now(console: &Console, key: &str, message: &str, outcome: Option<&str>) -> Result<KeyNow, Error> {
    let inspection = find(console.stores().await?, &RecordId::from_stored(key)?).await?.inspect()?;
    // The cases are the message of the last claim, another message, and one with another payload.
    let is_claimant = inspection.record.as_ref().is_some_and(|record| record.message_id.as_str() == message);
    let mut cases = inspection.next.iter();
    let case = match outcome {
        Some("conflict") => cases.next_back(),
        _ if is_claimant => cases.next(),
        _ => cases.rev().nth(1),
    };
    Ok(KeyNow {
        record: key.to_owned(),
        state: inspection.state.map(claimant_core::State::as_str),
        says: inspection.headline(),
        next: case.map(|case| format!("If the message came now, it {}.", now_would(&case.says))),
    })
}

/// Returns what a forecast says, after "if it came now, it": would be, would run, …
fn now_would(says: &str) -> String {
    match says.split_once(' ').unwrap_or((says, "")) {
        ("is", rest) => format!("would be {rest}").replacen("be not run", "not be run", 1),
        ("comes", rest) => format!("would come {rest}"),
        ("runs," | "runs", rest) => format!("would run, {rest}").trim_end_matches([',', ' ']).to_owned(),
        _ => says.to_owned(),
    }
}

/// Draws them.
pub(super) fn draw(keys: &[KeyNow]) -> Markup {
    html! {
        @for key in keys {
            section .card.key {
                header {
                    h2 { "Its key " (text::key(&key.record)) }
                    @if let Some(state) = key.state { (of_record(state)) }
                }
                p { (key.says) @if let Some(next) = &key.next { " " (next) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_follow_an_if() {
        for (says, would) in [
            ("runs", "would run"),
            ("runs, as attempt 2", "would run, as attempt 2"),
            ("is a duplicate: skipped", "would be a duplicate: skipped"),
            ("is not run: the key is parked", "would not be run: the key is parked"),
            ("comes back later", "would come back later"),
        ] {
            assert_eq!(now_would(says), would);
        }
    }
}
