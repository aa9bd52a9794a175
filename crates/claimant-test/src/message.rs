//! Messages as queues carry them: bodies of any kind, in the envelopes of what sent them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claimant_core::{AttributeValue, Attributes, Message, Timestamp};
use claimant_events::extended;
use serde::Serialize;
use serde_json::{Value, json};

use crate::clock::TEST_EPOCH;
use crate::envelopes::{ACCOUNT, Copy, Layer, REGION, id_of, message_attributes};
use crate::s3::{self, S3Object};

/// The queue that a message is from, unless it says so.
const QUEUE: &str = "test-queue";

/// How long after the one before it a producer sends another copy.
const COPY_EVERY_MS: u64 = 1_000;

/// A message as a queue delivers it. What is added to it is outside of what it has: `in_event_bridge` and then `in_sns` is an event
/// of EventBridge that came through SNS.
///
/// ```
/// use claimant_test::{TestMessage, event};
/// use serde_json::json;
///
/// let order = TestMessage::json(&json!({ "order_id": "ord-1" })).in_event_bridge("shop", "order placed").in_sns("orders");
/// assert!(order.body().contains("TopicArn"));
/// // What a producer sends again is another message, with other ids and times in its envelopes:
/// assert_ne!(order.body(), order.sent_again().body());
/// // For a function, an event of them:
/// assert_eq!(event(&[order])["Records"][0]["messageId"], "m-1");
/// ```
#[derive(Debug, Clone)]
pub struct TestMessage {
    content: String,
    layers: Vec<Layer>,
    copy: u32,
    id: Option<String>,
    receive_count: u32,
    group: Option<Group>,
    attributes: Attributes,
    queue: Option<String>,
    trace: Option<String>,
}

/// A group, and whether its queue keeps it in order.
#[derive(Debug, Clone)]
struct Group {
    name: String,
    ordered: bool,
}

impl TestMessage {
    /// Returns a message with this body, as it is.
    #[must_use]
    pub fn text(body: impl Into<String>) -> Self {
        Self {
            content: body.into(),
            layers: Vec::new(),
            copy: 0,
            id: None,
            receive_count: 1,
            group: None,
            attributes: Attributes::default(),
            queue: None,
            trace: None,
        }
    }

    /// Returns a message with this body as JSON.
    ///
    /// # Panics
    /// When it cannot be written as JSON.
    #[must_use]
    pub fn json(body: &impl Serialize) -> Self {
        Self::text(serde_json::to_string(body).expect("the body can be written as JSON"))
    }

    /// Returns a message with these bytes as its body, in Base64 of the standard alphabet: a body is a text.
    #[must_use]
    pub fn base64(body: impl AsRef<[u8]>) -> Self {
        Self::text(STANDARD.encode(body))
    }

    /// Returns a message with this Protobuf message as its body, in Base64.
    #[cfg(feature = "protobuf")]
    #[must_use]
    pub fn protobuf(body: &impl prost::Message) -> Self {
        Self::base64(body.encode_to_vec())
    }

    /// Returns a notification of S3, with one record or several.
    #[must_use]
    pub fn s3(records: &[S3Object]) -> Self {
        Self::text(s3::notification(records, &time_text(0)))
    }

    /// Returns the message that S3 sends when a notification is set up: `s3:TestEvent`, which is no work.
    #[must_use]
    pub fn s3_test_event(bucket: &str) -> Self {
        Self::text(s3::test_event(bucket, &time_text(0)))
    }

    /// Returns a message whose body the SQS Extended Client has put into this object: a pointer to it, and the attribute
    /// `ExtendedPayloadSize`.
    #[must_use]
    pub fn s3_pointer(bucket: &str, key: &str, payload_bytes: u64) -> Self {
        let size = AttributeValue::number(payload_bytes);
        Self::text(extended::message_body(bucket, key)).attribute(extended::SIZE_ATTRIBUTE, size)
    }

