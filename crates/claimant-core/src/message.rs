//! A message as delivered, and what its envelopes hold.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::attributes::{AttributeValue, Attributes, missing, mistyped};
use crate::clock::Timestamp;
use crate::content::{self, Content};
use crate::delivered::{Delivered, Group};
use crate::event::Event;
use crate::key::{InvalidValue, MessageId};
use crate::own_attributes::SENT_AGAIN_OF;
use crate::rejection::{Fault, Rejection};

/// One message of a batch, checked at the edge: its id is there and bounded. Clones are cheap: they share what was delivered.
///
/// The receipt handle stays with the queue's side: nothing here needs it, and nothing can log it.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{AttributeValue, Message};
///
/// let message = Message::new("message-1", r#"{"order_id": "ord-1"}"#)?
///     .with_receive_count(3)
///     .with_attribute("tenant", AttributeValue::text("acme"));
/// assert_eq!(message.attributes().text("tenant"), Some("acme"));
/// # Ok::<_, claimant_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Message {
    delivered: Arc<Delivered>,
    /// What was found in its envelopes, if it has some.
    inner: Option<Arc<Content>>,
}

impl Message {
    /// Returns a message of a standard queue without attributes, delivered for the first time.
    ///
    /// # Errors
    /// When the id is empty, or longer than [`MESSAGE_ID_MAX_BYTES`](crate::key::MESSAGE_ID_MAX_BYTES).
    pub fn new(id: impl Into<String>, body: impl Into<String>) -> Result<Self, InvalidValue> {
        let delivered = Delivered::new(MessageId::new(id)?, body.into());
        Ok(Self { delivered: Arc::new(delivered), inner: None })
    }

    fn changed(mut self, change: impl FnOnce(&mut Delivered)) -> Self {
        change(Arc::make_mut(&mut self.delivered));
        self
    }

    /// Returns the message with this receive count; 0 where it is not known, which is shown as 1. The message then counts as one that can
    /// have been delivered before: a store does not assume that its key has no record.
    #[must_use]
    pub fn with_receive_count(self, count: u32) -> Self {
        self.changed(|delivered| delivered.receive_count = count)
    }

    /// Returns the message in this group of a queue that keeps groups in order (FIFO).
    #[must_use]
    pub fn with_ordered_group(self, group: impl Into<String>) -> Self {
        self.changed(|delivered| delivered.group = Some(Group { name: group.into(), ordered: true }))
    }

    /// Returns the message in this group of a fair queue, which is shared out among groups, and keeps no order.
    #[must_use]
    pub fn with_fair_group(self, group: impl Into<String>) -> Self {
        self.changed(|delivered| delivered.group = Some(Group { name: group.into(), ordered: false }))
    }

    /// Returns the message with this sequence number in its FIFO queue.
    #[must_use]
    pub fn with_sequence_number(self, number: impl Into<String>) -> Self {
        self.changed(|delivered| delivered.sequence_number = Some(number.into()))
    }

    /// Returns the message as one of the queue with this ARN.
    #[must_use]
    pub fn with_source_arn(self, arn: impl Into<String>) -> Self {
        self.changed(|delivered| delivered.source_arn = Some(arn.into()))
    }

    /// Returns the message as sent at this time.
    #[must_use]
    pub fn with_sent_at(self, at: Timestamp) -> Self {
        self.changed(|delivered| delivered.sent_at = Some(at))
    }

    /// Returns the message as received first at this time.
    #[must_use]
    pub fn with_first_received_at(self, at: Timestamp) -> Self {
        self.changed(|delivered| delivered.first_received_at = Some(at))
    }

    /// Returns the message as sent in this trace: the header that continues it, which the caller has checked and
    /// bounded (with [`continued`](crate::trace::continued)).
    #[must_use]
    pub fn with_trace(self, header: impl Into<String>) -> Self {
        self.changed(|delivered| delivered.trace.header = Some(header.into()))
    }

    /// Returns the message with this attribute; one that it has under this name is replaced.
    #[must_use]
    pub fn with_attribute(self, name: impl Into<String>, value: AttributeValue) -> Self {
        self.changed(|delivered| {
            delivered.attributes.set(name, value);
            delivered.trace.forget_attributes();
        })
    }

