//! A consumer: a named handler with its key rule and its settings.

use std::error::Error as StdError;
use std::fmt;
use std::future::{Future, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::decode::{decode_json, of_body};
use crate::fingerprint::Fingerprint;
use crate::handler::{Failure, HandlerError};
use crate::key::{ConsumerName, InvalidValue, Key, RecordId};
use crate::limits;
use crate::message::Message;
use crate::protocol::{Abandoned, ClaimPolicy, Conflicts};
use crate::record::RESULT_MAX_BYTES;
use crate::store::Store;
use crate::transaction::{Home, Lent, Transactional};

/// A handler's run: what it gives is the result to keep, as JSON.
pub(crate) type Run = Pin<Box<dyn Future<Output = Result<Option<String>, Failure>> + Send>>;
type Handler<T> = Box<dyn Fn(T, &Message, &Home, Context) -> Run + Send + Sync>;
type KeyRule<T> = Box<dyn Fn(&T) -> String + Send + Sync>;
type FingerprintRule<T> = Box<dyn Fn(&T) -> Fingerprint + Send + Sync>;
type DuplicateHook = Box<dyn Fn(&Duplicate<'_>) + Send + Sync>;

/// A store that is not as its type says.
const NO_TRANSACTION: &str = "the store gave the claim no transaction";

/// A duplicate of finished work, as shown to [`Consumer::on_duplicate`].
#[derive(Debug)]
pub struct Duplicate<'a> {
    /// The key of the work.
    pub key: &'a str,
    /// The id of the message that is the duplicate.
    pub message_id: &'a str,
    /// What the handler returned when it did the work, if it was kept: JSON. `None` also where it was too large to keep.
    pub result: Option<&'a str>,
}

/// How long a claim is honoured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lease {
    /// Until the invocation's deadline and a second more: no renewals, no extra requests.
    #[default]
    UntilDeadline,
    /// For this long, renewed three times in each of it while the handler runs. A key whose owner died is claimable soon.
    /// Each renewal is a request to the store and one to the queue, which hides the message for as long again and the
    /// [clock skew](Consumer::clock_skew), whatever the queue's own visibility timeout is. Copies of the work, under other message ids, come back after as long as an
    /// invocation can last.
    Renewed(Duration),
}

/// A named handler with its key rule and its settings.
///
/// ```
/// use claimant_core::{Consumer, Context, HandlerError, MemoryStore};
///
/// #[derive(serde::Deserialize)]
/// struct Order { order_id: String }
///
/// async fn confirm(order: Order, cx: Context) -> Result<(), HandlerError> {
///     println!("confirming, attempt {}", cx.attempt());
///     Ok(())
/// }
///
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
///     .key(|order: &Order| &order.order_id);
/// ```
pub struct Consumer<T> {
    name: String,
    pub(crate) store: Arc<dyn Store>,
    handler: Handler<T>,
    /// Whether the handler borrows what its claims carry.
    pub(crate) transactional: bool,
    key: Option<KeyRule<T>>,
    fingerprint: Option<(u32, FingerprintRule<T>)>,
    hashed_keys: bool,
    on_duplicate: Option<DuplicateHook>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) expected: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempts_max: Option<u32>,
    pub(crate) lease: Lease,
    pub(crate) policy: ClaimPolicy,
}

