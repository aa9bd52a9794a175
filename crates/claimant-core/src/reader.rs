//! How a consumer reads a message: its envelopes, its payload, its identity.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::decode::Decoder;
use crate::envelope::Envelope;
use crate::identity::{Identity, IdentityRules};
use crate::key::ConsumerName;
use crate::message::Message;
use crate::payloads::{PayloadSource, Pointer};
use crate::rejection::Rejection;

/// How a consumer reads messages. All of it is the user's code: a panic in it rejects this message alone.
pub(crate) struct Reader<T> {
    envelopes: Vec<Box<dyn Envelope>>,
    /// Where payloads are that messages only point to, and how many of the envelopes are around the pointer.
    payloads: Option<(Box<dyn PayloadSource>, usize)>,
    decoder: Box<dyn Decoder<T>>,
    pub(crate) identity: IdentityRules<T>,
}

impl<T: 'static> Reader<T> {
    pub(crate) fn new(decoder: impl Decoder<T>) -> Self {
        Self { envelopes: Vec::new(), payloads: None, decoder: Box::new(decoder), identity: IdentityRules::default() }
    }

    /// Adds an envelope inside those before it.
    pub(crate) fn add_envelope(&mut self, envelope: impl Envelope) {
        self.envelopes.push(Box::new(envelope));
    }

    /// Sets where payloads are that messages only point to. The pointer is inside the envelopes before it.
    pub(crate) fn set_payloads(&mut self, payloads: impl PayloadSource) {
        self.payloads = Some((Box::new(payloads), self.envelopes.len()));
    }

    pub(crate) fn payloads(&self) -> Option<&dyn PayloadSource> {
        self.payloads.as_ref().map(|(source, _)| source.as_ref())
    }

    /// Opens the envelopes around a pointer, and returns where it points to; `None` where the message has its payload.
    pub(crate) fn locate(&self, message: &Message) -> Result<(Message, Option<Pointer>), Rejection> {
        let Some((source, outside)) = &self.payloads else { return Ok((message.clone(), None)) };
        let message = open(&self.envelopes[..*outside], message)?;
        let pointer = catch_unwind(AssertUnwindSafe(|| source.pointer(&message)))
            .unwrap_or_else(|_| Err(Rejection::new("finding where the payload is panicked")))?;
        Ok((message, pointer))
    }

    /// Opens a message's envelopes, from the outside to the inside: those that [`locate`](Self::locate) has not opened.
    pub(crate) fn open(&self, message: &Message) -> Result<Message, Rejection> {
        let opened = self.payloads.as_ref().map_or(0, |(_, outside)| *outside);
        open(&self.envelopes[opened..], message)
    }

    /// Decodes a message that was opened, and identifies its work.
    pub(crate) fn read(&self, consumer: &ConsumerName, message: &Message) -> Result<(Identity, T), Rejection> {
        catch_unwind(AssertUnwindSafe(|| {
            let content = message.content();
            let payload = self.decoder.decode(content, message)?;
            let fingerprint = || self.decoder.fingerprint(content);
            Ok((self.identity.of(consumer, message, &payload, fingerprint)?, payload))
        }))
        .unwrap_or_else(|_| Err(Rejection::new("decoding the body or finding its key panicked")))
    }
}

fn open(envelopes: &[Box<dyn Envelope>], message: &Message) -> Result<Message, Rejection> {
    let mut message = message.clone();
    for envelope in envelopes {
        let opened = catch_unwind(AssertUnwindSafe(|| envelope.open(message)))
            .unwrap_or_else(|_| Err(Rejection::new("opening the envelope panicked")))?;
        let count = opened.len();
        let [one] = <[Message; 1]>::try_from(opened)
            .map_err(|_| Rejection::new(format!("the envelope holds {count} events, and not one")))?;
        message = one;
    }
    Ok(message)
}