    /// Returns it as published to a topic of SNS that wraps what it delivers; its attributes are then the notification's. With raw
    /// delivery a message comes as it was published: leave this out.
    #[must_use]
    pub fn in_sns(mut self, topic: impl Into<String>) -> Self {
        let attributes = std::mem::take(&mut self.attributes);
        self.wrapped(Layer::Sns { topic: topic.into(), attributes })
    }

    /// Returns it as the `detail` of an event of EventBridge. The body has to be JSON.
    #[must_use]
    pub fn in_event_bridge(self, source: impl Into<String>, detail_type: impl Into<String>) -> Self {
        self.wrapped(Layer::EventBridge { source: source.into(), detail_type: detail_type.into() })
    }

    /// Returns it as the `data` of a CloudEvent 1.0, structured as JSON. Its id is the same in each copy that is sent.
    #[must_use]
    pub fn in_cloud_event(self, source: impl Into<String>, kind: impl Into<String>) -> Self {
        self.wrapped(Layer::CloudEvent { source: source.into(), kind: kind.into() })
    }

    fn wrapped(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// Returns it as its producer sends it again: another message, whose envelopes have other ids and times.
    #[must_use]
    pub fn sent_again(&self) -> Self {
        Self { copy: self.copy + 1, id: None, receive_count: 1, ..self.clone() }
    }

    /// Returns it with this message id, instead of `m-` and its number in the queue or the event.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }

    /// Returns it as received this often, this time included.
    #[must_use]
    pub fn received(self, count: u32) -> Self {
        Self { receive_count: count, ..self }
    }

    /// Returns it in this group of a FIFO queue, which keeps it in order.
    #[must_use]
    pub fn in_group(self, name: impl Into<String>) -> Self {
        Self { group: Some(Group { name: name.into(), ordered: true }), ..self }
    }

    /// Returns it in this group of a fair queue, which keeps no order.
    #[must_use]
    pub fn in_fair_group(self, name: impl Into<String>) -> Self {
        Self { group: Some(Group { name: name.into(), ordered: false }), ..self }
    }

    /// Returns it with this attribute.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: AttributeValue) -> Self {
        self.attributes.set(name, value);
        self
    }

    /// Returns it as a message of the queue with this name. A FIFO queue's ends in `.fifo`.
    #[must_use]
    pub fn from_queue(self, name: impl Into<String>) -> Self {
        Self { queue: Some(name.into()), ..self }
    }

    /// Returns it as sent in this trace (`AWSTraceHeader`).
    #[must_use]
    pub fn traced(self, header: impl Into<String>) -> Self {
        Self { trace: Some(header.into()), ..self }
    }

    /// Returns its body, in all its envelopes.
    #[must_use]
    pub fn body(&self) -> String {
        self.layers.iter().enumerate().fold(self.content.clone(), |inner, (depth, layer)| {
            let depth = u32::try_from(depth).expect("few envelopes");
            let of = layer.origin();
            let id = id_of(&format!("{of}{inner}"), self.copy * 16 + depth + 1);
            let copy = Copy { id, event_id: id_of(&format!("{of}{}", self.content), 0), time: time_text(self.copy) };
            layer.wrap(&inner, &copy)
        })
    }

    /// Returns what a FIFO queue tells messages apart by: another one for each copy that is sent, and for each other body, attribute or
    /// group. Two that are equal are one message.
    #[must_use]
    pub fn deduplication_id(&self) -> String {
        let group = self.group.as_ref().map(|group| group.name.as_str());
        let all = json!([self.body(), message_attributes(&self.attributes), group]);
        id_of(&all.to_string(), self.copy)
    }

    /// Returns the group of a FIFO queue that it is in.
    #[must_use]
    pub fn ordered_group(&self) -> Option<&str> {
        self.group.as_ref().filter(|group| group.ordered).map(|group| group.name.as_str())
    }

