//! `/send`: samples of each function, in every envelope, twice, out of order, in bulk.

use std::path::Path;

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::Error;
use claimant_operate::send::{Envelope, MESSAGES_MAX, Sample, Samples, SentBefore};
use maud::{Markup, html};
use serde::Serialize;

use super::sending::{self, LINKS, MESSAGE, PATH};
use crate::answer::Page;
use crate::ask::Ask;
use crate::console::{Console, FORM};
use crate::fields::{BODY, Fields};
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::text;

/// What one button sends.
const PRESETS: [(&str, &str); 3] =
    [("", "Send"), ("twice", "Send it twice"), ("bulk", "Send 20, each twice, out of order")];

/// What is asked before anything is sent to a queue of an account.
const ASKED: &str = "Whatever reads this queue does its work for it, and nothing takes a message back.";

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route(PATH, get(show).post(sending::send))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

async fn page(console: &Console, ask: &Ask) -> Result<SendPage, Error> {
    let place = console.place();
    let writes = console.source().allows_writes();
    let directory = place.template_directory().map(Path::to_owned);
    let read = tokio::task::spawn_blocking(move || Samples::of_project(directory.as_deref())).await;
    let samples = read.map_err(|e| Error::new("the samples could not be read").caused_by(e))?;
    let dead: Vec<_> = place.dead_letter_queues().into_iter().map(|queue| queue.name.as_str()).collect();
    let queues = place.queues.iter().filter(|queue| !dead.contains(&queue.name.as_str()));
    let queues: Vec<_> = queues
        .map(|queue| Target {
            name: queue.name.clone(),
            functions: place
                .functions
                .iter()
                .filter(|f| f.runs && f.queues.contains(&queue.name))
                .map(|f| f.name.clone())
                .collect(),
            samples: samples.of_queue(queue).map(Shown::of).collect(),
        })
        .collect();
    // What was typed, or what the address asks for.
    let draft = console.draft(&ask.query);
    let fields = draft.as_ref().unwrap_or(&ask.query);
    // What was typed is shown, whatever it began with.
    let before = if fields.came(BODY) { None } else { sending::before(place, fields).await? };
    let own = before.as_ref().and_then(|before| before.queue(place).ok()).map(|queue| queue.name.as_str());
    let asked = fields.get("queue").or(own);
    let queue = queues.iter().find(|queue| asked == Some(queue.name.as_str()));
    let queue = queue.or_else(|| queues.iter().find(|queue| !queue.samples.is_empty())).or_else(|| queues.first());
    let number = fields.number("sample", 0, 0..=u64::MAX)?;
    let sample = queue.and_then(|queue| queue.samples.get(usize::try_from(number).ok()?)).filter(|_| before.is_none());
    Ok(SendPage {
        form: Form {
            queue: queue.map(|queue| queue.name.clone()).unwrap_or_default(),
            edited: fields.get(MESSAGE).map(str::to_owned),
            sample: sample.map(|_| number),
            body: match (fields.all(BODY).next(), &before) {
                (Some(typed), _) => typed.to_owned(),
                (None, Some(before)) => text::to_edit(&before.body),
                (None, None) => text::to_edit(sample.map_or("", |sample| &sample.body)),
            },
            more: More::of(fields, sample, before.as_ref()),
            number: console.new_form(),
        },
        queues,
        sent: ask.query.all("sent").take(LINKS).map(str::to_owned).collect(),
        problems: samples.problems,
        writes,
        is_local: place.is_local(),
    })
}

#[derive(Serialize)]
struct SendPage {
    queues: Vec<Target>,
    form: Form,
    /// Ids of what was sent just now.
    sent: Vec<String>,
    /// Files of samples that could not be used.
    problems: Vec<String>,
    #[serde(skip)]
    writes: bool,
    #[serde(skip)]
    is_local: bool,
}

/// A queue that messages can be sent to.
#[derive(Serialize)]
struct Target {
    name: String,
    /// The functions that read it.
    functions: Vec<String>,
    samples: Vec<Shown>,
}

#[derive(Serialize)]
struct Shown {
    title: String,
    body: String,
    envelope: &'static str,
    group: Option<String>,
}

impl Shown {
    fn of(sample: &Sample) -> Self {
        let Sample { title, body, envelope, group, .. } = sample;
        Self { title: title.clone(), body: body.clone(), envelope: envelope.as_str(), group: group.clone() }
    }
}

/// What the form begins with.
#[derive(Serialize)]
struct Form {
    queue: String,
    /// The message whose body it began with.
    #[serde(skip)]
    edited: Option<String>,
    sample: Option<u64>,
    body: String,
    #[serde(flatten)]
    more: More,
    #[serde(skip)]
    number: String,
}

/// How it is sent, as it was typed.
#[derive(Serialize)]
struct More {
    envelope: String,
    group: String,
    #[serde(rename = "type")]
    kind: String,
    count: String,
    copies: String,
    delay: String,
    shuffle: bool,
    /// Whether there is more to be seen than the envelope.
    #[serde(skip)]
    is_open: bool,
}