impl<T: DeserializeOwned + Send + 'static> Consumer<T> {
    /// A consumer of JSON bodies of the shape `T`. Its name keeps its keys apart from those of other consumers.
    ///
    /// What the handler returns, unless it is `()` or `None`, is kept on the record as JSON, at most
    /// [`RESULT_MAX_BYTES`] of it. A larger result, or one that cannot be written as JSON, is left out, with an error in
    /// the logs: the work is done, so its key is completed, and its duplicates see no result.
    ///
    /// Without a [`key`](Self::key), the message id is the key: that keeps redeliveries out, but not a second copy
    /// that the producer sent, nor a message that is redriven from a dead-letter queue, which gives it a new id.
    pub fn new<F, Fut, R>(name: impl Into<String>, store: impl Store, handler: F) -> Self
    where
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Serialize,
    {
        let handler: Handler<T> = Box::new(move |payload, _, _, cx| as_run(handler(payload, cx.clone()), cx));
        Self::with_handler(name.into(), Arc::new(store), handler, false)
    }

    /// A consumer whose handler is lent a transaction of its store: what it does with that and the completion of its key are
    /// there together, exactly once, or neither is, whatever is killed or lost in between. What it does besides is as
    /// for [`new`](Self::new): done again where the commit did not come through.
    ///
    /// The handler neither commits nor rolls back: it returns `Ok` or an error. Results, keys and the rest are as for
    /// [`new`](Self::new).
    pub fn transactional<S, F, Fut, R>(name: impl Into<String>, store: S, handler: F) -> Self
    where
        S: Transactional,
        F: Fn(T, Lent<S::Transaction>, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, HandlerError>> + Send + 'static,
        R: Serialize,
    {
        let handler: Handler<T> = Box::new(move |payload, _, home, cx| match home.lend() {
            Some(transaction) => as_run(handler(payload, transaction, cx.clone()), cx),
            None => Box::pin(ready(Err(Failure::retry(NO_TRANSACTION)))),
        });
        Self::with_handler(name.into(), Arc::new(store), handler, true)
    }

    /// A consumer that runs nothing: its store keeps the messages themselves, such as an inbox does. `note` writes into the
    /// claim's transaction what is to be kept of a message, and the completion of the claim stores it. It must not block.
    pub fn storing<S, F>(name: impl Into<String>, store: S, note: F) -> Self
    where
        S: Transactional,
        F: Fn(&T, &Message, &mut S::Transaction) -> Result<(), HandlerError> + Send + Sync + 'static,
    {
        let handler: Handler<T> = Box::new(move |payload, message, home, _| {
            let noted = match home.lend::<S::Transaction>() {
                Some(mut transaction) => note(&payload, message, &mut transaction).map_err(Failure::from),
                None => Err(Failure::retry(NO_TRANSACTION)),
            };
            Box::pin(ready(noted.map(|()| None)))
        });
        Self::with_handler(name.into(), Arc::new(store), handler, true)
    }

    fn with_handler(name: String, store: Arc<dyn Store>, handler: Handler<T>, transactional: bool) -> Self {
        Self {
            name,
            store,
            handler,
            transactional,
            key: None,
            fingerprint: None,
            hashed_keys: false,
            on_duplicate: None,
            concurrency: None,
            expected: None,
            timeout: None,
            attempts_max: None,
            lease: Lease::default(),
            policy: ClaimPolicy::default(),
        }
    }

    /// Where the key is in the payload. An empty key rejects the message.
    #[must_use]
    pub fn key(mut self, rule: impl for<'a> Fn(&'a T) -> &'a str + Send + Sync + 'static) -> Self {
        self.key = Some(Box::new(move |payload| rule(payload).to_owned()));
        self
    }

    /// How the key is made from the payload, where it is not one string in it.
    #[must_use]
    pub fn key_of(mut self, rule: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        self.key = Some(Box::new(rule));
        self
    }

    /// What of the payload must be the same in two messages of one key. Unless set, all of the body: where a producer's
    /// second copy differs in a time stamp, say, leave that out here, or both copies are a conflict.
    ///
    /// `version` is of the rule: 1 for the first one, and another number whenever it gives another fingerprint for the same
    /// payload (another field, another order, another format). It is kept with the fingerprint, and only fingerprints of
    /// the same version are compared: with work that an earlier version recorded, or none, the key alone decides, as
    /// with [`Conflicts::Ignore`]. A rule that is changed under its old number makes a conflict of each key that is in
    /// retry, and of each late copy.
    ///
    /// ```
    /// # use claimant_core::{Consumer, Context, Fingerprint, HandlerError, MemoryStore};
    /// # #[derive(serde::Deserialize)]
    /// # struct Order { order_id: String, total_cents: u64 }
    /// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
    ///     .key(|order: &Order| &order.order_id)
    ///     .fingerprint_of(1, |order| Fingerprint::of_bytes(&order.total_cents.to_be_bytes()));
    /// ```
    #[must_use]
    pub fn fingerprint_of(mut self, version: u32, rule: impl Fn(&T) -> Fingerprint + Send + Sync + 'static) -> Self {
        self.fingerprint = Some((version, Box::new(rule)));
        self
    }

    /// Keeps only a SHA-256 of each key in the store, for keys that are personal data.
    #[must_use]
    pub fn hashed_keys(mut self) -> Self {
        self.hashed_keys = true;
        self
    }

    /// Called for each duplicate of finished work, with what the handler returned then. It must not block; what it
    /// does is not part of any guarantee.
    #[must_use]
    pub fn on_duplicate(mut self, hook: impl Fn(&Duplicate<'_>) + Send + Sync + 'static) -> Self {
        self.on_duplicate = Some(Box::new(hook));
        self
    }

    /// How many messages this process works on at once, in all invocations of its engine: 1 to [`limits::CONCURRENCY_MAX`].
    #[must_use]
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = Some(messages);
        self
    }

    /// How long the handler takes: a message is started only if that much time is left. Unless set, it is learned from
    /// this process's own runs. At most [`limits::LEASE_MAX_MS`].
    #[must_use]
    pub fn expected(mut self, duration: Duration) -> Self {
        self.expected = Some(duration);
        self
    }

    /// How long the handler may take before it is cancelled and the message tried again: 1 to
    /// [`limits::LEASE_MAX_MS`]. Unless set, until the invocation's time is over.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How often a key may be claimed for its handler to run, at least once; the message is then rejected. A claim whose
    /// owner died counts, run or not. The count is the key's, not the message's, so a redrive does not reset it as it does
    /// the queue's own. Once the key is rejected, a message with another id, such as a redriven one, starts with as many
    /// fresh attempts.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = Some(attempts);
        self
    }

    /// How long a claim is honoured. A renewed lease lasts [`limits::LEASE_MIN_MS`] to [`limits::LEASE_MAX_MS`].
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.lease = lease;
        self
    }

    /// Never runs work again that may be done: whose owner died, whose handler panicked, was cancelled or timed out, or
    /// said [`HandlerError::uncertain`]. It is parked for a person to decide. What the handler reports failed by
    /// [`HandlerError::retry`] or `?` is tried again, so a handler must say `uncertain` of everything that can go wrong
    /// after its request may have arrived. For effects that must not be repeated and whose system cannot recognise a
    /// repeat. Needs a store whose claims [outlive their owners](Store::claims_outlive_owners), and a [`key`](Self::key)
    /// from the payload: a redrive gives a message a new id, and under the id as the key its parked work would run again.
    #[must_use]
    pub fn at_most_once(mut self) -> Self {
        self.policy.abandoned = Abandoned::Park;
        self
    }

    /// What becomes of a message whose key belongs to work with another payload: by default it is rejected.
    #[must_use]
    pub fn conflicts(mut self, conflicts: Conflicts) -> Self {
        self.policy.conflicts = conflicts;
        self
    }

    /// For how long a finished key keeps duplicates out (default 15 days). A whole number of seconds,
    /// [`limits::WINDOW_MIN_S`] to [`limits::WINDOW_MAX_S`].
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.policy.window = window;
        self
    }

    /// By how much the clocks of two hosts may differ (default 1 s), at most [`limits::SKEW_MAX_MS`].
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.policy.skew = skew;
        self
    }

    /// Everything that is wrong with the settings, in words.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Err(fault) = ConsumerName::new(self.name.as_str()) {
            faults.push(fault.to_string());
        }
        if self.policy.abandoned == Abandoned::Park && !self.store.claims_outlive_owners() {
            faults.push(
                "at most once needs a store whose claims outlive their owners, and this one's end with the process: do the work \
                 in the transaction and leave at_most_once away, or use a store without transactions"
                    .to_owned(),
            );
        }
        if self.policy.abandoned == Abandoned::Park && self.key.is_none() {
            faults.push(
                "at most once needs a key from the payload: a message that is redriven from a dead-letter queue has a new message \
                 id, so that under the id as the key its parked work would run again; add .key(…) or .key_of(…)"
                    .to_owned(),
            );
        }
        if self.fingerprint.as_ref().is_some_and(|(version, _)| *version == 0) {
            faults.push(
                "the version of the fingerprint rule is 0, which stands for the whole body: count from 1".to_owned(),
            );
        }
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let lease = match self.lease {
            Lease::UntilDeadline => None,
            Lease::Renewed(lease) => Some(millis(lease)),
        };
        // OK because usize is at most 64 bits wide.
        let concurrency = self.concurrency.map(|n| n as u64);
        let concurrency_max = limits::CONCURRENCY_MAX as u64;
        let bounds = [
            ("the window", Some(self.policy.window.as_secs()), limits::WINDOW_MIN_S, limits::WINDOW_MAX_S, "s"),
            ("the clock skew", Some(millis(self.policy.skew)), 0, limits::SKEW_MAX_MS, "ms"),
            ("the concurrency", concurrency, 1, concurrency_max, "messages"),
            ("the expected duration", self.expected.map(millis), 0, limits::LEASE_MAX_MS, "ms"),
            ("the time-out", self.timeout.map(millis), 1, limits::LEASE_MAX_MS, "ms"),
            ("the limit of attempts", self.attempts_max.map(u64::from), 1, u32::MAX.into(), "attempts"),
            ("the lease", lease, limits::LEASE_MIN_MS, limits::LEASE_MAX_MS, "ms"),
        ];
        for (what, value, min, max, unit) in bounds {
            if let Some(value) = value.filter(|v| !(min..=max).contains(v)) {
                faults.push(format!("{what} is {value} {unit}; {min} to {max} are allowed"));
            }
        }
        faults
    }

    /// The consumer's name.
    ///
    /// # Errors
    /// When it is not a name.
    pub(crate) fn checked_name(&self) -> Result<ConsumerName, InvalidValue> {
        ConsumerName::new(self.name.as_str())
    }

    /// What the message's work is, without running it.
    pub(crate) fn identify(&self, name: &ConsumerName, message: &Message) -> Result<Identity, Rejection> {
        // Decoding, the rules and the payload's drop are the user's code: a panic in them rejects this message alone.
        let (key, fingerprint) = catch_unwind(AssertUnwindSafe(|| {
            let payload = decode_json(&message.body)?;
            let key = self.key.as_ref().map_or_else(|| message.id.as_str().to_owned(), |rule| rule(&payload));
            let fingerprint = match &self.fingerprint {
                None => of_body(&message.body),
                Some((version, rule)) => rule(&payload).of_rule(*version),
            };
            Ok((key, fingerprint))
        }))
        .unwrap_or_else(|_| Err(Rejection::new("decoding the body or finding its key panicked")))?;
        let key = Key::new(key).map_err(|fault| Rejection::new(fault.to_string()))?;
        let record_id = if self.hashed_keys { RecordId::hashed(name, &key) } else { RecordId::new(name, &key) };
        Ok(Identity { record_id, key, fingerprint })
    }

    /// The handler's run for this message, with the transaction in `home`; nothing happens until it is polled.
    pub(crate) fn run(&self, message: &Message, home: &Home, cx: Context) -> Result<Run, Rejection> {
        catch_unwind(AssertUnwindSafe(|| Ok((self.handler)(decode_json(&message.body)?, message, home, cx))))
            .unwrap_or_else(|_| Err(Rejection::new("the handler panicked before it returned a future")))
    }

    /// Shows a duplicate to the hook, if there is one. A hook that panics changes nothing.
    pub(crate) fn show_duplicate(&self, duplicate: &Duplicate<'_>) {
        if let Some(hook) = &self.on_duplicate {
            // The panic hook has logged it.
            let _ = catch_unwind(AssertUnwindSafe(|| hook(duplicate)));
        }
    }
}

