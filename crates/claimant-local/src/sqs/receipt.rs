//! What a receive asks for and returns, and the receipt handles of its messages.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::backlog::Key;
use super::fault::{Code, Fault};
use super::md5;
use super::message::Received;
use super::queued::Message;
use crate::arn::ACCOUNT_ID;

/// What one receive asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) max: usize,
    /// `None` means the queue's own visibility timeout.
    pub(super) visibility: Option<Duration>,
    /// After how many receives a message is dead; `None` if there is no dead-letter queue to take it.
    pub(super) max_receive_count: Option<u32>,
}

/// What one receive gives.
#[derive(Debug, Default)]
pub(super) struct Handout {
    pub(super) received: Vec<Received>,
    /// Messages that had been received too often: they have left this queue for the dead-letter queue.
    pub(super) dead: Vec<Message>,
}

/// Returns the message's position and the number of the receive in a handle that the queue with this id handed out.
pub(super) fn parse(queue_id: &str, handle: &str) -> Result<(Key, u32), Fault> {
    read(queue_id, handle).ok_or_else(|| {
        Fault::new(
            Code::ReceiptHandleIsInvalid,
            "The input receipt handle is invalid: it is not one that this queue handed out.",
        )
    })
}

fn read(queue_id: &str, handle: &str) -> Option<(Key, u32)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(handle).ok()?).ok()?;
    let (key, receipt) = text.strip_prefix(queue_id)?.strip_prefix(':')?.split_once(':')?;
    Some((key.parse().ok()?, receipt.parse().ok()?))
}

fn write(queue_id: &str, key: Key, receipt: u32) -> String {
    URL_SAFE_NO_PAD.encode(format!("{queue_id}:{key}:{receipt}"))
}

/// The message as its newest receive hands it out.
pub(super) fn received(queue_id: &str, key: Key, message: &Message) -> Received {
    Received { receipt_handle: write(queue_id, key, message.receives.here), ..shown(message, usize::MAX) }
}

/// The message as it is, without what would delete it, and with so many bytes of its body at most. What a schedule could not send has all of
/// it: the ids that its message had are inside.
pub(super) fn shown(message: &Message, body_max: usize) -> Received {
    let body = &message.content.body;
    let body_max = if message.content.attributes.contains_key("SCHEDULE_ARN") { usize::MAX } else { body_max };
    let some = |name: &str, value: &Option<String>| value.clone().map(|value| (name.to_owned(), value));
    let first_received_ms = message.receives.first_ms.unwrap_or(message.sent_ms);
    let always = [
        ("ApproximateFirstReceiveTimestamp", first_received_ms.to_string()),
        ("ApproximateReceiveCount", message.receives.count.to_string()),
        ("SenderId", ACCOUNT_ID.to_owned()),
        ("SentTimestamp", message.sent_ms.to_string()),
    ];
    let sometimes = [
        some("AWSTraceHeader", &message.content.trace_header),
        some("DeadLetterQueueSourceArn", &message.dead_letter_source),
        some("MessageDeduplicationId", &message.deduplication_id),
        some("MessageGroupId", &message.group_id),
        some("SequenceNumber", &message.sequence_number),
    ];
    let always = always.map(|(name, value)| (name.to_owned(), value));
    Received {
        message_id: message.id.clone(),
        receipt_handle: String::new(),
        body: body[..body.floor_char_boundary(body_max)].to_owned(),
        md5_of_body: message.content.md5_of_body.clone(),
        attributes: always.into_iter().chain(sometimes.into_iter().flatten()).collect(),
        md5_of_message_attributes: md5::of_attributes(&message.content.attributes),
        message_attributes: message.content.attributes.clone(),
    }
}
