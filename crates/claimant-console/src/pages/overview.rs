//! `/`: queues, functions and outcomes, and the last minutes.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use claimant_core::Error;
use claimant_operate::intake::{Change, Intake};
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::{Done, Page};
use crate::ask::{Act, Ask};
use crate::console::Console;
use crate::history::Sample;
use crate::source::{ConsumerState, FunctionState, Overview, QueueState};
use crate::ui::badge::{Tone, badge};
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::table::{self, Column, table};
use crate::ui::text;

/// Where mappings are paused and resumed.
const MAPPINGS: &str = "/mappings";

const QUEUES: [Column; 7] = [
    table::text("Queue"),
    table::number("Visible"),
    table::number("In flight"),
    table::number("Delayed"),
    table::number("Dead letters"),
    table::number("Sent"),
    table::number("Deleted"),
];

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/", get(show)).route(MAPPINGS, post(switch))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console).await;
    ask.page(&console, page)
}

async fn page(console: &Console) -> Result<Shown, Error> {
    let overview = console.source().overview().await?;
    Ok(Shown { overview, history: console.history().samples() })
}

async fn switch(State(console): State<Console>, act: Act) -> Response {
    let done = switched(&console, &act).await;
    act.ask.done(&console, Tab::Overview, done)
}

/// Pauses or resumes the mappings of a function, as `claimant pause` and `claimant resume` do.
async fn switched(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    let (function, enabled) = (act.fields.required("function")?, act.fields.required("enabled")? == "true");
    let intake = Intake::of(console.place());
    let mut changed = Vec::new();
    for mapping in intake.list(Some(function)).await? {
        let change = Change { enabled: Some(enabled), ..Change::default() };
        changed.push(intake.change(&mapping, change).await?.to_json());
    }
    let text = match (changed.is_empty(), enabled) {
        (true, _) => return Ok(Done::refused(format!("{function} has no event source mapping."), "/", changed.into())),
        (false, true) => format!("{function} gets messages again."),
        (false, false) => format!("{function} gets no more messages; what is in flight ends as it would."),
    };
    Ok(Done::new(text, "/", changed.into()))
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    overview: Overview,
    history: Vec<Sample>,
}

impl Page for Shown {
    const TAB: Tab = Tab::Overview;

    fn title(&self) -> String {
        "Overview".to_owned()
    }

    fn summary(&self) -> Option<String> {
        let (waiting, in_flight, dead) = self.overview.totals();
        let work = match waiting + in_flight {
            0 => "Nothing waits and nothing is in flight.",
            _ => "Messages are being worked on.",
        };
        let dead =
            if dead == 0 { String::new() } else { format!(" {}.", text::counted(dead, "dead letter", "dead letters")) };
        Some(format!("{work}{dead}"))
    }

    fn live(&self) -> Markup {
        html! {
            section {
                h2 { "Queues" }
                (table("Queues", &QUEUES, self.queues()))
            }
            section {
                h2 { "Functions" }
                @for function in &self.overview.functions { (self::function(function)) }
            }
            section {
                h2 { "Outcomes" }
                @for consumer in &self.overview.consumers { (self::consumer(consumer)) }
            }
        }
    }
}

impl Shown {
    fn queues(&self) -> impl Iterator<Item = Vec<Markup>> {
        let queues = &self.overview.queues;
        queues.iter().filter(|queue| !queue.is_dead_letter_queue).map(|queue| {
            let dead = queues.iter().find(|other| queue.dead_letter_queue.as_ref() == Some(&other.name));
            self::queue(queue, dead)
        })
    }
}

fn queue(queue: &QueueState, dead: Option<&QueueState>) -> Vec<Markup> {
    let counts = queue.counts.unwrap_or_default();
    vec![
        html! { (queue.name) },
        text::count(queue.visible),
        text::count(queue.in_flight),
        text::count(queue.delayed),
        html! { @if let Some(dead) = dead { (text::count(dead.visible + dead.in_flight + dead.delayed)) } },
        text::count(counts.sent),
        text::count(counts.deleted),
    ]
}

fn function(function: &FunctionState) -> Markup {
    let is_on = function.mappings.iter().any(|mapping| mapping.is_on);
    let (label, enabled) = if is_on { ("Pause", "false") } else { ("Resume", "true") };
    html! {
        p {
            (function.name) " "
            @for mapping in &function.mappings { (badge(if mapping.is_on { Tone::Busy } else { Tone::Idle }, &mapping.state)) }
            (form::act(MAPPINGS, label, &[("function", &function.name), ("enabled", enabled)]))
        }
    }
}

fn consumer(consumer: &ConsumerState) -> Markup {
    html! {
        p { (consumer.name) @for (word, count) in &consumer.outcomes { " " (badge(Tone::of_outcome(word), word)) " " (text::count(*count)) } }
    }
}