    /// Returns the message with this content in place of what it had, which was an envelope, and what that said; of what it did not
    /// say, what an outer envelope said is kept. The body stays. Give the content a [name](Self::with_content_name).
    #[must_use]
    pub fn opened(self, content: impl Into<Vec<u8>>, event: Event) -> Self {
        let event = event.inside_of(self.event());
        self.holding(content.into(), Some(event))
    }

    /// Returns the message with this content in place of what it had, which was packed. What its envelopes say stays, and the body. Give
    /// the content a [name](Self::with_content_name).
    #[must_use]
    pub fn unpacked(mut self, content: impl Into<Vec<u8>>) -> Self {
        let event = self.inner.take().and_then(|inner| match Arc::try_unwrap(inner) {
            Ok(inner) => inner.event,
            Err(shared) => shared.event.clone(),
        });
        self.holding(content.into(), event)
    }

    fn holding(mut self, content: Vec<u8>, event: Option<Event>) -> Self {
        self.inner = Some(Arc::new(Content::new(content, event)));
        self
    }

    /// Returns the message, of whose content this event is said, too.
    pub(crate) fn said(mut self, event: Event) -> Self {
        let event = event.inside_of(self.event());
        let body = || Arc::new(Content::of_body(&self.delivered.body));
        let inner = self.inner.get_or_insert_with(body);
        Arc::make_mut(inner).event = Some(event);
        self
    }

    /// Returns the message, whose content errors call so from now on: `the decoded Base64`. It was opened or unpacked, and can be looked
    /// at as a whole, so errors say where in it they are. The body is called the body. The name goes into logs and dead letters: put nothing of
    /// the message into it.
    #[must_use]
    pub fn with_content_name(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.named(name.into(), true)
    }

    /// Returns the message, whose content errors call so, as a part of a JSON text: `the detail of the EventBridge envelope`. They give no line,
    /// column or byte of it, which nobody sees cut out; a JSON path they give. Put nothing of the message into the name.
    #[must_use]
    pub fn with_part_name(self, name: impl Into<Cow<'static, str>>) -> Self {
        self.named(name.into(), false)
    }

    fn named(mut self, name: Cow<'static, str>, has_places: bool) -> Self {
        if let Some(inner) = &mut self.inner {
            Arc::make_mut(inner).set_name(name, has_places);
        }
        self
    }

    /// Returns the rejection of a message whose content has this fault, by the content's name: `the decoded Base64 is not UTF-8 (from byte 3
    /// on)`.
    pub fn rejection(&self, fault: impl Into<Fault>) -> Rejection {
        content::rejection(self.inner.as_deref(), None, fault.into())
    }

    /// Returns the rejection of a message whose content is this envelope and has this fault: `the SNS envelope has no message`. Where it
    /// is not the body, it says in what it is: `the SNS envelope in the decoded Base64 has no message`.
    pub fn rejection_as(&self, envelope: &str, fault: impl Into<Fault>) -> Rejection {
        content::rejection(self.inner.as_deref(), Some(envelope), fault.into())
    }

