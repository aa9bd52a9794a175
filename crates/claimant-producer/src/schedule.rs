//! What a schedule is made of, and whether one that is there is the same. Pure.

use aws_sdk_scheduler::primitives::{DateTime, DateTimeFormat};
use claimant_aws::sqs::whole_seconds;
use claimant_core::{AttributeValue, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::check;
use crate::error::{SendError, SendErrorKind};
use crate::outgoing::Outgoing;

/// The action of SQS that a schedule calls, after `arn:` and its partition. Unlike a queue as its target, it takes attributes and
/// deduplication ids.
const TARGET: &str = "scheduler:::aws-sdk:sqs:sendMessage";

/// The largest input of a schedule: the message with its attributes, as JSON.
const INPUT_MAX_BYTES: usize = 262_144;

/// The last second of the year 9999: expressions have four digits for the year.
const TIME_MAX_S: u64 = 253_402_300_799;

/// The prefix of a schedule's name, by which people find those of claimant.
const NAME_PREFIX: &str = "claimant-";

/// The hexadecimal digits of a schedule's name: 208 bits of a SHA-256. A name has 64 characters at most.
const NAME_DIGITS: usize = 52;

/// The parameter of the input that is no part of what is sent: it differs when the same message is scheduled again.
const SYSTEM_ATTRIBUTES: &str = "MessageSystemAttributes";

/// A schedule as it is asked for, or as it is there.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// When it sends: `at(2027-01-31T08:00:00)`, in UTC.
    pub(crate) expression: String,
    /// What it calls, the ARN of an action.
    pub(crate) target: String,
    /// The parameters of that call, as JSON.
    pub(crate) input: String,
    /// In whose name it calls.
    pub(crate) role_arn: String,
    /// The queue for what could not be sent.
    pub(crate) dead_letters: Option<String>,
    /// Whether it is switched on.
    pub(crate) enabled: bool,
}

impl Schedule {
    /// Returns the schedule that sends this message to this queue at this time, in the name of this role; without a dead-letter queue.
    pub(crate) fn new(message: &Outgoing, queue_url: &str, role_arn: &str, at: Timestamp) -> Result<Self, SendError> {
        let fifo = queue_url.ends_with(".fifo");
        let input = input(message, queue_url, fifo)?;
        if input.len() > INPUT_MAX_BYTES {
            return Err(refused(format!(
                "the message has {} bytes as the JSON of a schedule, and EventBridge Scheduler takes {INPUT_MAX_BYTES}: put the \
                 payload into S3, and send where it is",
                input.len()
            )));
        }
        if message.delay.is_some_and(|delay| check::delay(delay, fifo).is_err()) {
            return Err(refused(
                "SQS delays a message by 900 s at most, and none of a FIFO queue: give the schedule the later time, and the message \
                 no delay",
            ));
        }
        check::message(message, fifo)?;
        let partition = role_arn.split(':').nth(1).unwrap_or("aws");
        Ok(Self {
            expression: expression(at)?,
            target: format!("arn:{partition}:{TARGET}"),
            input,
            role_arn: role_arn.to_owned(),
            dead_letters: None,
            enabled: true,
        })
    }

    /// Returns what is different about this schedule, which is there, from the one that is asked for; `None` if it does the same. Where
    /// `after` is given, at the same time or at any other one after that.
    pub(crate) fn difference(&self, asked: &Self, after: Option<Timestamp>) -> Option<&'static str> {
        let is_after = |after| {
            expression(after).is_ok_and(|after| self.expression.len() == after.len() && self.expression > after)
        };
        if self.target != asked.target || sent(&self.input) != sent(&asked.input) {
            Some("it sends something else")
        } else if self.role_arn != asked.role_arn {
            // It may be gone, and then nothing is sent.
            Some("it sends in the name of another role")
        } else if self.dead_letters != asked.dead_letters {
            Some("it has another dead-letter queue, or none")
        } else if self.expression != asked.expression && !after.is_some_and(is_after) {
            Some("it has another time")
        } else if self.enabled != asked.enabled {
            Some("it is switched off")
        } else {
            None
        }
    }
}

fn refused(why: impl Into<String>) -> SendError {
    SendError::new(SendErrorKind::Refused, why)
}

/// Returns the name of the schedule of this key's message to this queue: always the same, and no other key's or queue's.
pub(crate) fn name(queue_url: &str, deduplication_id: &str) -> String {
    name_of(queue_url, 0, deduplication_id)
}

/// Returns the name of the schedule that sends this message to its queue again: always the same, and of no other message or key.
pub(crate) fn name_again(queue_url: &str, message_id: &str) -> String {
    name_of(queue_url, 1, message_id)
}

