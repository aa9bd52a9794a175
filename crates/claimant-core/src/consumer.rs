//! A consumer: a named handler with its key rule and its settings.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::batch::{AnyBatchHandler, BatchHandler, TransactionalBatchHandler};
use crate::batch_transactions::BatchTransactional;
use crate::decode::{Decoder, Json};
use crate::definition::{Definition, Runner};
use crate::duplicate::Duplicate;
use crate::envelope::Envelope;
use crate::failure::HandlerError;
use crate::handler::{AnyHandler, Handler, TransactionalHandler};
use crate::message::Message;
use crate::options::Options;
use crate::payloads::PayloadSource;
use crate::reader::Reader;
use crate::store::{Store, Transactional};

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
    pub(crate) definition: Definition,
    payload: PhantomData<fn(T)>,
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
        DecodedBy(Json).consumer(name, store, handler)
    }

    /// Returns a consumer whose handler borrows a transaction of its store: its writes in that and the completion of its key
    /// commit together, exactly once, or not at all, whatever is killed or lost in between. Other effects are as for
    /// [`new`](Self::new): repeated if the commit did not apply; [at most once](Self::at_most_once), the work is parked instead.
    ///
    /// The handler neither commits nor rolls back: it returns `Ok` or an error. Results, keys and the rest are as for
    /// [`new`](Self::new).
    pub fn transactional<S: Transactional>(
        name: impl Into<String>,
        store: S,
        handler: impl TransactionalHandler<T, S::Transaction>,
    ) -> Self {
        DecodedBy(Json).transactional(name, store, handler)
    }

    /// Returns a consumer whose handler gets many messages in one call, and returns a result for each: at most
    /// [`items_max`](Self::items_max), claimed and settled one by one. All else is as for [`new`](Self::new); see
    /// [`BatchHandler`] for what a call may do, and what fails it.
    pub fn batch(name: impl Into<String>, store: impl Store, handler: impl BatchHandler<T>) -> Self {
        DecodedBy(Json).batch(name, store, handler)
    }

    /// Returns a consumer whose handler gets many messages in one call, and one transaction of its store for them: its writes
    /// in that and the completions of all their keys commit together, or not at all. See [`TransactionalBatchHandler`] for
    /// what becomes of an item that fails.
    ///
    /// Keys are claimed before the transaction begins, under a lease as with [`batch`](Self::batch), and not in it.
    pub fn batch_transactional<S: BatchTransactional>(
        name: impl Into<String>,
        store: S,
        handler: impl TransactionalBatchHandler<T, S::Transaction>,
    ) -> Self {
        DecodedBy(Json).batch_transactional(name, store, handler)
    }

    /// Returns a consumer that runs no handler: its store keeps the messages themselves, as an inbox does. `note` writes into the
    /// claim's transaction what is to be kept of a message, and the completion of the claim stores it. It must not block.
    #[doc(hidden)]
    pub fn storing<S: Transactional>(
        name: impl Into<String>,
        store: S,
        note: impl Fn(&T, &Message, &mut S::Transaction) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        Self::with_handler(name.into(), Arc::new(store), Reader::new::<T>(Json), AnyHandler::storing::<T, _>(note))
    }
}

