//! Letters and groups as the pages have them.

use claimant_core::Error;
use claimant_operate::dead::{DeadLetter, DeadLetterQueue, Group, Unseen};
use claimant_operate::target::Place;
use maud::{Markup, html};
use serde::Serialize;

use crate::ui::badge::{Tone, badge};
use crate::ui::{form, text};

/// Where the causes are.
pub(super) const CAUSES: &str = "/dead";

/// Where letters are sent back, and where they are discarded.
pub(super) const REDRIVE: &str = "/dead/redrive";
pub(super) const DISCARD: &str = "/dead/discard";

/// The field of a form that says when its page was opened, in milliseconds since 1970: letters that were sent later stay. Of one that SQS
/// moved that is when it was sent to its own queue.
pub(super) const UNTIL: &str = "until";

/// The field of a query that has a page read the letters of a deployed queue: to SQS that is a receive of each.
pub(super) const READ: &str = "read";

/// The field of a query, and of a form, that names the queue.
pub(super) const QUEUE: &str = "queue";

/// The field of a query, and of the form of a letter that is edited, that says behind which letter of its queue the page begins.
pub(super) const AFTER: &str = "after";

/// What reading letters of a deployed queue does.
pub(crate) const LOOK_COSTS: &str = "SQS has no way to look at a message but to receive it: up to 2,000 letters of a queue are received, hidden from other \
    readers for 120 s at most and shown again once they are read, and their receive count grows.";

/// The most letters that are looked at for a page. Of a longer queue the pages say that they have seen a part of it.
pub(crate) const LOOKS_MAX: usize = 2_000;

/// The most bytes of a body that a list shows.
pub(super) const BODY_SHOWN: usize = 4_096;

/// The most bytes of the value of an attribute that a list shows.
const ATTRIBUTE_SHOWN: usize = 200;

/// The most bytes of a cause that a list shows.
const CAUSE_SHOWN: usize = 240;

/// Dead letters of one cause.
#[derive(Serialize)]
pub(super) struct Cause {
    pub(super) group: String,
    pub(super) consumer: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) cause: String,
    pub(super) count: u64,
    pub(super) redriven: u64,
    pub(super) newest_ms: Option<u64>,
}

impl From<Group> for Cause {
    fn from(group: Group) -> Self {
        Self {
            group: group.fingerprint.to_string(),
            newest_ms: group.sent.map(|(_, newest)| newest.as_millis()),
            consumer: group.consumer,
            outcome: group.outcome,
            cause: cut(group.cause),
            count: group.count,
            redriven: group.redriven,
        }
    }
}

/// A dead letter.
#[derive(Serialize)]
pub(super) struct Letter {
    pub(super) message_id: String,
    pub(super) group: String,
    pub(super) how: String,
    #[serde(flatten)]
    pub(super) why: Why,
    pub(super) earlier_ids: Vec<String>,
    pub(super) redrives: u32,
    pub(super) receives: u32,
    #[serde(flatten)]
    pub(super) sent: Sent,
}

/// What a function said of it.
#[derive(Serialize)]
pub(super) struct Why {
    pub(super) consumer: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) error: Option<String>,
    pub(super) record: Option<String>,
    pub(super) attempt: Option<u32>,
}

/// What was sent.
#[derive(Serialize)]
pub(super) struct Sent {
    pub(super) sent_ms: Option<u64>,
    pub(super) message_group: Option<String>,
    /// The name and the value of each; and the bytes of the whole value, where only its beginning is here.
    pub(super) attributes: Vec<(String, String, Option<usize>)>,
    pub(super) body: String,
    /// The bytes of the whole body, where only its beginning is in `body`.
    pub(super) cut_from: Option<usize>,
}

