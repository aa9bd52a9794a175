//! A message to send.

use std::fmt;
use std::time::Duration;

#[cfg(feature = "scheduler")]
use claimant_aws::sqs::ATTRIBUTES_MAX;
#[cfg(feature = "scheduler")]
use claimant_core::Message;
use claimant_core::own_attributes::is_own;
#[cfg(feature = "scheduler")]
use claimant_core::own_attributes::{CONSUMER, FIRST_MESSAGE_ID, MESSAGE_ID, OUTCOME, RECORD, REDRIVES, SENT_AGAIN_OF};
use claimant_core::trace::continued;
use claimant_core::{AttributeValue, Attributes, Context, Key};

use crate::id;

/// No pointer to a payload is longer, with its attribute.
pub(crate) const POINTER_MAX_BYTES: usize = 512;

/// No longer body is read as a pointer.
const READ_AS_POINTER_MAX_BYTES: usize = 8 * 1024;

/// The attributes that go with a pointer of the SQS Extended Client, of today's and of its first versions.
const OF_POINTERS: [&str; 2] = ["ExtendedPayloadSize", "SQSLargePayloadSize"];

/// What such a pointer begins with, in the same versions.
const POINTERS: [&str; 2] =
    ["software.amazon.payloadoffloading.PayloadS3Pointer", "com.amazon.sqs.javamessaging.MessageS3Pointer"];

/// What a letter left on a message that SQS redrove, and the next letter says of it: the most needed first. Why it was dead is over.
#[cfg(feature = "scheduler")]
const OF_LETTERS: [&str; 6] = [MESSAGE_ID, REDRIVES, OUTCOME, FIRST_MESSAGE_ID, RECORD, CONSUMER];

/// A message to be sent: its business key and its body.
///
/// The key names the piece of work, as the consumer's rule for keys does. Two messages of one key with different bodies are
/// a mistake: a FIFO queue drops the second silently, a consumer reports a conflict.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod producer { pub use claimant_producer::*; } }
/// use std::time::Duration;
///
/// use claimant::producer::Outgoing;
/// use claimant::{AttributeValue, Context, Key};
///
/// fn reminder(order_id: &str, customer: &str, cx: &Context) -> Result<Outgoing, claimant::Error> {
///     Ok(Outgoing::new(Key::new(format!("remind/{order_id}"))?, format!(r#"{{"order_id": "{order_id}"}}"#))
///         .group(customer)
///         .delay(Duration::from_secs(600))
///         .attribute("kind", AttributeValue::text("reminder"))
///         .continuing(cx))
/// }
///
/// reminder("ord-1", "customer-7", &Context::for_tests("ord-1")?)?;
/// # Ok::<_, claimant::Error>(())
/// ```
#[derive(Clone)]
pub struct Outgoing {
    pub(crate) body: String,
    pub(crate) deduplication_id: String,
    pub(crate) group: Option<String>,
    pub(crate) delay: Option<Duration>,
    pub(crate) trace: Option<String>,
    pub(crate) attributes: Attributes,
    /// Whether its body is kept elsewhere, and the message only points to it.
    pub(crate) outside: bool,
}

impl Outgoing {
    /// Returns a message of this key.
    #[must_use]
    pub fn new(key: Key, body: impl Into<String>) -> Self {
        let deduplication_id = id::of(key.as_str());
        let attributes = Attributes::default();
        Self { body: body.into(), deduplication_id, group: None, delay: None, trace: None, attributes, outside: false }
    }

    /// Returns a message that was received, as it was sent: its body, its producer's attributes, group and trace, and the id by which its
    /// work is known. What earlier dead letters left on it comes along as far as there is room.
    ///
    /// For a FIFO queue it is a message of its own: its deduplication id is the id of the one that was received. With its old
    /// deduplication id, such as the hash of its body, SQS would drop the second of two that come back within five minutes.
    #[cfg(feature = "scheduler")]
    pub(crate) fn received(message: &Message) -> Self {
        let received = message.attributes();
        let mut attributes = Attributes::default();
        for (name, value) in received.iter().filter(|(name, _)| !is_own(name)) {
            attributes.set(name, value.clone());
        }
        attributes.set(SENT_AGAIN_OF, AttributeValue::text(message.first_id().as_str()));
        let room = ATTRIBUTES_MAX.saturating_sub(attributes.iter().count());
        for (name, value) in OF_LETTERS.into_iter().filter_map(|name| Some((name, received.get(name)?))).take(room) {
            attributes.set(name, value.clone());
        }
        Self {
            body: message.body().to_owned(),
            deduplication_id: message.id().as_str().to_owned(),
            group: message.group().filter(|group| !group.is_empty()).map(str::to_owned),
            delay: None,
            trace: message.trace_header().and_then(continued),
            attributes,
            outside: false,
        }
    }

