//! `/messages`: the list of messages, searched by id, key, queue and state.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;
use claimant_core::Error;
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::source::{MessageList, MessageQuery, MessageRow, STANDINGS};
use crate::timeline::Standing;
use crate::timeline::words::{NO_ID, id_of};
use crate::ui::nav::Tab;
use crate::ui::table::{self, Column, table};
use crate::ui::{form, state, text};

const COLUMNS: [Column; 7] = [
    table::text("Message"),
    table::text("State"),
    table::text("Key"),
    table::text("Queue"),
    table::number("Received"),
    table::number("Sent"),
    table::number("Last seen"),
];

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/messages", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    // Where there is no list, an id still has a page.
    match page
        .as_ref()
        .ok()
        .filter(|page| page.list.missing.is_some())
        .and_then(|page| id_of(page.query.text.as_ref()?))
    {
        Some(id) => Redirect::to(&text::path("/messages/", &id)).into_response(),
        None => ask.page(&console, page),
    }
}

async fn page(console: &Console, ask: &Ask) -> Result<Messages, Error> {
    let text = |name: &str| ask.query.get(name).map(str::to_owned);
    let query = MessageQuery {
        text: text("text"),
        queue: text("queue"),
        state: ask.query.get("state").map(MessageQuery::standing).transpose()?,
        before: Some(ask.query.number("before", u64::MAX, 0..=u64::MAX)?).filter(|before| *before != u64::MAX),
    };
    let queues: Vec<_> = console.place().queues.iter().map(|queue| queue.name.clone()).collect();
    if let Some(queue) = query.queue.as_ref().filter(|queue| !queues.contains(queue)) {
        let (place, known) = (&console.place().name, queues.join(", "));
        return Err(Error::invalid(format!("{place} has no queue {queue:?}: it has {known}")));
    }
    let list = console.source().messages(&query).await?;
    Ok(Messages { query, list, queues })
}

#[derive(Serialize)]
struct Messages {
    query: MessageQuery,
    #[serde(flatten)]
    list: MessageList,
    #[serde(skip)]
    queues: Vec<String>,
}

impl Page for Messages {
    const TAB: Tab = Tab::Messages;

    fn title(&self) -> String {
        "Messages".to_owned()
    }

    fn above(&self) -> Markup {
        if self.list.missing.is_some() {
            let id = html! { input type="search" name="text" value=[&self.query.text] size="38" required autocomplete="off" spellcheck="false"; };
            return html! {
                form .fields.card role="search" method="get" action="/messages" {
                    (form::field("The id of a message, or its first 8 digits", &id))
                    button .main type="submit" { "Open" }
                }
            };
        }
        let any = [("", "any")];
        let queues = any.into_iter().chain(self.queues.iter().map(|name| (name.as_str(), name.as_str())));
        let states = any.into_iter().chain(STANDINGS.map(|standing| (standing.as_str(), standing.as_str())));
        let search = html! {
            input type="search" name="text" value=[&self.query.text] placeholder="any" autocomplete="off" spellcheck="false";
        };
        html! {
            form .fields role="search" method="get" action="/messages" {
                (form::field("Id or key has", &search))
                (form::field("Queue", &form::select("queue", queues, self.query.queue.as_deref())))
                (form::field("State", &form::select("state", states, self.query.state.map(Standing::as_str))))
                button .main type="submit" { "Search" }
                @if !self.query.is_for_all() { a .clear href="/messages" { "Show all" } }
            }
        }
    }

    fn live(&self) -> Markup {
        if let Some(typed) = self.query.text.as_ref().filter(|_| self.list.missing.is_some()) {
            let keys = html! { a href={ "/keys?text=" (text::encoded(typed)) } { "Look for it among the keys" } ": some thousands of records are read." };
            return text::empty(&format!("“{typed}” {NO_ID}"), &keys);
        }
        if let Some(missing) = &self.list.missing {
            return text::empty("No list of messages", &html! { (missing) });
        }
        html! {
            @if self.list.messages.is_empty() { (self.nothing()) }
            @else { (table("Messages", &COLUMNS, self.list.messages.iter().map(row))) }
            (self.pages())
            @if let Some(since) = self.list.since_ms {
                p .soft.small { "What happened before " (text::time(since)) " is not kept any more." }
            }
        }
    }
}

impl Messages {
    fn nothing(&self) -> Markup {
        if self.list.stopped {
            return text::empty("None of these so far", &html! { "Older messages have not been searched yet." });
        }
        if self.query.is_for_all() && self.list.known == 0 {
            let more = html! { a href="/send" { "Send a sample" } ", and see here what becomes of it." };
            return text::empty("No message has been sent yet", &more);
        }
        text::empty("No message fits", &html! { a href="/messages" { "Show all" } })
    }

    fn pages(&self) -> Markup {
        let older = if self.list.stopped { "Search older ones" } else { "Older" };
        if self.list.known == 0 {
            return html! {};
        }
        html! {
            nav .pages aria-label="Pages of the list" {
                span { @if self.query.before.is_some() { a href=(self.path(None)) { "← Newest" } } }
                span .soft.small { (text::counted(self.list.known as u64, "message", "messages")) " in all, with the copies in dead-letter queues, the newest first" }
                span { @if let Some(next) = self.list.next { a href=(self.path(Some(next))) { (older) " →" } } }
            }
        }
    }

    /// The path of another page of the same search.
    fn path(&self, before: Option<u64>) -> String {
        let MessageQuery { text, queue, state, .. } = &self.query;
        let (state, before) = (state.map(|state| state.as_str().to_owned()), before.map(|before| before.to_string()));
        let fields = [("text", text.clone()), ("queue", queue.clone()), ("state", state), ("before", before)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", text::encoded(&value?))));
        format!("/messages?{}", fields.collect::<Vec<_>>().join("&"))
    }
}

fn row(message: &MessageRow) -> Vec<Markup> {
    let keys = html! { @for key in &message.keys { (text::key(key)) " " } };
    vec![
        html! {
            (text::message(&message.id))
            @if let Some(original) = &message.copy_of { span .soft.small { " copy of " (text::message(original)) } }
        },
        state::of_standing(message.state),
        if message.keys.is_empty() {
            html! { span .soft { "–" } }
        } else {
            keys
        },
        html! { (message.queue) },
        text::count(message.receives.into()),
        text::time(message.sent_ms),
        text::time(message.last_ms),
    ]
}
