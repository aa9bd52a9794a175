//! A consumer: a named handler with its key rule and its settings.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::batch::Runner;
use crate::breaker::BREAKER_CONSUMER;
use crate::decode::Json;
use crate::duplicate::Duplicate;
use crate::envelope::Envelope;
use crate::error::Error;
use crate::failure::HandlerError;
use crate::handler::{AnyHandler, Handler, TransactionalHandler};
use crate::identity::Identity;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::options::Options;
use crate::payloads::PayloadSource;
use crate::protocol::Abandoned;
use crate::reader::{Located, Reader};
use crate::rejection::Rejection;
use crate::store::{Before, Store, Transactional};

type DuplicateHook = Box<dyn Fn(&Duplicate<'_>) + Send + Sync>;

/// A named handler with its key rule and its settings.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
///
/// #[derive(serde::Deserialize)]
/// struct Order { order_id: String }
///
/// async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
///     println!("confirming {}, attempt {}", order.order_id, cx.attempt());
///     Ok(())
/// }
///
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm).key(|order| &order.order_id);
/// ```
///
/// The builder checks nothing: all faults of a consumer are returned in one error when it starts, by
/// [`Engine::new`](crate::Engine::new).
pub struct Consumer<T> {
    name: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) handler: Runner<T>,
    pub(crate) reader: Reader<T>,
    on_duplicate: Option<DuplicateHook>,
    pub(crate) options: Options,
}

impl<T: DeserializeOwned + Send + 'static> Consumer<T> {
    /// Returns a consumer of JSON bodies that decode as `T`, the payload of its [`Handler`]. Keys of consumers with different
    /// names never collide.
    ///
    /// What the handler returns, unless it is `()` or `None`, is kept on the record as JSON, at most
    /// [`RESULT_MAX_BYTES`](crate::record::RESULT_MAX_BYTES) of it. A larger result, or one that cannot be written as JSON,
    /// is left out, with an error in the logs: the work is done, so its key is completed, and its duplicates see no result.
    ///
    /// Without a [`key`](Self::key), the message id is the key, or the id that its [envelope](Self::envelope) gives its event: that
    /// keeps redeliveries out, but a message id not a second copy that the producer sent, nor a message that is redriven from a
    /// dead-letter queue, which gives it a new id.
    pub fn new(name: impl Into<String>, store: impl Store, handler: impl Handler<T>) -> Self {
        Self::with_handler(name.into(), Arc::new(store), Reader::new(Json), AnyHandler::plain(handler))
    }

    /// Returns a consumer whose handler borrows a transaction of its store: its writes in that and the completion of its key
    /// commit together, exactly once, or not at all, whatever is killed or lost in between. Other effects are as for
    /// [`new`](Self::new): repeated if the commit did not apply.
    ///
    /// The handler neither commits nor rolls back: it returns `Ok` or an error. Results, keys and the rest are as for
    /// [`new`](Self::new).
    pub fn transactional<S: Transactional>(
        name: impl Into<String>,
        store: S,
        handler: impl TransactionalHandler<T, S::Transaction>,
    ) -> Self {
        Self::with_handler(name.into(), Arc::new(store), Reader::new(Json), AnyHandler::transactional(handler))
    }

    /// Returns a consumer that runs no handler: its store keeps the messages themselves, as an inbox does. `note` writes into the
    /// claim's transaction what is to be kept of a message, and the completion of the claim stores it. It must not block.
    #[doc(hidden)]
    pub fn storing<S: Transactional>(
        name: impl Into<String>,
        store: S,
        note: impl Fn(&T, &Message, &mut S::Transaction) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        Self::with_handler(name.into(), Arc::new(store), Reader::new(Json), AnyHandler::storing(note))
    }
}

