//! Consumers whose handler gets many messages in one call.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::batch::{AnyBatchHandler, BatchHandler, TransactionalBatchHandler};
use crate::batch_transactions::BatchTransactional;
use crate::consumer::Consumer;
use crate::decode::Json;
use crate::reader::Reader;
use crate::store::Store;

impl<T: DeserializeOwned + Send + 'static> Consumer<T> {
    /// Returns a consumer whose handler gets many messages in one call, and returns a result for each: at most
    /// [`items_max`](Self::items_max), claimed and settled one by one. All else is as for [`new`](Self::new); see
    /// [`BatchHandler`] for what a call may do, and what fails it.
    pub fn batch(name: impl Into<String>, store: impl Store, handler: impl BatchHandler<T>) -> Self {
        Self::with_handler(name.into(), Arc::new(store), Reader::new::<T>(Json), AnyBatchHandler::plain::<T>(handler))
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
        let store = Arc::new(store);
        let handler = AnyBatchHandler::transactional(Arc::clone(&store), handler);
        Self::with_handler(name.into(), store, Reader::new::<T>(Json), handler)
    }
}

impl<T> Consumer<T> {
    /// Sets how many messages one call of a [`BatchHandler`] gets at most: 1 to
    /// [`ITEMS_MAX`](crate::limits::ITEMS_MAX), and [`ITEMS_DEFAULT`](crate::limits::ITEMS_DEFAULT) unless set. Each of them
    /// counts as one message of the [`concurrency`](Self::concurrency), which is at least this unless the consumer sets its own.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, HandlerError, batch::Items, memory::MemoryStore};
    /// # async fn pack(_: Items<u64>) -> Result<(), HandlerError> { Ok(()) }
    /// // Two calls at once, of 100 messages each.
    /// let consumer = Consumer::batch("packing", MemoryStore::new(), pack).items_max(100).concurrency(200);
    /// ```
    #[must_use]
    pub fn items_max(mut self, items: usize) -> Self {
        self.definition.options.items_max = Some(items);
        self
    }
}