impl Letter {
    /// Returns a letter with its whole body and attributes, or with the beginning of each.
    pub(super) fn of(letter: &DeadLetter, whole: bool) -> Self {
        let body = letter.body();
        let (bytes, end) = (letter.body_bytes(), if whole { body.len() } else { body.floor_char_boundary(BODY_SHOWN) });
        let why = &letter.why;
        let attribute = |(name, _, text): (&str, &str, Option<&str>)| {
            let value = text.unwrap_or("(bytes)");
            let end = if whole { value.len() } else { value.floor_char_boundary(ATTRIBUTE_SHOWN) };
            (name.to_owned(), value[..end].to_owned(), (end < value.len()).then_some(value.len()))
        };
        Self {
            message_id: letter.message_id.clone(),
            group: letter.fingerprint.to_string(),
            how: letter.how(),
            why: Why {
                consumer: why.consumer.clone().or_else(|| letter.source().map(str::to_owned)),
                outcome: why.outcome.clone(),
                error: why.error.clone(),
                record: why.record.clone(),
                attempt: why.attempt,
            },
            earlier_ids: letter.earlier_ids.clone(),
            redrives: letter.redrives,
            receives: letter.receives,
            sent: Sent {
                sent_ms: letter.sent_at.map(claimant_core::Timestamp::as_millis),
                message_group: letter.group.clone(),
                attributes: letter.attributes().map(attribute).collect(),
                body: body[..end].to_owned(),
                cut_from: (end < bytes).then_some(bytes),
            },
        }
    }

    /// Returns the id of the message's timeline: that which it had in its own queue.
    pub(super) fn story(&self) -> &str {
        self.earlier_ids.last().unwrap_or(&self.message_id)
    }
}

/// Cuts a cause to what a list has room for.
fn cut(mut cause: String) -> String {
    let end = cause.floor_char_boundary(CAUSE_SHOWN);
    if end < cause.len() {
        cause.truncate(end);
        cause.push('…');
    }
    cause
}

/// Opens the dead-letter queue of this name.
///
/// # Errors
/// When there is none, or it gives no answer.
pub(super) async fn open(place: &Place, name: &str) -> Result<DeadLetterQueue, Error> {
    let queue = place.dead_letter_queues().into_iter().find(|queue| queue.name == name);
    let queue = queue.ok_or_else(|| unknown(place, name))?;
    DeadLetterQueue::open_in(place, &queue.url).await
}

/// Says that there is no dead-letter queue of this name.
pub(super) fn unknown(place: &Place, name: &str) -> Error {
    Error::invalid(format!("{} has no dead-letter queue {name}", place.name))
}

/// Returns the names of the queues that a dead-letter queue serves.
pub(super) fn sources(dead: &DeadLetterQueue) -> Vec<String> {
    dead.source_names().into_iter().map(str::to_owned).collect()
}

/// Returns the names of the queues that a letter can be sent to: those that its dead-letter queue serves, and the others of the place.
pub(super) fn destinations(place: &Place, dead: &DeadLetterQueue) -> Vec<String> {
    let mut names = sources(dead);
    for queue in place.queues.iter().filter(|queue| queue.name != dead.name()) {
        if !names.contains(&queue.name) {
            names.push(queue.name.clone());
        }
    }
    names
}

/// Returns the URL of one of these by its name.
///
/// # Errors
/// When there is none, or there are several, in several accounts.
pub(super) fn destination(place: &Place, dead: &DeadLetterQueue, name: &str) -> Result<String, Error> {
    let served: Vec<_> = dead.sources().iter().zip(dead.source_names()).filter(|(_, of)| *of == name).collect();
    match (served.as_slice(), place.queue(name)) {
        ([(url, _)], _) => Ok((*url).clone()),
        ([], Some(queue)) => Ok(queue.url.clone()),
        ([], None) => Err(Error::invalid(format!("{} has no queue {name}", place.name))),
        _ => Err(Error::invalid(format!(
            "there are several queues {name}, in several accounts: claimant dead redrive takes the URL of one (--to)"
        ))),
    }
}

