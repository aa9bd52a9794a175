//! What the lines say that functions write: text or JSON, as `claimant-lambda` formats them. Pure.

use super::fields::Fields;
use super::what::{Claimed, Done, Level, What};

const CLAIMED: &str = "message claimed";
const DONE: &str = "message done";

/// The length of a message's id: a UUID.
const ID_LENGTH: usize = 36;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The message that it is about.
    pub message_id: Option<String>,
    /// [`What::Claimed`], [`What::Done`], or else the [line](What::Line) itself.
    pub what: What,
}

/// Whether it is one of the lines that a function writes for each message where `CLAIMANT_LOG_MESSAGES` is `on`: with all of the
/// fields of a claim or an outcome, since a handler may write the same words.
#[must_use]
pub fn is_of_message(line: &str) -> bool {
    of_message(line).is_some()
}

/// Reads a line. One that is no claim and no outcome, or lacks a field of those, is a line.
#[must_use]
pub fn read(line: &str) -> Read {
    if let Some(read) = of_message(line) {
        return read;
    }
    let what = What::Line { level: level(line), text: line.into() };
    Read { message_id: message_id(line).map(str::to_owned), what }
}

fn of_message(line: &str) -> Option<Read> {
    let fields = Fields::of(line, &[CLAIMED, DONE])?;
    let text = |name: &str| fields.text(name);
    let message_id = Some(text("message_id")?.to_owned());
    let consumer = text("consumer")?.into();
    let what = if fields.about == CLAIMED {
        What::Claimed(Box::new(Claimed {
            consumer,
            owner: text("owner")?.into(),
            fence: fields.parsed("fence")?,
            lease_until_ms: fields.parsed("lease_until")?,
            attempt: fields.parsed("attempt")?,
            taken_over: fields.parsed("taken_over")?,
        }))
    } else {
        What::Done(Box::new(Done {
            consumer,
            outcome: text("outcome")?.into(),
            dead_lettered: fields.parsed("dead_lettered").unwrap_or_default(),
            receive: fields.parsed("receive_count"),
            events: fields.parsed("events").unwrap_or(1),
            busy_until_ms: fields.parsed("busy_until"),
            handle_ms: fields.parsed("handle_ms").filter(|ms: &f64| ms.is_finite()),
        }))
    };
    Some(Read { message_id, what })
}

/// The level in a line: its first word in text, a field in JSON.
fn level(line: &str) -> Level {
    let text = line.trim_start();
    let word = match text.split_once("\"level\":\"") {
        Some((before, rest)) if before.starts_with('{') => rest,
        _ => text,
    };
    let is = |level: &str| word.get(..level.len()).is_some_and(|word| word.eq_ignore_ascii_case(level));
    match () {
        () if is("error") => Level::Error,
        () if is("warn") => Level::Warn,
        () if is("debug") || is("trace") => Level::Debug,
        () => Level::Info,
    }
}

/// The first message id that a line names as such: a field of the line, or of the span that it is in.
fn message_id(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("message_id")?;
    let id = rest.trim_start_matches(['"', ':', '=', ' ']).get(..ID_LENGTH)?;
    id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-').then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "059f36b4-87a3-44ab-83d2-661975830a7d";

    #[test]
    fn claims_are_read_in_text_and_json() {
        let text = format!(
            " INFO message claimed consumer=orders message_id={ID} owner=\"12e456\" fence=2 lease_until=1700000000000 attempt=2 taken_over=true receive_count=2"
        );
        let json = format!(
            r#"{{"timestamp":"2026-01-01T00:00:00Z","level":"INFO","message":"message claimed","consumer":"orders","message_id":"{ID}","owner":"12e456","fence":2,"lease_until":1700000000000,"attempt":2,"taken_over":true,"receive_count":2}}"#
        );
        let claimed = Claimed {
            consumer: "orders".into(),
            owner: "12e456".into(),
            fence: 2,
            lease_until_ms: 1_700_000_000_000,
            attempt: 2,
            taken_over: true,
        };
        for line in [text, json] {
            let wanted = Read { message_id: Some(ID.to_owned()), what: What::Claimed(Box::new(claimed.clone())) };
            assert_eq!(read(&line), wanted, "{line}");
            assert!(is_of_message(&line), "{line}");
        }
    }

    #[test]
    fn outcomes_are_read_as_far_as_they_say_something() {
        let line = format!(
            " INFO message done consumer=\"orders\" message_id={ID} outcome=\"busy\" dead_lettered=false receive_count=2 events=3 busy_until=5 handle_ms=1.5"
        );
        let What::Done(done) = read(&line).what else { panic!("an outcome") };
        assert_eq!((&*done.consumer, &*done.outcome, done.dead_lettered), ("orders", "busy", false));
        assert_eq!((done.receive, done.events), (Some(2), 3));
        assert_eq!((done.busy_until_ms, done.handle_ms), (Some(5), Some(1.5)));
        // An owner of digits is a text all the same, in text and in JSON.
        for (owner, shown) in [("123456", "123456"), ("\"123456\"", "123456"), ("12e4", "12e4"), ("\"12e4\"", "12e4")] {
            let line = format!(
                "INFO message claimed consumer=7 message_id={ID} owner={owner} fence=1 lease_until=1 attempt=1 taken_over=false"
            );
            assert!(matches!(read(&line).what, What::Claimed(claimed) if claimed.owner == shown), "{line}");
        }
    }

    #[test]
    fn other_lines_are_kept_with_their_level_and_message() {
        let rows = [
            ("".to_owned(), Level::Info, None),
            ("panicked at src/main.rs".to_owned(), Level::Info, None),
            (format!(" WARN message: claimant: it failed consumer=a message_id={ID} attempt=1"), Level::Warn, Some(ID)),
            (format!(r#"{{"level":"ERROR","message":"x","span":{{"message_id":"{ID}"}}}}"#), Level::Error, Some(ID)),
            ("DEBUG message_id=short".to_owned(), Level::Debug, None),
            (" INFO message done outcome=\"busy\"".to_owned(), Level::Info, None),
            ("ERROR shop: message done, but its receipt was not sent".to_owned(), Level::Error, None),
            ("message_id=äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöü".to_owned(), Level::Info, None),
        ];
        for (line, level, id) in rows {
            let wanted =
                Read { message_id: id.map(str::to_owned), what: What::Line { level, text: line.as_str().into() } };
            assert_eq!(read(&line), wanted);
            assert!(!is_of_message(&line), "{line}");
        }
    }
}
