//! Messages as bodies and as the event that the function gets.

use std::collections::HashMap;

use aws_lambda_events::event::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use claimant_core::{Envelope, Event, Message, Rejection};
use serde_json::{Value, json};

use crate::mutant::Mutant;
use crate::payloads::pointer_to;
use crate::scenario::{Fault, Guarantee, MessageSpec, Scenario, Shape};
use crate::sqs::{self, Delivery};
use crate::world::World;

/// The field by which events are routed.
pub const KIND: &str = "kind";

/// A kind that no route takes.
const UNKNOWN: &str = "unknown";

/// An attribute by which a schedule is known to be one of this message.
pub const MESSAGE_ID: &str = "sim-message-id";

/// How deep a deeply nested body is.
const DEEP: usize = 10_000;

/// The body of this message.
#[must_use]
pub fn body(scenario: &Scenario, spec: &MessageSpec) -> String {
    let event = |key: Value, kind: String| match scenario.consumer.routes {
        None => json!({ "key": key, "variant": spec.variant }),
        Some(_) => json!({ "key": key, "variant": spec.variant, KIND: kind }),
    };
    let good = |key: usize| event(json!(format!("k{key}")), kind(scenario.consumer_of(key)));
    let stray = || event(json!(format!("k{}", spec.key)), UNKNOWN.to_owned());
    let bad = |key: Value| event(key, kind(scenario.consumer_of(spec.key))).to_string();
    let payload = match spec.shape {
        Shape::Good if spec.more.is_empty() && !spec.stray => good(spec.key).to_string(),
        Shape::Good => spec.works().map(good).chain(spec.stray.then(stray)).collect::<Value>().to_string(),
        Shape::NotJson => "{ not JSON".to_owned(),
        Shape::WrongShape => bad(json!(7)),
        Shape::NoKey => bad(json!("")),
        Shape::Deep => "[".repeat(DEEP),
        Shape::Stray => stray().to_string(),
    };
    if spec.large { pointer_to(&payload) } else { payload }
}

/// The kind of this consumer's events.
#[must_use]
pub fn kind(consumer: usize) -> String {
    format!("kind-{consumer}")
}

/// The message of the scenario that has this body, if nothing in it must be rejected.
#[must_use]
pub fn spec<'a>(scenario: &'a Scenario, text: &str) -> Option<&'a MessageSpec> {
    scenario.messages.iter().find(|spec| scenario.accepts(spec) && body(scenario, spec) == text)
}

/// The batch as the queue's own faults make it.
#[must_use]
pub fn arrange(world: &World, batch: Vec<Delivery>) -> Vec<Delivery> {
    let mut arranged = Vec::new();
    for delivery in batch {
        let number = world.state().next_delivery();
        let id = delivery.message.id.clone();
        arranged.push(delivery);
        // A FIFO queue does neither.
        if world.scenario.queue.fifo_groups.is_some() {
            continue;
        }
        if world.fault(|fault| matches!(fault, Fault::TwiceInBatch { nth } if *nth == number)) {
            arranged.extend(world.state().sqs.receive_again(&id));
        }
        if world.fault(|fault| matches!(fault, Fault::ShowAgain { nth } if *nth == number)) {
            let mut state = world.state();
            state.sqs.show(&id);
            state.note(crate::history::Event::ShownAgain { id });
        }
    }
    arranged
}

/// The batch as an event.
#[must_use]
pub fn event(world: &World, batch: &[Delivery], nameless: bool) -> SqsEvent {
    let fifo = world.scenario.queue.fifo_groups.is_some() && world.mutant != Some(Mutant::GroupsIgnored);
    let arn = format!("arn:aws:sqs:us-east-1:123456789012:work{}", if fifo { ".fifo" } else { "" });
    let records = batch.iter().enumerate().map(|(place, delivery)| {
        let mut record = SqsMessage::default();
        record.message_id = (!nameless || place > 0).then(|| delivery.message.id.clone());
        record.receipt_handle = Some(delivery.receipt.clone());
        record.body = Some(delivered(world, &delivery.message));
        let mut attributes = HashMap::new();
        let receives = if world.mutant == Some(Mutant::ReceivesUnseen) { 1 } else { delivery.message.receives };
        attributes.insert("ApproximateReceiveCount".to_owned(), receives.to_string());
        if let Some(group) = delivery.message.group {
            attributes.insert("MessageGroupId".to_owned(), format!("g{group}"));
        }
        record.attributes = attributes;
        if world.scenario.queue.schedules {
            let mut id = SqsMessageAttribute::default();
            (id.data_type, id.string_value) = (Some("String".to_owned()), Some(delivery.message.id.clone()));
            record.message_attributes.insert(MESSAGE_ID.to_owned(), id);
        }
        record.event_source_arn = Some(arn.clone());
        record
    });
    let mut event = SqsEvent::default();
    event.records = records.collect();
    event
}

/// The body with which this message is delivered: where its id is to be its key, with that.
#[must_use]
pub fn delivered(world: &World, message: &sqs::Message) -> String {
    let at_most_once = world.scenario.consumer.guarantee == Guarantee::AtMostOnce;
    match world.mutant {
        Some(Mutant::MessageIdsForKeys) if at_most_once => with_id(&message.body, &message.id),
        _ => message.body.clone(),
    }
}

/// The body with the message's id in each of its events; what is none stays as it is.
fn with_id(body: &str, id: &str) -> String {
    let mut body: Value = match serde_json::from_str(body) {
        Ok(read) => read,
        Err(_) => return body.to_owned(),
    };
    match &mut body {
        Value::Object(fields) => drop(fields.insert("message_id".to_owned(), json!(id))),
        Value::Array(events) => events.iter_mut().enumerate().for_each(|(number, event)| {
            event["message_id"] = json!(format!("{id}#{number}"));
        }),
        _ => {}
    }
    body.to_string()
}

/// What a message with several events is wrapped in: an array of them. What is none is left as it is.
pub struct Several {
    /// Whether only the first one is seen.
    pub first_only: bool,
}

impl Envelope for Several {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let events: Option<Vec<Value>> = serde_json::from_slice(message.content()).ok();
        let Some(events) = events else { return Ok(vec![message]) };
        let seen = if self.first_only { 1 } else { events.len() };
        let opened = |event: Value| message.clone().opened(event.to_string(), Event::default());
        Ok(events.into_iter().take(seen).map(opened).collect())
    }
}
