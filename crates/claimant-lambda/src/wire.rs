//! The event as JSON: a batch of a queue, in which an attribute that does not read is no fault of the batch.

use std::collections::HashMap;
use std::fmt;

use aws_lambda_events::encodings::Base64Data;
use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

const NO_BATCH: &str = "the event is not a batch of an SQS queue, or has a record that is not as SQS writes it. `claimant_test::event` makes \
                        one for tests; a function that is sent its payloads without a queue runs by \
                        `claimant::lambda::run_with_direct_events`";

/// The batch of a queue, as [`run`](crate::run) reads it: a message attribute that does not read is no fault of the batch; and of what is no
/// batch, the error quotes nothing and says how the function is to be run. For functions that call the Lambda runtime themselves.
pub struct QueueBatch(pub SqsEvent);

impl fmt::Debug for QueueBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a batch of {} records", self.0.records.len())
    }
}

impl<'de> Deserialize<'de> for QueueBatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // What the decoder says can quote the event.
        Event::deserialize(deserializer).map(|event| Self(event.into())).map_err(|_| D::Error::custom(NO_BATCH))
    }
}

/// A batch, with all that is read of it.
#[derive(Deserialize)]
pub(crate) struct Event {
    #[serde(rename = "Records")]
    records: Vec<Read>,
}

/// A record, converted as soon as it is read: there are never two lists of them.
#[derive(Deserialize)]
#[serde(from = "Record")]
struct Read(SqsMessage);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    message_id: Option<String>,
    receipt_handle: Option<String>,
    body: Option<String>,
    attributes: Option<Texts>,
    message_attributes: Option<HashMap<String, Lenient<Attribute>>>,
    /// SNS writes it with a capital letter.
    #[serde(alias = "EventSource")]
    event_source: Option<String>,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: Option<String>,
}

/// A map, of which those values are read that are texts.
#[derive(Default)]
struct Texts(HashMap<String, String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Texts::default())
    }
}

impl<'de> Visitor<'de> for Texts {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self, A::Error> {
        while let Some((name, value)) = map.next_entry::<_, Lenient<_>>()? {
            self.0.extend(value.read().map(|text| (name, text)));
        }
        Ok(self)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attribute {
    data_type: Option<Lenient<String>>,
    string_value: Option<Lenient<String>>,
    binary_value: Option<Lenient<Base64Data>>,
}

/// What is as good as not there if it is not of its type.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Lenient<T> {
    Read(T),
    Other(IgnoredAny),
}

impl<T> Lenient<T> {
    pub(crate) fn read(self) -> Option<T> {
        match self {
            Self::Read(value) => Some(value),
            Self::Other(_) => None,
        }
    }
}

impl From<Event> for SqsEvent {
    fn from(event: Event) -> Self {
        let mut batch = Self::default();
        batch.records = event.records.into_iter().map(|Read(message)| message).collect();
        batch
    }
}

impl From<Record> for Read {
    fn from(record: Record) -> Self {
        let mut message = SqsMessage::default();
        message.message_id = record.message_id;
        message.receipt_handle = record.receipt_handle;
        message.body = record.body;
        message.attributes = record.attributes.unwrap_or_default().0;
        let own = record.message_attributes.unwrap_or_default().into_iter();
        message.message_attributes = own.map(|(name, one)| (name, one.read().unwrap_or_default().into())).collect();
        message.event_source = record.event_source;
        message.event_source_arn = record.event_source_arn;
        Self(message)
    }
}

impl From<Attribute> for SqsMessageAttribute {
    fn from(attribute: Attribute) -> Self {
        let mut read = Self::default();
        read.data_type = attribute.data_type.and_then(Lenient::read);
        read.string_value = attribute.string_value.and_then(Lenient::read);
        read.binary_value = attribute.binary_value.and_then(Lenient::read);
        read
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::event::{Batch, batch};

    fn read(records: Value) -> Batch {
        let QueueBatch(event) = serde_json::from_value(json!({ "Records": records })).unwrap();
        batch(event).unwrap()
    }

    #[test]
    fn an_attribute_that_does_not_read_is_of_no_use_to_its_own_message_alone() {
        // As Powertools' sample event has it, among others.
        let odd =
            json!({ "stringValue": "100", "binaryValue": "base64Str", "stringListValues": null, "dataType": "Number" });
        for (attribute, number) in [
            (odd, Some(100)),
            (json!({ "dataType": "Binary", "binaryValue": "base64Str" }), None),
            (json!({ "dataType": "Number", "stringValue": 100 }), None),
            (json!({ "dataType": 7, "stringValue": "100" }), None),
            (json!(null), None),
            (json!("100"), None),
            (json!([100]), None),
        ] {
            let system = json!({ "ApproximateReceiveCount": 1, "MessageGroupId": "g" });
            let bad = json!({ "messageId": "m-1", "attributes": system, "messageAttributes": { "n": attribute } });
            let batch = read(json!([bad, { "messageId": "m-2", "messageAttributes": null, "attributes": null }]));
            let [first, second] = &batch.messages[..] else { panic!("two messages") };
            assert_eq!((first.attributes().number("n"), first.attributes().get("n").is_some()), (number, true));
            assert_eq!((first.group(), first.receive_count(), second.id().as_str()), (Some("g"), 1, "m-2"));
        }
    }

    #[test]
    fn what_else_is_sent_to_a_function_of_a_queue_is_told_how_to_be_run() {
        let batch: QueueBatch = serde_json::from_str(r#"{"Records":[{"messageId":"m"}]}"#).unwrap();
        assert_eq!(batch.0.records.len(), 1);
        let no_text = r#"{"Records":[{"messageId":"m","body":7}]}"#;
        for event in [r#"{"order_id":"secret"}"#, r#""secret""#, r#"{"Records":"secret"}"#, "[]", no_text] {
            let error = serde_json::from_str::<QueueBatch>(event).map(drop).unwrap_err().to_string();
            assert!(
                error.contains("not a batch of an SQS queue") && error.contains("run_with_direct_events"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
