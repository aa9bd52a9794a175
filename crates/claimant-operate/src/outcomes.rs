//! Outcomes as they happen: the log lines of functions, and what they say.

use std::fmt;

use claimant_core::report::OUTCOME_WORDS;
use claimant_core::{Clock as _, Error, SystemClock, Timestamp};
use serde_json::{Map, Value, json};

use crate::http;
use crate::logs::{Followed, Logged};
use crate::place::Place;

/// Where a local cloud passes log lines on, under the address of its control endpoint.
const LOGS_PATH: &str = "/_claimant/logs";

/// A function's log line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The function's name.
    pub function: String,
    /// The log stream: one for each process; empty in a local cloud, which does not say whose line it is.
    pub stream: String,
    /// When it was written; of a local cloud, when it came.
    pub at: Timestamp,
    /// The line, as the function wrote it.
    pub text: String,
    /// How many lines are missing here, because they came faster than they were read; then the others are empty.
    pub missed: u64,
}

/// The log lines of a place, as they come.
pub struct LogLines(Lines);

enum Lines {
    Local(http::Lines),
    Deployed(Box<Followed>),
}

impl Place {
    /// Returns the log lines of its functions from now on; of deployed functions `all` of them, or those that tell outcomes, which are
    /// fewer. They come from CloudWatch, about ten seconds late, by a request for each function every five seconds
    /// (`logs:FilterLogEvents`).
    ///
    /// # Errors
    /// When no function is known, or a local cloud gives no answer.
    pub async fn log_lines(&self, all: bool) -> Result<LogLines, Error> {
        if let Some(control) = &self.control {
            return Ok(LogLines(Lines::Local(http::lines(&format!("{control}{LOGS_PATH}")).await?)));
        }
        let logs = self.logs().ok_or_else(|| {
            Error::invalid(format!("{} has no function whose log lines could be read: give --stack NAME", self.name))
        })?;
        Ok(LogLines(Lines::Deployed(Box::new(logs.follow(all)))))
    }
}

impl LogLines {
    /// Returns the next line; `None` once the cloud stops. Cancel safe.
    ///
    /// # Errors
    /// When the connection breaks, something else answers, or lines in CloudWatch cannot be read.
    pub async fn next(&mut self) -> Result<Option<LogLine>, Error> {
        let lines = match &mut self.0 {
            Lines::Local(lines) => lines,
            Lines::Deployed(lines) => {
                let Logged { function, stream, at_ms, text, .. } = lines.next().await?;
                return Ok(Some(LogLine { function, stream, at: Timestamp::from_millis(at_ms), text, missed: 0 }));
            }
        };
        let Some(line) = lines.next().await? else { return Ok(None) };
        let line: Value = serde_json::from_slice(&line)
            .map_err(|e| Error::new("the control endpoint sent what is no log line").caused_by(e))?;
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        Ok(Some(LogLine {
            function: text("function"),
            stream: String::new(),
            at: SystemClock.now(),
            text: text("line"),
            missed: line["missed"].as_u64().unwrap_or_default(),
        }))
    }
}

/// What a line says about messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The consumer.
    pub consumer: String,
    /// The message's id; `None` for a batch.
    pub message_id: Option<String>,
    /// Its outcome; or the outcomes in a batch, each with its number.
    pub outcomes: Vec<(String, u64)>,
    /// What else the line says of a message, such as its attempt: names and values.
    pub others: Vec<(String, String)>,
}

impl Seen {
    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let outcomes: Map<_, _> = self.outcomes.iter().map(|(name, count)| (name.clone(), json!(count))).collect();
        json!({ "consumer": self.consumer, "message_id": self.message_id, "outcomes": outcomes })
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20}  ", self.consumer)?;
        match (&self.message_id, self.outcomes.as_slice()) {
            (Some(id), [(outcome, _)]) => write!(f, "{outcome:<14}  {id}")?,
            (_, outcomes) => {
                let counts: Vec<_> = outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
                f.write_str(&counts.join(", "))?;
            }
        }
        self.others.iter().try_for_each(|(name, value)| write!(f, "  {name} {value}"))
    }
}

