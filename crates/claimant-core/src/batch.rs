//! A handler for many messages at once: bulk writes, with a result for each of them.

use std::future::{Future, ready};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use std::{slice, vec};

use serde::Serialize;

use crate::batch_transactions::{AnyBatchTransactions, BatchTransactional};
use crate::context::Context;
use crate::failure::{Failure, FailureKind, HandlerError};
use crate::handler::{NO_TRANSACTION, RunFuture, to_keep};
use crate::payload::Payload;
use crate::transaction::{TransactionGuard, TransactionSlot};

/// One message of a call: its payload, and what is known of its run.
#[derive(Debug, Clone)]
pub struct Item<T> {
    /// What the message was decoded to.
    pub payload: T,
    /// Its key, fencing token, attempt and message.
    pub cx: Context,
}

/// The messages of one call of a [`BatchHandler`]: at least one, each of another key, and of each FIFO group the next one only.
///
/// Read as a slice, or taken apart as an iterator of [`Item`]s.
#[derive(Debug, Clone)]
pub struct Items<T>(Vec<Item<T>>);

impl<T> Items<T> {
    pub(crate) fn new(items: Vec<Item<T>>) -> Self {
        Self(items)
    }

    /// Returns these items, for a test that calls a handler by itself.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// use claimant::{Context, HandlerError, batch::Items};
    ///
    /// async fn add(items: Items<u64>) -> Result<Vec<Result<u64, HandlerError>>, HandlerError> {
    ///     Ok(items.into_iter().map(|item| Ok(item.payload + 1)).collect())
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let items = ["a", "b"].map(|key| (Context::for_tests(key).unwrap(), 1));
    /// let results = add(Items::for_tests(items)).await.unwrap();
    /// assert!(results.into_iter().all(|result| result.unwrap() == 2));
    /// # }
    /// ```
    #[must_use]
    pub fn for_tests(items: impl IntoIterator<Item = (Context, T)>) -> Self {
        Self(items.into_iter().map(|(cx, payload)| Item { payload, cx }).collect())
    }

    /// Returns how long the call has until it is cancelled. Zero means no time, never "no limit".
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.0.first().map(|item| item.cx.remaining()).unwrap_or_default()
    }

    /// Returns the payloads, in the items' order.
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = &T> {
        self.0.iter().map(|item| &item.payload)
    }
}

impl<T> Deref for Items<T> {
    type Target = [Item<T>];

    fn deref(&self) -> &[Item<T>] {
        &self.0
    }
}

