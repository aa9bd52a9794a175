//! What SQS returned for a message that it accepted.

/// What SQS returned for a message that it accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The message's id in the queue.
    pub message_id: String,
    /// The message's sequence number, on a FIFO queue.
    pub sequence_number: Option<String>,
}
