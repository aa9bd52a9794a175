//! What a consumer runs for each message: a function, a closure, or a type with state.

use std::future::{Future, ready};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Serialize;

use crate::context::Context;
use crate::failure::{Failure, HandlerError};
use crate::message::Message;
use crate::panics::caught;
use crate::payload::Payload;
use crate::record::RESULT_MAX_BYTES;
use crate::transaction::{TransactionGuard, TransactionSlot};

/// The run of a handler, which returns `R`.
pub(crate) type RunFuture<R> = BoxFuture<'static, R>;

/// A handler's run: what it returns is the result to keep, as JSON.
pub(crate) type HandlerFuture = RunFuture<Result<Option<String>, Failure>>;

/// The error for a store that does not keep to its type.
pub(crate) const NO_TRANSACTION: &str = "the store gave the claim no transaction";

/// A handler of payloads `T`: for [`Consumer::new`](crate::Consumer::new).
///
/// Implemented for each `async fn` and closure of `(T, Context)`. Implement it for a type of your own where the handler has
/// state: the engine shares one value among all messages, so the state needs no `Arc` and no clone.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, Handler, HandlerError, memory::MemoryStore};
///
/// #[derive(serde::Deserialize)]
/// struct Order { order_id: String }
///
/// struct Shop { sender: String }
///
/// impl Handler<Order> for Shop {
///     type Output = ();
///
///     async fn handle(&self, order: Order, cx: Context) -> Result<(), HandlerError> {
///         println!("{} confirms {}, attempt {}", self.sender, order.order_id, cx.attempt());
///         Ok(())
///     }
/// }
///
/// let shop = Shop { sender: "shop@example.com".to_owned() };
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), shop).key(|order| &order.order_id);
/// ```
///
/// A closure's parameters have their types written, as its body is read before the consumer's type is known:
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// let consumer = Consumer::new("c", MemoryStore::new(), |id: u64, _: Context| async move {
///     println!("{id}");
///     Ok::<_, HandlerError>(())
/// });
/// ```
///
/// One that is chosen when the function starts is a closure in a box, as an `Arc` of a type of your own is in a closure that clones it:
///
/// ```
/// # use std::sync::Arc;
/// # use claimant_core as claimant;
/// # use claimant::{BoxFuture, Consumer, Context, Handler, HandlerError, memory::MemoryStore};
/// # async fn print(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// # let (shop, is_dry_run) = (Arc::new(print), false);
/// type Chosen = Box<dyn Fn(u64, Context) -> BoxFuture<'static, Result<(), HandlerError>> + Send + Sync>;
///
/// let handler: Chosen = match is_dry_run {
///     true => Box::new(|id, cx| Box::pin(print(id, cx))),
///     false => Box::new(move |id, cx| {
///         let shop = Arc::clone(&shop);
///         Box::pin(async move { shop.handle(id, cx).await })
///     }),
/// };
/// let consumer = Consumer::new("c", MemoryStore::new(), handler);
/// ```
///
/// # Contract
///
/// - It may run more than once for a message, and at the same time as an earlier run for its key that was cut off and is still
///   running: pass [`Context::key`] to the system that has the effect, so that it can recognise a repeat.
/// - It is cancelled by being dropped at an `await`, at its timeout or shortly before the invocation's deadline. What blocks
///   its thread cannot be cancelled: use `tokio::task::spawn_blocking` for it.
/// - It may panic: that fails this message alone.
#[diagnostic::on_unimplemented(
    note = "a handler is an `async fn` or a closure of `(payload, Context)`, whose types are written, or a type that implements `Handler`",
    note = "for an `Arc` of such a type, pass `move |payload: T, cx: Context| {{ let h = Arc::clone(&h); async move {{ h.handle(payload, cx).await }} }}`"
)]
pub trait Handler<T>: Send + Sync + 'static {
    /// What is kept on the record as JSON, for duplicates to find. Nothing is kept of `()` and `None`.
    type Output: Serialize;

    /// Does the work of one message.
    ///
    /// # Errors
    /// By `?` of any error: it is tried again, with backoff. See [`HandlerError`] for those that no retry can fix.
    fn handle(&self, payload: T, cx: Context) -> impl Future<Output = Result<Self::Output, HandlerError>> + Send;
}