/// A handler's future with its result as it is kept.
fn as_run<R: Serialize>(run: impl Future<Output = Result<R, HandlerError>> + Send + 'static, cx: Context) -> Run {
    Box::pin(async move {
        let result = run.await.map_err(Failure::from)?;
        // The work is done, so what is wrong with its result must not make it look as if it were not.
        Ok(kept(result).unwrap_or_else(|why| {
            tracing::error!(consumer = cx.consumer(), message_id = cx.message_id(), attempt = cx.attempt(), reason = %why, "handler's result is left out of the record");
            None
        }))
    })
}

/// A handler's result as it is kept: nothing for `()` and `None`. Else why it cannot be kept.
fn kept<R: Serialize>(result: R) -> Result<Option<String>, String> {
    // Serialising and dropping the result are the user's code.
    let json = catch_unwind(AssertUnwindSafe(move || serde_json::to_string(&result).ok()));
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

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("name", &self.name).field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// What a message's work is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) record_id: RecordId,
    pub(crate) key: Key,
    pub(crate) fingerprint: Fingerprint,
}

/// Why a message is rejected: what is wrong and where in the body, never what the body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    why: String,
    conflict: bool,
}

impl Rejection {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), conflict: false }
    }

    pub(crate) fn conflict() -> Self {
        Self { conflict: true, ..Self::new("its key belongs to work with another payload") }
    }

    /// Whether its key belongs to work with another payload.
    #[must_use]
    pub const fn is_conflict(&self) -> bool {
        self.conflict
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl StdError for Rejection {}

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

    #[tokio::test]
    async fn a_result_that_cannot_be_kept_does_not_fail_the_work() {
        /// Whose writing as JSON fails, or panics.
        struct Odd(bool);
        impl Serialize for Odd {
            fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
                assert!(!self.0, "on purpose");
                Err(serde::ser::Error::custom("on purpose"))
            }
        }
        for panics in [false, true] {
            let context = Context::new(crate::context::Run {
                consumer: ConsumerName::new("c").unwrap(),
                key: Key::new("k").unwrap(),
                fence: crate::Fence::FIRST,
                attempt: 1,
                message_id: crate::MessageId::new("m").unwrap(),
                receive_count: 1,
                trace: None,
                cancelled_at: tokio::time::Instant::now(),
            });
            assert_eq!(as_run(async move { Ok(Odd(panics)) }, context).await, Ok(None));
        }
    }
}
