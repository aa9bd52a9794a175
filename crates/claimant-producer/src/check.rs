//! Checks for what SQS would refuse, so that one message cannot fail its batch and each error says how to fix it.
//!
//! What is wrong is said, and where, and never what a body or an attribute holds.

use std::time::Duration;

use claimant_aws::sqs::{self, ATTRIBUTES_MAX, MESSAGE_MAX_BYTES};
use claimant_core::AttributeValue;
use claimant_core::trace::{HEADER_MAX_BYTES, continued};

use crate::error::{SendError, SendErrorKind};
use crate::outgoing::{Outgoing, POINTER_MAX_BYTES};

/// The longest delay of one message.
pub(crate) const DELAY_MAX_S: u64 = 900;

/// The longest name of an attribute, in characters, and its longest type, in bytes.
const NAME_LENGTH_MAX: usize = 256;

/// Checks a message for a queue, or for a FIFO queue.
pub(crate) fn message(message: &Outgoing, fifo: bool) -> Result<(), SendError> {
    body(message)?;
    attributes(message)?;
    let bytes = message.bytes();
    if bytes > MESSAGE_MAX_BYTES {
        let attributes = message.attribute_bytes();
        return refused(if attributes + POINTER_MAX_BYTES > MESSAGE_MAX_BYTES {
            format!(
                "the message's attributes have {attributes} bytes, and SQS takes {MESSAGE_MAX_BYTES} with the body, or the pointer to it: \
                 only bodies are kept in a bucket"
            )
        } else {
            format!(
                "the message has {bytes} bytes with its attributes, and SQS takes {MESSAGE_MAX_BYTES}: give the producer a bucket for large \
                 payloads"
            )
        });
    }
    if let Some(delay) = message.delay {
        self::delay(delay, fifo)?;
    }
    message.trace.as_deref().map_or(Ok(()), trace)
}

fn refused(why: impl Into<String>) -> Result<(), SendError> {
    Err(SendError::new(SendErrorKind::Refused, why))
}

fn body(message: &Outgoing) -> Result<(), SendError> {
    if message.body.is_empty() {
        return refused("the body is empty: SQS takes no empty messages");
    }
    // Outside of the message, any character can be kept.
    match unsendable(&message.body).filter(|_| !message.outside) {
        None => Ok(()),
        Some(at) => refused(format!(
            "character {at} of the body is one that SQS does not take, a control character or U+FFFE or U+FFFF: escape it, as \
             JSON does, or encode the body in Base64"
        )),
    }
}

/// Returns the index of the first character that SQS does not take, counted in characters.
fn unsendable(text: &str) -> Option<usize> {
    text.chars().position(|c| !sqs::takes(c))
}

fn attributes(message: &Outgoing) -> Result<(), SendError> {
    let count = message.attributes.iter().count();
    // One goes with a pointer.
    let max = ATTRIBUTES_MAX - usize::from(message.outside);
    if count > max {
        let beside = if message.outside { " beside that of a large payload" } else { "" };
        return refused(format!("the message has {count} attributes, and SQS takes {max}{beside}"));
    }
    for (index, (name, value)) in message.attributes.iter().enumerate() {
        if let Some(why) = name_fault(name).or_else(|| value_fault(value)) {
            return refused(format!("attribute {} of {count}, as they were added, {why}", index + 1));
        }
    }
    Ok(())
}

fn name_fault(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || name.chars().count() > NAME_LENGTH_MAX || !name.chars().all(plain) {
        Some("has a name that SQS does not take: 1 to 256 letters, digits, `_`, `-` and `.`")
    } else if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        Some("has a name that begins or ends with a full stop or has two in a row, which SQS does not take")
    } else if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        Some("has a name that begins with `AWS.` or `Amazon.`: these are reserved")
    } else {
        None
    }
}

fn value_fault(value: &AttributeValue) -> Option<&'static str> {
    if value.data_type().len() > NAME_LENGTH_MAX {
        return Some("has a type of more than 256 characters with its label");
    }
    if value.as_sent().map_or_else(|| value.as_bytes().is_none_or(<[u8]>::is_empty), str::is_empty) {
        return Some("is empty, which SQS does not take: leave it out");
    }
    if value.as_sent().and_then(unsendable).is_some() {
        return Some("has a character that SQS does not take: a control character, or U+FFFE or U+FFFF");
    }
    // Only a number is sent as text without being one.
    let number = if value.as_text().is_none() { value.as_sent() } else { None };
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    number.is_some_and(|text| !is_number(text)).then_some("is to be a number and is none")
}

/// Checks the delay of a message for a queue, or for a FIFO queue.
pub(crate) fn delay(delay: Duration, fifo: bool) -> Result<(), SendError> {
    if fifo && !delay.is_zero() {
        return refused(
            "a FIFO queue delays no single message: set the queue's own DelaySeconds, or send it by a schedule (feature \
             `scheduler`)",
        );
    }
    if delay > Duration::from_secs(DELAY_MAX_S) {
        return refused(format!(
            "the delay is {} s, and SQS delays a message by {DELAY_MAX_S} s at most: send it by a schedule (feature \
             `scheduler`)",
            delay.as_secs()
        ));
    }
    Ok(())
}

/// Checks that a consumer continues the trace of this header, and that SQS takes it.
fn trace(header: &str) -> Result<(), SendError> {
    if continued(header).is_some() && header.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
        return Ok(());
    }
    refused(format!(
        "the trace header is none: it is to be like `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`, and of \
         {HEADER_MAX_BYTES} bytes at most"
    ))
}