    /// Leaves out the least needed of what dead letters left on a message that was [received](Self::received); returns whether there was
    /// anything.
    #[cfg(feature = "scheduler")]
    pub(crate) fn leave_one_out(&mut self) -> bool {
        let is_there = |name: &&str| self.attributes.get(name).is_some();
        let Some(least) = OF_LETTERS.into_iter().rev().find(is_there) else { return false };
        let all = std::mem::take(&mut self.attributes);
        for (name, value) in all.iter().filter(|(name, _)| *name != least) {
            self.attributes.set(name, value.clone());
        }
        true
    }

    /// Sets the message group. On a FIFO queue, messages of a group stay in their order; without this, each key is a group of its
    /// own. On a standard queue, it makes the queue a fair one: a tenant whose messages pile up does not hold up those of
    /// others. Without this there is no group there.
    ///
    /// Any text; one that SQS does not accept as a group id is hashed. Use the same group for a key each time: queues that
    /// deduplicate by group recognise a key only within its group.
    #[must_use]
    pub fn group(mut self, group: impl AsRef<str>) -> Self {
        self.group = Some(id::of(group.as_ref()));
        self
    }

    /// Hides the message from consumers for this long, in whole seconds, rounded up, instead of the queue's own delay: at most
    /// 15 minutes, and on standard queues only. SQS refuses others, and so they are refused before they are sent; a
    /// schedule (`Scheduler`, feature `scheduler`) has neither limit.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// Adds a message attribute, or replaces the one of this name. SQS accepts at most ten.
    ///
    /// Where a handler passes on all attributes that it received, those of the message alone are left out. The nine that claimant itself
    /// writes say which message was sent again, and what became of a dead letter: commands for that message, such as `claimant dead
    /// discard`, would find the new one, too. The size of a large payload is for a body that points to one: a consumer
    /// with `large_payloads` rejects any other.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: AttributeValue) -> Self {
        let name = name.into();
        let of_a_pointer = OF_POINTERS.contains(&name.as_str());
        if !is_own(&name) && (!of_a_pointer || self.is_pointer()) {
            self.attributes.set(name, value);
        }
        self
    }

    /// Sends the message in this trace, as its system attribute `AWSTraceHeader`: `Root=1-…;Parent=…;Sampled=1`, of 256 bytes at
    /// most. One that no consumer would continue is refused. It counts neither as an attribute nor towards the size.
    #[must_use]
    pub fn trace(mut self, header: impl Into<String>) -> Self {
        self.trace = Some(header.into());
        self
    }

    /// Sends the message in the trace of the message that this handler runs for, if that has one that can be continued.
    #[must_use]
    pub fn continuing(mut self, cx: &Context) -> Self {
        self.trace = cx.trace().and_then(continued).or(self.trace);
        self
    }

    /// Returns its body.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Returns the id that a FIFO queue deduplicates it by: its key, or the key's SHA-256 where SQS does not take the key itself.
    #[must_use]
    pub fn deduplication_id(&self) -> &str {
        &self.deduplication_id
    }

    /// Returns whether its body points to a payload: one that was written elsewhere, by the caller.
    pub(crate) fn is_pointer(&self) -> bool {
        let class = self.body.trim_start().strip_prefix('[').map(str::trim_start);
        let class = class.and_then(|rest| rest.strip_prefix('"'));
        let class = class.and_then(|rest| rest.split_once('"')).map(|(class, _)| class);
        self.body.len() <= READ_AS_POINTER_MAX_BYTES && class.is_some_and(|class| POINTERS.contains(&class))
    }

    /// Returns the size that counts towards the limits of SQS: the body, and names, types and values of the attributes.
    pub(crate) fn bytes(&self) -> usize {
        let body = if self.outside { POINTER_MAX_BYTES } else { self.body.len() };
        body + self.attribute_bytes()
    }

    /// Returns what of that its attributes have.
    pub(crate) fn attribute_bytes(&self) -> usize {
        let attribute = |(name, value): (&str, &AttributeValue)| {
            let value_bytes = value.as_sent().map_or_else(|| value.as_bytes().map_or(0, <[u8]>::len), str::len);
            name.len() + value.data_type().len() + value_bytes
        };
        self.attributes.iter().map(attribute).sum()
    }
}