impl More {
    fn of(fields: &Fields, sample: Option<&Shown>, before: Option<&SentBefore>) -> Self {
        let typed = |name: &str, default: &str| fields.get(name).unwrap_or(default).to_owned();
        let plain = Envelope::Plain.as_str();
        let envelope = typed("envelope", sample.map_or(plain, |sample| sample.envelope));
        let group =
            before.map_or_else(|| sample.and_then(|sample| sample.group.as_deref()), |before| before.group.as_deref());
        // Its copies come different ways only if there are some.
        let copies = if envelope == Envelope::Each.as_str() { "4" } else { "1" };
        let more = Self {
            // A group that was taken out stays so.
            group: fields.all("group").next().or(group).unwrap_or_default().to_owned(),
            kind: typed("type", ""),
            count: typed("count", "1"),
            copies: typed("copies", copies),
            delay: typed("delay", "0"),
            shuffle: fields.flag("shuffle").unwrap_or_default(),
            envelope,
            is_open: false,
        };
        let Self { group, kind, count, copies: times, delay, shuffle, .. } = &more;
        let is_usual =
            group.is_empty() && kind.is_empty() && count == "1" && times == copies && delay == "0" && !shuffle;
        Self { is_open: !is_usual, ..more }
    }
}

impl Page for SendPage {
    const TAB: Tab = Tab::Send;

    fn title(&self) -> String {
        "Send".to_owned()
    }

    fn below(&self) -> Markup {
        html! {
            @if !self.sent.is_empty() {
                p .sent {
                    "Follow " @for (at, id) in self.sent.iter().enumerate() { @if at > 0 { ", " } (text::message(id)) } "."
                }
            }
            @if self.queues.is_empty() {
                (text::empty("No queue", &html! { "There is no queue to send to." }))
            } @else if !self.writes {
                (text::empty("Nothing is sent from here", &html! { "This console only shows: start it with " code { "--allow-writes" } " to send to these queues: " (self.queues.iter().map(|queue| queue.name.as_str()).collect::<Vec<_>>().join(", ")) "." }))
            } @else {
                div .split {
                    (self.choice())
                    (self.form())
                }
            }
            @for problem in &self.problems { p .soft.small { "Not used: " (problem) } }
        }
    }
}

impl SendPage {
    /// The samples, queue by queue.
    fn choice(&self) -> Markup {
        html! {
            section .samples aria-label="Samples" {
                @for queue in &self.queues {
                    details name="samples" open[queue.name == self.form.queue] {
                        summary { (queue.name) @for function in &queue.functions { " " span .soft.small { (function) } } }
                        ul {
                            @for (number, sample) in queue.samples.iter().enumerate() {
                                @let is_current = queue.name == self.form.queue && self.form.sample == Some(number as u64);
                                li { a href={ (PATH) "?queue=" (text::encoded(&queue.name)) "&sample=" (number) } aria-current=[is_current.then_some("true")] { (sample.title) } }
                            }
                            @if queue.samples.is_empty() {
                                li { a href={ (PATH) "?queue=" (text::encoded(&queue.name)) } { "A body of your own" } }
                            }
                        }
                    }
                }
            }
        }
    }

    fn form(&self) -> Markup {
        let Form { queue, edited, sample, body, more, number: own } = &self.form;
        let queues = self.queues.iter().map(|queue| (queue.name.as_str(), queue.name.as_str()));
        let envelopes = Envelope::ALL.iter().map(|envelope| (envelope.as_str(), envelope.title()));
        let rows = body.lines().take(24).count().clamp(10, 24);
        let sample = sample.map(|number| number.to_string());
        let buttons = html! {
            div .acts {
                @for (preset, label) in PRESETS {
                    button .main[preset.is_empty()] type="submit" name="preset" value=(preset) { (label) }
                }
            }
        };
        html! {
            form .edit.card method="post" action=(PATH) {
                // Enter in a field presses a form's first button: this one does nothing, so that the question is asked.
                @if !self.is_local { span hidden { button type="submit" disabled {} } }
                (form::hidden(&[(FORM, own)]))
                @if let Some(sample) = &sample { (form::hidden(&[("sample", sample)])) }
                @if let Some(edited) = edited { (form::hidden(&[(MESSAGE, edited)])) }
                (form::field("Queue", &form::select("queue", queues, Some(queue))))
                (form::field("Body", &html! { textarea name="body" rows=(rows) spellcheck="false" autocomplete="off" required { "\n" (body) } }))
                p .soft.small { code { "{n}" } " becomes a number that no earlier message had: the same in the copies of a message." }
                @if edited.is_some() { p .soft.small { "The attributes of the message that it began with are sent with it, without claimant's own." } }
                (form::field("Envelope", &form::select("envelope", envelopes, Some(&more.envelope))))
                (form::confirm_if(!self.is_local, "Send", ASKED, &buttons))
                details open[more.is_open || queue.ends_with(".fifo")] {
                    summary { "More" }
                    div .fields {
                        (form::field("Different messages", &number("count", &more.count)))
                        (form::field("Copies of each", &number("copies", &more.copies)))
                        (form::field("Message group", &html! { input type="text" name="group" value=(more.group) placeholder="a FIFO queue needs one" autocomplete="off"; }))
                        (form::field("Type of the event", &html! { input type="text" name="type" value=(more.kind) placeholder="the body's own" autocomplete="off"; }))
                        (form::field("Delay in seconds", &html! { input type="number" name="delay" min="0" max="900" value=(more.delay); }))
                        label .box { input type="checkbox" name="shuffle" value="true" checked[more.shuffle]; " out of order" }
                    }
                }
            }
        }
    }
}

fn number(name: &str, value: &str) -> Markup {
    html! { input type="number" name=(name) min="1" max=(MESSAGES_MAX) value=(value); }
}
