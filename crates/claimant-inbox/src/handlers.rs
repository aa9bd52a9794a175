//! Handlers by event type.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use claimant_core::decode::decode_json;
use claimant_core::panics::Caught;
use claimant_core::{Failure, TransactionSlot, TransactionalHandler};
use serde::de::DeserializeOwned;
use tracing::{Instrument as _, Span};

use crate::context::InboxContext;
use crate::transaction::Transaction;

/// A handler's run: decodes the body and calls the handler.
pub(crate) type Run = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

type Handler = Arc<dyn Fn(TransactionSlot, InboxContext) -> Run + Send + Sync>;

/// One handler for each event type.
#[derive(Default, Clone)]
pub(crate) struct Handlers {
    by_type: HashMap<String, Handler>,
    /// Event types that were added twice.
    pub(crate) repeated: Vec<String>,
}

impl Handlers {
    pub(crate) fn add<P: DeserializeOwned + Send + 'static>(
        &mut self,
        event_type: String,
        handler: impl TransactionalHandler<P, Transaction, InboxContext, Output = ()>,
    ) {
        let handler = Arc::new(handler);
        let run: Handler = Arc::new(move |slot, cx| {
            let handler = Arc::clone(&handler);
            // Decoding is the user's code too: it runs in the handler's task, where a panic is caught.
            Box::pin(async move {
                let payload =
                    decode_json::<P>(cx.body()).map_err(|rejection| Failure::terminal(rejection.to_string()))?;
                let transaction = slot.lend().ok_or_else(|| Failure::retry("the attempt has no transaction"))?;
                // Another reference to the slot would keep the transaction from being ended.
                drop(slot);
                handler.handle(payload, transaction, cx).await.map_err(Failure::from)
            })
        });
        if self.by_type.insert(event_type.clone(), run).is_some() {
            self.repeated.push(event_type);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_type.is_empty()
    }

    /// Returns the event types that have a handler.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.by_type.keys().map(String::as_str)
    }

    /// Starts the handler of this message.
    ///
    /// # Errors
    /// When there is none for its type. The message is retried: a worker that knows a new type may be deployed after the
    /// first message of that type arrived.
    pub(crate) fn run(&self, slot: TransactionSlot, cx: InboxContext) -> Result<Run, Failure> {
        match self.by_type.get(cx.event_type()) {
            Some(handler) => Ok(handler(slot, cx)),
            None => {
                let mut known: Vec<_> = self.types().collect();
                known.sort_unstable();
                Err(Failure::retry(format!(
                    "this worker has no handler for the message's event type, only for {}: add one, deploy it, and retry \
                     the message if it is dead by then",
                    known.join(", ")
                )))
            }
        }
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_type.keys()).finish()
    }
}

/// Returns a handler's run within this span. A panic is a failure: one of the handler, and one of what is set up to record the span.
pub(crate) fn guarded(run: Run, span: Span) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
    Caught::new(|| run.instrument(span), || Err(Failure::retry("the handler panicked")))
}

#[cfg(test)]
mod tests {
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Panics when a span is entered.
    struct Panicky;

    impl Subscriber for Panicky {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {}

        fn enter(&self, _: &Id) {
            panic!("on purpose");
        }

        fn exit(&self, _: &Id) {}
    }

    #[tokio::test]
    async fn a_handler_whose_span_panics_has_panicked() {
        let subscribed = tracing::subscriber::set_default(Panicky);
        let run = guarded(Box::pin(async { Ok(()) }), tracing::error_span!("message"));
        let ended = tokio::spawn(run).await;
        drop(subscribed);
        assert_eq!(ended.unwrap().unwrap_err().why, "the handler panicked");
    }
}
