//! `/faults`: over the faults of helper journal.
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
    Router::new().route("/faults", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    ask.page(&console, Ok(Faults {}))
}

#[derive(Serialize)]
struct Faults {}

impl Page for Faults {
    const TAB: Tab = Tab::Faults;

    fn title(&self) -> String {
        "Faults".to_owned()
    }

    fn live(&self) -> Markup {
        text::empty("Nothing here yet", &html! {})
    }
}
