//! A payload, whatever its type: the engine is compiled once, and not for each consumer.

use std::any::Any;

use crate::panics::let_go;

/// What a body was decoded to, once, by the reader of a consumer, for its rules and its handler. Its drop is the user's code: a panic in it ends
/// nothing else.
pub(crate) struct Payload(Option<Box<dyn Any + Send>>);

const OF_ITS_CONSUMER: &str =
    "a consumer's reader, rules and handler have one type of payload, and it is taken out once";

impl Payload {
    pub(crate) fn new(payload: impl Any + Send) -> Self {
        Self(Some(Box::new(payload)))
    }

    /// Returns the payload, of the type of its consumer.
    pub(crate) fn get<T: 'static>(&self) -> &T {
        self.0.as_ref().and_then(|payload| payload.downcast_ref()).expect(OF_ITS_CONSUMER)
    }

    /// Returns the payload, of the type of its consumer, for its handler.
    pub(crate) fn into_inner<T: 'static>(mut self) -> T {
        *self.0.take().and_then(|payload| payload.downcast().ok()).expect(OF_ITS_CONSUMER)
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(payload) = self.0.take() {
            let_go(payload);
        }
    }
}
