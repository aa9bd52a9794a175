//! `/messages/ID`: one message's timeline.
// Owner: helper message. Replace all of it.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::ui::nav::Tab;
use crate::ui::text;

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/messages/{id}", get(show))
}

async fn show(State(console): State<Console>, Path(id): Path<String>, ask: Ask) -> Response {
    ask.page(&console, Ok(Message { id }))
}

#[derive(Serialize)]
struct Message {
    id: String,
}

impl Page for Message {
    const TAB: Tab = Tab::Messages;

    fn title(&self) -> String {
        format!("Message {}", self.id)
    }

    fn live(&self) -> Markup {
        text::empty("Nothing here yet", &html! {})
    }
}