    fn arn(&self) -> String {
        let fifo = if self.ordered_group().is_some() { ".fifo" } else { "" };
        let name = self.queue.clone().unwrap_or_else(|| format!("{QUEUE}{fifo}"));
        format!("arn:aws:sqs:{REGION}:{ACCOUNT}:{name}")
    }

    fn sent_at_ms(&self) -> u64 {
        TEST_EPOCH.as_millis() + u64::from(self.copy) * COPY_EVERY_MS
    }

    fn id_or(&self, number: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("m-{number}"))
    }

    /// Returns it as an engine gets it, with this number in its id unless it has an id of its own.
    ///
    /// # Panics
    /// When its id is empty or too long.
    #[must_use]
    pub fn message(&self, number: usize) -> Message {
        let at = Timestamp::from_millis(self.sent_at_ms());
        let mut message = Message::new(self.id_or(number), self.body())
            .expect("the id of a test's message is short")
            .with_receive_count(self.receive_count)
            .with_source_arn(self.arn())
            .with_sent_at(at)
            .with_first_received_at(at);
        message = match &self.group {
            Some(group) if group.ordered => {
                message.with_ordered_group(&group.name).with_sequence_number(format!("{number:020}"))
            }
            Some(group) => message.with_fair_group(&group.name),
            None => message,
        };
        if let Some(trace) = &self.trace {
            message = message.with_trace(trace);
        }
        self.attributes.iter().fold(message, |message, (name, value)| message.with_attribute(name, value.clone()))
    }

    /// Returns it as [`message`](Self::message), with another id than those of a queue, unless it has an id of its own.
    pub(crate) fn delivered(&self, number: usize) -> Message {
        let id = self.id.clone().unwrap_or_else(|| format!("d-{number}"));
        self.clone().id(id).message(number)
    }

    /// Returns it as a record of a function's event, with this number in its id unless it has an id of its own.
    #[must_use]
    pub fn record(&self, number: usize) -> Value {
        let sent_at = self.sent_at_ms();
        let mut system = json!({
            "ApproximateReceiveCount": self.receive_count.to_string(),
            "SentTimestamp": sent_at.to_string(),
            "SenderId": ACCOUNT,
            "ApproximateFirstReceiveTimestamp": sent_at.to_string(),
        });
        if let Some(group) = &self.group {
            system["MessageGroupId"] = json!(group.name);
            if group.ordered {
                system["SequenceNumber"] = json!(format!("{number:020}"));
            }
        }
        if let Some(trace) = &self.trace {
            system["AWSTraceHeader"] = json!(trace);
        }
        json!({
            "messageId": self.id_or(number),
            "receiptHandle": "AQEBtest",
            "body": self.body(),
            "attributes": system,
            "messageAttributes": message_attributes(&self.attributes),
            "eventSource": "aws:sqs",
            "eventSourceARN": self.arn(),
            "awsRegion": REGION,
        })
    }
}

/// Returns messages in the opposite order; those of one ordered group keep theirs.
pub(crate) fn reordered(messages: &[TestMessage]) -> Vec<TestMessage> {
    let mut turned: Vec<TestMessage> = messages.iter().rev().cloned().collect();
    for place in 0..turned.len() {
        let Some(group) = turned[place].ordered_group().map(str::to_owned) else { continue };
        let before = turned[..place].iter().filter(|other| other.ordered_group() == Some(&group)).count();
        let in_order = messages.iter().filter(|other| other.ordered_group() == Some(&group)).nth(before);
        turned[place] = in_order.expect("as many are in the group in either order").clone();
    }
    turned
}

/// Returns the time at which a copy is sent, as envelopes have it: [`TEST_EPOCH`], and a second for each copy before it.
fn time_text(copy: u32) -> String {
    format!("2100-01-01T{:02}:{:02}:{:02}.000Z", copy / 3_600 % 24, copy / 60 % 60, copy % 60)
}
