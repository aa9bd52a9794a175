//! How a consumer reads a message: its envelopes, its payload, its identity.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::decode::Decoder;
use crate::envelope::Envelope;
use crate::identity::{Identity, IdentityRules};
use crate::key::ConsumerName;
use crate::message::Message;
use crate::rejection::Rejection;

/// How a consumer reads messages. All of it is the user's code: a panic in it rejects this message alone.
pub(crate) struct Reader<T> {
    envelopes: Vec<Box<dyn Envelope>>,
    decoder: Box<dyn Decoder<T>>,
    pub(crate) identity: IdentityRules<T>,
}

impl<T: 'static> Reader<T> {
    pub(crate) fn new(decoder: impl Decoder<T>) -> Self {
        Self { envelopes: Vec::new(), decoder: Box::new(decoder), identity: IdentityRules::default() }
    }

    /// Adds an envelope inside those before it.
    pub(crate) fn add_envelope(&mut self, envelope: impl Envelope) {
        self.envelopes.push(Box::new(envelope));
    }

    /// Opens a message's envelopes, from the outside to the inside.
    pub(crate) fn open(&self, message: &Message) -> Result<Message, Rejection> {
        let mut message = message.clone();
        for envelope in &self.envelopes {
            let opened = catch_unwind(AssertUnwindSafe(|| envelope.open(message)))
                .unwrap_or_else(|_| Err(Rejection::new("opening the envelope panicked")))?;
            let count = opened.len();
            let [one] = <[Message; 1]>::try_from(opened)
                .map_err(|_| Rejection::new(format!("the envelope holds {count} events, and not one")))?;
            message = one;
        }
        Ok(message)
    }

    /// Decodes a message that was opened, and identifies its work.
    pub(crate) fn read(&self, consumer: &ConsumerName, message: &Message) -> Result<(Identity, T), Rejection> {
        catch_unwind(AssertUnwindSafe(|| {
            let payload = self.decoder.decode(message.content(), message)?;
            Ok((self.identity.of(consumer, message, &payload)?, payload))
        }))
        .unwrap_or_else(|_| Err(Rejection::new("decoding the body or finding its key panicked")))
    }
}
