//! Reading: each message is opened and decoded here, once, and from here on its work is known or it is rejected.

use std::cmp::Reverse;

use super::fetching::{Fetched, Unread};
use super::unpacking::{Unpacking, content_bytes};
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::payload::Payload;
use crate::reader::Reader;

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
/// first, as in the lanes: what finds no room in memory, or no time, is not passed over for ever.
pub(crate) fn arrivals(
    reader: &Reader,
    name: &ConsumerName,
    batch: Vec<Fetched>,
    mut unpacking: Unpacking<'_>,
) -> Vec<Arrival> {
    let mut arrivals = Vec::with_capacity(batch.len());
    let mut batch: Vec<_> = batch.into_iter().enumerate().collect();
    batch.sort_by_key(|(_, fetched)| Reverse(fetched.message.receive_count()));
    for (index, Fetched { message, content, .. }) in batch {
        let opened = content.and_then(|events| {
            if !unpacking.has_time(&message) {
                return Err(Unread::NotStarted);
            }
            let packed_bytes = content_bytes(&events);
            let opened = reader.open(events).map_err(Unread::Rejected)?;
            let has_room = unpacking.has_room(&message, packed_bytes, content_bytes(&opened));
            if has_room { Ok(opened) } else { Err(Unread::NotStarted) }
        });
        match opened {
            Err(unread) => arrivals.push(Arrival { index, event: 0, message, content: Err(unread) }),
            Ok(events) if events.is_empty() => {
                arrivals.push(Arrival { index, event: 0, message, content: Err(Unread::Empty) });
            }
            Ok(events) => arrivals.extend((0..).zip(events).map(|(event, message)| {
                let content = reader.read(name, &message).map_err(Unread::Rejected);
                Arrival { index, event, message, content }
            })),
        }
    }
    arrivals.sort_by_key(|arrival| (arrival.index, arrival.event));
    arrivals
}
