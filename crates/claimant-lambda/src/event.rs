//! Converts the event's records to messages, each validated on its own.

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use claimant_aws::endpoints::domain;
use claimant_core::{AttributeValue, Error, InvalidValue, Message, Timestamp, trace};

/// The source of records that come from a queue.
pub(crate) const QUEUES: &str = "aws:sqs";

/// The attribute that counts deliveries.
const RECEIVE_COUNT: &str = "ApproximateReceiveCount";

/// The attribute that names the group of a FIFO or fair queue.
const GROUP: &str = "MessageGroupId";

/// The attribute that gives the place in the order of a FIFO queue.
const SEQUENCE_NUMBER: &str = "SequenceNumber";

/// The attributes that say when the message was sent and first received, in milliseconds.
const SENT_AT: &str = "SentTimestamp";
const FIRST_RECEIVED_AT: &str = "ApproximateFirstReceiveTimestamp";

/// The attribute that carries the producer's trace.
pub(crate) const TRACE: &str = "AWSTraceHeader";

/// A batch as delivered.
///
/// No `Debug`: receipt handles are never logged.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<Message>,
    /// What changes a message's visibility, at its index; of no use once the invocation has ended.
    pub(crate) receipts: Vec<Option<String>>,
    /// The queue that the batch comes from: a mapping has one.
    pub(crate) source: Option<Source>,
}

/// Where a batch comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) arn: String,
    pub(crate) url: String,
    /// Whether the queue keeps its groups in order.
    pub(crate) fifo: bool,
}

impl Source {
    /// Returns the queue with this ARN; `None` if it is not the ARN of a queue.
    pub(crate) fn of_arn(arn: &str) -> Option<Self> {
        let parts: Vec<&str> = arn.split(':').collect();
        let ["arn", partition, "sqs", region, account, name] = parts[..] else { return None };
        Some(Self {
            arn: arn.to_owned(),
            url: format!("https://sqs.{region}.{}/{account}/{name}", domain(partition)),
            // A standard queue may carry message groups too (fair queues): only the name means FIFO.
            fifo: name.ends_with(".fifo"),
        })
    }
}

/// Converts the event's records to messages.
///
/// # Errors
/// When a record has no usable message id: it could not be reported failed, so the whole invocation has to fail,
/// and nothing is deleted.
pub(crate) fn batch(event: SqsEvent) -> Result<Batch, Error> {
    let count = event.records.len();
    let mut batch = Batch { messages: Vec::with_capacity(count), receipts: Vec::with_capacity(count), source: None };
    for (place, mut record) in event.records.into_iter().enumerate() {
        let fifo = match (&batch.source, record.event_source_arn.as_deref()) {
            (Some(source), Some(arn)) if source.arn == arn => source.fifo,
            (_, arn) => {
                let source = arn.and_then(Source::of_arn);
                let fifo = source.as_ref().is_some_and(|q| q.fifo);
                batch.source = batch.source.or(source);
                fifo
            }
        };
        let receipt = record.receipt_handle.take();
        let (has_id, of) = (record.message_id.is_some(), record.event_source.take());
        let message = message(record, fifo).map_err(|fault| match of {
            Some(source) if source != QUEUES => not_of_a_queue(&source),
            _ => Error::new(format!(
                "record {} of {count} has no {}: the whole batch is failed, so that nothing is deleted",
                place + 1,
                if has_id { format!("usable messageId ({fault})") } else { "messageId".to_owned() }
            )),
        })?;
        batch.messages.push(message);
        batch.receipts.push(receipt);
    }
    Ok(batch)
}

