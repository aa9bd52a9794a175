//! What a queue says of a message.

use crate::attributes::Attributes;
use crate::clock::Timestamp;
use crate::key::MessageId;
use crate::trace::SentIn;

/// What the queue delivered.
#[derive(Clone)]
pub(crate) struct Delivered {
    pub(crate) id: MessageId,
    pub(crate) body: String,
    pub(crate) receive_count: u32,
    pub(crate) group: Option<Group>,
    pub(crate) sequence_number: Option<String>,
    pub(crate) source_arn: Option<String>,
    pub(crate) sent_at: Option<Timestamp>,
    pub(crate) first_received_at: Option<Timestamp>,
    pub(crate) trace: SentIn,
    pub(crate) attributes: Attributes,
}

/// A group, and whether the queue keeps it in order.
#[derive(Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) ordered: bool,
}

impl Delivered {
    /// Returns a message of a standard queue without attributes, delivered for the first time.
    pub(crate) fn new(id: MessageId, body: String) -> Self {
        Self {
            id,
            body,
            receive_count: 1,
            group: None,
            sequence_number: None,
            source_arn: None,
            sent_at: None,
            first_received_at: None,
            trace: SentIn::default(),
            attributes: Attributes::default(),
        }
    }
}
