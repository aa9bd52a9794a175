//! Messages as the event a function gets.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::arn::REGION;
use crate::lambda::EVENT_BYTES_MAX;
use crate::sqs::{AttributeValue, MessageAttribute, Received};

const HEAD: &str = r#"{"Records":["#;
const TAIL: &str = "]}";

/// The [sizes](size) of one event's messages at most.
pub(super) const BYTES_MAX: usize = EVENT_BYTES_MAX - HEAD.len() - TAIL.len();

/// One invocation's messages and their event.
pub(super) struct Event {
    pub(super) messages: Vec<Received>,
    pub(super) payload: Vec<u8>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    message_id: &'a str,
    receipt_handle: &'a str,
    body: &'a str,
    attributes: &'a BTreeMap<String, String>,
    message_attributes: BTreeMap<&'a str, Attribute<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    md5_of_message_attributes: Option<&'a str>,
    md5_of_body: &'a str,
    event_source: &'static str,
    #[serde(rename = "eventSourceARN")]
    event_source_arn: &'a str,
    aws_region: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Attribute<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_value: Option<String>,
    // Lists are not implemented by SQS and always empty in Lambda's events.
    string_list_values: [&'static str; 0],
    binary_list_values: [&'static str; 0],
    data_type: &'a str,
}

/// The messages in their order, in as few events as the size limit allows.
pub(super) fn events(queue_arn: &str, messages: Vec<Received>) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for message in messages {
        let record = record(queue_arn, &message);
        match events.last_mut() {
            Some(event) if event.payload.len() + 1 + record.len() + TAIL.len() <= EVENT_BYTES_MAX => {
                event.payload.push(b',');
                event.payload.extend_from_slice(&record);
                event.messages.push(message);
            }
            // One record always fits: a body is at most 1 MiB of characters that JSON at most doubles.
            _ => events.push(Event { messages: vec![message], payload: [HEAD.as_bytes(), &record].concat() }),
        }
    }
    for event in &mut events {
        event.payload.extend_from_slice(TAIL.as_bytes());
    }
    events
}

/// The bytes that a message takes of an event, with the comma before the next one.
pub(super) fn size(queue_arn: &str, message: &Received) -> usize {
    record(queue_arn, message).len() + 1
}

fn record(queue_arn: &str, message: &Received) -> Vec<u8> {
    let attributes = message.message_attributes.iter();
    let record = Record {
        message_id: &message.message_id,
        receipt_handle: &message.receipt_handle,
        body: &message.body,
        attributes: &message.attributes,
        message_attributes: attributes.map(|(name, value)| (name.as_str(), attribute(value))).collect(),
        md5_of_message_attributes: message.md5_of_message_attributes.as_deref(),
        md5_of_body: &message.md5_of_body,
        event_source: "aws:sqs",
        event_source_arn: queue_arn,
        aws_region: REGION,
    };
    serde_json::to_vec(&record).expect("texts and maps with text keys always serialise")
}

fn attribute(attribute: &MessageAttribute) -> Attribute<'_> {
    let (string_value, binary_value) = match &attribute.value {
        AttributeValue::Text(text) => (Some(text.as_str()), None),
        AttributeValue::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
    };
    Attribute {
        string_value,
        binary_value,
        string_list_values: [],
        binary_list_values: [],
        data_type: &attribute.data_type,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn message(id: &str, body: String) -> Received {
        Received {
            message_id: id.to_owned(),
            receipt_handle: format!("handle-{id}"),
            body,
            md5_of_body: "m".to_owned(),
            attributes: BTreeMap::from([("ApproximateReceiveCount".to_owned(), "1".to_owned())]),
            message_attributes: BTreeMap::new(),
            md5_of_message_attributes: None,
        }
    }

    fn parsed(event: &Event) -> Value {
        serde_json::from_slice(&event.payload).expect("an event is JSON")
    }

    #[test]
    fn a_record_has_lambdas_shape() {
        let mut full = message("a", "{\"x\": \"ö\"}".to_owned());
        let attribute = |data_type: &str, value| MessageAttribute { data_type: data_type.to_owned(), value };
        full.message_attributes = BTreeMap::from([
            ("n".to_owned(), attribute("Number.int", AttributeValue::Text("7".to_owned()))),
            ("b".to_owned(), attribute("Binary", AttributeValue::Binary(vec![0, 255]))),
        ]);
        full.md5_of_message_attributes = Some("ma".to_owned());
        let events = events("arn:aws:sqs:us-east-1:000000000000:orders", vec![full, message("b", "x".to_owned())]);
        let event = parsed(&events[0]);
        let expected = json!({
            "messageId": "a",
            "receiptHandle": "handle-a",
            "body": "{\"x\": \"ö\"}",
            "attributes": {"ApproximateReceiveCount": "1"},
            "messageAttributes": {
                "n": {"stringValue": "7", "stringListValues": [], "binaryListValues": [], "dataType": "Number.int"},
                "b": {"binaryValue": "AP8=", "stringListValues": [], "binaryListValues": [], "dataType": "Binary"},
            },
            "md5OfMessageAttributes": "ma",
            "md5OfBody": "m",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:orders",
            "awsRegion": "us-east-1",
        });
        assert_eq!(event["Records"][0], expected);
        assert_eq!(event["Records"][1]["messageAttributes"], json!({}));
        assert_eq!(event["Records"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn events_stay_under_the_limit_and_keep_order() {
        // 1 MiB of line ends doubles in JSON, so two fit and a third does not.
        let body = "\n".repeat(1024 * 1024);
        let ids = ["a", "b", "c", "d", "e"];
        let events = events("arn", ids.iter().map(|id| message(id, body.clone())).collect());
        let shape: Vec<Vec<&str>> =
            events.iter().map(|event| event.messages.iter().map(|m| m.message_id.as_str()).collect()).collect();
        assert_eq!(shape, [vec!["a", "b"], vec!["c", "d"], vec!["e"]]);
        for event in &events {
            assert!(event.payload.len() <= EVENT_BYTES_MAX);
            assert_eq!(parsed(event)["Records"].as_array().map(Vec::len), Some(event.messages.len()));
        }
    }
}
