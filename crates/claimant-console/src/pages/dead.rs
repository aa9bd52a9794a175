//! `/dead`: dead letters by fingerprint; `/dead/GROUP`.
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
    Router::new().route("/dead", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    ask.page(&console, Ok(Dead {}))
}

#[derive(Serialize)]
struct Dead {}

impl Page for Dead {
    const TAB: Tab = Tab::Dead;

    fn title(&self) -> String {
        "Dead letters".to_owned()
    }

    fn live(&self) -> Markup {
        text::empty("Nothing here yet", &html! {})
    }
}
