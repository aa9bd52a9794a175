//! `/dead`: the causes, queue by queue.

use std::ops::ControlFlow;

use axum::extract::State;
use axum::response::Response;
use claimant_core::Error;
use claimant_core::error::Chain;
use claimant_operate::dead::{DeadLetter, DeadLetterQueue, Groups, QUEUES_AT_ONCE, Selection};
use claimant_operate::target::{Place, Queue};
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Serialize;

use super::letters::{self, Cause, LOOKS_MAX};
use crate::answer::Page;
use crate::ask::Ask;
use crate::console::Console;
use crate::timeline::words::sentence;
use crate::ui::nav::Tab;
use crate::ui::table::{self, Column, table};
use crate::ui::text;

const COLUMNS: [Column; 5] = [
    table::text("Cause"),
    table::text("Consumer"),
    table::text("Outcome"),
    table::number("Letters"),
    table::number("Newest"),
];

/// The most causes of one queue that are shown: the largest.
const CAUSES_MAX: usize = 100;

pub(super) async fn show(State(console): State<Console>, ask: Ask) -> Response {
    let page = page(&console, &ask).await;
    ask.page(&console, page)
}

async fn page(console: &Console, ask: &Ask) -> Result<Dead, Error> {
    let place = console.place();
    let (is_asked, dead) = (ask.query.flag(letters::READ)?, place.dead_letter_queues());
    let only = ask.query.narrowing(letters::QUEUE)?;
    if let Some(name) = only.filter(|name| !dead.iter().any(|queue| queue.name == *name)) {
        return Err(letters::unknown(place, name));
    }
    let is_read = |queue: &Queue| place.is_local() || (is_asked && only.is_none_or(|name| queue.name == name));
    let mut queues = Vec::new();
    // A look at the end of a queue waits for its answer.
    for some in dead.chunks(QUEUES_AT_ONCE) {
        queues.extend(join_all(some.iter().map(|queue| Shown::of(place, queue, is_read(queue)))).await);
    }
    queues.sort_by_key(Shown::is_empty);
    let left_out = place.left_out.iter().map(|one| sentence(one)).collect();
    let read = queues.iter().all(|queue| queue.read);
    Ok(Dead { queues, left_out, is_local: place.is_local(), read })
}

#[derive(Serialize)]
struct Dead {
    queues: Vec<Shown>,
    /// What is not looked at, each in a sentence: it may have dead letters, too.
    left_out: Vec<String>,
    #[serde(skip)]
    is_local: bool,
    /// Whether the letters of all queues were read: those of a deployed one are read only on demand, since SQS counts it as a receive.
    read: bool,
}

/// A dead-letter queue.
#[derive(Default, Serialize)]
struct Shown {
    name: String,
    /// The queues whose dead-letter queue it is.
    of: Vec<String>,
    letters: u64,
    /// Whether they were read.
    read: bool,
    causes: Vec<Cause>,
    #[serde(flatten)]
    more: More,
    looked_at: usize,
    /// After how many receives SQS moves its letters on, where it has a dead-letter queue of its own.
    moves_on_after: Option<u32>,
    /// Says how many of them stay hidden, since SQS did not show them again.
    stay_hidden: Option<String>,
    /// Why it could not be looked at.
    problem: Option<String>,
}

/// Causes that are not shown.
#[derive(Default, Serialize)]
struct More {
    #[serde(rename = "more_causes")]
    causes: usize,
    /// The letters of the largest.
    #[serde(skip)]
    letters: u64,
}

impl Shown {
    async fn of(place: &Place, queue: &Queue, read: bool) -> Self {
        let mut shown = Self { name: queue.name.clone(), read, ..Self::default() };
        // One that gives no answer keeps no other from being seen.
        shown.problem = shown.look(place, &queue.url).await.err().map(|error| Chain(&error).to_string());
        shown
    }

    async fn look(&mut self, place: &Place, url: &str) -> Result<(), Error> {
        let dead = DeadLetterQueue::open_in(place, url).await?.with_bodies_of(0);
        self.of = letters::sources(&dead);
        self.letters = dead.depth().total();
        self.moves_on_after = letters::moves_on_after(&dead);
        if self.read {
            // One by one, and without their bodies: a queue can hold gigabytes, and each change draws this page again.
            let (mut groups, mut looked_at) = (Groups::default(), 0);
            let mut each = |letter: DeadLetter| {
                groups.add(&letter);
                looked_at += 1;
            };
            let all = Selection::default();
            let read = dead.read(&all, LOOKS_MAX, &mut each, &mut |_| ControlFlow::Continue(())).await;
            // What was read before an error is shown, too.
            let causes = groups.into_sorted();
            let largest = causes.get(CAUSES_MAX).map_or(0, |cause| cause.count);
            self.more = More { causes: causes.len().saturating_sub(CAUSES_MAX), letters: largest };
            self.causes = causes.into_iter().take(CAUSES_MAX).map(Cause::from).collect();
            self.looked_at = looked_at;
            // SQS counts late.
            self.letters = self.letters.max(looked_at as u64);
            self.stay_hidden = read?.unseen.stay_hidden_in_words();
        }
        Ok(())
    }

