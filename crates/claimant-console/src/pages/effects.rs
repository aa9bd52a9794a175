//! `/effects`: mails, charges, cards, bookings, stock, each with how often it happened.
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
    Router::new().route("/effects", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    ask.page(&console, Ok(Effects {}))
}

#[derive(Serialize)]
struct Effects {}

impl Page for Effects {
    const TAB: Tab = Tab::Effects;

    fn title(&self) -> String {
        "Effects".to_owned()
    }

    fn live(&self) -> Markup {
        text::empty("Nothing here yet", &html! {})
    }
}
