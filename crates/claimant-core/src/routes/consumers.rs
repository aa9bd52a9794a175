//! Several consumers in one function, and which messages each of them gets.

use std::fmt;
use std::sync::Arc;

use super::select::Selector;
use crate::consumer::Consumer;
use crate::definition::Definition;
use crate::envelope::Envelope;
use crate::identity::Identified;
use crate::key::{MessageId, RecordId};
use crate::message::Message;
use crate::spans::Spans;
use crate::store::Before;

/// One consumer, or several behind [`Routes`]: what a function runs.
pub struct Consumers {
    pub(crate) node: Node,
    pub(crate) spans: Option<Arc<dyn Spans>>,
}

pub(crate) enum Node {
    One(Box<Definition>),
    Several(Routes),
}

impl Consumers {
    /// Sets the tracing system that is told of each message, of the steps that it takes and of how it ends. What one of several
    /// consumers was given is for all of them: the first.
    #[must_use]
    pub fn spans(mut self, spans: impl Spans) -> Self {
        self.spans = Some(Arc::new(spans));
        self
    }

    /// Puts something before the store of each consumer, whose name it gets, with the store to pass calls on to: for tests that let
    /// calls fail.
    #[doc(hidden)]
    #[must_use]
    pub fn behind(mut self, before: Before<'_>) -> Self {
        self.each(&mut |consumer| consumer.store = before(&consumer.name, Arc::clone(&consumer.store)));
        self
    }

    /// Calls this with each message whose record is known, or event in one, at each delivery, claimed or not: for tests that look at records.
    #[doc(hidden)]
    #[must_use]
    pub fn identified(mut self, note: impl Fn(&MessageId, &RecordId) + Send + Sync + 'static) -> Self {
        let note: Identified = Arc::new(note);
        self.each(&mut |consumer| consumer.reader.identity.identified = Some(Arc::clone(&note)));
        self
    }

    fn each(&mut self, change: &mut dyn FnMut(&mut Definition)) {
        match &mut self.node {
            Node::One(consumer) => change(consumer),
            Node::Several(routes) => {
                routes.routes.iter_mut().for_each(|(_, consumers)| consumers.each(change));
                for other in &mut routes.other {
                    if let Other::Take(consumers) = other {
                        consumers.each(change);
                    }
                }
            }
        }
    }
}

/// Which consumer gets which messages: by the value of an attribute, of a JSON field, of what an envelope says, or by queue. Each
/// consumer has its own payload type, handler, store and settings, and its own numbers in logs and metrics.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, HandlerError, Routes, memory::MemoryStore};
///
/// #[derive(serde::Deserialize)]
/// struct Placed { order_id: String }
///
/// #[derive(serde::Deserialize)]
/// struct Cancelled { order_id: String, reason: String }
///
/// async fn confirm(_: Placed, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// async fn refund(_: Cancelled, _: Context) -> Result<(), HandlerError> { Ok(()) }
///
/// let routes = Routes::by_field("type")
///     .on("OrderPlaced", Consumer::new("order-confirmation", MemoryStore::new(), confirm).key(|order| &order.order_id))
///     .on("OrderCancelled", Consumer::new("order-refund", MemoryStore::new(), refund).key(|order| &order.order_id));
/// ```
///
/// **A message that no route takes is rejected**: it goes to the dead-letter queue as a body does that cannot be decoded. Two
/// builder calls say otherwise, of which routes take one: [`otherwise`](Self::otherwise), [`acknowledge_unknown`](Self::acknowledge_unknown). Neither is for a
/// message whose value is not known, since the rule panicked or the field is there twice: it is rejected.
///
/// **The order of a FIFO group holds across routes**: a message is started when all earlier ones of its group have succeeded,
/// whichever consumers they were for. If one did not, the later ones are blocked.
///
/// Routes can lead to routes: by queue first, and by kind in one of them. The builder checks nothing: all faults of all consumers
/// and routes are returned in one error when the function starts.
pub struct Routes {
    pub(crate) envelopes: Vec<Box<dyn Envelope>>,
    pub(crate) by: Selector,
    pub(crate) routes: Vec<(Vec<String>, Consumers)>,
    /// What was said of it: once at most, or it does not start.
    pub(crate) other: Vec<Other<Consumers>>,
    spans: Option<Arc<dyn Spans>>,
}

/// What becomes of a message that no route takes, where it is not rejected.
pub(crate) enum Other<T> {
    Acknowledge,
    Take(Box<T>),
}

impl Routes {
    fn new(by: Selector) -> Self {
        Self { envelopes: Vec::new(), by, routes: Vec::new(), other: Vec::new(), spans: None }
    }