impl<T: Send + 'static> Consumer<T> {
    pub(crate) fn with_handler(
        name: String,
        store: Arc<dyn Store>,
        reader: Reader<T>,
        handler: impl Into<Runner<T>>,
    ) -> Self {
        Self { name, store, handler: handler.into(), reader, on_duplicate: None, options: Options::default() }
    }

    /// Sets what the body is wrapped in. A second one is inside the first, and so on; what is decoded is in the innermost.
    #[must_use]
    pub fn envelope(mut self, envelope: impl Envelope) -> Self {
        self.reader.add_envelope(envelope);
        self
    }

    /// Sets where payloads are that messages only point to. The pointer is inside the envelopes that were set before; what is fetched
    /// is opened by those that are set after, and decoded. Keys and fingerprints are of the real payload.
    ///
    /// A payload that cannot be fetched now leaves its message in the queue (`fetch_failed`). One that never can be rejects it.
    #[must_use]
    pub fn large_payloads(mut self, source: impl PayloadSource) -> Self {
        self.reader.set_payloads(source);
        self
    }

    /// Sets what is called for each duplicate of finished work, with what the handler returned then. It must not block; what it
    /// does is not part of any guarantee.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
    ///     .key(|order| order)
    ///     .on_duplicate(|duplicate| println!("{} again, in {}", duplicate.key(), duplicate.message_id()));
    /// ```
    #[must_use]
    pub fn on_duplicate(mut self, hook: impl Fn(&Duplicate<'_>) + Send + Sync + 'static) -> Self {
        self.on_duplicate = Some(Box::new(hook));
        self
    }

    /// Puts something before the consumer's store, as [`Consumers::behind`](crate::Consumers::behind).
    pub(crate) fn behind(&mut self, before: Before<'_>) {
        self.store = before(&self.name, Arc::clone(&self.store));
    }

    /// Checks the consumer, and returns its name.
    ///
    /// # Errors
    /// One error with everything that is wrong with its name, its rules and its options.
    pub(crate) fn check(&self) -> Result<ConsumerName, Error> {
        let mut faults: Vec<String> = self.faults().into_iter().map(str::to_owned).collect();
        faults.extend(self.options.faults());
        let name = ConsumerName::new(self.name.as_str());
        if let Err(fault) = &name {
            faults.insert(0, fault.to_string());
        }
        Error::unless_empty("the consumer's settings are not usable", &faults)?;
        Ok(name?)
    }

    /// Returns why options contradict each other, in words.
    fn faults(&self) -> Vec<&'static str> {
        const NEEDS_OUTLIVING_CLAIMS: &str = "at most once needs a store whose claims outlive their owners, and this one's end \
            with the process: do the work in the transaction and leave at_most_once away, or use a store without transactions";
        const NEEDS_KEY: &str = "at most once needs a key from the payload: a message that is redriven from a dead-letter queue \
            has a new message id, so that under the id as the key its parked work would run again; add .key(…) or .key_of(…)";
        const BREAKER_NEEDS_OUTLIVING_CLAIMS: &str = "a breaker needs a store whose claims outlive their owners, and this one's \
            end with the process, so that no other process would see it: leave .breaker(…) away, or use a store without transactions";
        const RESERVED: &str = "its name is that of breakers' records: choose another one";
        const NEEDS_BATCH: &str = "a size of calls needs a batch handler: Consumer::batch, or leave items_max away";
        const RUNS_AGAIN: &str = "at most once does not go with a batch in a transaction, whose handler is called again for             the other items when one fails: leave at_most_once away, since what was rolled back is not done";
        let parks = self.options.policy.abandoned == Abandoned::Park;
        let (batch, transactional) = match &self.handler {
            Runner::Each(_) => (false, false),
            Runner::Batch(handler) => (true, handler.transactions.is_some()),
        };
        let faults = [
            (parks && !self.store.claims_outlive_owners()).then_some(NEEDS_OUTLIVING_CLAIMS),
            (parks && !self.reader.identity.has_key()).then_some(NEEDS_KEY),
            (parks && transactional).then_some(RUNS_AGAIN),
            (self.options.breaker.is_some() && !self.store.claims_outlive_owners())
                .then_some(BREAKER_NEEDS_OUTLIVING_CLAIMS),
            (self.name == BREAKER_CONSUMER).then_some(RESERVED),
            (self.options.items_max.is_some() && !batch).then_some(NEEDS_BATCH),
            self.reader.identity.fault(),
        ];
        faults.into_iter().flatten().collect()
    }

    pub(crate) fn payloads(&self) -> Option<&dyn PayloadSource> {
        self.reader.payloads()
    }

    /// Opens the envelopes around a pointer, and returns where it points to.
    pub(crate) fn locate(&self, message: &Message) -> Result<Located, Rejection> {
        self.reader.locate(message)
    }

    /// Opens the envelopes of what is in a message.
    pub(crate) fn open(&self, events: Vec<Message>) -> Result<Vec<Message>, Rejection> {
        self.reader.open(events)
    }

    /// Decodes a message that was opened, and identifies its work.
    pub(crate) fn read(&self, name: &ConsumerName, message: &Message) -> Result<(Identity, T), Rejection> {
        self.reader.read(name, message)
    }
}

impl<T> Consumer<T> {
    /// Calls the hook for a duplicate, if there is one. A hook that panics changes nothing.
    pub(crate) fn show_duplicate(&self, duplicate: &Duplicate<'_>) {
        if let Some(hook) = &self.on_duplicate {
            // The panic hook has logged it.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(duplicate)));
        }
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, options, .. } = self;
        f.debug_struct("Consumer").field("name", name).field("policy", &options.policy).finish_non_exhaustive()
    }
}