impl<T: Send + 'static> Consumer<T> {
    fn with_handler(name: String, store: Arc<dyn Store>, reader: Reader, handler: impl Into<Runner>) -> Self {
        let (handler, options) = (handler.into(), Options::default());
        let definition = Definition { name, store, handler, reader, on_duplicate: None, options };
        Self { definition, payload: PhantomData }
    }

    /// Sets what the body is wrapped in. A second one is inside the first, and so on; what is decoded is in the innermost.
    #[must_use]
    pub fn envelope(mut self, envelope: impl Envelope) -> Self {
        self.definition.reader.add_envelope(envelope);
        self
    }

    /// Sets where payloads are that messages only point to. The pointer is inside the envelopes that were set before; what is fetched
    /// is opened by those that are set after, and decoded. Keys and fingerprints are of the real payload.
    ///
    /// A payload that cannot be fetched now leaves its message in the queue (`fetch_failed`). One that never can be rejects it.
    #[must_use]
    pub fn large_payloads(mut self, source: impl PayloadSource) -> Self {
        self.definition.reader.set_payloads(source);
        self
    }

    /// Sets what is called for each duplicate of finished work, with what the handler returned then: at the end of the invocation, when all of
    /// its work is settled, as long as there is time; and before that where the results of duplicates are more than 4 MiB. It must not block:
    /// until it returns nothing is reported, and where the invocation ends before that, all its messages come back, those that are done as
    /// duplicates, and each has lost a receive. What it does is not part of any guarantee.
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
        self.definition.on_duplicate = Some(Arc::new(hook));
        self
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.definition.fmt(f)
    }
}

/// Returns the beginning of a consumer whose payloads this decoder makes, where they are not JSON.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::decode::Decoder;
/// use claimant::{Context, HandlerError, Message, Rejection, memory::MemoryStore};
///
/// struct Lines;
///
/// impl Decoder<Vec<String>> for Lines {
///     fn decode(&self, content: &[u8], message: &Message) -> Result<Vec<String>, Rejection> {
///         let text = std::str::from_utf8(content).map_err(|_| message.rejection("is not UTF-8"))?;
///         Ok(text.lines().map(str::to_owned).collect())
///     }
/// }
///
/// async fn print(lines: Vec<String>, _: Context) -> Result<(), HandlerError> {
///     println!("{} lines", lines.len());
///     Ok(())
/// }
///
/// let consumer = claimant::decoded_by(Lines).consumer("printing", MemoryStore::new(), print);
/// ```
pub fn decoded_by<D>(decoder: D) -> DecodedBy<D> {
    DecodedBy(decoder)
}

/// The beginning of a consumer: see [`decoded_by`].
#[derive(Debug, Clone)]
pub struct DecodedBy<D>(D);

impl<D> DecodedBy<D> {
    /// Returns a consumer as [`Consumer::new`] does.
    pub fn consumer<T: Send + 'static>(
        self,
        name: impl Into<String>,
        store: impl Store,
        handler: impl Handler<T>,
    ) -> Consumer<T>
    where
        D: Decoder<T>,
    {
        Consumer::with_handler(name.into(), Arc::new(store), Reader::new::<T>(self.0), AnyHandler::plain::<T>(handler))
    }

    /// Returns a consumer as [`Consumer::transactional`] does.
    pub fn transactional<T: Send + 'static, S: Transactional>(
        self,
        name: impl Into<String>,
        store: S,
        handler: impl TransactionalHandler<T, S::Transaction>,
    ) -> Consumer<T>
    where
        D: Decoder<T>,
    {
        Consumer::with_handler(
            name.into(),
            Arc::new(store),
            Reader::new::<T>(self.0),
            AnyHandler::transactional::<T, _>(handler),
        )
    }

    /// Returns a consumer as [`Consumer::batch`] does.
    pub fn batch<T: Send + 'static>(
        self,
        name: impl Into<String>,
        store: impl Store,
        handler: impl BatchHandler<T>,
    ) -> Consumer<T>
    where
        D: Decoder<T>,
    {
        Consumer::with_handler(
            name.into(),
            Arc::new(store),
            Reader::new::<T>(self.0),
            AnyBatchHandler::plain::<T>(handler),
        )
    }

    /// Returns a consumer as [`Consumer::batch_transactional`] does.
    pub fn batch_transactional<T: Send + 'static, S: BatchTransactional>(
        self,
        name: impl Into<String>,
        store: S,
        handler: impl TransactionalBatchHandler<T, S::Transaction>,
    ) -> Consumer<T>
    where
        D: Decoder<T>,
    {
        let store = Arc::new(store);
        let handler = AnyBatchHandler::transactional(Arc::clone(&store), handler);
        Consumer::with_handler(name.into(), store, Reader::new::<T>(self.0), handler)
    }
}
