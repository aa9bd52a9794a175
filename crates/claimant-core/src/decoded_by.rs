//! The beginning of a consumer whose payloads are not JSON.

use std::sync::Arc;

use crate::batch::{AnyBatchHandler, BatchHandler, TransactionalBatchHandler};
use crate::batch_transactions::BatchTransactional;
use crate::consumer::Consumer;
use crate::decode::Decoder;
use crate::handler::{AnyHandler, Handler, TransactionalHandler};
use crate::reader::Reader;
use crate::store::{Store, Transactional};

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
///     fn decode(&self, content: &[u8], _: &Message) -> Result<Vec<String>, Rejection> {
///         let text = std::str::from_utf8(content).map_err(|_| Rejection::new("the body is not UTF-8"))?;
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
