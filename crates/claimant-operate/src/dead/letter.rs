//! One dead letter: where it came from, why, and what it holds.

use std::collections::BTreeMap;
use std::fmt;

use aws_sdk_sqs::types::{Message, MessageAttributeValue, MessageSystemAttributeName as System};
use claimant_core::own_attributes::{ATTEMPT, CONSUMER, EARLIER_IDS, ERROR, OUTCOME, RECORD, REDRIVES, is_own};
use claimant_core::{RecordId, Timestamp};
use serde_json::{Value, json};

use super::fingerprint::Fingerprint;
use super::unsent;
use crate::aws::name_of_arn;

/// The outcome of a message that SQS moved after too many receives: no function said why.
pub const MOVED: &str = "moved";

/// How a message came into the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A function of claimant copied it there, with the reason; SQS does not know from which queue.
    Copied,
    /// SQS moved it there, after `maxReceiveCount` receives from the queue with this ARN.
    Moved {
        /// The queue's ARN.
        source: String,
    },
    /// A schedule of EventBridge Scheduler could not send it: it is the request, with the message inside.
    Unsent,
    /// Something else sent it there.
    Sent,
}

/// Why a message is a dead letter, as far as the function that gave up on it said so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Why {
    /// The consumer that gave up on it.
    pub consumer: Option<String>,
    /// `rejected`, `conflict` or `parked`; [`MOVED`] where SQS moved it.
    pub outcome: Option<String>,
    /// The error, as the function wrote it: at most 1,024 bytes, of any characters that SQS takes.
    pub error: Option<String>,
    /// The id of the record of its key, as the store has it.
    pub record: Option<String>,
    /// Which run of the handler rejected it, if one did.
    pub attempt: Option<u32>,
}

/// A message in a dead-letter queue. `Debug` shows neither its body nor the values of its attributes.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The id that it has in the dead-letter queue.
    pub message_id: String,
    /// How it came there.
    pub origin: Origin,
    /// Why.
    pub why: Why,
    /// What it has in common with others of its cause.
    pub fingerprint: Fingerprint,
    /// The ids that it had before, the producer's first.
    pub earlier_ids: Vec<String>,
    /// How often it was sent back from a dead-letter queue.
    pub redrives: u32,
    /// When it was sent: to this queue; for one that SQS moved, to its own queue.
    pub sent_at: Option<Timestamp>,
    /// How often it was received, reading it here included.
    pub receives: u32,
    /// Its message group, if it has one.
    pub group: Option<String>,
    pub(crate) content: Content,
}

/// What a message holds.
#[derive(Clone, Default)]
pub(crate) struct Content {
    /// All of it; of a letter that was looked at perhaps its beginning.
    pub(crate) body: String,
    /// How many bytes all of it has.
    pub(crate) body_bytes: usize,
    pub(crate) attributes: BTreeMap<String, MessageAttributeValue>,
    pub(crate) trace: Option<String>,
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {} attributes", self.body_bytes, self.attributes.len())
    }
}

