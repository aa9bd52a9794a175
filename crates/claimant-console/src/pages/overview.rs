//! `/`: queues, functions and outcomes, and the last minutes.

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
use crate::history::{MINUTE, Sample};
use crate::pages::mappings::MAPPINGS;
use crate::pages::outcomes;
use crate::source::{FunctionCounts, FunctionState, Overview, QueueCounts, QueueState};
use crate::ui::badge::{Tone, badge};
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::plot::{self, Series};
use crate::ui::table::{self, Column, table};
use crate::ui::text;

/// The class of what waits and of what is in flight, in the plot and in its legend.
const WAITING: &str = "fill-waiting";
const IN_FLIGHT: &str = "fill-busy";

const QUEUES: [Column; 7] = [
    table::text("Queue"),
    table::number("Visible"),
    table::number("In flight"),
    table::number("Delayed"),
    table::number("Dead letters"),
    table::number("Sent"),
    table::number("Deleted"),
];

const FUNCTIONS: [Column; 7] = [
    table::text("Function"),
    table::text("Event source mapping"),
    table::number("Processes"),
    table::number("Invocations"),
    table::number("Errors"),
    table::number("Timeouts"),
    table::number("Crashes"),
];

/// How many of these columns there are where nothing is counted.
const QUEUES_KNOWN: usize = 5;
const FUNCTIONS_KNOWN: usize = 2;

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route("/", get(show))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console).await;
    ask.page(&console, page)
}

async fn page(console: &Console) -> Result<Shown, Error> {
    let overview = console.source().overview().await?;
    let writes = console.source().allows_writes();
    let demo = writes && claimant_operate::demo::check(console.place()).is_ok();
    let is_counted = console.place().is_local();
    Ok(Shown { writes, is_counted, overview, history: console.history().samples(), demo, form: console.new_form() })
}

#[derive(Serialize)]
struct Shown {
    #[serde(skip)]
    writes: bool,
    /// Whether what has happened so far is known: AWS's APIs do not tell it.
    #[serde(skip)]
    is_counted: bool,
    #[serde(flatten)]
    overview: Overview,
    history: Vec<Sample>,
    /// Whether the demonstration can run here.
    demo: bool,
    /// The number of its forms.
    #[serde(skip)]
    form: String,
}

impl Page for Shown {
    const TAB: Tab = Tab::Overview;

    fn title(&self) -> String {
        "Overview".to_owned()
    }

    fn above(&self) -> Markup {
        html! {
            @if self.demo {
                div .show {
                    (form::act("/demo", "Show me", &[]))
                    a href="/demo" { "A duplicate absorbed, a killed process taken over, a dead letter redriven" }
                }
            }
        }
    }

    fn summary(&self) -> Option<String> {
        let (waiting, in_flight, dead) = self.overview.totals();
        let work = match (waiting, in_flight) {
            (0, 0) => "Nothing waits and nothing is in flight.",
            (_, 0) => "Messages wait.",
            (0, _) => "Messages are in flight.",
            _ => "Messages wait, and others are in flight.",
        };
        let with_messages =
            self.overview.queues.iter().filter(|queue| !queue.is_dead_letter_queue && queue.messages() > 0);
        let not_read = with_messages.filter_map(|queue| self.overview.why_not_read(&queue.name));
        let dead = (dead > 0).then(|| "There are dead letters.".to_owned());
        Some([work.to_owned()].into_iter().chain(not_read).chain(dead).collect::<Vec<_>>().join(" "))
    }

    fn live(&self) -> Markup {
        let untold = &self.overview.untold;
        html! {
            (self.minutes())
            section {
                h2 { "Queues" }
                (table("Queues", self.known(&QUEUES, QUEUES_KNOWN), self.queues()))
            }
            section {
                h2 { "Functions" }
                (table("Functions", self.known(&FUNCTIONS, FUNCTIONS_KNOWN), self.overview.functions.iter().map(|function| self.function(function))))
            }
            @if self.is_counted {
                section {
                    h2 { "Outcomes" }
                    (outcomes::draw(&self.overview.consumers))
                    @if self.overview.missed > 0 {
                        p .soft.small {
                            "At least so many: " (text::counted(self.overview.missed, "log line", "log lines")) " came faster than the console reads them."
                        }
                    }
                }
            }
            @if !untold.is_empty() {
                section {
                    h2 { "What is not told here" }
                    ul .untold { @for sentence in untold { li { (sentence) } } }
                }
            }
        }
    }
}