// Bodies and keys are personal data more often than not, and `Debug` ends up in logs.
impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({} bytes)", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::own_attributes::{
        ATTEMPT, CONSUMER, ERROR, FIRST_MESSAGE_ID, MESSAGE_ID, OUTCOME, RECORD, REDRIVES, SENT_AGAIN_OF,
    };

    use super::*;

    const OWN: [&str; 9] =
        [ERROR, OUTCOME, MESSAGE_ID, FIRST_MESSAGE_ID, REDRIVES, RECORD, CONSUMER, ATTEMPT, SENT_AGAIN_OF];

    #[test]
    fn a_message_is_no_copy_of_the_one_whose_attributes_it_has() {
        let pointer = |class: &str| format!("[ \"{class}\", {{}}]");
        let rows: [(String, &[&str]); 7] = [
            ("{}".to_owned(), &["claimant-like", "tenant"]),
            ("[\"tenant\"]".to_owned(), &["claimant-like", "tenant"]),
            (String::new(), &["claimant-like", "tenant"]),
            (pointer(&format!("{}Log", POINTERS[1])), &["claimant-like", "tenant"]),
            (pointer(POINTERS[0]) + &" ".repeat(READ_AS_POINTER_MAX_BYTES), &["claimant-like", "tenant"]),
            (pointer(POINTERS[0]), &["ExtendedPayloadSize", "SQSLargePayloadSize", "claimant-like", "tenant"]),
            (pointer(POINTERS[1]), &["ExtendedPayloadSize", "SQSLargePayloadSize", "claimant-like", "tenant"]),
        ];
        for (body, wanted) in rows {
            let message = Outgoing::new(Key::new("k").unwrap(), body);
            let received = OWN.into_iter().chain(OF_POINTERS).chain(["tenant", "claimant-like"]);
            let message = received.fold(message, |message, name| message.attribute(name, AttributeValue::number(1)));
            let mut left: Vec<_> = message.attributes.iter().map(|(name, _)| name).collect();
            left.sort_unstable();
            assert_eq!(left, wanted, "{}", message.body);
        }
    }

    /// It is of whoever sent the message that is handled, and no reason to fail.
    #[test]
    fn a_trace_that_no_consumer_continues_is_left_out() {
        const ROOT: &str = "Root=1-5759e988-bd862e3fe1be46a994272793";
        for (received, wanted) in [
            (format!("{ROOT};Self=x"), Some(ROOT)),
            (format!("{ROOT};Parent=;Sampled=1"), None),
            (format!("{ROOT};Lineage={}", "x".repeat(256)), None),
        ] {
            let message = claimant_core::Message::new("m", "{}").unwrap().with_trace(&received);
            #[cfg(feature = "scheduler")]
            assert_eq!(Outgoing::received(&message).trace.as_deref(), wanted, "{received}");
            let cx = Context::for_tests("k").unwrap().with_message(message);
            let outgoing = Outgoing::new(Key::new("k").unwrap(), "{}").continuing(&cx);
            assert_eq!(outgoing.trace.as_deref(), wanted, "{received}");
        }
    }

    /// By OpenTelemetry's own attribute, as it is sent directly or by SNS with raw delivery.
    #[test]
    fn the_trace_of_an_attribute_is_continued() {
        let traceparent = AttributeValue::text("00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01");
        let message = claimant_core::Message::new("m", "{}").unwrap().with_attribute("traceparent", traceparent);
        #[cfg(feature = "scheduler")]
        assert_eq!(Outgoing::received(&message).trace, None, "it is sent as it was received");
        let cx = Context::for_tests("k").unwrap().with_message(message);
        let outgoing = Outgoing::new(Key::new("k").unwrap(), "{}").continuing(&cx);
        let wanted = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        assert_eq!(outgoing.trace.as_deref(), Some(wanted));
    }
}