impl DeadLetter {
    /// Reads a message as SQS handed it out; `None` where it has no id, which SQS always gives.
    pub(crate) fn read(message: Message) -> Option<Self> {
        let message_id = message.message_id?;
        let system = message.attributes.unwrap_or_default();
        let number = |name| system.get(&name).and_then(|text: &String| text.parse().ok());
        let attributes: BTreeMap<_, _> = message.message_attributes.unwrap_or_default().into_iter().collect();
        let text = |name: &str| attributes.get(name).and_then(|value| value.string_value()).map(str::to_owned);
        // Not by its body, of which perhaps no more than its beginning is here.
        let is_unsent = unsent::is_of_schedule(&attributes);
        let origin = match (system.get(&System::DeadLetterQueueSourceArn), attributes.contains_key(OUTCOME)) {
            (Some(source), _) => Origin::Moved { source: source.clone() },
            (None, true) => Origin::Copied,
            (None, false) if is_unsent => Origin::Unsent,
            (None, false) => Origin::Sent,
        };
        let record = text(RECORD);
        // Where the copy had no room for it.
        let of_record = || Some(RecordId::from_stored(record.as_deref()?).ok()?.consumer().to_owned());
        let said = Why {
            consumer: text(CONSUMER).or_else(of_record),
            outcome: text(OUTCOME),
            error: text(ERROR),
            record,
            attempt: text(ATTEMPT).and_then(|attempt| attempt.parse().ok()),
        };
        // What a message that SQS moved says of itself is what it was given up on for before it was redriven.
        let redriven = u32::from(matches!(origin, Origin::Moved { .. }) && said.outcome.is_some());
        let redrives = text(REDRIVES).and_then(|count| count.parse().ok()).unwrap_or(0_u32).saturating_add(redriven);
        let why = match origin {
            Origin::Moved { .. } => Why { outcome: Some(MOVED.to_owned()), error: None, attempt: None, ..said },
            Origin::Unsent | Origin::Sent if attributes.contains_key(unsent::SCHEDULE) => {
                Why { error: Some(unsent::error(text(unsent::CODE).as_deref())), ..said }
            }
            Origin::Copied | Origin::Unsent | Origin::Sent => said,
        };
        let may_be_request = is_unsent || origin == Origin::Sent;
        let body = message.body.as_deref().filter(|_| may_be_request);
        let request = body.and_then(unsent::Request::read);
        let inside = request.iter().flat_map(unsent::Request::earlier_ids);
        let mut earlier_ids: Vec<String> = inside.chain(EARLIER_IDS.into_iter().filter_map(text)).collect();
        earlier_ids.dedup();
        earlier_ids.retain(|id| *id != message_id);
        let group = system.get(&System::MessageGroupId).cloned();
        Some(Self {
            fingerprint: fingerprint(&origin, &why),
            earlier_ids,
            redrives,
            sent_at: number(System::SentTimestamp).map(Timestamp::from_millis),
            receives: number(System::ApproximateReceiveCount).and_then(|count| count.try_into().ok()).unwrap_or(1),
            group,
            content: Content {
                body_bytes: message.body.as_ref().map_or(0, String::len),
                body: message.body.unwrap_or_default(),
                trace: system.get(&System::AwsTraceHeader).cloned(),
                attributes,
            },
            message_id,
            origin,
            why,
        })
    }

    /// Returns the ids that it had before, and the one that it has here.
    pub(super) fn ids(&self) -> impl Iterator<Item = &String> {
        self.earlier_ids.iter().chain([&self.message_id])
    }

    /// Returns the id that it has here, or had before, that begins with this.
    #[must_use]
    pub fn id_that_begins(&self, beginning: &str) -> Option<&str> {
        self.ids().map(String::as_str).find(|id| id.starts_with(beginning))
    }

    /// Returns whether it has this id here, or had it before.
    #[must_use]
    pub fn has_id(&self, id: &str) -> bool {
        self.ids().any(|own| own == id)
    }

    /// Returns its body: what the producer wrote, to be shown only to who asks for it. Of a letter that was
    /// [looked at in part](super::DeadLetterQueue::with_bodies_of), its beginning.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.content.body
    }

    /// Returns how many bytes its whole body has.
    #[must_use]
    pub const fn body_bytes(&self) -> usize {
        self.content.body_bytes
    }

    /// Returns the names and types of the attributes that its producer gave it, and the value of each that is a text or a number:
    /// to be shown as its body is.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str, Option<&str>)> {
        let theirs = self.content.attributes.iter().filter(|(name, _)| !is_own(name));
        theirs.map(|(name, value)| (name.as_str(), value.data_type(), value.string_value()))
    }

    /// Returns the name of the queue that SQS moved it from.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        match &self.origin {
            Origin::Moved { source } => Some(name_of_arn(source)),
            Origin::Copied | Origin::Unsent | Origin::Sent => None,
        }
    }

    /// Returns what it has in common with others of its cause, in words.
    #[must_use]
    pub fn cause(&self) -> String {
        match (&self.origin, &self.why.error) {
            (Origin::Moved { source }, _) => moved(source),
            (_, Some(error)) => Fingerprint::cause(error),
            (_, None) => "sent here without a reason".to_owned(),
        }
    }

    /// Returns how it came into the queue, in words.
    #[must_use]
    pub fn how(&self) -> String {
        match &self.origin {
            Origin::Copied => "copied here by its function".to_owned(),
            Origin::Moved { source } => moved(source),
            Origin::Unsent => "the request of a schedule that could not send it, with the message inside".to_owned(),
            Origin::Sent => "sent here by something else".to_owned(),
        }
    }

    /// Returns it as JSON, with its body and the values of its attributes only if `whole`.
    #[must_use]
    pub fn to_json(&self, whole: bool) -> Value {
        let Why { consumer, outcome, error, record, attempt } = &self.why;
        let mut json = json!({
            "message_id": self.message_id,
            "group": self.fingerprint.as_str(),
            "origin": match self.origin {
                Origin::Copied => "copied",
                Origin::Moved { .. } => "moved",
                Origin::Unsent => "unsent",
                Origin::Sent => "sent",
            },
            "source": self.source(),
            "consumer": consumer,
            "outcome": outcome,
            "error": error,
            "record": record,
            "attempt": attempt,
            "earlier_ids": self.earlier_ids,
            "redrives": self.redrives,
            "sent_at": self.sent_at.map(Timestamp::to_utc),
            "sent_at_ms": self.sent_at.map(Timestamp::as_millis),
            "receives": self.receives,
            "message_group": self.group,
            "body_bytes": self.content.body_bytes,
        });
        if whole {
            json["body"] = self.body().into();
            let attributes = self.content.attributes.iter().filter(|(name, _)| !is_own(name));
            json["attributes"] = attributes.map(|(name, value)| (name.clone(), attribute_json(value))).collect();
        }
        json
    }
}

