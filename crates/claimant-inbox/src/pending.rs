//! What is stored of a message.

use claimant_core::protocol::ClaimRequest;
use claimant_core::{HandlerError, Message};

use crate::limits::EVENT_TYPE_MAX_BYTES;

/// A message on its way into the inbox.
#[derive(Debug)]
pub(crate) struct PendingRow {
    pub(crate) request: ClaimRequest,
    /// Set by [`fill_row`].
    pub(crate) message: Option<MessageRow>,
}

/// What a row holds of its message beside the key and the fingerprint.
pub(crate) struct MessageRow {
    pub(crate) group: Option<String>,
    pub(crate) event_type: String,
    pub(crate) body: String,
    pub(crate) trace: Option<String>,
}

// Bodies are never logged.
impl std::fmt::Debug for MessageRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MessageRow").field("body_bytes", &self.body.len()).finish_non_exhaustive()
    }
}

/// Sets what is to be stored of a message.
pub(crate) fn fill_row(event_type: &str, message: &Message, row: &mut PendingRow) -> Result<(), HandlerError> {
    if !(1..=EVENT_TYPE_MAX_BYTES).contains(&event_type.len()) {
        return Err(HandlerError::terminal(format!(
            "the event type has {} bytes; 1 to {EVENT_TYPE_MAX_BYTES} are allowed",
            event_type.len()
        )));
    }
    // What is inside its envelopes, or where its pointer points to: the worker has neither. It was decoded as JSON, and so is UTF-8.
    let content = str::from_utf8(message.content())
        .map_err(|_| HandlerError::terminal("its content is not UTF-8, which the inbox cannot store"))?;
    row.message = Some(MessageRow {
        group: message.ordered_group().map(str::to_owned),
        event_type: event_type.to_owned(),
        body: content.to_owned(),
        trace: message.trace().map(str::to_owned),
    });
    Ok(())
}
