//! Intake: each body is decoded here, once, and from here on its work is known or it is rejected.

use serde::de::DeserializeOwned;

use super::work::Payload;
use crate::consumer::Consumer;
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::rejection::Rejection;

/// A message of the batch, decoded.
pub(crate) struct Arrival<'a, T> {
    pub(crate) index: usize,
    pub(crate) message: &'a Message,
    /// What its work is and what its body was decoded to, or why it is rejected.
    pub(crate) content: Result<(Identity, Payload<T>), Rejection>,
}

/// Decodes the messages of a batch.
pub(crate) fn arrivals<'a, T: DeserializeOwned + Send + 'static>(
    consumer: &Consumer<T>,
    name: &ConsumerName,
    batch: &'a [Message],
) -> Vec<Arrival<'a, T>> {
    let arrival = |(index, message)| {
        let content = consumer.read(name, message).map(|(identity, payload)| (identity, Payload::new(payload)));
        Arrival { index, message, content }
    };
    batch.iter().enumerate().map(arrival).collect()
}