/// Returns whether a text begins with a letter as [`DeadLetter::to_json`] writes it whole: so are letters saved that are discarded, which are
/// no messages.
#[must_use]
pub fn is_saved(text: &str) -> bool {
    let Some(Ok(first)) = serde_json::Deserializer::from_str(text).into_iter::<Value>().next() else { return false };
    ["message_id", "origin", "body"].iter().all(|name| first[name].is_string()) && first["body_bytes"].is_u64()
}

fn attribute_json(value: &MessageAttributeValue) -> Value {
    let bytes = value.binary_value().map(|bytes| bytes.as_ref().to_vec());
    json!({ "type": value.data_type(), "text": value.string_value(), "bytes": bytes })
}

fn fingerprint(origin: &Origin, why: &Why) -> Fingerprint {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    match origin {
        Origin::Moved { source } => Fingerprint::of(name_of_arn(source), MOVED, &moved(source)),
        Origin::Copied | Origin::Unsent | Origin::Sent => {
            Fingerprint::of(&text(&why.consumer), &text(&why.outcome), &text(&why.error))
        }
    }
}

fn moved(source: &str) -> String {
    format!("received too often from {}, without a reason given", name_of_arn(source))
}

#[cfg(test)]
mod tests {
    use claimant_core::own_attributes::MESSAGE_ID;

    use super::*;

    fn letter(system: &[(System, &str)], attributes: &[(&str, &str)]) -> DeadLetter {
        let mut message = Message::builder().message_id("m-1").body("{\"secret\": 1}");
        for (name, value) in system {
            message = message.attributes(name.clone(), *value);
        }
        for (name, value) in attributes {
            let value = MessageAttributeValue::builder().data_type("String").string_value(*value).build().unwrap();
            message = message.message_attributes(*name, value);
        }
        DeadLetter::read(message.build()).unwrap()
    }

    const SOURCE: (System, &str) = (System::DeadLetterQueueSourceArn, "arn:aws:sqs:eu-west-1:1:orders");

    #[test]
    fn a_copy_says_why() {
        let letter = letter(
            &[(System::SentTimestamp, "1700000000000"), (System::ApproximateReceiveCount, "2")],
            &[
                ("claimant-error", "order ord-7 has no price"),
                ("claimant-outcome", "rejected"),
                ("claimant-consumer", "order"),
                ("claimant-record", "order#ord-7"),
                ("claimant-message-id", "own"),
                ("claimant-attempt", "2"),
                ("tenant", "t-1"),
            ],
        );
        assert_eq!(letter.origin, Origin::Copied);
        assert_eq!((letter.cause().as_str(), letter.source()), ("order # has no price", None));
        assert_eq!(letter.fingerprint, Fingerprint::of("order", "rejected", "order ord-8 has no price"));
        assert_eq!((letter.earlier_ids.as_slice(), letter.redrives, letter.receives), (&["own".to_owned()][..], 0, 2));
        assert_eq!(letter.attributes().collect::<Vec<_>>(), [("tenant", "String", Some("t-1"))]);
        assert_eq!(letter.why.attempt, Some(2));
        let json = letter.to_json(false);
        assert_eq!((&json["record"], &json["sent_at_ms"]), (&json!("order#ord-7"), &json!(1_700_000_000_000_u64)));
        assert_eq!(json["sent_at"], "2023-11-14T22:13:20Z");
        for shown in [format!("{letter:?}"), json.to_string()] {
            assert!(!shown.contains("secret") && !shown.contains("t-1"), "{shown}");
        }
        let whole = letter.to_json(true).to_string();
        assert!(whole.contains("secret") && whole.contains("t-1"), "{whole}");
        assert!(is_saved(&format!("{whole}\n{whole}\n")) && is_saved(&format!("{:#}", letter.to_json(true))));
        for text in
            ["", "x", "7", "{}", "{\"secret\": 1}", "{\"message_id\": \"m-1\", \"body\": \"x\"}", &json.to_string()]
        {
            assert!(!is_saved(text), "{text}");
        }
    }

