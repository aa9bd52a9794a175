//! `/send`: samples of each function, in every envelope, twice, out of order, in bulk.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use claimant_core::{Clock as _, Error, SystemClock};
use claimant_operate::send::{Batch, Envelope, MESSAGES_MAX, Sample, Samples, Sender, Wrapping, fresh_number};
use claimant_operate::target::Place;
use maud::{Markup, html};
use serde::Serialize;

use crate::answer::{Done, Page};
use crate::ask::{Act, Ask};
use crate::console::Console;
use crate::fields::Fields;
use crate::ui::form;
use crate::ui::nav::Tab;
use crate::ui::text;

const PATH: &str = "/send";

/// Messages of one sending to which the page has links.
const LINKS: usize = 5;

/// What one button sends.
const PRESETS: [(&str, &str); 3] =
    [("", "Send"), ("twice", "Send it twice"), ("bulk", "Send 20, each twice, out of order")];

/// Returns the routes of this page.
pub(crate) fn routes() -> Router<Console> {
    Router::new().route(PATH, get(show).post(send))
}

async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

async fn page(console: &Console, ask: &Ask) -> Result<SendPage, Error> {
    let place = console.place();
    let writes = console.source().allows_writes();
    let directory = directory(place);
    let read = tokio::task::spawn_blocking(move || Samples::below(&directory)).await;
    let samples = read.map_err(|e| Error::new("the samples could not be read").caused_by(e))?;
    let dead: Vec<_> = place.dead_letter_queues().into_iter().map(|queue| queue.name.as_str()).collect();
    let queues = place.queues.iter().filter(|queue| !dead.contains(&queue.name.as_str()));
    let queues: Vec<_> = queues
        .map(|queue| Target {
            name: queue.name.clone(),
            functions: place
                .functions
                .iter()
                .filter(|f| f.queues.contains(&queue.name))
                .map(|f| f.name.clone())
                .collect(),
            samples: samples.of_queue(&queue.name).map(Shown::of).collect(),
        })
        .collect();
    let asked = ask.query.get("queue");
    let queue = queues.iter().find(|queue| asked == Some(queue.name.as_str())).or_else(|| queues.first());
    let number = ask.query.number("sample", 0, 0..=u64::MAX)?;
    let sample = queue.and_then(|queue| queue.samples.get(usize::try_from(number).ok()?));
    let body = ask.query.get("body").map(str::to_owned).or_else(|| Some(sample?.body.clone()));
    Ok(SendPage {
        form: Form {
            queue: queue.map(|queue| queue.name.clone()).unwrap_or_default(),
            sample: sample.map(|_| number),
            body: text::spread(&body.unwrap_or_default()),
            envelope: sample.map_or(Envelope::Plain.as_str(), |sample| sample.envelope),
            group: sample.and_then(|sample| sample.group.clone()),
        },
        queues,
        sent: ask.query.all("sent").take(LINKS).map(str::to_owned).collect(),
        problems: samples.problems,
        writes,
    })
}

