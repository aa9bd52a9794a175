//! Dead letters: where they are copied to; and their attributes, the message's own, all of them, and claimant's.

use std::sync::atomic::{AtomicBool, Ordering};

use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::MessageAttributeValue;
use claimant_aws::sqs::{self, ATTRIBUTES_MAX, queue_arn};
use claimant_core::own_attributes::{
    ATTEMPT, CONSUMER, EARLIER_IDS, ERROR, FIRST_MESSAGE_ID, MESSAGE_ID, OUTCOME, RECORD, REDRIVES, is_own,
};
use claimant_core::record::shortened;
use claimant_core::{AttributeValue, Attributes, DeadLetter};

use crate::event::Source;

/// How many of claimant's attributes every copy has: without them it is not known for one, nor where it comes from.
const OURS_MIN: usize = 3;

/// The longest error text on a dead letter.
const ERROR_MAX_BYTES: usize = 1_024;

/// The queue that dead letters are copied to.
pub(crate) struct DeadLetterQueue {
    url: String,
    /// Whether it was said that messages of this queue itself are not copied.
    said: AtomicBool,
}

impl DeadLetterQueue {
    pub(crate) fn new(url: String) -> Self {
        Self { url, said: AtomicBool::new(false) }
    }

    /// Returns its URL, for messages of any other queue. Copied into the queue that it comes from, a message would be another one with
    /// receives of its own: what is always rejected would go round without end.
    pub(crate) fn for_batch_of(&self, source: Option<&Source>) -> Option<&str> {
        let is_it = |source: &&Source| queue_arn(&self.url, &source.arn).as_ref() == Some(&source.arn);
        let Some(source) = source.filter(is_it) else { return Some(&self.url) };
        if !self.said.swap(true, Ordering::Relaxed) {
            tracing::error!(
                queue = source.arn,
                "CLAIMANT_DEAD_LETTER_QUEUE_URL is the queue that these messages come from: those that are rejected or parked are not copied, \
                 and come back until its redrive policy, if it has one, moves them. Set it to a queue that this function does not read"
            );
        }
        None
    }
}

