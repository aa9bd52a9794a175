//! `POST /send`, as `claimant send` does.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Response;
use claimant_core::error::Chain;
use claimant_core::{Clock as _, Error, ErrorKind, SystemClock};
use claimant_operate::send::{Batch, MESSAGES_MAX, NUMBER, Sender, SentBefore, SentReport, Wrapping, fresh_number};
use claimant_operate::target::Place;
use claimant_operate::text::has_same_lines;
use serde_json::Value;

use crate::act::Act;
use crate::console::{Console, DRAFT};
use crate::done::Done;
use crate::fields::Fields;
use crate::ui::nav::Tab;
use crate::ui::text;

/// Where messages are sent.
pub(super) const PATH: &str = "/send";

/// Messages of one sending to which the page has links.
pub(super) const LINKS: usize = 5;

/// The field of a form that names the message whose body it began with.
pub(super) const EDITED: &str = "edited";

/// What a sending is asked for with; `sample` only says what the form began with.
const FIELDS: [&str; 14] = [
    "queue", "body", "message", EDITED, "number", "envelope", "type", "preset", "count", "copies", "shuffle", "group",
    "delay", "sample",
];

pub(super) async fn send(State(console): State<Console>, act: Act) -> Response {
    let (act, done) = act.once(&console, |console, act| async move { sent(&console, &act).await }).await;
    act.ask.done_at(&console, Tab::Send, done, || form(&console, &act.fields))
}

/// Returns where the form is with what was typed.
fn form(console: &Console, fields: &Fields) -> String {
    format!("{PATH}?{DRAFT}={}", console.keep_draft(fields.clone()))
}

/// Sends messages.
async fn sent(console: &Console, act: &Act) -> Result<Done, Error> {
    console.check_writes()?;
    act.takes(&FIELDS)?;
    let fields = &act.fields;
    let (place, body) = (console.place(), act.body(fields.came("message"))?);
    let before = before(place, fields).await?;
    let queue = match (fields.narrowing("queue")?, &before) {
        (None, Some(before)) => before.queue(place)?,
        _ => place.queue_for(Some(fields.required("queue")?))?,
    };
    let sender = Sender::new(place.sqs(), &queue.url);
    let now = SystemClock.now();
    // What was sent before stays as it is.
    let fresh = if before.is_some() { NUMBER.to_owned() } else { fresh_number(now) };
    let number = fields.get("number").map_or(fresh, str::to_owned);
    let is_again = before.is_some();
    let mut batch = batch(fields, body, before)?;
    let original = match original(place, fields).await {
        // What was typed stays, in a form that begins with no message.
        Err(error) if error.kind() == ErrorKind::Invalid => {
            let see = form(console, &fields.without(&[EDITED]));
            return Ok(Done::refused(attributes_gone(&error), see, Value::Null));
        }
        original => original?,
    };
    if let Some(original) = original {
        if fields.all("body").next().is_some_and(|typed| has_same_lines(typed, &text::to_edit(&original.body))) {
            batch.body = original.body;
        }
        batch.before = original.attributes;
    }
    let messages = batch.plan(&number, now, sender.is_fifo())?;
    let report = sender.send_while(&batch, &messages, &mut || console.go_on()).await?;
    let said = in_words(&report, messages.len(), &queue.name);
    let see = match report.ids.first().filter(|_| is_again) {
        Some(id) => text::path("/messages/", id),
        None => report.ids.iter().take(LINKS).fold(form(console, fields), |mut see, id| {
            let _ = write!(see, "&sent={}", text::encoded(id));
            see
        }),
    };
    let mut value = report.to_json();
    value["queue"] = queue.name.as_str().into();
    value["number"] = number.into();
    Ok(Done::of(report.sent > 0, said, see, value))
}

