//! Intake: each message is opened and decoded here, once, and from here on its work is known or it is rejected.

use super::fetching::{Fetched, Unread};
use super::work::Payload;
use crate::consumer::Consumer;
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::message::Message;

/// An event of a message of the batch, decoded. A message that holds none, or none that can be read, stands for itself.
pub(crate) struct Arrival<T> {
    /// The message's index in the batch.
    pub(crate) index: usize,
    /// Which event of the message it is, from 0.
    pub(crate) event: u32,
    pub(crate) message: Message,
    /// What its work is and what its body was decoded to, or why that is not known.
    pub(crate) content: Result<(Identity, Payload<T>), Unread>,
}

/// Opens and decodes the messages of a batch: the events in them, in the messages' order.
pub(crate) fn arrivals<T: Send + 'static>(
    consumer: &Consumer<T>,
    name: &ConsumerName,
    batch: Vec<Fetched>,
) -> Vec<Arrival<T>> {
    let mut arrivals = Vec::with_capacity(batch.len());
    for (index, Fetched { message, content, .. }) in batch.into_iter().enumerate() {
        match content.and_then(|events| consumer.open(events).map_err(Unread::Rejected)) {
            Err(unread) => arrivals.push(Arrival { index, event: 0, message, content: Err(unread) }),
            Ok(events) if events.is_empty() => {
                arrivals.push(Arrival { index, event: 0, message, content: Err(Unread::Empty) });
            }
            Ok(events) => arrivals.extend((0..).zip(events).map(|(event, message)| {
                let read = consumer.read(name, &message).map_err(Unread::Rejected);
                let content = read.map(|(identity, payload)| (identity, Payload::new(payload)));
                Arrival { index, event, message, content }
            })),
        }
    }
    arrivals
}
