//! What a message must look like to be accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use super::attributes::Attributes;
use super::fault::{Code, Fault};
use super::message::{AttributeValue, MessageAttribute, NewMessage};
use super::settings::DELAY_MAX_S;

const MESSAGE_ATTRIBUTES_MAX: usize = 10;
const ATTRIBUTE_NAME_LENGTH_MAX: usize = 256;
const GROUP_ID_LENGTH_MAX: usize = 128;

const WRONG_TYPE: &str = "The request includes a parameter that is not valid for this queue type.";

/// Checks a message against the limits of SQS and the attributes of its queue.
pub(super) fn message(new: &NewMessage, queue: &Attributes) -> Result<(), Fault> {
    if new.body.is_empty() {
        return Err(Fault::missing("MessageBody"));
    }
    if let Some(at) = odd_character(&new.body) {
        return Err(Fault::new(Code::InvalidMessageContents, odd_characters("MessageBody", at)));
    }
    message_attributes(&new.message_attributes)?;
    let bytes = size(new);
    let max_bytes = queue.settings.max_message_bytes;
    if bytes > max_bytes {
        return Err(Fault::new(
            Code::InvalidParameterValue,
            format!(
                "One or more parameters are invalid. Reason: Message must be shorter than {max_bytes} bytes. It has \
                 {bytes}, its attributes included."
            ),
        ));
    }
    if new.delay.is_some_and(|delay| delay > Duration::from_secs(DELAY_MAX_S)) {
        return Err(Fault::invalid_parameter(
            "DelaySeconds",
            format!("DelaySeconds must be >= 0 and <= {DELAY_MAX_S}."),
        ));
    }
    if let Some(group_id) = &new.group_id {
        identifier("MessageGroupId", group_id)?;
    }
    if let Some(id) = &new.deduplication_id {
        identifier("MessageDeduplicationId", id)?;
    }
    fits_queue_type(new, queue)
}

/// The bytes of a message that count: the body, and names, types and values of its attributes.
pub(super) fn size(new: &NewMessage) -> usize {
    let attribute = |(name, attribute): (&String, &MessageAttribute)| {
        name.len() + attribute.data_type.len() + attribute.value.as_bytes().len()
    };
    new.body.len() + new.message_attributes.iter().map(attribute).sum::<usize>()
}

/// The system attributes of a message as they are digested.
pub(super) fn system_attributes(new: &NewMessage) -> BTreeMap<String, MessageAttribute> {
    let attribute = |value: &String| MessageAttribute {
        data_type: "String".to_owned(),
        value: AttributeValue::Text(value.clone()),
    };
    let header = new.trace_header.as_ref();
    header.map(|value| ("AWSTraceHeader".to_owned(), attribute(value))).into_iter().collect()
}

/// Checks that a message has what a FIFO queue orders and deduplicates by.
pub(super) fn group_and_deduplication(new: &NewMessage, queue: &Attributes) -> Result<(), Fault> {
    if !queue.settings.fifo {
        return Ok(());
    }
    if new.group_id.is_none() {
        return Err(Fault::missing("MessageGroupId"));
    }
    if new.deduplication_id.is_none() && !queue.settings.deduplication.content_based {
        return Err(Fault::new(
            Code::InvalidParameterValue,
            "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided \
             explicitly",
        ));
    }
    Ok(())
}

/// Checks the id by which a receive from a FIFO queue is known again.
pub(super) fn attempt_id(id: &str, queue: &Attributes) -> Result<(), Fault> {
    if !queue.settings.fifo {
        return Err(Fault::invalid_parameter("ReceiveRequestAttemptId", WRONG_TYPE));
    }
    identifier("ReceiveRequestAttemptId", id)
}

fn fits_queue_type(new: &NewMessage, queue: &Attributes) -> Result<(), Fault> {
    let settings = &queue.settings;
    if !settings.fifo {
        return match new.deduplication_id {
            Some(_) => Err(Fault::invalid_parameter("MessageDeduplicationId", WRONG_TYPE)),
            None => Ok(()),
        };
    }
    group_and_deduplication(new, queue)?;
    if new.delay.is_some_and(|delay| !delay.is_zero()) {
        return Err(Fault::invalid_parameter("DelaySeconds", WRONG_TYPE));
    }
    Ok(())
}