/// Says what was sent of so many messages, what was not, and of what that is not known.
fn in_words(report: &SentReport, messages: usize, queue: &str) -> String {
    let counted = |count: usize| text::counted(count as u64, "message", "messages");
    let SentReport { sent, unknown, problems, left, .. } = report;
    // A request without an answer is the last one.
    let why = if *unknown > 0 { problems.last() } else { problems.first() };
    match (why, sent, unknown) {
        (None, ..) if *left > 0 => {
            let all = counted(messages);
            format!("{sent} of {all} sent to {queue}. The console was stopped: the others were not sent.")
        }
        (None, ..) => format!("{} sent to {queue}.", counted(*sent)),
        (Some(why), 0, 0) => format!("Nothing was sent to {queue}: {why}"),
        (Some(why), 0, _) => format!("It is not known whether {} arrived in {queue}: {why}", counted(*unknown)),
        (Some(why), _, 0) => format!("{sent} of {} sent to {queue}. The others: {why}", counted(messages)),
        (Some(why), ..) => {
            let (all, unknown) = (counted(messages), counted(*unknown));
            format!("{sent} of {all} confirmed by {queue}. It is not known whether {unknown} arrived: {why}")
        }
    }
}

/// Returns the message that is to be sent again, where one is named and nothing else was typed.
///
/// # Errors
/// When its body is no longer there.
pub(super) async fn before(place: &Place, fields: &Fields) -> Result<Option<SentBefore>, Error> {
    match fields.get("message").filter(|_| !fields.came("body")) {
        Some(id) => SentBefore::of(place, id).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the message that a form began with, if it did with one. Its attributes go with what was typed; and its very body, where what
/// comes differs from what was shown in its line ends alone: a browser has its own.
///
/// # Errors
/// When it is no longer kept, or no answer comes.
async fn original(place: &Place, fields: &Fields) -> Result<Option<SentBefore>, Error> {
    match fields.narrowing(EDITED)? {
        Some(id) => SentBefore::of(place, id).await.map(Some),
        None => Ok(None),
    }
}

/// Says why nothing was sent where the message that a form began with is not to be had.
fn attributes_gone(error: &Error) -> String {
    format!(
        "Nothing was sent: the attributes of the message that it began with are not to be had ({}). Sent again, as it is here, it is a new \
         message without them; a program leaves edited out.",
        Chain(error)
    )
}

fn batch(fields: &Fields, body: Option<String>, before: Option<SentBefore>) -> Result<Batch, Error> {
    let most = MESSAGES_MAX as u64;
    let number = |name: &str| fields.number(name, 1, 1..=most);
    let mut batch = Batch {
        body: body.unwrap_or_default(),
        envelope: fields.get("envelope").map(str::parse).transpose()?.unwrap_or_default(),
        wrapping: Wrapping { kind: fields.get("type").map(str::to_owned), ..Wrapping::default() },
        // Both are 10,000 at most.
        count: usize::try_from(number("count")?).unwrap_or(MESSAGES_MAX),
        copies: usize::try_from(number("copies")?).unwrap_or(MESSAGES_MAX),
        shuffle: fields.flag("shuffle")?.then_some(1),
        group: fields.get("group").map(str::to_owned),
        before: BTreeMap::new(),
        attributes: Vec::new(),
        delay_s: u32::try_from(fields.number("delay", 0, 0..=900)?).unwrap_or(0),
    };
    match fields.get("preset") {
        Some("twice") => batch.copies = 2,
        Some("bulk") => (batch.count, batch.copies, batch.shuffle) = (20, 2, Some(1)),
        _ => {}
    }
    if let Some(before) = before {
        batch.group = batch.group.or(before.group);
        batch.body = before.body;
        batch.before = before.attributes;
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use claimant_operate::send::Envelope;

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
            let batch = batch(&Fields::of_form(form), None, None).unwrap();
            assert_eq!(
                (batch.count, batch.copies, batch.shuffle.is_some(), batch.envelope),
                (count, copies, shuffled, envelope),
                "{form}"
            );
        }
        for bad in ["body=x&count=0", "body=x&envelope=owl", "body=x&delay=901"] {
            assert!(batch(&Fields::of_form(bad), None, None).is_err(), "{bad}");
        }
    }
}
