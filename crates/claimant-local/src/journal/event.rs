//! One thing that happened.

use serde::Serialize;

use super::text::Text;
use super::what::{Claimed, Done, What};

/// One thing that happened, when, and to what. No body, attribute or receipt handle is in one, but for [`What::Line`]: that is what a
/// function wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// The event's number: grows by one with each event, from 1. It is set when the event is written.
    pub seq: u64,
    /// When it happened, in milliseconds since 1970.
    pub at_ms: u64,
    /// The message that it is about; batches name theirs in [`What`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Text>,
    /// The name of the queue that the message is in now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Text>,
    /// The name of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Text>,
    /// The id of the function's process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The request id of the invocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invocation: Option<Text>,
    /// What happened.
    #[serde(flatten)]
    pub what: What,
}

impl Event {
    /// Returns an event at this time, in milliseconds since 1970, about nothing yet.
    #[must_use]
    pub fn new(at_ms: u64, what: What) -> Self {
        Self { seq: 0, at_ms, message_id: None, queue: None, function: None, process: None, invocation: None, what }
    }

    /// The same event, about this message.
    #[must_use]
    pub fn message(self, id: impl Into<Text>) -> Self {
        Self { message_id: Some(id.into()), ..self }
    }

    /// The same event, in this queue.
    #[must_use]
    pub fn queue(self, name: &Text) -> Self {
        Self { queue: Some(name.clone()), ..self }
    }

    /// The same event, of this function.
    #[must_use]
    pub fn function(self, name: impl Into<Text>) -> Self {
        Self { function: Some(name.into()), ..self }
    }

    /// The same event, of this process of this function.
    #[must_use]
    pub fn process(self, function: &Text, process: u32) -> Self {
        Self { function: Some(function.clone()), process: Some(process), ..self }
    }

    /// The same event, in this invocation.
    #[must_use]
    pub fn invocation(self, id: &Text) -> Self {
        Self { invocation: Some(id.clone()), ..self }
    }

    /// The messages that it is about, in no order.
    pub fn messages(&self) -> impl Iterator<Item = &Text> {
        let (others, more): (&[Text], &[Text]) = match &self.what {
            What::Sent { copy_of: Some(other), .. } | What::Redriven { was: other, .. } => {
                (std::slice::from_ref(other), &[])
            }
            What::InvocationBegan { messages, .. } | What::InvocationEnded { messages, .. } => (messages, &[]),
            What::TableFault { messages, .. } => (messages, &[]),
            What::Reported { succeeded, failed, .. } => (succeeded, failed),
            _ => (&[], &[]),
        };
        self.message_id.iter().chain(others).chain(more)
    }

    /// Returns the message group with which it was sent, or sent back by a message move task.
    #[must_use]
    pub fn group(&self) -> Option<&Text> {
        match &self.what {
            What::Sent { group, .. } | What::Redriven { group, .. } => group.as_ref(),
            _ => None,
        }
    }

    /// The idempotency key that an effect was asked for with.
    #[must_use]
    pub fn key(&self) -> Option<&Text> {
        match &self.what {
            What::Mail { key, .. } | What::Charge { key, .. } => key.as_ref(),
            _ => None,
        }
    }

    /// Whether it is a line of a function's output.
    pub(super) fn is_line(&self) -> bool {
        matches!(self.what, What::Line { .. })
    }

    /// About how much memory it takes, with its place in the index.
    pub(super) fn bytes(&self) -> usize {
        const PER_MESSAGE: usize = size_of::<Text>() + size_of::<u64>();
        let own = match &self.what {
            What::InvocationEnded { detail: text, .. }
            | What::Reported { why: text, .. }
            | What::ProcessEnded { status: text, .. } => text.as_ref(),
            What::Object { object: text, .. }
            | What::Scheduled { schedule: text, .. }
            | What::ScheduleRan { schedule: text } => Some(text),
            _ => self.group().or(self.key()),
        };
        let heap = match &self.what {
            What::Line { text, .. } => text.len(),
            What::Claimed(_) => size_of::<Claimed>() + 16,
            What::Done(_) => size_of::<Done>(),
            _ => own.map_or(0, |text| text.len() + 16),
        };
        size_of::<Self>() + heap + self.messages().count() * PER_MESSAGE
    }
}
