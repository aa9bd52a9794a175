//! How a consumer reads a message: its envelopes, its payload, its identity.

use std::marker::PhantomData;

use crate::decode::Decoder;
use crate::envelope::{self, Envelope};
use crate::fingerprint::Fingerprint;
use crate::identity::{Identity, IdentityRules};
use crate::key::ConsumerName;
use crate::limits::UNPACKED_BATCH_MAX_BYTES;
use crate::message::Message;
use crate::panics::caught;
use crate::payload::Payload;
use crate::payloads::{PayloadSource, Pointer};
use crate::rejection::Rejection;

/// How a consumer reads messages. All of it is the user's code: a panic in it rejects this message alone.
pub(crate) struct Reader {
    envelopes: Vec<Box<dyn Envelope>>,
    /// Where payloads are that messages only point to, and how many of the envelopes are around the pointer.
    payloads: Option<(Box<dyn PayloadSource>, usize)>,
    decoder: Box<dyn AnyDecoder>,
    pub(crate) identity: IdentityRules,
}

/// A decoder, whatever it decodes to.
trait AnyDecoder: Send + Sync {
    fn decode(&self, content: &[u8], message: &Message) -> Result<Payload, Rejection>;
    fn fingerprint(&self, content: &[u8]) -> Fingerprint;
}

struct DecoderOf<T, D>(D, PhantomData<fn() -> T>);

impl<T: Send + 'static, D: Decoder<T>> AnyDecoder for DecoderOf<T, D> {
    fn decode(&self, content: &[u8], message: &Message) -> Result<Payload, Rejection> {
        self.0.decode(content, message).map(Payload::new)
    }

    fn fingerprint(&self, content: &[u8]) -> Fingerprint {
        self.0.fingerprint(content)
    }
}

/// Where the payload of a message is.
pub(crate) enum Located {
    /// In it: these are the events in its outer envelopes.
    Here(Vec<Message>),
    /// There: this is the message with the pointer as its content.
    Elsewhere(Message, Pointer),
}

impl Reader {
    pub(crate) fn new<T: Send + 'static>(decoder: impl Decoder<T>) -> Self {
        let decoder = Box::new(DecoderOf(decoder, PhantomData));
        Self { envelopes: Vec::new(), payloads: None, decoder, identity: IdentityRules::default() }
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

    /// Opens the envelopes around a pointer, and returns where it points to. Where these hold several events, none of them is one.
    pub(crate) fn locate(&self, message: &Message) -> Result<Located, Rejection> {
        let Some((source, outside)) = &self.payloads else { return Ok(Located::Here(vec![message.clone()])) };
        let events = open(&self.envelopes[..*outside], vec![message.clone()])?;
        let [event] = &events[..] else { return Ok(Located::Here(events)) };
        let pointer = caught(|| source.pointer(event))
            .unwrap_or_else(|_| Err(Rejection::new("finding where the payload is panicked")))?;
        Ok(match pointer {
            Some(pointer) => Located::Elsewhere(event.clone(), pointer),
            None => Located::Here(events),
        })
    }

    /// Opens the envelopes of what is in a message, from the outside to the inside: those that [`locate`](Self::locate) has not
    /// opened. What comes out are the events in the message, which has nothing to be done if there are none.
    pub(crate) fn open(&self, events: Vec<Message>) -> Result<Vec<Message>, Rejection> {
        let opened = self.payloads.as_ref().map_or(0, |(_, outside)| *outside);
        open(&self.envelopes[opened..], events)
    }

    /// Decodes a message that was opened, and identifies its work.
    pub(crate) fn read(&self, consumer: &ConsumerName, message: &Message) -> Result<(Identity, Payload), Rejection> {
        caught(|| {
            let content = message.content();
            let payload = self.decoder.decode(content, message)?;
            let fingerprint = || self.decoder.fingerprint(content);
            Ok((self.identity.of(consumer, message, &payload, fingerprint)?, payload))
        })
        .unwrap_or_else(|_| {
            Err(Rejection::new("decoding the body, or finding its key, its fingerprint or its tenant, panicked"))
        })
    }
}

/// Opens envelopes, from the outside to the inside: what comes out is in the innermost ones.
pub(crate) fn open(envelopes: &[Box<dyn Envelope>], mut events: Vec<Message>) -> Result<Vec<Message>, Rejection> {
    for one in envelopes {
        let (mut opened, mut bytes) = (Vec::with_capacity(events.len()), 0);
        for event in events {
            let inside = caught(|| one.open(event.clone()))
                .unwrap_or_else(|_| Err(Rejection::new("opening the envelope panicked")))?;
            let count = opened.len() + inside.len();
            bytes += inside.iter().map(|event| event.content().len()).sum::<usize>();
            check_events(count, bytes)?;
            opened.extend(envelope::numbered(&event, inside));
        }
        events = opened;
    }
    Ok(events)
}

/// Checks that a message may hold so many events, which have so many bytes together.
pub(crate) fn check_events(count: usize, bytes: usize) -> Result<(), Rejection> {
    envelope::check_count(count)?;
    // A single one has a limit of its own, where it was unpacked.
    if count <= 1 || bytes <= UNPACKED_BATCH_MAX_BYTES {
        return Ok(());
    }
    Err(Rejection::new(format!(
        "the events of the message have {bytes} bytes or more; at most {UNPACKED_BATCH_MAX_BYTES} are allowed"
    )))
}