    /// Returns the id that the queue gave it.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.delivered.id
    }

    /// Returns the id by which its work is known: of a message that a schedule has sent again that of the first one
    /// ([`SENT_AGAIN_OF`]), or else its own.
    #[must_use]
    pub fn first_id(&self) -> MessageId {
        let first = self.delivered.attributes.text(SENT_AGAIN_OF).map(MessageId::new);
        first.and_then(Result::ok).unwrap_or_else(|| self.id().clone())
    }

    /// Returns the body as delivered.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.delivered.body
    }

    /// Returns what is decoded: what the innermost envelope holds, or the body if there is none.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        self.inner.as_ref().map_or(self.delivered.body.as_bytes(), |inner| &inner.bytes)
    }

    /// Returns what its envelopes say; `None` if it has none.
    #[must_use]
    pub fn event(&self) -> Option<&Event> {
        self.inner.as_ref().and_then(|inner| inner.event.as_ref())
    }

    /// Returns how often the queue has delivered it, this time included; 1 where the queue did not say.
    #[must_use]
    pub fn receive_count(&self) -> u32 {
        self.delivered.receive_count.max(1)
    }

    /// Returns whether it is known to be delivered for the first time: the queue has said so, and no schedule has sent it again.
    pub(crate) fn is_first_delivery(&self) -> bool {
        self.delivered.receive_count == 1 && self.delivered.attributes.text(SENT_AGAIN_OF).is_none()
    }

    /// Returns its group (`MessageGroupId`), on a FIFO or a fair queue.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.delivered.group.as_ref().map(|group| group.name.as_str())
    }

    /// Returns its group, only where the queue keeps groups in order (FIFO). A fair queue's group is not one.
    #[must_use]
    pub fn ordered_group(&self) -> Option<&str> {
        self.delivered.group.as_ref().filter(|group| group.ordered).map(|group| group.name.as_str())
    }

    /// Returns its number in the order of its FIFO queue (`SequenceNumber`), 20 digits.
    #[must_use]
    pub fn sequence_number(&self) -> Option<&str> {
        self.delivered.sequence_number.as_deref()
    }

    /// Returns the ARN of the queue that delivered it.
    #[must_use]
    pub fn source_arn(&self) -> Option<&str> {
        self.delivered.source_arn.as_deref()
    }

    /// Returns when it was sent to this queue (`SentTimestamp`). A redrive to a queue does not change it.
    #[must_use]
    pub fn sent_at(&self) -> Option<Timestamp> {
        self.delivered.sent_at
    }

    /// Returns when it was first received from this queue (`ApproximateFirstReceiveTimestamp`).
    #[must_use]
    pub fn first_received_at(&self) -> Option<Timestamp> {
        self.delivered.first_received_at
    }

    /// Returns the trace that its producer sent it in, as the header that continues it: the event's, if its envelope carries one, or else
    /// the [header](Self::trace_header) that it was delivered with, or the one that its attribute `traceparent` says.
    #[must_use]
    pub fn trace(&self) -> Option<&str> {
        let inner = self.event().and_then(|event| event.trace.as_deref());
        inner.or_else(|| self.delivered.trace.get(&self.delivered.attributes))
    }

    /// Returns the trace header that it was delivered with (`AWSTraceHeader`).
    #[must_use]
    pub fn trace_header(&self) -> Option<&str> {
        self.delivered.trace.header.as_deref()
    }

    /// Returns the attributes that the message was sent with (`messageAttributes`). Those of an event in it are the event's.
    #[must_use]
    pub fn attributes(&self) -> &Attributes {
        &self.delivered.attributes
    }

    /// Returns an attribute by its name: the event's, or else the message's. With raw delivery of SNS, and without SNS, both are
    /// found in the same place.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&AttributeValue> {
        self.event().and_then(|event| event.attributes.get(name)).or_else(|| self.attributes().get(name))
    }

    /// Returns a text or a number as it was sent, for a key.
    pub(crate) fn require_sent(&self, name: &str) -> Result<&str, InvalidValue> {
        let value = self.attribute(name).ok_or_else(|| missing(name))?;
        value.as_sent().ok_or_else(|| mistyped(name, value, "a String or a Number"))
    }
}