impl Shown {
    /// The columns that have something to show.
    fn known<'c>(&self, columns: &'c [Column], known: usize) -> &'c [Column] {
        if self.is_counted { columns } else { &columns[..known] }
    }

    /// The last minutes, or what to do where nothing has been sent yet.
    fn minutes(&self) -> Markup {
        if !self.is_counted {
            return html! {};
        }
        let is_new = self.overview.queues.iter().all(|queue| queue.counts.is_some_and(|counts| counts.sent == 0));
        if is_new && self.overview.totals() == (0, 0, 0) {
            let more = html! {
                a href="/send" { "Send a sample" } ", send it twice, and see here what becomes of it."
            };
            return text::empty("Nothing has been sent yet", &more);
        }
        if self.history.is_empty() {
            return html! {};
        }
        let (waiting, in_flight, dead) = self.overview.totals();
        let of = |value: fn(&Sample) -> u64| self.history.iter().map(value).collect::<Vec<_>>();
        let most = self.history.iter().map(|sample| sample.waiting + sample.in_flight).max().unwrap_or_default();
        let done: u64 = self.history.iter().map(|sample| sample.deleted).sum();
        // It begins as one minute and grows.
        let minutes = self.history.len().div_ceil(MINUTE);
        let label = format!(
            "Messages in the queues over the last {}: {} at most, {} now",
            text::counted(minutes as u64, "minute", "minutes"),
            text::grouped(most),
            text::grouped(waiting + in_flight)
        );
        let series = [
            Series { class: IN_FLIGHT, values: of(|sample| sample.in_flight) },
            Series { class: WAITING, values: of(|sample| sample.waiting) },
        ];
        let figure = |class: Option<&str>, value, name: &str| {
            html! {
                div {
                    dt { @if let Some(class) = class { span class={ "dot " (class) } aria-hidden="true" {} } (name) }
                    dd { (text::count(value)) }
                }
            }
        };
        html! {
            section .card .minutes {
                h2 { "The last " @if minutes == 1 { "minute" } @else { (minutes) " minutes" } }
                dl .figures {
                    (figure(Some(WAITING), waiting, "Waiting"))
                    (figure(Some(IN_FLIGHT), in_flight, "In flight"))
                    (figure(None, done, "Deleted"))
                    (figure(None, dead, "Dead letters"))
                }
                div .graph {
                    (plot::areas(&label, minutes * MINUTE, &series))
                    p .axis aria-hidden="true" { span { (minutes) " min ago" } span { (text::grouped(most)) " at most" } span { "now" } }
                }
            }
        }
    }

    fn queues(&self) -> impl Iterator<Item = Vec<Markup>> {
        let queues = &self.overview.queues;
        queues.iter().filter(|queue| !queue.is_dead_letter_queue).map(|queue| {
            let dead = queues.iter().filter(|other| queue.dead_letter_queues.contains(&other.name));
            self::queue(queue, &dead.collect::<Vec<_>>())
        })
    }

    /// The mappings of a function, and the acts on all of them. To pause what works for others asks first.
    fn mappings(&self, function: &FunctionState) -> Markup {
        if function.mappings.is_empty() {
            return html! { span .soft { "none" } };
        }
        let (name, form, mut mappings) = (function.name.as_str(), self.form.as_str(), function.mappings.iter());
        let (any_on, any_off) = (mappings.clone().any(|mapping| mapping.is_on), mappings.any(|mapping| !mapping.is_on));
        let act = |can, label, enabled| {
            form::act_if(can, MAPPINGS, (label, name), form, &[("function", name), ("enabled", enabled)])
        };
        let (pause, resume) = (act(any_on, "Pause", "false"), act(any_off, "Resume", "true"));
        html! {
            div .row {
                (states(function))
                @if self.writes {
                    div .row {
                        (form::confirm_if(any_on && !self.is_counted, "Pause", &format!("{name} gets no more messages until it is resumed."), &pause))
                        (resume)
                    }
                }
            }
        }
    }

    fn function(&self, function: &FunctionState) -> Vec<Markup> {
        let counted = |of: fn(&FunctionCounts) -> u64| {
            function.counts.as_ref().map_or_else(unknown, |counts| text::count(of(counts)))
        };
        let processes = u64::try_from(function.processes.len()).unwrap_or(u64::MAX);
        vec![
            html! { (function.name) @if function.waits_for_program { " " (badge(Tone::Warn, "no program yet")) } },
            self.mappings(function),
            if function.counts.is_some() { text::count(processes) } else { unknown() },
            counted(|counts| counts.invocations),
            counted(|counts| counts.errors),
            counted(|counts| counts.timeouts),
            counted(|counts| counts.crashes),
        ]
    }
}

fn queue(queue: &QueueState, dead: &[&QueueState]) -> Vec<Markup> {
    let counted =
        |of: fn(&QueueCounts) -> u64| queue.counts.as_ref().map_or_else(unknown, |counts| text::count(of(counts)));
    // Of one that could not be counted it is not known that there are none.
    let is_known = !dead.is_empty() && dead.len() == queue.dead_letter_queues.len();
    let dead: u64 = dead.iter().map(|queue| queue.messages()).sum();
    vec![
        html! {
            @if queue.counts.is_some() { a .plain href={ "/messages?queue=" (text::encoded(&queue.name)) } { (queue.name) } }
            @else { (queue.name) }
        },
        text::count(queue.visible),
        text::count(queue.in_flight),
        text::count(queue.delayed),
        match dead {
            0 if is_known => text::count(0),
            0 => unknown(),
            _ => html! { a .bad href="/dead" { (text::grouped(dead)) } },
        },
        counted(|counts| counts.sent),
        counted(|counts| counts.deleted),
    ]
}

/// The state of each mapping of a function, with its queue where there are several.
fn states(function: &FunctionState) -> Markup {
    let tone = |state: &str| match state {
        "Enabled" => Tone::Good,
        "Disabled" => Tone::Idle,
        _ => Tone::Busy,
    };
    html! {
        @for mapping in &function.mappings {
            (badge(tone(&mapping.state), &mapping.state))
            @if let Some(back) = &mapping.on_again { span .soft.small { "on again at " (back) } }
            @if function.mappings.len() > 1 { span .soft.small { (mapping.queue) } }
        }
    }
}

fn unknown() -> Markup {
    html! { span .soft title="not known" { "–" } }
}
