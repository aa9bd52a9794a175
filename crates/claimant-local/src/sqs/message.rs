//! What goes into a queue and what comes out of it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A message to be sent.
#[derive(Clone, Default)]
pub struct NewMessage {
    /// The body: 1 byte to 1 MiB together with the attributes, and only characters that XML 1.0 allows.
    pub body: String,
    /// How long the message stays hidden; `None` means the queue's own delay. Standard queues only, up to 15 minutes.
    pub delay: Option<Duration>,
    /// The message group: required on FIFO queues, allowed on standard ones, where it orders nothing.
    pub group_id: Option<String>,
    /// What makes two sends the same message for five minutes; FIFO queues only.
    pub deduplication_id: Option<String>,
    /// Up to ten attributes by name.
    pub message_attributes: BTreeMap<String, MessageAttribute>,
    /// The X-Ray trace header, handed out as the system attribute `AWSTraceHeader`.
    pub trace_header: Option<String>,
}

impl NewMessage {
    /// A message with nothing but a body.
    pub fn new(body: impl Into<String>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }
}

/// A message attribute: its type as sent, such as `String`, `Number.int` or `Binary.png`, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageAttribute {
    /// `String`, `Number` or `Binary`, with an optional suffix after a full stop.
    pub data_type: String,
    /// The value; `Binary` types carry bytes, all others text.
    pub value: AttributeValue,
}

/// Returns attributes as JSON, as SQS writes them; empty where there is none.
pub(super) fn attributes_json(attributes: &BTreeMap<String, MessageAttribute>) -> String {
    let json = |MessageAttribute { data_type, value }: &MessageAttribute| match value {
        AttributeValue::Text(text) => json!({ "DataType": data_type, "StringValue": text }),
        AttributeValue::Binary(bytes) => json!({ "DataType": data_type, "BinaryValue": STANDARD.encode(bytes) }),
    };
    if attributes.is_empty() {
        return String::new();
    }
    attributes.iter().map(|(name, attribute)| (name.clone(), json(attribute))).collect::<Value>().to_string()
}

/// The value of a message attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// The value of a `String` or `Number` attribute.
    Text(String),
    /// The value of a `Binary` attribute.
    Binary(Vec<u8>),
}

impl AttributeValue {
    /// The bytes that count towards the message's size and its digest.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// What a queue answers to a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The message's id; for a repeat inside the deduplication window, the id of the first send.
    pub message_id: String,
    /// MD5 of the body, in hexadecimal.
    pub md5_of_body: String,
    /// MD5 of the message attributes, if there are any.
    pub md5_of_message_attributes: Option<String>,
    /// MD5 of the system attributes, if there are any.
    pub md5_of_message_system_attributes: Option<String>,
    /// The position of the message in its FIFO queue: 20 digits, growing.
    pub sequence_number: Option<String>,
}

/// What becomes of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The message is deleted.
    Deleted,
    /// Nothing was deleted: the message is gone already, as one that was deleted before, or moved to the dead-letter queue.
    Gone,
    /// Nothing was deleted: the message was received again since, or the receipt handle has expired on a FIFO queue.
    Stale,
}

/// A message as one receive hands it out.
#[derive(Clone, PartialEq, Eq)]
pub struct Received {
    /// The message's id.
    pub message_id: String,
    /// What deletes the message or changes its visibility; new on each receive.
    pub receipt_handle: String,
    /// The body as sent.
    pub body: String,
    /// MD5 of the body, in hexadecimal.
    pub md5_of_body: String,
    /// The system attributes: `ApproximateReceiveCount`, `SentTimestamp`, `SenderId`,
    /// `ApproximateFirstReceiveTimestamp`, and where they apply `MessageGroupId`, `MessageDeduplicationId`,
    /// `SequenceNumber`, `AWSTraceHeader`, `DeadLetterQueueSourceArn`.
    pub attributes: BTreeMap<String, String>,
    /// The message attributes as sent.
    pub message_attributes: BTreeMap<String, MessageAttribute>,
    /// MD5 of `message_attributes`, if there are any.
    pub md5_of_message_attributes: Option<String>,
}

/// Bodies, receipt handles and attribute values stay out of logs, so `Debug` shows the id alone.
impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received").field("message_id", &self.message_id).finish_non_exhaustive()
    }
}

/// A message that lies in a queue, seen without receiving it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredMessage {
    /// The message's id.
    pub message_id: String,
    /// The body as sent.
    pub body: String,
}

/// Bodies stay out of logs, so `Debug` shows the id alone.
impl fmt::Debug for StoredMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredMessage").field("message_id", &self.message_id).finish_non_exhaustive()
    }
}

/// A message that was received, and is neither deleted nor visible again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The message's id.
    pub message_id: String,
    /// How long it is hidden from now on, unless that is changed.
    pub visible_in: Duration,
}

/// How many messages a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages that a receive could hand out, on FIFO queues also those behind a locked group.
    pub visible: usize,
    /// Messages received, and neither deleted nor visible again.
    pub in_flight: usize,
    /// Messages sent with a delay that has not passed.
    pub delayed: usize,
}

/// What has happened to a queue's messages since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages accepted by a send; repeats inside the deduplication window and moves from other queues are not counted.
    pub sent: u64,
    /// Deliveries: a message received twice counts twice.
    pub received: u64,
    /// Messages deleted by a receipt handle.
    pub deleted: u64,
    /// Messages moved out to the dead-letter queue.
    pub dead_lettered: u64,
    /// Messages dropped because they were older than the retention period.
    pub expired: u64,
}