// Bodies, groups and attributes never reach a log, so they are not in `Debug` either.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("id", self.id())
            .field("body_bytes", &self.body().len())
            .field("receive_count", &self.receive_count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_envelope_holds_takes_the_place_of_the_body_for_decoders_only() {
        let message = Message::new("m", "outer").unwrap().with_trace("outer");
        assert_eq!((message.content(), message.event()), (&b"outer"[..], None));
        let mut event = Event { kind: Some("paid".to_owned()), ..Event::default() };
        event.attributes.set("tenant", AttributeValue::text("inner"));
        let message = message.with_attribute("tenant", AttributeValue::text("outer"));
        let opened = message.clone().opened("inner", event.clone());
        assert_eq!((opened.body(), opened.content(), opened.trace()), ("outer", &b"inner"[..], Some("outer")));
        assert_eq!(opened.attribute("tenant").unwrap().as_text(), Some("inner"));
        assert_eq!(message.attribute("tenant").unwrap().as_text(), Some("outer"));
        let unpacked = opened.clone().unpacked("innermost");
        assert_eq!((unpacked.content(), unpacked.event()), (&b"innermost"[..], Some(&event)));
        assert_eq!((opened.content(), message.clone().unpacked("inner").event()), (&b"inner"[..], None));
        event.trace = Some("inner".to_owned());
        assert_eq!(message.opened("inner", event).trace(), Some("inner"));
    }

    #[test]
    fn the_trace_is_the_events_or_the_headers_or_that_of_an_attribute() {
        let traceparent = |span: &str| AttributeValue::text(format!("00-0759e988bd862e3f01be46a994272793-{span}-01"));
        let message = Message::new("m", "{}").unwrap();
        let sent = message.clone().with_attribute("traceparent", traceparent("03995c3f42cd8ad8"));
        let header = "Root=1-0759e988-bd862e3f01be46a994272793;Parent=03995c3f42cd8ad8;Sampled=1";
        assert_eq!((sent.trace(), sent.trace_header()), (Some(header), None));
        // One that is no trace, in its place.
        assert_eq!(sent.clone().with_attribute("traceparent", traceparent("x")).trace(), None);
        for with_header in [
            sent.clone().with_trace("Root=1"),
            message.with_trace("Root=1").with_attribute("traceparent", traceparent("03995c3f42cd8ad8")),
        ] {
            assert_eq!((with_header.trace(), with_header.trace_header()), (Some("Root=1"), Some("Root=1")));
        }
        let event = Event { trace: Some("inner".to_owned()), ..Event::default() };
        assert_eq!(sent.opened("{}", event).trace(), Some("inner"));
    }

    #[test]
    fn a_rejection_says_in_which_layer_the_fault_is_and_where_if_that_can_be_seen() {
        let body = Message::new("m", "body").unwrap();
        let whole = body.clone().unpacked("whole").with_content_name("the decoded Base64");
        let part = whole.clone().opened("part", Event::default()).with_part_name("the `detail` of the envelope");
        let again = part.clone().said(Event { id: Some("e#1".to_owned()), ..Event::default() });
        let unnamed = body.clone().opened("inner", Event::default());
        for (message, content, envelope) in [
            (body.clone(), "the body is wrong (at byte 7)", "the envelope is wrong (at byte 7)"),
            (body.said(Event::default()), "the body is wrong (at byte 7)", "the envelope is wrong (at byte 7)"),
            (
                whole,
                "the decoded Base64 is wrong (at byte 7)",
                "the envelope in the decoded Base64 is wrong (at byte 7)",
            ),
            (part, "the `detail` of the envelope is wrong", "the envelope in the `detail` of the envelope is wrong"),
            (again, "the `detail` of the envelope is wrong", "the envelope in the `detail` of the envelope is wrong"),
            (unnamed, "what the envelope holds is wrong", "the envelope in what the envelope holds is wrong"),
        ] {
            let fault = Fault::new("is wrong").at("at byte 7");
            let said = [message.rejection(fault.clone()), message.rejection_as("the envelope", fault)];
            assert_eq!(said.map(|rejection| rejection.to_string()), [content, envelope]);
        }
    }

    #[test]
    fn the_innermost_envelope_that_says_something_counts() {
        let said = |id: &str, kind: Option<&str>, tenant: &str| {
            let mut event = Event { id: Some(id.to_owned()), kind: kind.map(str::to_owned), ..Event::default() };
            event.attributes.set(tenant, AttributeValue::text(id));
            event
        };
        let message = Message::new("m", "body").unwrap().opened("outer", said("outer", Some("kind"), "a"));
        let opened = message.opened("inner", said("inner", None, "b")).opened("innermost", Event::default());
        let event = opened.event().unwrap();
        assert_eq!((event.id.as_deref(), event.kind.as_deref()), (Some("inner"), Some("kind")));
        assert_eq!((event.attributes.text("a"), event.attributes.text("b")), (Some("outer"), Some("inner")));
    }
}
