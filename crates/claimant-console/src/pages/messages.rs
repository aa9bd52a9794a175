//! `/messages`: the list of messages, searched by id, key, queue and state.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::Error;
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::source::{MessageList, MessageQuery, MessageRow};
use crate::ui::nav::Tab;
use crate::ui::table::{self, Column, table};
use crate::ui::text;

const COLUMNS: [Column; 6] = [
    table::text("Message"),
    table::text("Queue"),
    table::text("State"),
    table::text("Key"),
    table::number("Received"),
    table::number("Sent at"),
];

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/messages", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

async fn page(console: &Console, ask: &Ask) -> Result<Messages, Error> {
    let text = |name: &str| ask.query.get(name).map(str::to_owned);
    let after = ask.query.number("after", u64::MAX, 0..=u64::MAX)?;
    let query = MessageQuery {
        text: text("text"),
        queue: text("queue"),
        state: text("state"),
        after: (after != u64::MAX).then_some(after),
    };
    let list = console.source().messages(&query).await?;
    Ok(Messages { query, list })
}

#[derive(Serialize)]
struct Messages {
    query: MessageQuery,
    #[serde(flatten)]
    list: MessageList,
}

impl Page for Messages {
    const TAB: Tab = Tab::Messages;

    fn title(&self) -> String {
        "Messages".to_owned()
    }

    fn live(&self) -> Markup {
        if self.list.messages.is_empty() {
            return text::empty("No messages", &html! { "Send one on " a href="/send" { "Send" } "." });
        }
        table("Messages", &COLUMNS, self.list.messages.iter().map(row))
    }
}

fn row(message: &MessageRow) -> Vec<Markup> {
    vec![
        text::message(&message.id),
        html! { (message.queue) },
        html! { (message.state) },
        html! { @if let Some(key) = &message.key { (text::key(key)) } },
        text::count(message.receives),
        text::time(message.sent_ms),
    ]
}
