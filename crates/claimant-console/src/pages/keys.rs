//! `/keys`: search, record, attempts, "if it came now", release, reset, forget, resolve.
// Owner: helper message. Replace all of it.

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
    Router::new().route("/keys", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    ask.page(&console, Ok(Keys {}))
}

#[derive(Serialize)]
struct Keys {}

impl Page for Keys {
    const TAB: Tab = Tab::Keys;

    fn title(&self) -> String {
        "Keys".to_owned()
    }

    fn live(&self) -> Markup {
        text::empty("Nothing here yet", &html! {})
    }
}
