//! What a message's content can be wrapped in.

use crate::message::Message;
use crate::rejection::Rejection;

/// Opens what the content of a message is wrapped in: for [`Consumer::envelope`](crate::Consumer::envelope).
///
/// A panic in it rejects the message alone.
pub trait Envelope: Send + Sync + 'static {
    /// Returns the message with what its [`content`](Message::content) holds, by [`Message::opened`]; several where it holds several
    /// events, and none where there is nothing to do.
    ///
    /// # Errors
    /// When the content is no such envelope. The error says what is wrong and where, and quotes nothing.
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection>;
}