    /// Returns routes by this [attribute](Message::attribute): a text or a number. No route takes a binary one.
    #[must_use]
    pub fn by_attribute(name: impl Into<String>) -> Self {
        Self::new(Selector::Attribute(name.into()))
    }

    /// Returns routes by the [kind](crate::Event::kind) that an envelope says. Add the [`envelope`](Self::envelope) here, and not to
    /// each consumer: it is opened once, and what is in it is routed.
    #[must_use]
    pub fn by_kind() -> Self {
        Self::new(Selector::Kind)
    }

    /// Returns routes by a field of the JSON body: its name, or a path through objects such as `detail.type`. A text, a whole number
    /// or a truth value. No route takes a body with another value there, or that is not JSON; one that has the field twice is rejected. The
    /// consumer's decoder reads the body once more.
    #[must_use]
    pub fn by_field(path: impl AsRef<str>) -> Self {
        Self::new(Selector::Field(path.as_ref().split('.').map(str::to_owned).collect()))
    }

    /// Returns routes by the queue that a message comes from: its name, or its ARN.
    #[must_use]
    pub fn by_queue() -> Self {
        Self::new(Selector::Queue)
    }

    /// Returns routes by what this rule finds in a message; `None` if that has no value. It must not block. A panic in it rejects
    /// the message alone, also with [`otherwise`](Self::otherwise).
    #[must_use]
    pub fn by(rule: impl Fn(&Message) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::new(Selector::Rule(Box::new(rule)))
    }

    /// Sets what messages are wrapped in before they are routed; otherwise as [`Consumer::envelope`]. A message of several events is
    /// done when all of them are, whichever consumers they are for.
    #[must_use]
    pub fn envelope(mut self, envelope: impl Envelope) -> Self {
        self.envelopes.push(Box::new(envelope));
        self
    }

    /// Adds a route: messages with this value, or one of these, are for this consumer. A value that ends in `*` stands for all that
    /// begin with what is before; an exact one comes first, then the longest beginning.
    #[must_use]
    pub fn on(mut self, values: impl Into<Values>, consumers: impl Into<Consumers>) -> Self {
        let consumers = consumers.into();
        self.spans = self.spans.or_else(|| consumers.spans.clone());
        self.routes.push((values.into().0, consumers));
        self
    }

    /// Sets which consumer gets all that no route takes: with another value, with none, or with one that cannot be a route's, such as a
    /// binary attribute, an object, or a body that is not JSON. A message whose value is not known, since the rule panicked or the field is
    /// there twice, is rejected all the same: it may be for one of the routes.
    #[must_use]
    pub fn otherwise(mut self, consumers: impl Into<Consumers>) -> Self {
        let consumers = consumers.into();
        self.spans = self.spans.or_else(|| consumers.spans.clone());
        self.other.push(Other::Take(Box::new(consumers)));
        self
    }

    /// Acknowledges messages with a value that no route has: they are deleted without any work, counted and logged as `ignored`. For
    /// queues that also carry what is meant for others. A message without a value is rejected all the same.
    #[must_use]
    pub fn acknowledge_unknown(mut self) -> Self {
        self.other.push(Other::Acknowledge);
        self
    }
}

/// The values of a route: a text, or several.
#[derive(Debug, Clone)]
pub struct Values(Vec<String>);

impl From<&str> for Values {
    fn from(value: &str) -> Self {
        Self(vec![value.to_owned()])
    }
}

impl From<String> for Values {
    fn from(value: String) -> Self {
        Self(vec![value])
    }
}

impl<V: Into<String>, const N: usize> From<[V; N]> for Values {
    fn from(values: [V; N]) -> Self {
        Self(values.into_iter().map(Into::into).collect())
    }
}

impl<V: Into<String>> From<Vec<V>> for Values {
    fn from(values: Vec<V>) -> Self {
        Self(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Send + 'static> From<Consumer<T>> for Consumers {
    fn from(consumer: Consumer<T>) -> Self {
        Self { node: Node::One(Box::new(consumer.definition)), spans: None }
    }
}

impl From<Routes> for Consumers {
    fn from(mut routes: Routes) -> Self {
        let spans = routes.spans.take();
        Self { node: Node::Several(routes), spans }
    }
}

impl fmt::Debug for Consumers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Node::One(_) => f.write_str("Consumer"),
            Node::Several(routes) => routes.fmt(f),
        }
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.routes.iter().map(|(values, _)| values).collect();
        f.debug_struct("Routes").field("by", &self.by.to_string()).field("on", &values).finish_non_exhaustive()
    }
}
