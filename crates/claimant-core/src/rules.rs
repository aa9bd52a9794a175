//! The rules of a consumer: what its keys, fingerprints and tenants are made of.

use std::fmt::Display;

use crate::consumer::Consumer;
use crate::fingerprint::Fingerprint;
use crate::message::Message;
use crate::rejection::Rejection;

impl<T: Send + 'static> Consumer<T> {
    /// Sets where the key is in the payload: a text, a number, or anything else with a `Display`, by reference. A key that is made of
    /// several parts, or by a method that returns a value, goes to [`key_of`](Self::key_of). A key that is empty, or longer
    /// than [`KEY_MAX_BYTES`](crate::key::KEY_MAX_BYTES), rejects the message. A field that is missing in a
    /// `serde_json::Value` is `null`, a key that all messages without it share: decode to a type of your own that requires it.
    #[must_use]
    pub fn key<K>(mut self, rule: impl for<'a> Fn(&'a T) -> &'a K + Send + Sync + 'static) -> Self
    where
        K: Display + ?Sized,
    {
        self.definition.reader.identity.set_key(move |payload: &T, _| Ok(rule(payload).to_string()));
        self
    }

    /// Sets how the key is made from the payload, where it is not one value in it. Otherwise as [`key`](Self::key).
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # #[derive(serde::Deserialize)]
    /// # struct Line { order: u64, article: u64 }
    /// # async fn pack(_: Line, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
    ///     .key_of(|line| format!("{}/{}", line.order, line.article));
    /// ```
    #[must_use]
    pub fn key_of<K: Display>(mut self, rule: impl Fn(&T) -> K + Send + Sync + 'static) -> Self {
        self.definition.reader.identity.set_key(move |payload: &T, _| Ok(rule(payload)));
        self
    }

    /// Takes the key from this attribute of the message, or of the event in it: a text or a number, as it was sent. A message
    /// without it, or whose attribute is binary, is rejected. Otherwise as [`key`](Self::key).
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, decode::Text, memory::MemoryStore};
    /// # async fn print(_: String, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = claimant::decoded_by(Text).consumer("printing", MemoryStore::new(), print).key_of_attribute("page_id");
    /// ```
    #[must_use]
    pub fn key_of_attribute(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.definition.reader.identity.set_key(move |_: &T, message| Ok(message.require_sent(&name)?.to_owned()));
        self
    }

    /// Sets how the key is made from the payload and the message: its attributes, and what its envelopes say. An error rejects the
    /// message. Otherwise as [`key`](Self::key). What changes when a producer sends again (the message's id, times, receive counts) makes
    /// no key. Nor does a word in the place of what is missing, since all messages without it would share a key: return an error.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
    ///     .key_of_message(|order, message| Ok(format!("{}/{order}", message.attributes().require_text("tenant")?)));
    /// ```
    #[must_use]
    pub fn key_of_message<K: Display>(
        mut self,
        rule: impl Fn(&T, &Message) -> Result<K, Rejection> + Send + Sync + 'static,
    ) -> Self {
        self.definition.reader.identity.set_key(rule);
        self
    }

    /// Sets which part of the payload must be the same in two messages with one key. Unless set, the whole body: if a producer's
    /// second copy differs, for example in a timestamp, leave that out here, or the second copy is a conflict.
    ///
    /// `version` is the rule's: 1 for the first one, and another number whenever it returns another fingerprint for the same
    /// payload (another field, another order, another format). It is kept with the fingerprint, and only fingerprints of
    /// the same version are compared: with work that an earlier version recorded, or none, the key alone decides, as
    /// with [`Conflicts::Ignore`](crate::Conflicts::Ignore). A rule that is changed under its old number makes a conflict of each key that is in
    /// retry, and of each late copy.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, Fingerprint, HandlerError, memory::MemoryStore};
    /// # #[derive(serde::Deserialize)]
    /// # struct Order { order_id: String, total_cents: u64 }
    /// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
    ///     .key(|order| &order.order_id)
    ///     .fingerprint_of(1, |order| Fingerprint::of_bytes(&order.total_cents.to_be_bytes()));
    /// ```
    #[must_use]
    pub fn fingerprint_of(mut self, version: u32, rule: impl Fn(&T) -> Fingerprint + Send + Sync + 'static) -> Self {
        self.definition.reader.identity.set_fingerprint(version, rule);
        self
    }

    /// Sets where it is in the payload whose work a message is: a shop, an account, a customer. Where messages have to wait, for a free
    /// slot or for the [`limit`](Self::limit), these tenants take turns: the next message is of the one with the fewest in hand in this
    /// process, so one with ten thousand messages or slow ones holds up no other one that is in the batch. What is on its last
    /// receive comes first, whose ever it is. Without a rule, messages go in their order.
    ///
    /// Which messages a process receives is up to the queue: its own fairness (`MessageGroupId` on a standard queue) goes well with this
    /// one. The tenant is kept nowhere.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # #[derive(serde::Deserialize)]
    /// # struct Order { order_id: String, shop: String }
    /// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
    ///     .key(|order| &order.order_id)
    ///     .tenant(|order| &order.shop);
    /// ```
    #[must_use]
    pub fn tenant<K>(mut self, rule: impl for<'a> Fn(&'a T) -> &'a K + Send + Sync + 'static) -> Self
    where
        K: Display + ?Sized,
    {
        self.definition.reader.identity.set_tenant(move |payload: &T, _| rule(payload).to_string());
        self
    }

    /// Sets whose work a message is from the payload and the message, such as its group. Otherwise as [`tenant`](Self::tenant).
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack)
    ///     .key(|order| order)
    ///     .tenant_of_message(|_, message| message.group().unwrap_or("none").to_owned());
    /// ```
    #[must_use]
    pub fn tenant_of_message<K: Display>(mut self, rule: impl Fn(&T, &Message) -> K + Send + Sync + 'static) -> Self {
        self.definition.reader.identity.set_tenant(rule);
        self
    }

    /// Keeps only a SHA-256 of each key in the store, for keys that are personal data. Choose it before the first message: to add or remove it
    /// later makes every message new, since a record is found by the key as it is stored.
    ///
    /// ```
    /// # use claimant_core as claimant;
    /// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
    /// # async fn pack(_: u64, _: Context) -> Result<(), HandlerError> { Ok(()) }
    /// let consumer = Consumer::new("packing", MemoryStore::new(), pack).key(|order| order).hashed_keys();
    /// ```
    #[must_use]
    pub fn hashed_keys(mut self) -> Self {
        self.definition.reader.identity.hashed_keys = true;
        self
    }
}