fn name_of(queue_url: &str, what: u8, id: &str) -> String {
    let digest = Sha256::new().chain_update(queue_url).chain_update([what]).chain_update(id).finalize();
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits = digits.take(NAME_DIGITS).map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]));
    NAME_PREFIX.chars().chain(digits).collect()
}

/// Returns the expression for this time, in whole seconds, rounded up.
fn expression(at: Timestamp) -> Result<String, SendError> {
    let seconds = at.as_secs_rounded_up();
    let seconds = i64::try_from(seconds).ok().filter(|_| seconds <= TIME_MAX_S);
    let text = seconds.and_then(|seconds| DateTime::from_secs(seconds).fmt(DateTimeFormat::DateTime).ok());
    let text = text.ok_or_else(|| refused("the time is after the year 9999, for which there are no schedules"))?;
    Ok(format!("at({})", text.trim_end_matches('Z')))
}

/// Returns the parameters of `SendMessage`.
fn input(message: &Outgoing, queue_url: &str, fifo: bool) -> Result<String, SendError> {
    let mut input = json!({ "QueueUrl": queue_url, "MessageBody": message.body });
    if fifo {
        input["MessageDeduplicationId"] = json!(message.deduplication_id);
    }
    let own_group = fifo.then_some(&message.deduplication_id);
    if let Some(group) = message.group.as_ref().or(own_group) {
        input["MessageGroupId"] = json!(group);
    }
    if let Some(delay) = message.delay.filter(|_| !fifo) {
        input["DelaySeconds"] = json!(whole_seconds(delay, check::DELAY_MAX_S));
    }
    let attributes: Result<Map<_, _>, _> =
        message.attributes.iter().map(|(name, value)| Ok((name.to_owned(), attribute(value)?))).collect();
    let attributes = attributes?;
    if !attributes.is_empty() {
        input["MessageAttributes"] = Value::Object(attributes);
    }
    if let Some(trace) = &message.trace {
        input[SYSTEM_ATTRIBUTES] = json!({ "AWSTraceHeader": { "DataType": "String", "StringValue": trace } });
    }
    // The service replaces keywords, such as `<aws.scheduler.execution-id>`, wherever it finds them. Written like this, JSON has
    // the same text and no keyword.
    Ok(input.to_string().replace('<', "\\u003c"))
}

fn attribute(value: &AttributeValue) -> Result<Value, SendError> {
    let Some(text) = value.as_sent() else {
        return Err(refused(
            "a message with a binary attribute cannot be scheduled: encode the attribute in Base64, as a text",
        ));
    };
    Ok(json!({ "DataType": value.data_type(), "StringValue": text }))
}