/// Returns what a line says about a message or a batch, in text or JSON; `None` where it says nothing of that.
#[must_use]
pub fn read(line: &str) -> Option<Seen> {
    let fields = fields(line)?;
    let text = |name: &str| fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
    let message_id = text("message_id");
    let outcomes = match text("outcome") {
        Some(outcome) if message_id.is_some() => vec![(outcome, 1)],
        None if message_id.is_some() => return None,
        _ => {
            let count = |outcome: &&str| {
                text(outcome)?.parse().ok().filter(|count| *count > 0).map(|n| ((*outcome).to_owned(), n))
            };
            OUTCOME_WORDS.iter().filter_map(count).collect()
        }
    };
    let other = |name: &str| text(name).map(|value| (name.to_owned(), value));
    let others = if message_id.is_some() {
        ["attempt", "receive_count", "handle_ms"].into_iter().filter_map(other).collect()
    } else {
        Vec::new()
    };
    Some(Seen { consumer: text("consumer")?, message_id, outcomes, others })
}

/// The names and values in a line about a message or a batch.
fn fields(line: &str) -> Option<Vec<(String, String)>> {
    if let Ok(Value::Object(object)) = serde_json::from_str(line) {
        let about = object.get("message").and_then(Value::as_str);
        let text = |value: Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        };
        return matches!(about, Some("message done" | "batch done"))
            .then(|| object.into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect());
    }
    let rest = ["message done", "batch done"].iter().find_map(|about| after(line, about))?;
    let pairs = rest.split_whitespace().filter_map(|pair| pair.split_once('='));
    Some(pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned())).collect())
}

/// Returns what follows an event's own words in a line of text. Fields of spans stand before them in braces at most: behind a field of the event,
/// they are in what it quotes.
fn after<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let (before, rest) = line.split_once(words)?;
    let has_field = |part: &str| part.split('{').next().is_some_and(|outside| outside.contains('='));
    (!before.split('}').any(has_field)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line whose error quotes another one.
    const QUOTED: &str =
        "WARN invoke: handler failed consumer=w error=upstream said {: batch done consumer=payment completed=1000 .";

    #[test]
    fn lines_of_text_and_of_json_say_the_same() {
        let batch = " INFO batch done consumer=\"order\" received=3 completed=2 duplicate=0 retry=1 claim_ms=1.5";
        let seen = read(batch).unwrap();
        assert_eq!((seen.consumer.as_str(), seen.message_id.as_ref()), ("order", None));
        assert_eq!(seen.to_string().trim_end(), "order                 2 completed, 1 retry");
        let json = r#"{"level":"INFO","message":"batch done","consumer":"order","received":3,"completed":2,"retry":1}"#;
        assert_eq!(read(json), Some(seen.clone()));
        // With metrics, the line is the record.
        let record = r#"{"_aws":{"Timestamp":7},"message":"batch done","consumer":"order","function":"f","received":3,"completed":2,"retry":1}"#;
        assert_eq!(read(record), Some(seen));

        let message = "INFO message done consumer=\"order\" message_id=m-1 outcome=\"retry\" attempt=2 receive_count=3";
        let seen = read(message).unwrap();
        assert_eq!(seen.to_string(), "order                 retry           m-1  attempt 2  receive_count 3");
        assert_eq!(seen.to_json()["outcomes"], json!({ "retry": 1 }));
        let of_span = format!("INFO invoke{{requestId=\"1\"}}: claimant: {}", message.trim_start_matches("INFO "));
        assert_eq!(read(&of_span), Some(seen));
        let null = r#"{"message":"message done","consumer":"order","message_id":"m-1","outcome":null}"#;
        for other in [
            "",
            "START RequestId",
            "{}",
            QUOTED,
            "{\"message\": 1}",
            null,
            "batch done",
            "INFO batch undone consumer=x",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
