//! A message as a queue keeps it. Pure: time and new ids are arguments.

use std::collections::BTreeMap;

use super::message::MessageAttribute;

/// A message in a queue.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) content: Content,
    pub(super) group_id: Option<String>,
    pub(super) deduplication_id: Option<String>,
    pub(super) sequence_number: Option<String>,
    pub(super) sent_ms: u64,
    /// From when the retention period counts.
    pub(super) retained_from_ms: u64,
    pub(super) receives: Receives,
    /// The ARN of the queue that gave up on the message.
    pub(super) dead_letter_source: Option<String>,
}

/// What the sender wrote; it stays the same in every queue.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) body: String,
    pub(super) md5_of_body: String,
    pub(super) attributes: BTreeMap<String, MessageAttribute>,
    pub(super) trace_header: Option<String>,
}

/// How often a message was received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receives {
    pub(super) first_ms: Option<u64>,
    /// Receives in all queues the message has been in.
    pub(super) count: u32,
    /// Receives in this queue: what `maxReceiveCount` is compared with, and the number of the newest receipt.
    pub(super) here: u32,
}

impl Message {
    /// Returns the message as it arrives in a dead-letter queue from the queue with this ARN. It keeps its id, its sending
    /// time and its receive count.
    pub(super) fn dead_lettered(self, source_arn: &str, retained_from_ms: u64) -> Self {
        Self {
            retained_from_ms,
            receives: Receives { here: 0, ..self.receives },
            dead_letter_source: Some(source_arn.to_owned()),
            ..self
        }
    }

    /// Returns the message as it comes back from a dead-letter queue: to SQS that is a new message.
    pub(super) fn redriven(self, now_ms: u64, id: String, sequence_number: Option<String>) -> Self {
        Self {
            id,
            sequence_number,
            sent_ms: now_ms,
            retained_from_ms: now_ms,
            receives: Receives::default(),
            dead_letter_source: None,
            ..self
        }
    }
}