impl<T> IntoIterator for Items<T> {
    type Item = Item<T>;
    type IntoIter = vec::IntoIter<Item<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Items<T> {
    type Item = &'a Item<T>;
    type IntoIter = slice::Iter<'a, Item<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// What a call returns for its items: `()` where all of them are done, or a result for each, in their order.
pub trait BatchResults {
    /// What is kept on an item's record as JSON, for its duplicates to find.
    type Output: Serialize;

    /// Returns the result of each of so many items; of fewer or more results none can be told whose it is.
    fn of_each(self, items: usize) -> Vec<Result<Self::Output, HandlerError>>;
}

impl BatchResults for () {
    type Output = ();

    fn of_each(self, items: usize) -> Vec<Result<(), HandlerError>> {
        (0..items).map(|_| Ok(())).collect()
    }
}

impl<R: Serialize> BatchResults for Vec<Result<R, HandlerError>> {
    type Output = R;

    fn of_each(self, _: usize) -> Self {
        self
    }
}

/// A handler of many payloads `T` in one call: for [`Consumer::batch`](crate::Consumer::batch).
///
/// Implemented for each `async fn` and closure of [`Items<T>`]. It returns `Ok(())` where all of its items are done, or a
/// result for each in their order: an item that failed is tried again, rejected or parked as one of a
/// [`Handler`](crate::Handler) is, and the others are completed.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, HandlerError, batch::Items, memory::MemoryStore};
///
/// #[derive(serde::Deserialize)]
/// struct Article { id: String, title: String }
/// # struct Answer { error: Option<String> }
/// # async fn bulk(titles: impl Iterator<Item = &String>) -> std::io::Result<Vec<Answer>> {
/// #     Ok(titles.map(|_| Answer { error: None }).collect())
/// # }
///
/// async fn index(articles: Items<Article>) -> Result<Vec<Result<(), HandlerError>>, HandlerError> {
///     // An error here fails all of them; each is then tried again in a call of its own.
///     let answers = bulk(articles.payloads().map(|article| &article.title)).await?;
///     // An error here fails one.
///     Ok(answers.into_iter().map(|answer| answer.error.map_or(Ok(()), |why| Err(HandlerError::retry(why)))).collect())
/// }
///
/// let consumer = Consumer::batch("index", MemoryStore::new(), index).key(|article| &article.id).items_max(100);
/// ```
///
/// # Contract
///
/// As for [`Handler`](crate::Handler), and:
///
/// - What fails a call, its error, a panic, its timeout, fails each of its items, and each of them is then tried again in a
///   call of its own: what one item did fails no other one twice. A [terminal](crate::Terminal) error of a call with more
///   than one item counts as one that is tried again, since it does not say of which item it speaks.
/// - With fewer or more results than items, all of them have failed, and their work may be done.
/// - Where the lease of one item is lost the call is cancelled.
pub trait BatchHandler<T>: Send + Sync + 'static {
    /// `()`, or a result for each item.
    type Output: BatchResults;

    /// Does the work of all these messages.
    ///
    /// # Errors
    /// By `?` of any error: no item is done, and each is tried again.
    fn handle(&self, items: Items<T>) -> impl Future<Output = Result<Self::Output, HandlerError>> + Send;
}

impl<T, F, Fut, R> BatchHandler<T> for F
where
    F: Fn(Items<T>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
    R: BatchResults,
{
    type Output = R;

    fn handle(&self, items: Items<T>) -> impl Future<Output = Result<R, HandlerError>> + Send {
        self(items)
    }
}

/// A handler of many payloads in one call and one transaction `X` of its store: for
/// [`Consumer::batch_transactional`](crate::Consumer::batch_transactional).
///
/// As [`BatchHandler`], with the transaction that completes the items. It commits once every item that is in it is done:
///
/// - Items that failed end as they say. The transaction is rolled back, and the handler is called again without them, in a new
///   one.
/// - A call that failed as a whole, by its error, a panic or the commit, is rolled back, and the handler is called for each
///   item by itself, each in a transaction of its own, in the same invocation.
///
/// So it may be called several times for an item, and what it does outside the transaction is repeated; the commit is not.
pub trait TransactionalBatchHandler<T, X: Send + 'static>: Send + Sync + 'static {
    /// `()`, or a result for each item.
    type Output: BatchResults;

    /// Does the work of all these messages.
    ///
    /// # Errors
    /// As for [`BatchHandler::handle`]; the transaction is then rolled back.
    fn handle(
        &self,
        items: Items<T>,
        transaction: TransactionGuard<X>,
    ) -> impl Future<Output = Result<Self::Output, HandlerError>> + Send;
}

impl<T, X, F, Fut, R> TransactionalBatchHandler<T, X> for F
where
    X: Send + 'static,
    F: Fn(Items<T>, TransactionGuard<X>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
    R: BatchResults,
{
    type Output = R;

    fn handle(
        &self,
        items: Items<T>,
        transaction: TransactionGuard<X>,
    ) -> impl Future<Output = Result<R, HandlerError>> + Send {
        self(items, transaction)
    }
}

/// What a call returned: the result to keep of each item, as JSON, or why the whole of it failed.
pub(crate) type CallResult = Result<Vec<Result<Option<String>, Failure>>, Failure>;

type Start = Box<dyn Fn(Items<Payload>, &TransactionSlot) -> RunFuture<CallResult> + Send + Sync>;

/// Any batch handler, whatever its type and that of its payloads.
pub(crate) struct AnyBatchHandler {
    start: Start,
    /// Of its store, where it works in one.
    pub(crate) transactions: Option<Arc<dyn AnyBatchTransactions>>,
}

impl AnyBatchHandler {
    /// Wraps a handler without a transaction.
    pub(crate) fn plain<T: Send + 'static>(handler: impl BatchHandler<T>) -> Self {
        let handler = Arc::new(handler);
        let start: Start = Box::new(move |items, _| {
            let (handler, contexts) = (Arc::clone(&handler), contexts(&items));
            Box::pin(async move { of_each(handler.handle(typed(items)).await, &contexts) })
        });
        Self { start, transactions: None }
    }

    /// Wraps a handler that borrows a transaction of this store.
    pub(crate) fn transactional<T: Send + 'static, S: BatchTransactional>(
        store: Arc<S>,
        handler: impl TransactionalBatchHandler<T, S::Transaction>,
    ) -> Self {
        let handler = Arc::new(handler);
        let start: Start = Box::new(move |items, home| match home.lend() {
            Some(transaction) => {
                let (handler, contexts) = (Arc::clone(&handler), contexts(&items));
                Box::pin(async move { of_each(handler.handle(typed(items), transaction).await, &contexts) })
            }
            None => Box::pin(ready(Err(Failure::retry(NO_TRANSACTION)))),
        });
        Self { start, transactions: Some(store) }
    }

    /// Returns the handler's call for these items, with the transaction in `home`. No code of the handler runs before it is
    /// polled.
    pub(crate) fn start(&self, items: Items<Payload>, home: &TransactionSlot) -> RunFuture<CallResult> {
        (self.start)(items, home)
    }
}

/// Returns items with their payloads as the consumer's type.
fn typed<T: 'static>(items: Items<Payload>) -> Items<T> {
    Items(items.into_iter().map(|Item { payload, cx }| Item { payload: payload.into_inner(), cx }).collect())
}

fn contexts(items: &Items<Payload>) -> Vec<Context> {
    items.iter().map(|item| item.cx.clone()).collect()
}

/// Converts what a handler returned to what is kept of each item.
fn of_each<R: BatchResults>(returned: Result<R, HandlerError>, contexts: &[Context]) -> CallResult {
    let results = returned.map_err(|error| of_several(error.into(), contexts.len()))?.of_each(contexts.len());
    if results.len() != contexts.len() {
        let why = format!("the batch handler returned {} results for {} items", results.len(), contexts.len());
        return Err(Failure::retry(why).after_return());
    }
    Ok(results.into_iter().zip(contexts).map(|(result, cx)| to_keep(result, cx)).collect())
}

/// Returns the failure of a call of so many items: of more than one, it cannot say that no retry will do.
fn of_several(failure: Failure, items: usize) -> Failure {
    match failure.kind {
        FailureKind::Terminal if items > 1 => Failure { kind: FailureKind::Retry, ..failure },
        _ => failure,
    }
}
