//! What a message's content can be wrapped in.

use crate::message::Message;
use crate::rejection::Rejection;

/// Opens what the content of a message is wrapped in: for [`Consumer::envelope`](crate::Consumer::envelope).
///
/// A panic in it rejects the message alone.
pub trait Envelope: Send + Sync + 'static {
    /// Returns the message with what its [`content`](Message::content) holds, by [`Message::opened`].
    ///
    /// Several where it holds several events, at most [`EVENTS_MAX`](crate::limits::EVENTS_MAX): each has a key of its own, and the
    /// message is done when all of them are. An event without an id of its own gets that of what is around it, and its number.
    ///
    /// None where there is nothing to do: the message is done, and its outcome is `empty`.
    ///
    /// # Errors
    /// When the content is no such envelope. The error says what is wrong and where, and quotes nothing.
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection>;
}