/// Draws what is known of a letter, beside its body.
pub(super) fn facts(letter: &Letter) -> Markup {
    html! {
        dl .facts {
            dt { "How it came" } dd { (letter.how) }
            @if let Some(error) = &letter.why.error { dt { "Error" } dd { (error) } }
            @if let Some(record) = &letter.why.record { dt { "Key" } dd { (text::key(record)) } }
            @if let Some(attempt) = letter.why.attempt { dt { "Run" } dd { (attempt) } }
            @if let Some(at) = letter.sent.sent_ms { dt { "Sent" } dd { (text::time(at)) } }
            dt { "Received" } dd { (text::counted(u64::from(letter.receives), "time", "times")) }
            @if letter.redrives > 0 { dt { "Sent back before" } dd { (text::counted(u64::from(letter.redrives), "time", "times")) } }
            @if let Some(group) = &letter.sent.message_group { dt { "Message group" } dd { (group) } }
            @for (name, value, cut_from) in &letter.sent.attributes {
                dt { (name) }
                dd {
                    (value)
                    @if let Some(bytes) = cut_from {
                        "… " span .soft.small { "The first " (value.len()) " of " (text::grouped(*bytes as u64)) " bytes." }
                    }
                }
            }
        }
    }
}

/// Returns what may have become of letters that are no longer in their queue.
pub(super) fn gone(dead: &DeadLetterQueue) -> String {
    match dead.moves_on_to() {
        Some(queue) => format!("sent back, discarded, or moved on to {queue} by SQS"),
        None => "sent back or discarded".to_owned(),
    }
}

/// Says that what is looked for, such as `It`, is not among the letters that were looked at, where there may be others.
pub(crate) fn not_among(it: &str, looked_at: usize, unseen: Unseen) -> Option<String> {
    let read = text::counted(looked_at as u64, "letter that was read", "letters that were read");
    if unseen.cut {
        return Some(format!(
            "{it} is not among the {read}, and there may be more: claimant dead show finds it by its whole id."
        ));
    }
    unseen.not_shown_in_words().map(|not_shown| format!("{it} is not among the {read}. {not_shown}. Try again."))
}

/// Returns after how many receives SQS moves letters on that a page reads; none where it reads them without a receive.
pub(super) fn moves_on_after(dead: &DeadLetterQueue) -> Option<u32> {
    dead.moves_on_after().filter(|_| !dead.is_only_looked_at())
}

/// Warns of a queue of which SQS moves letters on.
pub(super) fn careful(moves_on_after: Option<u32>) -> Markup {
    html! {
        @if let Some(receives) = moves_on_after {
            p { "Careful: SQS moves its letters on after " (receives) " receives, and to read one is to receive it." }
        }
    }
}

/// Draws the button that reads letters of a deployed queue, and what that does; `fields` are those of its form.
pub(super) fn read_them(path: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        section {
            (read_button(path, fields, "Read the letters"))
            p .soft.small { (LOOK_COSTS) }
        }
    }
}

/// Draws the button alone.
pub(super) fn read_button(path: &str, fields: &[(&str, &str)], says: &str) -> Markup {
    html! {
        form .act method="get" action=(path) {
            (form::hidden(fields))
            (form::hidden(&[(READ, "true")]))
            button type="submit" { (says) }
        }
    }
}

/// Draws the outcome of a letter.
pub(crate) fn outcome(outcome: Option<&str>) -> Markup {
    html! {
        @match outcome {
            Some("moved") => (badge(Tone::Warn, "received too often")),
            Some(word) => (badge(Tone::of_outcome(word), word)),
            None => (badge(Tone::Idle, "no reason given")),
        }
    }
}

/// Returns the path of a group's page. Of a deployed queue it receives no letter before that is asked for: see [`path_to_read`].
pub(crate) fn path(group: &str, queue: &str) -> String {
    format!("{}?queue={}", text::path("/dead/", group), text::encoded(queue))
}

/// Returns the path of a group's page with its letters.
pub(super) fn path_to_read(group: &str, queue: &str, is_local: bool) -> String {
    let read = if is_local { String::new() } else { format!("&{READ}=true") };
    format!("{}{read}", path(group, queue))
}
