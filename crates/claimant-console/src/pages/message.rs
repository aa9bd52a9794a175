//! `/messages/ID`: where a message is and why, its timeline, its keys and its body.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use claimant_core::{Clock as _, Error, SystemClock};
use maud::{Markup, html};
use serde::Serialize;

use super::key_now::{self, KeyNow};
use super::sending::MESSAGE;
use super::trace;
use crate::answer::Page;
use crate::ask::{Ask, Reader};
use crate::console::{Console, FORM};
use crate::source::MessageQuery;
use crate::timeline::{self, Kind, Standing, Step, tell};
use crate::ui::nav::Tab;
use crate::ui::state::of_standing;
use crate::ui::{form, steps, text};

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/messages/{id}", get(show))
}

async fn show(State(console): State<Console>, Path(id): Path<String>, ask: Ask) -> Response {
    if !console.place().is_local() {
        let page = trace::page(&console, &ask, id).await;
        return ask.page(&console, page);
    }
    match page(&console, &id).await {
        Ok(Some(mut page)) => {
            if ask.reader == Reader::Browser {
                page.form = console.new_form();
            }
            ask.page(&console, Ok(page))
        }
        Ok(None) => match of_beginning(&console, &id).await {
            Some(whole) => Redirect::to(&text::path("/messages/", &whole)).into_response(),
            None => ask.absent(
                &console,
                Tab::Messages,
                &format!(
                    "Nothing is known of a message {}. It may have been sent before the console was started.",
                    timeline::words::short(&id)
                ),
            ),
        },
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
    /// The number of the form that sends it again.
    #[serde(skip)]
    form: String,
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

/// Returns the whole id of the message whose id begins so, as pages show it, if one is known.
async fn of_beginning(console: &Console, typed: &str) -> Option<String> {
    let id = timeline::words::id_of(typed)?;
    let query = MessageQuery { text: Some(id.clone()), ..MessageQuery::default() };
    let found = console.source().messages(&query).await.ok()?.messages;
    let mut found =
        found.into_iter().map(|message| message.id).filter(|whole| whole.starts_with(&id) && whole != typed);
    found.next().filter(|_| found.next().is_none())
}

async fn page(console: &Console, id: &str) -> Result<Option<Message>, Error> {
    let Some(known) = console.source().message(id).await? else { return Ok(None) };
    let Some(mut told) = tell(known.facts, id, SystemClock.now()) else { return Ok(None) };
    // Who waits for what does not come is to know it first.
    if let (Standing::Waiting | Standing::Delayed | Standing::ComesBack, Some(queue)) = (told.standing, &told.queue) {
        let not_read = console.source().overview().await?.why_not_read(queue);
        told.says.splice(1..1, not_read);
    }
    let keys = key_now::of(console, known.keys.iter().map(String::as_str), id, told.outcome.as_deref()).await;
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
        body: known.body.map(|text| Body { bytes: text.len(), text: text::beginning(text) }),
        form: String::new(),
    }))
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
            @if self.keys.is_empty() {
                // Where the key will stand, so that nothing moves when it comes.
                section .card.key {
                    header { h2 { "Its key" } }
                    p .soft {
                        @if self.left_out > 0 || self.steps.iter().any(|step| step.kind == Kind::Receive) {
                            "None is known: no claim of its own was seen. A duplicate makes none where it is in one batch with the message that "
                            "does the work, or where its key is read first and found completed."
                        } @else { "None is known before its function reads it." }
                    }
                }
            }
            (key_now::draw(&self.keys))
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
                        (text::body(&body.text, body.bytes))
                        div .acts {
                            (form::act("/send", "Send again", &[(MESSAGE, &self.id), (FORM, &self.form)]))
                            a .button href={ "/send?message=" (text::encoded(&self.id)) } { "Edit and send" }
                        }
                    }
                    None => p .soft { "It is no longer kept." }
                }
            }
        }
    }
}