/// Returns the attributes of a copy of a message that had these, and their size: what every copy has of claimant's, all of the message's own, and as
/// many more of claimant's as fit. `None` where the first two do not fit into so many bytes or into the number that SQS allows, or where one of
/// the message's own cannot be copied: the original is deleted once there is a copy, and without one of its own attributes it may have no route
/// or no key ever after.
pub(crate) fn attributes<'a>(
    dead_letter: &DeadLetter,
    received: &'a Attributes,
    most_bytes: usize,
) -> Option<(Vec<(&'a str, MessageAttributeValue)>, usize)> {
    let mut ours = our_attributes(dead_letter, received);
    let mut attributes: Vec<(&str, _)> = ours.by_ref().take(OURS_MIN).collect();
    for (name, value) in received.iter().filter(|(name, _)| !is_own(name)) {
        attributes.push((name, copied(value)?));
    }
    let mut size = attributes.iter().map(|(name, value)| bytes(name, value)).sum();
    if attributes.len() > ATTRIBUTES_MAX || size > most_bytes {
        return None;
    }
    for (name, value) in ours {
        let added = bytes(name, &value);
        if attributes.len() < ATTRIBUTES_MAX && size + added <= most_bytes {
            attributes.push((name, value));
            size += added;
        }
    }
    Some((attributes, size))
}

/// Returns the attributes that claimant adds to a dead letter, beside the message's own (`received`): those of every copy, then the others, the
/// most needed first.
///
/// | attribute | holds |
/// | --- | --- |
/// | `claimant-error` | why, at most 1,024 bytes |
/// | `claimant-outcome` | `rejected` or `conflict`: this message's work is not done; `parked`: it may be done |
/// | `claimant-message-id` | the id it had in its own queue: a copy has a new one |
/// | `claimant-record` | the id of the record of its key, as the store has it: it begins with the consumer's name |
/// | `claimant-first-message-id` | after a redrive, or where it was sent again: the id of the producer's message |
/// | `claimant-redrives` | after a redrive: how often it came back from a dead-letter queue |
/// | `claimant-consumer` | the consumer's name; in the place of `claimant-record` where that is not there |
/// | `claimant-attempt` | which run of the handler rejected it, if one did |
fn our_attributes(
    dead_letter: &DeadLetter,
    received: &Attributes,
) -> impl Iterator<Item = (&'static str, MessageAttributeValue)> {
    let text = |name: &str| received.get(name).and_then(AttributeValue::as_sent);
    let redriven = text(MESSAGE_ID).is_some() || text(REDRIVES).is_some();
    let counted = text(REDRIVES).and_then(|count| count.parse::<u32>().ok()).unwrap_or_default();
    // A redrive of SQS leaves a copy as it is, and counts nothing; `claimant dead redrive` counts, and removes the outcome.
    let redrives = counted.saturating_add(u32::from(text(OUTCOME).is_some()));
    let first = EARLIER_IDS.into_iter().find_map(text).map(str::to_owned);
    // An id that SQS cannot carry as it is would name another record.
    let record = dead_letter.record.as_ref().map(|id| id.as_str().to_owned()).filter(|id| sendable(id) == *id);
    let has_record = record.is_some();
    let consumer = |at_last: bool| (at_last == has_record).then(|| dead_letter.consumer.as_str().to_owned());
    let said = [
        (ERROR, Some(dead_letter.error.clone())),
        (OUTCOME, Some(dead_letter.reason.as_str().to_owned())),
        (MESSAGE_ID, Some(dead_letter.message_id.as_str().to_owned())),
        (RECORD, record),
        (CONSUMER, consumer(false)),
        (FIRST_MESSAGE_ID, first),
        (REDRIVES, redriven.then(|| redrives.to_string())),
        (CONSUMER, consumer(true)),
        (ATTEMPT, dead_letter.attempt.map(|attempt| attempt.to_string())),
    ];
    said.into_iter().filter_map(|(name, value)| {
        let value = MessageAttributeValue::builder().data_type("String").string_value(sendable(&value?));
        // A value with its type always builds.
        Some((name, value.build().ok()?))
    })
}

/// Returns what an attribute counts towards the size of its message: its name, type and value.
fn bytes(name: &str, value: &MessageAttributeValue) -> usize {
    let binary = value.binary_value().map_or(0, |bytes| bytes.as_ref().len());
    name.len() + value.data_type().len() + value.string_value().map_or(0, str::len) + binary
}

/// Returns an attribute as it was received; `None` if it has no value of its type, which SQS would refuse with the whole copy.
fn copied(attribute: &AttributeValue) -> Option<MessageAttributeValue> {
    if attribute.as_sent().is_none() && attribute.as_bytes().is_none() {
        return None;
    }
    let value = MessageAttributeValue::builder()
        .data_type(attribute.data_type())
        .set_string_value(attribute.as_sent().map(str::to_owned))
        .set_binary_value(attribute.as_bytes().map(Blob::new));
    // A value with its type always builds.
    value.build().ok()
}

/// Returns the text in a form that SQS accepts: not empty, without characters that XML 1.0 lacks, and not too long; what was cut ends with `…`.
fn sendable(text: &str) -> String {
    if text.is_empty() {
        return "none given".to_owned();
    }
    let taken = |c| if sqs::takes(c) { c } else { char::REPLACEMENT_CHARACTER };
    // Each has a byte at least: with one more than fit, it is seen that there is more.
    let sendable: String = text.chars().take(ERROR_MAX_BYTES + 1).map(taken).collect();
    shortened(&sendable, ERROR_MAX_BYTES).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_values_are_what_sqs_takes() {
        for (text, wanted) in [
            ("no luck\t\u{e9}", "no luck\t\u{e9}".to_owned()),
            ("a\u{0}b\u{ffff}\u{1b}", "a\u{fffd}b\u{fffd}\u{fffd}".to_owned()),
            ("", "none given".to_owned()),
            (&"\u{20ac}".repeat(400), "\u{20ac}".repeat(340) + "…"),
        ] {
            assert_eq!(sendable(text), wanted);
        }
    }
}
