//! Intake: each message is opened and decoded here, once, and from here on its work is known or it is rejected.

use std::cmp::Reverse;

use super::fetching::{Fetched, Unread};
use crate::definition::Definition;
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::limits::UNPACKED_BATCH_MAX_BYTES;
use crate::message::Message;
use crate::payload::Payload;

/// An event of a message of the batch, decoded. A message that holds none, or none that can be read, stands for itself.
pub(crate) struct Arrival {
    /// The message's index in the batch.
    pub(crate) index: usize,
    /// Which event of the message it is, from 0.
    pub(crate) event: u32,
    pub(crate) message: Message,
    /// What its work is and what its body was decoded to, or why that is not known.
    pub(crate) content: Result<(Identity, Payload), Unread>,
}

/// Opens and decodes the messages of a batch: the events in them, in the messages' order. Opened are those with the most receives
/// first, as in the lanes: what finds no room in memory is not passed over for ever.
pub(crate) fn arrivals(consumer: &Definition, name: &ConsumerName, batch: Vec<Fetched>) -> Vec<Arrival> {
    let (mut arrivals, mut unpacked_bytes) = (Vec::with_capacity(batch.len()), 0);
    let mut batch: Vec<_> = batch.into_iter().enumerate().collect();
    batch.sort_by_key(|(_, fetched)| Reverse(fetched.message.receive_count()));
    for (index, Fetched { message, content, .. }) in batch {
        let opened = content.and_then(|events| {
            let packed_bytes = content_bytes(&events);
            let opened = consumer.open(events).map_err(Unread::Rejected)?;
            let grown_bytes = content_bytes(&opened).saturating_sub(packed_bytes);
            // The first always has room.
            if grown_bytes > 0 && unpacked_bytes > 0 && unpacked_bytes + grown_bytes > UNPACKED_BATCH_MAX_BYTES {
                tracing::info!(consumer = %name, message_id = %message.id(), "message waits for a later batch: what those of this one unpack to fills the memory that it may take; smaller batches need not wait");
                return Err(Unread::NotStarted);
            }
            unpacked_bytes += grown_bytes;
            Ok(opened)
        });
        match opened {
            Err(unread) => arrivals.push(Arrival { index, event: 0, message, content: Err(unread) }),
            Ok(events) if events.is_empty() => {
                arrivals.push(Arrival { index, event: 0, message, content: Err(Unread::Empty) });
            }
            Ok(events) => arrivals.extend((0..).zip(events).map(|(event, message)| {
                let content = consumer.read(name, &message).map_err(Unread::Rejected);
                Arrival { index, event, message, content }
            })),
        }
    }
    arrivals.sort_by_key(|arrival| (arrival.index, arrival.event));
    arrivals
}

fn content_bytes(events: &[Message]) -> usize {
    events.iter().map(|event| event.content().len()).sum()
}