    /// With six attributes of its own, the copy has no room for it; redriven, with five: both are of one group.
    #[test]
    fn a_copy_without_its_consumer_has_that_of_its_record() {
        let said = [("claimant-error", "no price"), ("claimant-outcome", "rejected")];
        let of = |more: &[(&str, &str)]| letter(&[], &[&said[..], more].concat());
        let named = of(&[("claimant-record", "order#ord-7"), ("claimant-consumer", "order")]);
        for record in ["order#ord-7", &format!("order~{}", "0".repeat(64))] {
            let unnamed = of(&[("claimant-record", record)]);
            assert_eq!((unnamed.why.consumer.as_deref(), &unnamed.fingerprint), (Some("order"), &named.fingerprint));
        }
        assert_eq!(of(&[("claimant-record", "ord-7")]).why.consumer, None);
    }

    #[test]
    fn what_sqs_moved_has_the_reason_of_an_earlier_time_only_in_its_attributes() {
        let moved = letter(&[SOURCE], &[]);
        assert_eq!((moved.source(), moved.redrives), (Some("orders"), 0));
        assert_eq!(moved.why, Why { outcome: Some(MOVED.to_owned()), ..Why::default() });
        // A copy of ours that SQS's own redrive sent back, and SQS moved again.
        let again = letter(&[SOURCE], &[("claimant-outcome", "rejected"), ("claimant-error", "old"), (REDRIVES, "1")]);
        assert_eq!((again.why.error.clone(), again.redrives), (None, 2));
        assert_eq!(again.fingerprint, moved.fingerprint);
        // One that this library sent back.
        assert_eq!(letter(&[SOURCE], &[(MESSAGE_ID, "x"), (REDRIVES, "1")]).redrives, 1);
    }

    #[test]
    fn what_something_else_sent_has_no_reason() {
        let sent = letter(&[], &[("claimant-redrives", "many")]);
        assert_eq!((sent.origin.clone(), sent.redrives, sent.sent_at), (Origin::Sent, 0, None));
        assert_eq!(sent.cause(), "sent here without a reason");
    }

    #[test]
    fn what_a_schedule_could_not_send_says_why_and_which_message_it_is() {
        let first = r#"{"claimant-sent-again-of":{"DataType":"String","StringValue":"first"},"n":{"DataType":"Number","StringValue":"7"}}"#;
        let request = format!(r#"{{"QueueUrl":"https://sqs/1/q","MessageBody":"secret","MessageAttributes":{first}}}"#);
        let of = |body: &str, attributes: &[(&str, &str)]| {
            let mut message = Message::builder().message_id("m-1").body(body);
            for (name, value) in attributes {
                let value = MessageAttributeValue::builder().data_type("String").string_value(*value).build().unwrap();
                message = message.message_attributes(*name, value);
            }
            DeadLetter::read(message.build()).unwrap()
        };
        let sends = ("TARGET_ARN", "arn:aws-cn:scheduler:::aws-sdk:sqs:sendMessage");
        let said = [("SCHEDULE_ARN", "arn:s"), ("ERROR_CODE", "NonExistentQueue"), ("ERROR_MESSAGE", "secret"), sends];
        let other = [said[0], said[1], ("TARGET_ARN", "arn:aws:lambda:us-east-1:123456789012:function:f")];
        let (no_queue, no_reason) = ("a schedule could not send it: NonExistentQueue", "sent here without a reason");
        for (body, attributes, origin, why, ids) in [
            (&*request, &said[..], Origin::Unsent, no_queue, &["first"][..]),
            // By its attributes, however much of its body is here; where it had no room for them, by none.
            (&request[..40], &said, Origin::Unsent, no_queue, &[]),
            (&request, &[], Origin::Sent, no_reason, &["first"]),
            // What another schedule could not call.
            (r#"{"secret":1}"#, &other, Origin::Sent, no_queue, &[]),
        ] {
            let letter = of(body, attributes);
            assert_eq!((&letter.origin, &*letter.cause()), (&origin, why));
            assert_eq!(letter.earlier_ids, ids);
            assert!(!letter.to_json(false).to_string().contains("secret"));
        }
        let copied =
            of(&request, &[("claimant-outcome", "rejected"), ("claimant-error", "no"), ("claimant-message-id", "own")]);
        assert_eq!(copied.earlier_ids, ["own"]);
        assert_eq!(
            (copied.origin, copied.why.error.as_deref()),
            (Origin::Copied, Some("no")),
            "it is a consumer's message"
        );
    }
}
