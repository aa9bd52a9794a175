//! What a line of a function's output says.

use serde_json::{Map, Value};

use super::fact::Line;

/// How much of a line is shown, in bytes.
const SHOWN_MAX: usize = 1_000;

/// Fields that the page shows elsewhere, or that say nothing about the message.
const KNOWN: [&str; 9] =
    ["timestamp", "level", "message", "target", "span", "spans", "message_id", "consumer", "requestId"];

/// What the runtime's span adds to a line of text, before and after.
const SPAN: &str = "Lambda runtime invoke: ";
const RUNTIMES: [&str; 2] = [" requestId=", " xrayTraceId="];

/// Fields that say why.
const REASONS: [&str; 3] = ["reason", "error", "why"];

/// Reads a line, in JSON or in the compact text of `tracing`.
pub(super) fn line(text: &str) -> Line {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) if fields.contains_key("message") => of_json(&fields),
        _ => of_text(text),
    }
}

fn of_json(fields: &Map<String, Value>) -> Line {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let field = |name: &str| fields.get(name).filter(|value| !value.is_null()).map(text);
    let others = fields.iter().filter(|(name, value)| {
        !KNOWN.contains(&name.as_str()) && !REASONS.contains(&name.as_str()) && !value.is_null()
    });
    let others: String = others.map(|(name, value)| format!(" · {name} {}", text(value))).collect();
    let said = field("message").unwrap_or_default();
    Line {
        level: field("level").map(|level| level.to_uppercase()),
        text: bounded(&format!("{said}{others}")),
        reason: REASONS.iter().find_map(|name| field(name)).map(|reason| bounded(&reason)),
    }
}

fn of_text(text: &str) -> Line {
    // The runtime's own fields come last.
    let text = RUNTIMES.iter().fold(text, |text, name| text.split_once(name).map_or(text, |(text, _)| text)).trim();
    let (level, rest) = match text.split_once(' ') {
        Some((level @ ("ERROR" | "WARN" | "INFO" | "DEBUG" | "TRACE"), rest)) => {
            (Some(level.to_owned()), rest.trim_start())
        }
        _ => (None, text),
    };
    let rest = rest.strip_prefix(SPAN).unwrap_or(rest);
    // The reason is the last field of the lines that have one, and has blanks of its own.
    let (rest, reason) = REASONS
        .iter()
        .find_map(|name| rest.split_once(&format!(" {name}=")))
        .map_or((rest, None), |(rest, reason)| (rest, Some(reason)));
    let known =
        |word: &&str| !KNOWN.iter().any(|name| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')));
    let said: Vec<_> = rest.split(' ').filter(known).collect();
    Line { level, text: bounded(&said.join(" ")), reason: reason.map(|reason| bounded(reason.trim_matches('"'))) }
}

fn bounded(text: &str) -> String {
    if text.len() <= SHOWN_MAX {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(SHOWN_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_json_and_of_text() {
        let json = line(
            r#"{"timestamp":"2026-11-22T12:00:00Z","level":"WARN","message":"handler failed","consumer":"c","message_id":"m",
               "attempt":2,"fence":null,"error":"the mail server is busy"}"#,
        );
        let reason = Some("the mail server is busy".to_owned());
        assert_eq!(
            json,
            Line { level: Some("WARN".into()), text: "handler failed · attempt 2".into(), reason: reason.clone() }
        );

        let text = " WARN Lambda runtime invoke: handler failed consumer=c message_id=m attempt=2 error=the mail server is busy \
                    requestId=\"r\" xrayTraceId=\"x\"";
        assert_eq!(line(text), Line { level: Some("WARN".into()), text: "handler failed attempt=2".into(), reason });

        for (other, shown) in [("", ""), ("{}", "{}"), ("<script>", "<script>"), (r#"{"a":1}"#, r#"{"a":1}"#)] {
            assert_eq!(line(other), Line { text: shown.into(), ..Line::default() });
        }
        assert!(line(&"ä".repeat(5_000)).text.len() < SHOWN_MAX + 10);
    }
}
