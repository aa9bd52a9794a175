//! Converts the event's records to messages, each validated on its own.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use claimant_core::{Error, InvalidValue, Message, MessageId};

use crate::trace;

/// The attribute that counts deliveries.
const RECEIVE_COUNT: &str = "ApproximateReceiveCount";

/// The attribute that names the group of a FIFO or fair queue.
const GROUP: &str = "MessageGroupId";

/// The attribute that carries the producer's trace.
pub(crate) const TRACE: &str = "AWSTraceHeader";

/// A batch as delivered; `envelopes` has one entry for each message, at the same index.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) messages: Vec<Message>,
    pub(crate) envelopes: Vec<Envelope>,
    /// The queue that the batch comes from: a mapping has one.
    pub(crate) source: Option<Source>,
}

/// What SQS delivered with a message and the engine does not need.
///
/// No `Debug`: receipt handles and attributes are never logged.
#[derive(Default)]
pub(crate) struct Envelope {
    /// What changes the message's visibility; of no use once the invocation has ended.
    pub(crate) receipt: Option<String>,
    /// Its group, where it has one, on a fair queue too.
    pub(crate) group: Option<String>,
    /// Its body as it was received, where a rule has put another one in its place.
    pub(crate) received: Option<String>,
    /// What the producer attached to it.
    pub(crate) attributes: Attributes,
}

/// A message's attributes by their names.
pub(crate) type Attributes = HashMap<String, SqsMessageAttribute>;

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

/// Returns the DNS suffix of a partition's endpoints.
pub(crate) fn domain(partition: &str) -> &'static str {
    if partition == "aws-cn" { "amazonaws.com.cn" } else { "amazonaws.com" }
}

impl Batch {
    /// Replaces each body by the rule's result and keeps the original. If the rule panics, no body is left: the message is
    /// rejected alone, like any other invalid body.
    pub(crate) fn rewrite(&mut self, rule: &(dyn Fn(&str) -> Option<String> + Send + Sync)) {
        for (message, envelope) in self.messages.iter_mut().zip(&mut self.envelopes) {
            let made = catch_unwind(AssertUnwindSafe(|| rule(&message.body))).unwrap_or_else(|_| Some(String::new()));
            if let Some(body) = made {
                envelope.received = Some(std::mem::replace(&mut message.body, body));
            }
        }
    }
}

/// Converts the event's records to messages.
///
/// # Errors
/// When a record has no usable message id: it could not be reported failed, so the whole invocation has to fail,
/// and nothing is deleted.
pub(crate) fn batch(event: SqsEvent) -> Result<Batch, Error> {
    let count = event.records.len();
    let mut batch = Batch::default();
    for (place, record) in event.records.into_iter().enumerate() {
        let source = record.event_source_arn.as_deref().and_then(Source::of_arn);
        let fifo = source.as_ref().is_some_and(|q| q.fifo);
        if batch.source.is_none() {
            batch.source = source;
        }
        let (message, envelope) = message(record, fifo).map_err(|fault| {
            Error::new(format!(
                "record {} of {count} has no usable messageId ({fault}): the whole batch is failed, so that nothing is deleted",
                place + 1
            ))
        })?;
        batch.messages.push(message);
        batch.envelopes.push(envelope);
    }
    Ok(batch)
}

fn message(record: SqsMessage, fifo: bool) -> Result<(Message, Envelope), InvalidValue> {
    let mut attributes = record.attributes;
    let group = attributes.remove(GROUP);
    let message = Message {
        id: MessageId::new(record.message_id.unwrap_or_default())?,
        // A record without a body is a message that will not decode: rejected alone, like any other bad body.
        body: record.body.unwrap_or_default(),
        receive_count: attributes.get(RECEIVE_COUNT).and_then(|n| n.parse().ok()).unwrap_or(1).max(1),
        // Without a group there is no order to keep but the queue's: one group for all.
        ordered_group: fifo.then(|| group.clone().unwrap_or_default()),
        trace: attributes.get(TRACE).and_then(|header| trace::continued(header)),
    };
    Ok((
        message,
        Envelope { receipt: record.receipt_handle, group, received: None, attributes: record.message_attributes },
    ))
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
        assert_eq!((fair.messages[0].ordered_group.as_deref(), fair.messages[0].receive_count), (None, 3));
        assert_eq!(fair.source.unwrap().url, "https://sqs.eu-west-1.amazonaws.com/123456789012/orders");
        assert_eq!((fair.envelopes[0].group.as_deref(), &fair.messages[0].trace), (Some("g"), &None));
        let fifo = read(record("orders.fifo")).unwrap();
        assert_eq!(fifo.messages[0].ordered_group.as_deref(), Some("g"));
    }

    #[test]
    fn a_record_without_an_id_fails_the_invocation() {
        for bad in [
            json!({}),
            json!({ "messageId": null }),
            json!({ "messageId": "" }),
            json!({ "messageId": "x".repeat(101) }),
        ] {
            let error = read(json!([{ "messageId": "m-1" }, bad])).err().unwrap();
            assert!(error.to_string().contains("record 2 of 2"), "{error}");
        }
    }

    #[test]
    fn what_is_missing_beside_the_id_is_no_fault_of_the_batch() {
        let batch =
            read(json!([{ "messageId": "m-1", "attributes": null, "eventSourceARN": "arn:aws:kinesis:x" }])).unwrap();
        assert_eq!((batch.messages[0].body.as_str(), batch.messages[0].receive_count), ("", 1));
        assert!(batch.source.is_none() && batch.envelopes[0].receipt.is_none());
    }
}
