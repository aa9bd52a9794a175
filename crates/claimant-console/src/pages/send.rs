//! `/send`: samples of each function in every envelope.
// Owner: helper acts. Replace all of it.

use axum::Router;
use axum::extract::State;
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
    Router::new().route("/send", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    ask.page(&console, Ok(Send {}))
}

#[derive(Serialize)]
struct Send {}

impl Page for Send {
    const TAB: Tab = Tab::Send;

    fn title(&self) -> String {
        "Send".to_owned()
    }

    fn live(&self) -> Markup {
        text::empty("Nothing here yet", &html! {})
    }
}