/// Returns what a schedule with this input sends, whatever the order in which it says so and in which trace.
fn sent(input: &str) -> Option<Value> {
    let mut input: Value = serde_json::from_str(input).ok()?;
    input.as_object_mut()?.remove(SYSTEM_ATTRIBUTES);
    Some(input)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use claimant_core::Key;

    use super::*;

    const STANDARD: &str = "https://sqs.eu-west-1.amazonaws.com/1/orders";
    const FIFO: &str = "https://sqs.eu-west-1.amazonaws.com/1/orders.fifo";
    const ROLE: &str = "arn:aws-us-gov:iam::1:role/send";
    const ROOT: &str = "Root=1-5759e988-bd862e3fe1be46a994272793";

    fn outgoing(key: &str) -> Outgoing {
        Outgoing::new(Key::new(key).unwrap(), format!("<aws.scheduler.execution-id> of {key}"))
    }

    fn schedule(message: &Outgoing, queue_url: &str) -> Result<Schedule, SendError> {
        Schedule::new(message, queue_url, ROLE, Timestamp::from_millis(1_801_209_599_001))
    }

    fn parameters(message: &Outgoing, queue_url: &str) -> Value {
        let schedule = schedule(message, queue_url).unwrap();
        assert!(!schedule.input.contains('<') && schedule.expression == "at(2027-01-29T08:00:00)");
        assert_eq!(schedule.target, "arn:aws-us-gov:scheduler:::aws-sdk:sqs:sendMessage");
        serde_json::from_str(&schedule.input).unwrap()
    }

    #[test]
    fn the_input_is_the_request_that_the_producer_would_send() {
        let body = "<aws.scheduler.execution-id> of a b";
        assert_eq!(parameters(&outgoing("a b"), STANDARD), json!({ "QueueUrl": STANDARD, "MessageBody": body }));
        let id = "sha256:c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65";
        let fifo = json!({
            "QueueUrl": FIFO, "MessageBody": body, "MessageDeduplicationId": id, "MessageGroupId": id,
        });
        assert_eq!(parameters(&outgoing("a b"), FIFO), fifo);
        let whole = outgoing("a b")
            .group("g")
            .delay(Duration::from_millis(1_001))
            .trace(ROOT)
            .attribute("n", AttributeValue::number(1).with_label("x"));
        let standard = json!({
            "QueueUrl": STANDARD, "MessageBody": body, "MessageGroupId": "g", "DelaySeconds": 2,
            "MessageAttributes": { "n": { "DataType": "Number.x", "StringValue": "1" } },
            "MessageSystemAttributes": { "AWSTraceHeader": { "DataType": "String", "StringValue": ROOT } },
        });
        assert_eq!(parameters(&whole, STANDARD), standard);
    }

    #[test]
    fn what_cannot_be_scheduled_is_refused() {
        let secret = || Outgoing::new(Key::new("secret").unwrap(), "secret");
        let large = |bytes| Outgoing::new(Key::new("k").unwrap(), "<".repeat(bytes));
        let later = |delay_s| secret().delay(Duration::from_secs(delay_s));
        for (message, queue_url, wanted) in [
            (large(0), STANDARD, "empty"),
            (secret().attribute("b", AttributeValue::bytes([1])), STANDARD, "binary attribute"),
            (large(INPUT_MAX_BYTES / 6), STANDARD, "as the JSON of a schedule"),
            (large(2 << 20), STANDARD, "as the JSON of a schedule"),
            (later(60), FIFO, "give the schedule the later time"),
            (later(901), STANDARD, "give the schedule the later time"),
        ] {
            let said = schedule(&message, queue_url).map(|_| ()).unwrap_err().to_string();
            assert!(said.contains(wanted) && !said.contains("secret"), "{said}");
        }
        let at = |ms| {
            Schedule::new(&secret(), STANDARD, ROLE, Timestamp::from_millis(ms)).map(|schedule| schedule.expression)
        };
        assert_eq!(at(TIME_MAX_S * 1_000).unwrap(), "at(9999-12-31T23:59:59)");
        assert!(at(TIME_MAX_S * 1_000 + 1).is_err() && at(u64::MAX).is_err());
        assert_eq!(at(0).unwrap(), "at(1970-01-01T00:00:00)");
    }

    #[test]
    fn names_are_stable_and_distinct() {
        let again = [name_again("q", "a"), name_again("q", "b")];
        let names = [("q", "a"), ("q", "b"), ("qa", ""), ("q2", "a")].map(|(queue, id)| name(queue, id));
        let names = [&names[..], &again].concat();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name) && name.len() <= 64, "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{name}");
        }
        // By heart: another version of this crate must give the same, or a second schedule is made during a deployment.
        assert_eq!(names[0], "claimant-0d317b0da1b1c6fe76b1ad797120192431caf034f7363db1c066");
        assert_eq!(again[0], "claimant-67eb8915933f8e2d7700b42a240d61406f0c426be2f3f711b78b");
    }

    #[test]
    fn a_schedule_that_does_the_same_is_the_same() {
        let asked = schedule(&outgoing("k"), FIFO).unwrap();
        let there = |change: fn(&mut Schedule)| {
            let mut there = asked.clone();
            change(&mut there);
            there.difference(&asked, None)
        };
        assert_eq!(there(|_| {}), None);
        let traced = schedule(&outgoing("k").trace(ROOT), FIFO).unwrap();
        assert_eq!((traced.difference(&asked, None), asked.difference(&traced, None)), (None, None));
        assert_eq!(there(|schedule| schedule.input = schedule.input.replace(',', " , ")), None);
        for difference in [
            there(|schedule| schedule.input = schedule.input.replace("of k", "of l")),
            there(|schedule| schedule.input = "no JSON".to_owned()),
            there(|schedule| schedule.target.push('x')),
        ] {
            assert_eq!(difference, Some("it sends something else"));
        }
        assert_eq!(there(|schedule| schedule.role_arn.push('x')), Some("it sends in the name of another role"));
        let other_queue = there(|schedule| schedule.dead_letters = Some("arn:aws:sqs:eu-west-1:1:dead".to_owned()));
        assert_eq!(other_queue, Some("it has another dead-letter queue, or none"));
        assert_eq!(there(|schedule| schedule.expression.push('x')), Some("it has another time"));
        assert_eq!(there(|schedule| schedule.enabled = false), Some("it is switched off"));
        // At another time that is still to come.
        let early = Schedule { expression: "at(2027-01-28T08:00:00)".to_owned(), ..asked.clone() };
        for (after_ms, wanted) in [
            (1_801_123_199_000, None),
            (1_801_123_200_000, Some("it has another time")),
            (u64::MAX, Some("it has another time")),
        ] {
            assert_eq!(early.difference(&asked, Some(Timestamp::from_millis(after_ms))), wanted, "{after_ms}");
        }
        let zone = Schedule { expression: "at(2027-01-30T08:00:00)CET".to_owned(), ..asked.clone() };
        assert_eq!(zone.difference(&asked, Some(Timestamp::from_millis(0))), Some("it has another time"));
    }
}
