//! What a process writes into the journal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::invocation::{Call, Invocation};
use super::logs::LogSink;
use crate::clock::wall_clock_ms;
use crate::journal::{Event, InvocationEnd, Journal, Text, What, lines};
use crate::sync::lock;

/// A process's hand in the journal. Clones are the same process's.
#[derive(Debug, Clone)]
pub(super) struct Notes {
    journal: Journal,
    pub(super) function: Text,
    process: u32,
    /// The request id of the invocation under way.
    current: Arc<Mutex<Option<Text>>>,
}

impl Notes {
    pub(super) fn new(journal: &Journal, function: &str, process: u32) -> Self {
        Self { journal: journal.clone(), function: function.into(), process, current: Arc::default() }
    }

    /// Writes what happened to the process.
    pub(super) fn write(&self, what: impl FnOnce() -> What) {
        self.journal.note(what, |event| event.process(&self.function, self.process));
    }

    /// Writes that the process took an event.
    pub(super) fn began(&self, call: &Call, limit: Duration) {
        *lock(&self.current) = Some(call.request_id.clone());
        self.journal.note(
            || {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX / 2);
                What::InvocationBegan { messages: call.messages.clone(), deadline_ms: wall_clock_ms() + limit_ms }
            },
            |event| self.of_call(event, call),
        );
    }

    /// Writes how the invocation of an event ended.
    pub(super) fn ended(&self, call: &Call, result: &Invocation) {
        *lock(&self.current) = None;
        let (how, detail) = match result {
            Invocation::Response(_) => (InvocationEnd::Returned, None),
            Invocation::FunctionError { kind, .. } => (InvocationEnd::Failed, Some(kind)),
            Invocation::TimedOut => (InvocationEnd::TimedOut, None),
            Invocation::Crashed { status } => (InvocationEnd::Crashed, Some(status)),
        };
        self.journal.note(
            || What::InvocationEnded { messages: call.messages.clone(), how, detail: detail.map(Text::from) },
            |event| self.of_call(event, call),
        );
    }

    fn of_call(&self, event: Event, call: &Call) -> Event {
        event.process(&self.function, self.process).invocation(&call.request_id)
    }

    /// Returns a sink that writes each line into the journal, and passes it on.
    pub(super) fn observe(&self, sink: &LogSink) -> LogSink {
        let sink = Arc::clone(sink);
        if !self.journal.is_on() {
            return sink;
        }
        let notes = self.clone();
        Arc::new(move |function, line| {
            notes.line(line);
            sink(function, line);
        })
    }

    fn line(&self, line: &str) {
        let read = lines::read(line);
        self.journal.write(|| Event {
            message_id: read.message_id.map(Text::from),
            invocation: lock(&self.current).clone(),
            ..Event::new(wall_clock_ms(), read.what).process(&self.function, self.process)
        });
    }
}
