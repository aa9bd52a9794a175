//! A message as delivered.

use crate::key::MessageId;

/// One message of a batch, checked at the edge: its id is there and bounded.
///
/// The receipt handle stays with the queue's side: nothing here needs it, and nothing can log it.
#[derive(Clone)]
pub struct Message {
    /// The id that the queue gave it.
    pub id: MessageId,
    /// The body as delivered.
    pub body: String,
    /// How often the queue has delivered it, this time included; 1 where the queue did not say.
    pub receive_count: u32,
    /// Its group, only where the queue keeps groups in order (FIFO). A fair queue's group is not one.
    pub ordered_group: Option<String>,
    /// The trace that the producer sent it in, as the header that continues it; checked and bounded at the edge.
    pub trace: Option<String>,
}

// Bodies never reach a log, so they are not in `Debug` either.
impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Message")
            .field("id", &self.id)
            .field("body_bytes", &self.body.len())
            .field("receive_count", &self.receive_count)
            .finish_non_exhaustive()
    }
}
