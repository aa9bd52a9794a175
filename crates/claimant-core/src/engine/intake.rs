//! Intake: each message is opened and decoded here, once, and from here on its work is known or it is rejected.

use super::fetching::{Fetched, Unread};
use super::work::Payload;
use crate::consumer::Consumer;
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::message::Message;

/// A message of the batch, decoded.
pub(crate) struct Arrival<T> {
    pub(crate) index: usize,
    pub(crate) message: Message,
    /// What its work is and what its body was decoded to, or why that is not known.
    pub(crate) content: Result<(Identity, Payload<T>), Unread>,
}

/// Opens and decodes the messages of a batch.
pub(crate) fn arrivals<T: Send + 'static>(
    consumer: &Consumer<T>,
    name: &ConsumerName,
    batch: Vec<Fetched>,
) -> Vec<Arrival<T>> {
    let arrival = |(index, fetched): (usize, Fetched)| {
        let Fetched { message: delivered, unread: None, .. } = fetched else {
            let content = Err(fetched.unread.unwrap_or(Unread::NotStarted));
            return Arrival { index, message: fetched.message, content };
        };
        let (message, content) = match consumer.open(&delivered) {
            Ok(message) => {
                let content = consumer.read(name, &message).map_err(Unread::Rejected);
                (message, content.map(|(identity, payload)| (identity, Payload::new(payload))))
            }
            Err(rejection) => (delivered, Err(Unread::Rejected(rejection))),
        };
        Arrival { index, message, content }
    };
    batch.into_iter().enumerate().map(arrival).collect()
}
