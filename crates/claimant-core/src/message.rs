//! A message as delivered.

use crate::key::{InvalidValue, MessageId};

/// One message of a batch, checked at the edge: its id is there and bounded.
///
/// The receipt handle stays with the queue's side: nothing here needs it, and nothing can log it.
///
/// ```
/// # mod claimant { pub use claimant_core as engine; }
/// use claimant::engine::Message;
///
/// let mut message = Message::new("message-1", r#"{"order_id": "ord-1"}"#)?;
/// message.receive_count = 3;
/// # Ok::<_, claimant_core::Error>(())
/// ```
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

impl Message {
    /// Returns a message without group and trace, delivered for the first time.
    ///
    /// # Errors
    /// When the id is empty, or longer than [`MESSAGE_ID_MAX_BYTES`](crate::key::MESSAGE_ID_MAX_BYTES).
    pub fn new(id: impl Into<String>, body: impl Into<String>) -> Result<Self, InvalidValue> {
        let id = MessageId::new(id)?;
        Ok(Self { id, body: body.into(), receive_count: 1, ordered_group: None, trace: None })
    }
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
