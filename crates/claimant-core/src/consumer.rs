//! A consumer: a named handler with its key rule and its settings.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::fingerprint::Fingerprint;
use crate::handler::HandlerError;
use crate::key::{ConsumerName, InvalidValue, Key, RecordId};
use crate::limits;
use crate::message::Message;
use crate::protocol::ClaimPolicy;
use crate::record::bounded;
use crate::store::Store;

type Run = Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send>>;
type KeyRule<T> = Box<dyn Fn(&T) -> String + Send + Sync>;

/// The longest JSON path shown for a body of the wrong shape, in bytes.
const PATH_MAX_BYTES: usize = 200;

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
    handler: Box<dyn Fn(T, Context) -> Run + Send + Sync>,
    key: Option<KeyRule<T>>,
    hashed_keys: bool,
    pub(crate) concurrency: Option<usize>,
    pub(crate) policy: ClaimPolicy,
}

impl<T: DeserializeOwned + Send + 'static> Consumer<T> {
    /// A consumer of JSON bodies of the shape `T`. Its name keeps its keys apart from those of other consumers.
    ///
    /// Without a [`key`](Self::key), the message id is the key: that keeps redeliveries out, but not a second copy
    /// that the producer sent.
    pub fn new<F, Fut>(name: impl Into<String>, store: impl Store, handler: F) -> Self
    where
        F: Fn(T, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), HandlerError>> + Send + 'static,
    {
        Self {
            name: name.into(),
            store: Arc::new(store),
            handler: Box::new(move |payload, cx| Box::pin(handler(payload, cx))),
            key: None,
            hashed_keys: false,
            concurrency: None,
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

    /// Keeps only a SHA-256 of each key in the store, for keys that are personal data.
    #[must_use]
    pub fn hashed_keys(mut self) -> Self {
        self.hashed_keys = true;
        self
    }

    /// How many messages of a batch are worked on at once: 1 to [`limits::CONCURRENCY_MAX`].
    #[must_use]
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = Some(messages);
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
        let outside = |what: &str, value: u64, min: u64, max: u64, unit: &str| {
            (!(min..=max).contains(&value)).then(|| format!("{what} is {value} {unit}; {min} to {max} are allowed"))
        };
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        let (window, skew) = (self.policy.window.as_secs(), millis(self.policy.skew));
        faults.extend(outside("the window", window, limits::WINDOW_MIN_S, limits::WINDOW_MAX_S, "s"));
        faults.extend(outside("the clock skew", skew, 0, limits::SKEW_MAX_MS, "ms"));
        if let Some(n) = self.concurrency {
            // OK because usize is at most 64 bits wide.
            faults.extend(outside("the concurrency", n as u64, 1, limits::CONCURRENCY_MAX as u64, "messages"));
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
        let payload = self.decode(message)?;
        let key = match &self.key {
            None => message.id.as_str().to_owned(),
            Some(rule) => catch_unwind(AssertUnwindSafe(|| rule(&payload)))
                .map_err(|_| Rejection::new("the key rule panicked"))?,
        };
        let key = Key::new(key).map_err(|fault| Rejection(fault.to_string()))?;
        let record_id = if self.hashed_keys { RecordId::hashed(name, &key) } else { RecordId::new(name, &key) };
        Ok(Identity { record_id, key, fingerprint: fingerprint(&message.body) })
    }

    /// The handler's run for this message; nothing happens until it is polled.
    pub(crate) fn run(&self, message: &Message, cx: Context) -> Result<Run, Rejection> {
        let payload = self.decode(message)?;
        catch_unwind(AssertUnwindSafe(|| (self.handler)(payload, cx)))
            .map_err(|_| Rejection::new("the handler panicked before it returned a future"))
    }

    fn decode(&self, message: &Message) -> Result<T, Rejection> {
        catch_unwind(|| decode_json(&message.body))
            .unwrap_or_else(|_| Err(Rejection::new("decoding the body panicked")))
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
pub struct Rejection(pub(crate) String);

impl Rejection {
    pub(crate) fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Rejection {}

/// A body that decoded into `T` is JSON, so its fingerprint is that of the JSON value.
fn fingerprint(body: &str) -> Fingerprint {
    serde_json::from_str(body).map_or_else(|_| Fingerprint::of_bytes(body.as_bytes()), |v| Fingerprint::of_json(&v))
}

fn decode_json<T: DeserializeOwned>(body: &str) -> Result<T, Rejection> {
    let mut json = serde_json::Deserializer::from_str(body);
    let payload = serde_path_to_error::deserialize(&mut json).map_err(|e| {
        let path = e.path().to_string();
        describe(e.inner(), &path)
    })?;
    json.end().map_err(|e| describe(&e, "."))?;
    Ok(payload)
}

/// serde's own messages quote the offending value, so they are not passed on; its "missing field" names only a
/// field of `T`.
fn describe(error: &serde_json::Error, path: &str) -> Rejection {
    let at = format!("line {} column {}", error.line(), error.column());
    if !error.is_data() {
        return Rejection(format!("the body is not valid JSON, or is nested deeper than 128 ({at})"));
    }
    let path = bounded(path, PATH_MAX_BYTES).escape_debug();
    let text = error.to_string();
    let missing = text
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next())
        .map(|field| format!("field `{field}` is missing"))
        .unwrap_or_else(|| "the value has the wrong type or form".to_owned());
    Rejection(format!("the body has the wrong shape at JSON path {path}: {missing} ({at})"))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its shape matters")]
    struct Order {
        order_id: String,
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only its shape matters")]
    struct Item {
        quantity: u32,
    }

    #[test]
    fn a_bad_body_is_described_by_place_and_never_quoted() {
        let deep = format!(r#"{{"order_id":"secret","items":[],"more":{}"#, "[".repeat(10_000));
        let cases = [
            ("secret", "not valid JSON, or is nested deeper than 128 (line 1 column 1)"),
            ("", "not valid JSON"),
            (deep.as_str(), "not valid JSON"),
            (r#"{"order_id":"secret","items":[]} secret"#, "not valid JSON"),
            (r#"{"order_id":"secret","items":[{"quantity":"secret"}]}"#, "at JSON path items[0].quantity"),
            (r#"{"order_id":"secret"}"#, "field `items` is missing"),
            (r#"["secret"]"#, "wrong shape"),
            ("\u{0}secret", "not valid JSON"),
        ];
        for (body, wanted) in cases {
            let rejection = decode_json::<Order>(body).unwrap_err().to_string();
            assert!(rejection.contains(wanted), "{rejection}");
            assert!(!rejection.contains("secret"), "{rejection}");
        }
        assert!(decode_json::<Order>(r#"{"order_id":"a","items":[{"quantity":1}],"more":0}"#).is_ok());
    }
}