/// Says what to do where the trigger was set up without a queue, and nothing of the record but which service of AWS it is of.
fn not_of_a_queue(source: &str) -> Error {
    let plain = |name: &&str| {
        (1..=20).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let of =
        source.strip_prefix("aws:").filter(plain).map_or("another source".to_owned(), |name| format!("aws:{name}"));
    Error::invalid(format!(
        "the event is not a batch of an SQS queue: its records are of {of}. Put a queue between, or run the function by \
         `claimant::lambda::run_with_direct_events`"
    ))
}

fn message(record: SqsMessage, fifo: bool) -> Result<Message, InvalidValue> {
    let system = &record.attributes;
    let time = |name| system.get(name).and_then(|ms: &String| ms.parse().ok()).map(Timestamp::from_millis);
    // A record without a body is a message that will not decode: rejected alone, like any other bad body.
    let mut message = Message::new(record.message_id.unwrap_or_default(), record.body.unwrap_or_default())?
        .with_receive_count(system.get(RECEIVE_COUNT).and_then(|n| n.parse().ok()).unwrap_or(0));
    message = match system.get(GROUP) {
        // Without a group there is no order to keep but the queue's: one group for all.
        group if fifo => message.with_ordered_group(group.cloned().unwrap_or_default()),
        Some(group) => message.with_fair_group(group),
        None => message,
    };
    if let Some(number) = system.get(SEQUENCE_NUMBER) {
        message = message.with_sequence_number(number);
    }
    if let Some(arn) = record.event_source_arn {
        message = message.with_source_arn(arn);
    }
    if let Some(at) = time(SENT_AT) {
        message = message.with_sent_at(at);
    }
    if let Some(at) = time(FIRST_RECEIVED_AT) {
        message = message.with_first_received_at(at);
    }
    if let Some(trace) = system.get(TRACE).and_then(|header| trace::continued(header)) {
        message = message.with_trace(trace);
    }
    for (name, attribute) in record.message_attributes {
        message = message.with_attribute(name, attribute_value(attribute).unwrap_or(AttributeValue::contradictory()));
    }
    Ok(message)
}

/// Returns an attribute as the engine has it; `None` if it has no value of the type that it names.
fn attribute_value(attribute: SqsMessageAttribute) -> Option<AttributeValue> {
    let data_type = attribute.data_type?;
    let (basic, label) =
        data_type.split_once('.').map_or((data_type.as_str(), None), |(basic, label)| (basic, Some(label)));
    let value = match basic {
        "String" => AttributeValue::text(attribute.string_value?),
        "Number" => AttributeValue::number(attribute.string_value?),
        "Binary" => AttributeValue::bytes(attribute.binary_value?.0),
        _ => return None,
    };
    Some(match label {
        Some(label) => value.with_label(label),
        None => value,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(records: serde_json::Value) -> Result<Batch, Error> {
        batch(serde_json::from_value(json!({ "Records": records })).unwrap())
    }

    #[test]
    fn only_a_fifo_arn_means_order() {
        let record = |name: &str| {
            json!([{
                "messageId": "m-1", "receiptHandle": "r", "body": "{}",
                "attributes": { "MessageGroupId": "g", "ApproximateReceiveCount": "3", "AWSTraceHeader": "Root=x" },
                "eventSourceARN": format!("arn:aws:sqs:eu-west-1:123456789012:{name}"),
            }])
        };
        let fair = read(record("orders")).unwrap();
        assert_eq!((fair.messages[0].ordered_group(), fair.messages[0].receive_count()), (None, 3));
        assert_eq!(fair.source.unwrap().url, "https://sqs.eu-west-1.amazonaws.com/123456789012/orders");
        assert_eq!((fair.messages[0].group(), fair.messages[0].trace()), (Some("g"), None));
        let fifo = read(record("orders.fifo")).unwrap();
        assert_eq!(fifo.messages[0].ordered_group(), Some("g"));
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation() {
        for bad in [
            json!({}),
            json!({ "messageId": null }),
            json!({ "messageId": "" }),
            json!({ "messageId": "x".repeat(101) }),
        ] {
            let error = read(json!([{ "messageId": "m-1" }, bad.clone()])).err().unwrap();
            let wanted = if bad.get("messageId").is_some_and(|id| !id.is_null()) {
                "usable messageId ("
            } else {
                "messageId: the"
            };
            assert!(error.to_string().contains(&format!("record 2 of 2 has no {wanted}")), "{error}");
        }
    }

    #[test]
    fn records_of_another_source_are_told_of_the_queue_that_is_missing() {
        for (source, wanted) in [
            ("aws:s3", "of aws:s3. Put a queue"),
            ("aws:SECRET", "of another source."),
            ("secret", "of another source."),
        ] {
            let error = read(json!([{ "eventSource": source, "s3": {} }])).err().unwrap().to_string();
            assert!(error.contains("not a batch of an SQS queue") && error.contains(wanted), "{error}");
            assert!(!error.to_lowercase().contains("secret"), "{error}");
        }
    }

    #[test]
    fn an_attribute_without_a_value_of_its_type_is_there_and_of_no_use() {
        for attribute in [
            json!({ "dataType": "Number", "binaryValue": "AQID" }),
            json!({ "dataType": "Binary", "stringValue": "secret" }),
            json!({ "dataType": "String" }),
            json!({ "dataType": "secret", "stringValue": "secret" }),
            json!({ "stringValue": "secret" }),
        ] {
            let batch = read(json!([{ "messageId": "m-1", "messageAttributes": { "tenant": attribute } }])).unwrap();
            let attributes = batch.messages[0].attributes();
            assert!(attributes.text("tenant").is_none() && attributes.bytes("tenant").is_none());
            let error = attributes.require_text("tenant").unwrap_err().to_string();
            assert_eq!(error, "the attribute `tenant` has no value of the type that it names, and is to be a String");
        }
    }

    #[test]
    fn what_is_missing_beside_the_id_is_no_fault_of_the_batch() {
        let batch =
            read(json!([{ "messageId": "m-1", "attributes": null, "eventSourceARN": "arn:aws:kinesis:x" }])).unwrap();
        assert_eq!((batch.messages[0].body(), batch.messages[0].receive_count()), ("", 1));
        assert!(batch.source.is_none() && batch.receipts[0].is_none());
    }
}
