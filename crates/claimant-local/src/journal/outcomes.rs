//! The outcomes that functions' lines tell. Pure.

use std::fmt;

use serde_json::{Map, Value, json};

use super::fields::Fields;

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

/// Returns what a line says about a message or a batch, in text or JSON; `None` where it says nothing of that. A batch may have these outcomes.
#[must_use]
pub fn read(line: &str, outcomes: &[&str]) -> Option<Seen> {
    let fields = Fields::of(line, &["message done", "batch done"])?;
    let text = |name: &str| fields.text(name).map(str::to_owned);
    let message_id = text("message_id");
    let outcomes = match text("outcome") {
        Some(outcome) if message_id.is_some() => vec![(outcome, 1)],
        None if message_id.is_some() => return None,
        _ => {
            let count = |outcome: &&str| {
                fields.parsed(outcome).filter(|count| *count > 0).map(|count| ((*outcome).to_owned(), count))
            };
            outcomes.iter().filter_map(count).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Seen> {
        super::read(line, &["completed", "duplicate", "retry"])
    }

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
        // Quotes have escapes.
        let escaped = r#"INFO message done consumer="a\"b" message_id=7e1 outcome="retry""#;
        let seen = read(escaped).unwrap();
        assert_eq!((seen.consumer.as_str(), seen.message_id.as_deref()), (r#"a"b"#, Some("7e1")));
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