#[cfg(test)]
mod tests {
    use claimant_core::Key;

    use super::*;

    const ROOT: &str = "Root=1-5759e988-bd862e3fe1be46a994272793";

    fn outgoing() -> Outgoing {
        Outgoing::new(Key::new("secret").unwrap(), "secret")
    }

    /// What is said of a message; empty if it can be sent.
    fn said(message: &Outgoing, fifo: bool) -> String {
        super::message(message, fifo).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn attributes_are_what_sqs_takes() {
        let text = AttributeValue::text;
        let long = "n".repeat(NAME_LENGTH_MAX);
        let rows: [(&str, AttributeValue, &str); 16] = [
            ("kind", text("secret"), ""),
            ("größe_1-a.b", text("secret").with_label("uuid"), ""),
            (&long, AttributeValue::number(-1.5e3), ""),
            ("digest", AttributeValue::bytes([0]), ""),
            ("", text("secret"), "1 to 256"),
            (&format!("{long}n"), text("secret"), "1 to 256"),
            ("se cret", text("x"), "1 to 256"),
            (".secret", text("x"), "full stop"),
            ("sec..ret", text("x"), "full stop"),
            ("Aws.secret", text("x"), "reserved"),
            ("amazon.secret", text("x"), "reserved"),
            ("empty", text(""), "is empty"),
            ("empty", AttributeValue::bytes([]), "is empty"),
            ("odd", text("secret\u{0}"), "character"),
            ("number", AttributeValue::number("secret"), "none"),
            ("labelled", text("secret").with_label(&long), "256 characters with its label"),
        ];
        for (name, value, wanted) in rows {
            let message = outgoing().attribute("first", AttributeValue::number(1)).attribute(name, value);
            let said = said(&message, false);
            assert_eq!(said.is_empty(), wanted.is_empty(), "{name}: {said}");
            assert!(said.contains(wanted) && !said.contains("secret"), "{name}: {said}");
            assert!(said.is_empty() || said.starts_with("attribute 2 of 2"), "{said}");
        }
        assert!(said(&outgoing().attribute("n", AttributeValue::number("inf")), false).contains("none"));
        let many = |count: usize| (0..count).fold(outgoing(), |m, n| m.attribute(format!("a{n}"), text("1")));
        assert_eq!(said(&many(10), false), "");
        assert!(said(&many(11), false).contains("11 attributes"));
        assert_eq!(said(&many(10).attribute("a3", text("2")), false), "", "the same name again");
    }

    #[test]
    fn delays_are_what_sqs_takes_of_a_queue_of_this_kind() {
        let rows = [
            (0, false, ""),
            (900_000, false, ""),
            (900_001, false, "by a schedule"),
            (0, true, ""),
            (1, true, "a FIFO queue delays no single message"),
        ];
        for (millis, fifo, wanted) in rows {
            let said = said(&outgoing().delay(Duration::from_millis(millis)), fifo);
            assert!(said.contains(wanted) && said.is_empty() == wanted.is_empty(), "{millis} {fifo}: {said}");
        }
    }

    #[test]
    fn traces_are_those_of_x_ray() {
        for (header, good) in [
            (ROOT.to_owned(), true),
            (format!("{ROOT};Parent=53995c3f42cd8ad8;Sampled=1;Lineage=a:0"), true),
            (format!("Sampled=1; {ROOT};"), true),
            (String::new(), false),
            ("Parent=53995c3f42cd8ad8".to_owned(), false),
            (format!("{ROOT}0"), false),
            (format!("{ROOT};secret"), true),
            (format!("{ROOT};note=\n"), false),
            (format!("{ROOT};Parent=secret"), false),
            (format!("{ROOT};Parent=53995c3f"), false),
            (format!("{ROOT};Sampled=yes"), false),
            (format!("{ROOT};x={}", "y".repeat(HEADER_MAX_BYTES)), false),
        ] {
            let said = said(&outgoing().trace(&header), false);
            assert_eq!(said.is_empty(), good, "{header}: {said}");
            assert!(!said.contains("secret"));
        }
    }

    #[test]
    fn bodies_are_what_sqs_takes() {
        let of = |body: String| said(&Outgoing::new(Key::new("k").unwrap(), body), false);
        assert_eq!(of("x".repeat(MESSAGE_MAX_BYTES)), "");
        assert!(of("x".repeat(MESSAGE_MAX_BYTES + 1)).contains("1048577 bytes"));
        assert!(of(String::new()).contains("empty") && of("ab\u{ffff}".to_owned()).contains("character 2"));
        let message = Outgoing::new(Key::new("k").unwrap(), "x".repeat(MESSAGE_MAX_BYTES - 11));
        let attribute = |name: &str| message.clone().attribute(name, AttributeValue::bytes([0, 1]));
        assert_eq!(said(&attribute("abc"), false), "", "3, the 6 of `Binary`, and 2");
        assert!(said(&attribute("abcd"), false).contains("1048577 bytes"));
        let outside = Outgoing { outside: true, ..attribute("abcd") };
        assert_eq!(said(&outside, false), "");
        // Whether there is a bucket or not.
        for message in [outside, message] {
            let large = message.attribute("large", AttributeValue::text("x".repeat(MESSAGE_MAX_BYTES)));
            assert!(said(&large, false).contains("only bodies are kept in a bucket"));
        }
    }
}