    const fn is_empty(&self) -> bool {
        self.letters == 0 && self.problem.is_none()
    }
}

impl Page for Dead {
    const TAB: Tab = Tab::Dead;

    fn title(&self) -> String {
        "Dead letters".to_owned()
    }

    fn above(&self) -> Markup {
        html! {
            p .lead {
                "Messages that were given up on, by their cause. Fix the cause, then send them back: what is done already is skipped as a duplicate, where its key comes from the payload."
            }
            @if !self.read {
                (letters::read_them(letters::CAUSES, &[]))
            }
        }
    }

    fn live(&self) -> Markup {
        if self.is_local {
            self.all()
        } else {
            html! {}
        }
    }

    fn below(&self) -> Markup {
        if self.is_local {
            html! {}
        } else {
            self.all()
        }
    }

    fn summary(&self) -> Option<String> {
        let letters = self.queues.iter().map(|queue| queue.letters).sum();
        let unread = !self.left_out.is_empty() || self.queues.iter().any(|queue| queue.problem.is_some());
        Some(match letters {
            0 if unread => "Not all queues can be read.".to_owned(),
            0 => "There is no dead letter.".to_owned(),
            letters => format!("{}.", text::counted(letters, "dead letter", "dead letters")),
        })
    }
}

impl Dead {
    fn all(&self) -> Markup {
        html! {
            @for one in &self.left_out { p .error role="alert" { (one) } }
            @if self.queues.is_empty() && self.left_out.is_empty() {
                (text::empty("No dead-letter queue", &html! { "No queue here has a " code { "RedrivePolicy" } "." }))
            } @else if self.queues.iter().all(Shown::is_empty) && self.left_out.is_empty() {
                (text::empty("No dead letters", &html! {
                    "Messages come here when they are rejected, parked, or received too often. Send one that is broken on " a href="/send" { "Send" } "."
                }))
            } @else {
                @for queue in self.queues.iter().filter(|queue| !queue.is_empty()) { (self.queue(queue)) }
            }
        }
    }

    fn queue(&self, queue: &Shown) -> Markup {
        html! {
            section {
                h2 { (queue.name) }
                @if let Some(problem) = &queue.problem { p .error role="alert" { (problem) } }
                (letters::careful(queue.moves_on_after))
                @if let Some(stay_hidden) = &queue.stay_hidden { p .soft { (stay_hidden) } }
                @if queue.problem.is_none() || queue.looked_at > 0 {
                    p .soft.small {
                    (text::counted(queue.letters, "letter", "letters")) " of " (queue.of.join(", "))
                    @if (queue.looked_at as u64) < queue.letters && queue.read {
                        "; these are the causes of " (text::grouped(queue.looked_at as u64)) " of them"
                    }
                    "."
                }
                }
                @if !queue.causes.is_empty() {
                    (table(&queue.name, &COLUMNS, queue.causes.iter().map(|cause| row(cause, &queue.name, self.is_local))))
                    @if queue.more.causes > 0 { p.soft.small { "… and " (text::grouped(queue.more.causes as u64)) " causes more, of " (text::counted(queue.more.letters, "letter", "letters")) " at most each." } }
                }
                @if !queue.read && queue.problem.is_none() && self.queues.len() > 1 {
                    (letters::read_button(letters::CAUSES, &[(letters::QUEUE, &queue.name)], "Read its letters"))
                }
            }
        }
    }
}

fn row(cause: &Cause, queue: &str, is_local: bool) -> Vec<Markup> {
    vec![
        html! { a href=(letters::path_to_read(&cause.group, queue, is_local)) { (cause.cause) } },
        html! { (cause.consumer.as_deref().unwrap_or("unknown")) },
        letters::outcome(cause.outcome.as_deref()),
        html! { (text::count(cause.count)) @if cause.redriven > 0 { " (" (text::grouped(cause.redriven)) " sent back before)" } },
        html! { @if let Some(at) = cause.newest_ms { (text::time(at)) } },
    ]
}
