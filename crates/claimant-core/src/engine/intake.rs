//! Intake: each message is opened and decoded here, once, and from here on its work is known or it is rejected.

use super::work::Payload;
use crate::consumer::Consumer;
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::rejection::Rejection;

/// A message of the batch, decoded.
pub(crate) struct Arrival<T> {
    pub(crate) index: usize,
    pub(crate) message: Message,
    /// What its work is and what its body was decoded to, or why it is rejected.
    pub(crate) content: Result<(Identity, Payload<T>), Rejection>,
}

/// Opens and decodes the messages of a batch.
pub(crate) fn arrivals<T: Send + 'static>(
    consumer: &Consumer<T>,
    name: &ConsumerName,
    batch: &[Message],
) -> Vec<Arrival<T>> {
    let arrival = |(index, delivered): (usize, &Message)| {
        let (message, content) = match consumer.open(delivered) {
            Ok(message) => {
                let content = consumer.read(name, &message);
                (message, content.map(|(identity, payload)| (identity, Payload::new(payload))))
            }
            Err(rejection) => (delivered.clone(), Err(rejection)),
        };
        Arrival { index, message, content }
    };
    batch.iter().enumerate().map(arrival).collect()
}