impl<T, F, Fut, R> Handler<T> for F
where
    F: Fn(T, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
    R: Serialize,
{
    type Output = R;

    fn handle(&self, payload: T, cx: Context) -> impl Future<Output = Result<R, HandlerError>> + Send {
        self(payload, cx)
    }
}

/// A handler that works in a transaction `X` of its store: for [`Consumer::transactional`](crate::Consumer::transactional).
///
/// As [`Handler`], with a transaction that goes back when it is dropped, at the latest when the handler ends. The handler
/// neither commits nor rolls back. Implemented for each `async fn` and closure of `(T, TransactionGuard<X>, C)`.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Context, HandlerError, TransactionGuard, TransactionalHandler};
///
/// struct Books { currency: String }
///
/// impl TransactionalHandler<u64, Vec<String>> for Books {
///     type Output = ();
///
///     async fn handle(&self, cents: u64, mut tx: TransactionGuard<Vec<String>>, _: Context) -> Result<(), HandlerError> {
///         tx.push(format!("{cents} {}", self.currency));
///         Ok(())
///     }
/// }
/// ```
pub trait TransactionalHandler<T, X: Send + 'static, C = Context>: Send + Sync + 'static {
    /// What is kept on the record as JSON, for duplicates to find. Nothing is kept of `()` and `None`.
    type Output: Serialize;

    /// Does the work of one message.
    ///
    /// # Errors
    /// As for [`Handler::handle`]; the transaction is then rolled back.
    fn handle(
        &self,
        payload: T,
        transaction: TransactionGuard<X>,
        cx: C,
    ) -> impl Future<Output = Result<Self::Output, HandlerError>> + Send;
}

impl<T, X, C, F, Fut, R> TransactionalHandler<T, X, C> for F
where
    X: Send + 'static,
    F: Fn(T, TransactionGuard<X>, C) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, HandlerError>> + Send,
    R: Serialize,
{
    type Output = R;

    fn handle(
        &self,
        payload: T,
        tx: TransactionGuard<X>,
        cx: C,
    ) -> impl Future<Output = Result<R, HandlerError>> + Send {
        self(payload, tx, cx)
    }
}

type Start = Box<dyn Fn(Payload, &Message, &TransactionSlot, Context) -> HandlerFuture + Send + Sync>;

/// Any handler, whatever its type and that of its payloads.
pub(crate) struct AnyHandler {
    start: Start,
    /// Whether it borrows what its claims carry.
    pub(crate) transactional: bool,
}

impl AnyHandler {
    /// Wraps a handler without a transaction.
    pub(crate) fn plain<T: Send + 'static>(handler: impl Handler<T>) -> Self {
        let handler = Arc::new(handler);
        let start: Start = Box::new(move |payload, _, _, cx| {
            let (handler, payload) = (Arc::clone(&handler), payload.into_inner());
            Box::pin(async move { to_keep(handler.handle(payload, cx.clone()).await, &cx) })
        });
        Self { start, transactional: false }
    }

    /// Wraps a handler that borrows the claim's transaction.
    pub(crate) fn transactional<T: Send + 'static, X: Send + 'static>(
        handler: impl TransactionalHandler<T, X>,
    ) -> Self {
        let handler = Arc::new(handler);
        let start: Start = Box::new(move |payload, _, home, cx| match home.lend() {
            Some(transaction) => {
                let (handler, payload) = (Arc::clone(&handler), payload.into_inner());
                Box::pin(async move { to_keep(handler.handle(payload, transaction, cx.clone()).await, &cx) })
            }
            None => Box::pin(ready(Err(Failure::retry(NO_TRANSACTION)))),
        });
        Self { start, transactional: true }
    }

    /// Wraps a function that only writes into the claim's transaction what is to be kept of a message.
    pub(crate) fn storing<T: Send + 'static, X: Send + 'static>(
        note: impl Fn(&T, &Message, &mut X) -> Result<(), HandlerError> + Send + Sync + 'static,
    ) -> Self {
        let note = Arc::new(note);
        let start: Start = Box::new(move |payload, message, home, _| match home.lend::<X>() {
            Some(mut transaction) => {
                let (note, message) = (Arc::clone(&note), message.clone());
                Box::pin(async move {
                    note(payload.get(), &message, &mut transaction)?;
                    Ok(None)
                })
            }
            None => Box::pin(ready(Err(Failure::retry(NO_TRANSACTION)))),
        });
        Self { start, transactional: true }
    }

    /// Returns the handler's run for this message, with the transaction in `home`. No code of the handler runs before it is
    /// polled.
    pub(crate) fn start(
        &self,
        payload: Payload,
        message: &Message,
        home: &TransactionSlot,
        cx: Context,
    ) -> HandlerFuture {
        (self.start)(payload, message, home, cx)
    }
}

/// Converts what a handler returned to what is kept. The work is done, so a result that cannot be kept must not make it look
/// undone.
pub(crate) fn to_keep<R: Serialize>(
    returned: Result<R, HandlerError>,
    cx: &Context,
) -> Result<Option<String>, Failure> {
    Ok(kept(returned?).unwrap_or_else(|why| {
        tracing::error!(consumer = cx.consumer(), message_id = cx.message_id(), attempt = cx.attempt(), reason = %why, "handler's result is left out of the record");
        None
    }))
}

/// Returns a handler's result as it is kept: nothing for `()` and `None`. Else why it cannot be kept.
fn kept<R: Serialize>(result: R) -> Result<Option<String>, String> {
    // Serialising and dropping the result are the user's code.
    let json = caught(move || serde_json::to_string(&result).ok());
    match json {
        Err(_) => Err("writing it as JSON panicked".to_owned()),
        Ok(None) => Err("it cannot be written as JSON".to_owned()),
        Ok(Some(json)) if json == "null" => Ok(None),
        Ok(Some(json)) if json.len() > RESULT_MAX_BYTES => {
            Err(format!("it has {} bytes of JSON, and at most {RESULT_MAX_BYTES} can be kept: return less", json.len()))
        }
        Ok(Some(json)) => Ok(Some(json)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_kept_up_to_its_limit() {
        let text = |bytes: usize| "x".repeat(bytes - 2);
        assert_eq!(kept(text(RESULT_MAX_BYTES)).unwrap().map(|json| json.len()), Some(RESULT_MAX_BYTES));
        let why = kept(text(RESULT_MAX_BYTES + 1)).unwrap_err();
        assert!(why.contains("65537 bytes"), "{why}");
        assert_eq!((kept(()).unwrap(), kept(None::<u8>).unwrap()), (None, None));
        assert_eq!(kept("null").unwrap().as_deref(), Some("\"null\""));
    }

    #[test]
    fn a_result_that_cannot_be_kept_does_not_fail_the_work() {
        /// Whose writing as JSON fails, or panics.
        struct Odd(bool);
        impl Serialize for Odd {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                assert!(!self.0, "on purpose");
                Err(serde::ser::Error::custom("on purpose"))
            }
        }
        let context = Context::for_tests("k").unwrap();
        for panics in [false, true] {
            assert_eq!(to_keep(Ok(Odd(panics)), &context), Ok(None));
        }
    }
}
