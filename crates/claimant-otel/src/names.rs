//! The names of spans and attributes: those of OpenTelemetry's semantic conventions for messaging where there is one, else with
//! `claimant.` before the word of logs and metrics.

use opentelemetry::KeyValue;

pub(crate) const MESSAGE_ID: &str = "messaging.message.id";
/// "Known elsewhere as consumer group": whose messages these are, whichever process works on them.
pub(crate) const CONSUMER: &str = "messaging.consumer.group.name";
pub(crate) const QUEUE_URL: &str = "aws.sqs.queue.url";
pub(crate) const ERROR: &str = "error.type";

pub(crate) const OUTCOME: &str = "claimant.outcome";
pub(crate) const DEAD_LETTERED: &str = "claimant.dead_lettered";
pub(crate) const ATTEMPT: &str = "claimant.attempt";
pub(crate) const FENCE: &str = "claimant.fence";
pub(crate) const RECEIVE_COUNT: &str = "claimant.receive_count";
pub(crate) const EVENTS: &str = "claimant.events";
pub(crate) const RESULT: &str = "claimant.result";
pub(crate) const WANTED: &str = "claimant.wanted";
pub(crate) const ITEMS: &str = "claimant.items";

/// Returns the name of the span of an operation on a queue, and its attributes.
pub(crate) fn operation(word: &'static str, queue: Option<&str>) -> (String, Vec<KeyValue>) {
    let mut attributes = vec![
        KeyValue::new("messaging.system", "aws_sqs"),
        KeyValue::new("messaging.operation.name", word),
        KeyValue::new("messaging.operation.type", word),
    ];
    let Some(queue) = queue else { return (word.to_owned(), attributes) };
    attributes.push(KeyValue::new("messaging.destination.name", queue.to_owned()));
    (format!("{word} {queue}"), attributes)
}

/// Returns a count or a fencing token as an attribute has it.
pub(crate) fn number(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
