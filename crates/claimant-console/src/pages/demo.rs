//! `/demo`: a duplicate absorbed, a killed process taken over and a dead letter redriven, by one click.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::demo::{self, Chapter};
use maud::{Markup, html};
use serde_json::json;

use crate::act::Act;
use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::demo::Demo;
use crate::done::Done;
use crate::ui::badge::{Tone, badge};
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::text;

const PATH: &str = "/demo";

/// What it has, in its order.
const CHAPTERS: [&str; 3] = ["A duplicate is absorbed", "A killed process is taken over", "A dead letter is redriven"];

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route(PATH, get(show).post(begin))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = console.demo().clone();
    ask.page(&console, Ok::<_, Error>(page))
}

async fn begin(State(console): State<Console>, act: Act) -> Response {
    let done = begun(&console, &act);
    act.ask.done(&console, Tab::Overview, done)
}

/// Begins it, as `claimant demo` does.
fn begun(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&[], None)?;
    demo::check(console.place())?;
    let began = console.demo().begin();
    if began {
        let console = console.clone();
        tokio::spawn(async move {
            let over = console.clone();
            let mut chapter = |chapter| over.demo().chapters.push(chapter);
            let ended = demo::run(console.place(), &mut chapter).await;
            console.demo().end(ended.err().map(|error| Chain(&error).to_string()));
        });
    }
    // A second click has what it wanted.
    Ok(Done::new("It takes about ten seconds.", PATH, json!({ "began": began })))
}

impl Page for Demo {
    const TAB: Tab = Tab::Overview;

    fn title(&self) -> String {
        "Show me".to_owned()
    }

    fn above(&self) -> Markup {
        html! {
            p .lead {
                "Orders and payments are sent to the sample functions: one twice, one to a process that is killed, one that cannot be "
                "handled. Each message keeps its page."
            }
        }
    }

    fn live(&self) -> Markup {
        html! {
            @for (at, title) in CHAPTERS.iter().enumerate() {
                section .card {
                    h2 { (title) }
                    @match self.chapters.get(at) {
                        Some(chapter) => (self::chapter(chapter)),
                        None if self.running && at == self.chapters.len() => p { (badge(Tone::Busy, "under way")) },
                        None if self.failed.is_some() && at == self.chapters.len() => p .error role="alert" { (self.failed.as_deref().unwrap_or_default()) },
                        None => p .soft { "Not yet." },
                    }
                }
            }
            @if !self.running { (form::act(PATH, if self.chapters.is_empty() { "Show me" } else { "Show me again" }, &[])) }
        }
    }

    fn summary(&self) -> Option<String> {
        Some(format!("{} of {} were shown.", self.chapters.len(), CHAPTERS.len()))
    }
}

fn chapter(chapter: &Chapter) -> Markup {
    html! {
        p { (badge(Tone::Good, "done")) " " (chapter.says) }
        ul {
            @for message in &chapter.messages {
                li { a href=(text::path("/messages/", &message.id)) { (message.is) } }
            }
        }
    }
}
