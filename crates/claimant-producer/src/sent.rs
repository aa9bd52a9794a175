//! What SQS says of a message that it took.

/// What SQS says of a message that it took.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// The id that it has in the queue.
    pub message_id: String,
    /// Its place in the queue, on a FIFO queue.
    pub sequence_number: Option<String>,
}