/// Where a template and its samples are.
fn directory(place: &Place) -> PathBuf {
    let parent = place.template.as_deref().and_then(|template| Path::new(template).parent());
    parent.filter(|parent| !parent.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

async fn send(State(console): State<Console>, act: Act) -> Response {
    let done = sent(&console, &act.fields).await;
    act.ask.done(&console, Tab::Send, done)
}

/// Sends messages, as `claimant send` does.
async fn sent(console: &Console, fields: &Fields) -> Result<Done, Error> {
    console.check_writes()?;
    let place = console.place();
    let queue = place.queue_for(Some(fields.required("queue")?))?;
    let sender = Sender::new(place.sqs(), &queue.url);
    let batch = batch(fields)?;
    let now = SystemClock.now();
    let number = fields.get("number").map_or_else(|| fresh_number(now), str::to_owned);
    let messages = batch.plan(&number, now, sender.is_fifo())?;
    let report = sender.send(&batch, &messages).await?;
    let mut said = format!("{} sent to {}.", text::counted(report.sent as u64, "message", "messages"), queue.name);
    if let Some(problem) = report.problems.first() {
        let missing = messages.len() - report.sent;
        said.push_str(&format!(" {} not: {problem}", text::counted(missing as u64, "message was", "messages were")));
    }
    let mut see = format!("{PATH}?queue={}", text::encoded(&queue.name));
    if let Some(sample) = fields.get("sample") {
        let _ = write!(see, "&sample={}", text::encoded(sample));
    }
    for id in report.ids.iter().take(LINKS) {
        let _ = write!(see, "&sent={}", text::encoded(id));
    }
    let mut value = report.to_json();
    value["queue"] = queue.name.as_str().into();
    value["number"] = number.into();
    Ok(if report.sent == 0 { Done::refused(said, see, value) } else { Done::new(said, see, value) })
}

fn batch(fields: &Fields) -> Result<Batch, Error> {
    let most = MESSAGES_MAX as u64;
    let number = |name: &str| fields.number(name, 1, 1..=most);
    let mut batch = Batch {
        // A form sends lines that end as in mail.
        body: fields.all("body").next().unwrap_or_default().replace("\r\n", "\n"),
        envelope: fields.get("envelope").map(str::parse).transpose()?.unwrap_or_default(),
        wrapping: Wrapping { kind: fields.get("type").map(str::to_owned), ..Wrapping::default() },
        // Both are 10,000 at most.
        count: usize::try_from(number("count")?).unwrap_or(MESSAGES_MAX),
        copies: usize::try_from(number("copies")?).unwrap_or(MESSAGES_MAX),
        shuffle: fields.has("shuffle").then_some(1),
        group: fields.get("group").map(str::to_owned),
        attributes: Vec::new(),
        delay_s: u32::try_from(fields.number("delay", 0, 0..=900)?).unwrap_or(0),
    };
    match fields.get("preset") {
        Some("twice") => batch.copies = 2,
        Some("bulk") => (batch.count, batch.copies, batch.shuffle) = (20, 2, Some(1)),
        _ => {}
    }
    Ok(batch)
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
    sample: Option<u64>,
    body: String,
    envelope: &'static str,
    group: Option<String>,
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
        let Form { queue, sample, body, envelope, group } = &self.form;
        let queues = self.queues.iter().map(|queue| (queue.name.as_str(), queue.name.as_str()));
        let envelopes = Envelope::ALL.iter().map(|envelope| (envelope.as_str(), envelope.title()));
        let rows = body.lines().count().clamp(10, 24);
        let sample = sample.map(|number| number.to_string());
        // Its copies come different ways only if there are some.
        let copies = if *envelope == Envelope::Each.as_str() { 4 } else { 1 };
        html! {
            form .edit.card method="post" action=(PATH) {
                @if let Some(sample) = &sample { (form::hidden(&[("sample", sample)])) }
                (form::field("Queue", &form::select("queue", queues, Some(queue))))
                (form::field("Body", &html! { textarea name="body" rows=(rows) spellcheck="false" autocomplete="off" required { "\n" (body) } }))
                p .soft.small { code { "{n}" } " becomes a number that no earlier message had: the same in the copies of a message." }
                (form::field("Envelope", &form::select("envelope", envelopes, Some(envelope))))
                div .acts {
                    @for (preset, label) in PRESETS {
                        button .main[preset.is_empty()] type="submit" name="preset" value=(preset) { (label) }
                    }
                }
                details {
                    summary { "More" }
                    div .fields {
                        (form::field("Different messages", &number("count", 1)))
                        (form::field("Copies of each", &number("copies", copies)))
                        (form::field("Message group", &html! { input type="text" name="group" value=(group.as_deref().unwrap_or_default()) autocomplete="off"; }))
                        (form::field("Type of the event", &html! { input type="text" name="type" placeholder="the body's own" autocomplete="off"; }))
                        (form::field("Delay in seconds", &html! { input type="number" name="delay" min="0" max="900" value="0"; }))
                        label .box { input type="checkbox" name="shuffle" value="true"; " out of order" }
                    }
                }
            }
        }
    }
}

fn number(name: &str, value: usize) -> Markup {
    html! { input type="number" name=(name) min="1" max=(MESSAGES_MAX) value=(value); }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_button_is_enough() {
        for (form, count, copies, shuffled, envelope) in [
            ("body=x", 1, 1, false, Envelope::Plain),
            ("body=x&preset=", 1, 1, false, Envelope::Plain),
            ("body=x&preset=twice&copies=5", 1, 2, false, Envelope::Plain),
            ("body=x&preset=bulk&envelope=sns", 20, 2, true, Envelope::Sns),
            ("body=x&count=3&copies=2&shuffle=true", 3, 2, true, Envelope::Plain),
        ] {
            let batch = batch(&Fields::of_form(form)).unwrap();
            assert_eq!(
                (batch.count, batch.copies, batch.shuffle.is_some(), batch.envelope),
                (count, copies, shuffled, envelope),
                "{form}"
            );
        }
        for bad in ["body=x&count=0", "body=x&envelope=owl", "body=x&delay=901"] {
            assert!(batch(&Fields::of_form(bad)).is_err(), "{bad}");
        }
        assert_eq!(batch(&Fields::of_form("body=a%0D%0Ab")).unwrap().body, "a\nb");
    }
}
