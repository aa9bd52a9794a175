//! `/messages/ID`: where a message is and why, its timeline, its keys and its body.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use claimant_core::{Clock as _, Error, RecordId, SystemClock};
use claimant_operate::open::find;
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::timeline::{self, Standing, Step, tell};
use crate::ui::nav::Tab;
use crate::ui::state::{of_record, of_standing};
use crate::ui::{steps, text};

/// How much of a body is shown, in bytes.
const BODY_SHOWN_MAX: usize = 64 * 1024;

/// Keys of a message whose records are read: a message of several events has several.
const KEYS_MAX: usize = 10;

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/messages/{id}", get(show))
}

async fn show(State(console): State<Console>, Path(id): Path<String>, ask: Ask) -> Response {
    match page(&console, &id).await {
        Ok(Some(page)) => ask.page(&console, Ok(page)),
        Ok(None) => ask.absent(
            &console,
            Tab::Messages,
            &format!(
                "Nothing is known of a message {}. It may have been sent before the console was started.",
                timeline::words::short(&id)
            ),
        ),
        Err(error) => ask.refused(&console, Tab::Messages, &error),
    }
}

/// One message.
#[derive(Serialize)]
struct Message {
    id: String,
    state: Standing,
    says: Vec<String>,
    keys: Vec<KeyNow>,
    same_key: Vec<Other>,
    steps: Vec<Step>,
    left_out: usize,
    missing: Option<String>,
    body: Option<Body>,
}

/// A key of the message, at this moment.
#[derive(Serialize)]
struct KeyNow {
    record: String,
    state: Option<&'static str>,
    says: String,
    /// What would become of the message if it came now.
    next: Option<String>,
}

/// Another message of the same key.
#[derive(Serialize)]
struct Other {
    id: String,
    state: Standing,
}

#[derive(Serialize)]
struct Body {
    text: String,
    bytes: usize,
}

async fn page(console: &Console, id: &str) -> Result<Option<Message>, Error> {
    let Some(known) = console.source().message(id).await? else { return Ok(None) };
    let Some(told) = tell(known.facts, id, SystemClock.now()) else { return Ok(None) };
    let mut keys = Vec::new();
    for key in known.keys.iter().take(KEYS_MAX) {
        keys.push(key_now(console, key, id, told.outcome.as_deref()).await?);
    }
    let fallen_out = "The beginning of this message is no longer in the journal.".to_owned();
    let missing = if told.is_whole { known.missing } else { Some(known.missing.unwrap_or(fallen_out)) };
    Ok(Some(Message {
        id: id.to_owned(),
        state: told.standing,
        says: told.says,
        keys,
        same_key: told.copies.into_iter().map(|(id, state)| Other { id, state }).collect(),
        steps: told.steps,
        left_out: told.left_out,
        missing,
        body: known.body.map(|text| Body { bytes: text.len(), text: shown(text) }),
    }))
}

async fn key_now(console: &Console, key: &str, message: &str, outcome: Option<&str>) -> Result<KeyNow, Error> {
    let ids = [RecordId::from_stored(key)?];
    let (id, store) = find(console.stores().await?, &ids).await?;
    let inspection = store.keys.inspect(&id).await?;
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

fn shown(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(BODY_SHOWN_MAX));
    text
}

impl Page for Message {
    const TAB: Tab = Tab::Messages;

    fn title(&self) -> String {
        format!("Message {}", timeline::words::short(&self.id))
    }

    fn summary(&self) -> Option<String> {
        None
    }

    fn live(&self) -> Markup {
        html! {
            section .story aria-label="Where it is and why" {
                header { (of_standing(self.state)) code .soft { (self.id) } }
                @for (at, sentence) in self.says.iter().enumerate() {
                    p .says[at == 0] role=[(at == 0).then_some("status")] { (sentence) }
                }
            }
            @for key in &self.keys {
                section .card.key {
                    header {
                        h2 { "Its key " (text::key(&key.record)) }
                        @if let Some(state) = key.state { (of_record(state)) }
                    }
                    p { (key.says) @if let Some(next) = &key.next { " " (next) } }
                }
            }
            @if !self.same_key.is_empty() {
                section {
                    h2 { "Related messages" }
                    p .soft { "They have the same key, or one was made from the other." }
                    ul .others { @for other in &self.same_key { li { (text::message(&other.id)) (of_standing(other.state)) } } }
                }
            }
            section {
                h2 { "What happened" }
                @if let Some(missing) = &self.missing { p .soft { (missing) } }
                (steps::timeline(&self.steps, self.left_out))
            }
        }
    }

    fn below(&self) -> Markup {
        html! {
            section {
                h2 { "Body" }
                @match &self.body {
                    Some(body) => {
                        pre .body tabindex="0" aria-label="Body" { (text::spread(&body.text)) }
                        @if body.text.len() < body.bytes { p .soft { "The first " (body.text.len()) " of " (body.bytes) " bytes." } }
                    }
                    None => p .soft { "It is no longer kept." }
                }
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