/// The index of the first character that SQS does not take, counted in characters.
fn odd_character(text: &str) -> Option<usize> {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}');
    text.chars().position(|c| !allowed(c))
}

fn odd_characters(what: &str, at: usize) -> String {
    format!(
        "Invalid characters found in {what}, first at character {at}. Valid unicode characters are #x9 | #xA | #xD | #x20 to \
         #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF."
    )
}

fn identifier(parameter: &str, id: &str) -> Result<(), Fault> {
    if id.is_empty() || id.len() > GROUP_ID_LENGTH_MAX || !id.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Fault::invalid_parameter(
            parameter,
            format!(
                "{parameter} can only include alphanumeric and punctuation characters. 1 to {GROUP_ID_LENGTH_MAX} in \
                 length."
            ),
        ));
    }
    Ok(())
}

fn message_attributes(attributes: &BTreeMap<String, MessageAttribute>) -> Result<(), Fault> {
    if attributes.len() > MESSAGE_ATTRIBUTES_MAX {
        return Err(Fault::new(
            Code::InvalidParameterValue,
            format!(
                "Number of message attributes [{}] exceeds the allowed maximum [{MESSAGE_ATTRIBUTES_MAX}].",
                attributes.len()
            ),
        ));
    }
    attributes.iter().try_for_each(|(name, attribute)| {
        attribute_name(name)?;
        attribute_value(name, attribute)
    })
}

fn attribute_name(name: &str) -> Result<(), Fault> {
    let lower = name.to_ascii_lowercase();
    // Letters of any script: AWS takes more than its documents say.
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let reason = if name.is_empty() || name.chars().count() > ATTRIBUTE_NAME_LENGTH_MAX || !name.chars().all(plain) {
        "it may hold letters, digits, underscores, hyphens and full stops, 1 to 256 of them"
    } else if name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        "it may not start or end with a full stop, nor hold two in succession"
    } else if lower.starts_with("aws.") || lower.starts_with("amazon.") {
        "names that start with AWS. or Amazon. are reserved"
    } else {
        return Ok(());
    };
    Err(Fault::new(Code::InvalidParameterValue, format!("The message attribute name '{name}' is invalid: {reason}.")))
}

fn attribute_value(name: &str, attribute: &MessageAttribute) -> Result<(), Fault> {
    let data_type = &attribute.data_type;
    let invalid = |reason: &str| {
        Err(Fault::new(Code::InvalidParameterValue, format!("The message attribute '{name}' is invalid: {reason}.")))
    };
    if data_type.len() > ATTRIBUTE_NAME_LENGTH_MAX {
        return invalid("its data type is longer than 256 characters");
    }
    let base = data_type.split_once('.').map_or(data_type.as_str(), |(base, _)| base);
    if attribute.value.as_bytes().is_empty() {
        return invalid("it must contain a non-empty value of the kind its data type names");
    }
    match (base, &attribute.value) {
        ("Binary", AttributeValue::Binary(_)) => Ok(()),
        ("String", AttributeValue::Text(value)) => odd_character(value).map_or(Ok(()), |at| {
            let what = format!("the message attribute '{name}'");
            Err(Fault::new(Code::InvalidParameterValue, odd_characters(&what, at)))
        }),
        ("Number", AttributeValue::Text(value)) if is_number(value) => Ok(()),
        ("Number", AttributeValue::Text(_)) => invalid("its value is not a number"),
        ("Binary", _) => invalid("a Binary attribute needs a BinaryValue"),
        ("String" | "Number", _) => invalid("a String or Number attribute needs a StringValue"),
        _ => invalid("its data type must be String, Number or Binary, with an optional suffix after a full stop"),
    }
}

fn is_number(value: &str) -> bool {
    // `f64` reads every number SQS accepts, and the words `inf` and `nan`, which SQS does not.
    value.parse::<f64>().is_ok() && value.bytes().any(|b| b.is_ascii_digit())
}
