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
use crate::ask::Reader;
use crate::console::{Console, DRAFT};
use crate::done::Done;
use crate::fields::{BODY, Fields};
use crate::ui::nav::Tab;
use crate::ui::text;

/// Where messages are sent.
pub(super) const PATH: &str = "/send";

/// Messages of one sending to which the page has links.
pub(super) const LINKS: usize = 5;

/// The field that names a message that is sent again: as it is, or with the body that comes beside it.
pub(super) const MESSAGE: &str = "message";

/// What a sending is asked for with; `sample` only says what the form began with.
const FIELDS: [&str; 13] = [
    "queue", BODY, MESSAGE, "number", "envelope", "type", "preset", "count", "copies", "shuffle", "group", "delay",
    "sample",
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
    act.takes(&FIELDS, None)?;
    let fields = &act.fields;
    let (place, body) = (console.place(), act.body(fields.came(MESSAGE))?);
    fields.narrowing(MESSAGE)?;
    let before = match before(place, fields).await {
        Err(error) if body.is_some() && error.kind() == ErrorKind::Invalid => {
            let why = attributes_gone(act, &error);
            if act.ask.reader == Reader::Program {
                return Err(Error::invalid(why));
            }
            // What was typed stays, in a form that begins with no message.
            return Ok(Done::refused(why, form(console, &fields.without(&[MESSAGE])), Value::Null));
        }
        before => before?,
    };
    let queue = match (fields.narrowing("queue")?, &before) {
        (None, Some(before)) => before.queue(place)?,
        _ => place.queue_for(Some(fields.required("queue")?))?,
    };
    let sender = Sender::new(place.sqs(), &queue.url);
    let now = SystemClock.now();
    // What was sent before stays as it is.
    let is_as_before = before.is_some() && body.is_none();
    let fresh = if is_as_before { NUMBER.to_owned() } else { fresh_number(now) };
    let number = fields.get("number").map_or(fresh, str::to_owned);
    let body = match &before {
        Some(before) if body.is_none() || is_as_shown(act, before) => {
            before.check_message(place)?;
            Some(before.body.clone())
        }
        _ => body,
    };
    let mut batch = batch(fields, body)?;
    if let Some(before) = before {
        // A group that a person took out stays so.
        let taken_out = act.is_typed && fields.came("group");
        batch.group = batch.group.or(before.group.filter(|_| !taken_out));
        batch.before = before.attributes;
    }
    let messages = batch.plan(&number, now, sender.is_fifo())?;
    let report = sender.send_while(&batch, &messages, &mut || console.go_on()).await?;
    let said = in_words(&report, messages.len(), &queue.name);
    let see = match report.ids.first().filter(|_| is_as_before) {
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

/// Returns the message that is to be sent again, where one is named.
///
/// # Errors
/// When its body is no longer there.
pub(super) async fn before(place: &Place, fields: &Fields) -> Result<Option<SentBefore>, Error> {
    match fields.get(MESSAGE) {
        Some(id) => SentBefore::of(place, id).await.map(Some),
        None => Ok(None),
    }
}

/// Returns whether a person left the body as a form shows it: JSON in lines, and a browser has line ends of its own.
fn is_as_shown(act: &Act, before: &SentBefore) -> bool {
    let is_shown = |typed: &str| has_same_lines(typed, &text::to_edit(&before.body));
    act.is_typed && act.fields.all(BODY).next().is_some_and(is_shown)
}

/// Says why nothing was sent where the message that a form began with is not to be had.
fn attributes_gone(act: &Act, error: &Error) -> String {
    let how = match act.ask.reader {
        Reader::Program => "Without the field message it is sent as a new one, without them.",
        Reader::Browser | Reader::OpenPage => "Sent again, as it is here, it is a new message without them.",
    };
    format!(
        "Nothing was sent: the attributes of the message that it began with are not to be had ({}). {how}",
        Chain(error)
    )
}

fn batch(fields: &Fields, body: Option<String>) -> Result<Batch, Error> {
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
            let batch = batch(&Fields::of_form(form), None).unwrap();
            assert_eq!(
                (batch.count, batch.copies, batch.shuffle.is_some(), batch.envelope),
                (count, copies, shuffled, envelope),
                "{form}"
            );
        }
        for bad in ["body=x&count=0", "body=x&envelope=owl", "body=x&delay=901"] {
            assert!(batch(&Fields::of_form(bad), None).is_err(), "{bad}");
        }
    }
}
