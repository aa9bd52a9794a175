//! Spans: what a tracing system is told of messages, of the steps that they take, and of those that are sent.
//!
//! Without one, nothing here is called and nothing is allocated.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::key::ConsumerName;
use crate::message::Message;
use crate::panics::caught;
use crate::report::Entry;

pub use crate::trace::SpanIdentity;

/// A tracing system, for [`Consumers::spans`](crate::Consumers::spans): `OtelSpans` (feature `otel` of `claimant`) is one.
///
/// What it is called for is never waited for, but for [`flush`](Self::flush). It must not block. A panic in it, or in its spans, costs what was
/// to be said of that span, and nothing of the message's work; that is logged once. It is given no keys, and nothing of bodies and attributes
/// may leave it.
pub trait Spans: Send + Sync + 'static {
    /// Opens the span of a message that was delivered.
    fn message(&self, message: &Message) -> Box<dyn MessageSpan>;

    /// Opens the span of one handler's call for several messages, linked to the spans of their steps.
    fn call(&self, consumer: &ConsumerName, steps: &[SpanIdentity]) -> Arc<dyn StepSpan>;

    /// Opens the span of a message that is sent to the queue with this URL: in the trace of this header, if there is one, else in
    /// the current one.
    fn send(&self, queue_url: &str, header: Option<&str>) -> Box<dyn SendSpan>;

    /// Exports what has ended: called at the end of each invocation, since its process is frozen then. It may block, on a thread of
    /// its own; no longer than the invocation has time is it waited for.
    ///
    /// # Errors
    /// When it could not be exported. The error is logged, the same one once.
    fn flush(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// The span of a message.
pub trait MessageSpan: Send + Sync {
    /// Notes that this consumer works on this event in the message, or on the message itself; its envelope can carry another trace.
    fn arrived(&self, consumer: &ConsumerName, event: &Message);

    /// Opens the span of a step.
    fn step(&self, consumer: &ConsumerName, step: Step) -> Arc<dyn StepSpan>;

    /// Notes that all is done for the message, as far as is known: the last such moment is the span's end.
    fn stop(&self);

    /// Ends the span: what became of the message. Called once.
    fn end(&self, entry: &Entry);
}

/// A step of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Its key is claimed: one request, which can be for other messages too.
    Claim,
    /// Its handler runs.
    Handle {
        /// Which claim for a run of the handler this is.
        attempt: u32,
    },
    /// Its claim is settled: one request, which can be for other messages too.
    Settle {
        /// The outcome that the message gets if this is written, as [`Outcome::word`](crate::Outcome::word) says it; `set_aside` or
        /// `released` where its key is claimed again later in the batch.
        wanted: &'static str,
    },
}

impl Step {
    /// Returns the step's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Handle { .. } => "handle",
            Self::Settle { .. } => "settle",
        }
    }
}

/// The span of a step, or of a call for several messages.
pub trait StepSpan: Send + Sync {
    /// Returns what links to it name.
    fn identity(&self) -> SpanIdentity;

    /// Runs this with the span as the current one.
    fn within(&self, work: &mut dyn FnMut());

    /// Ends the span: in a word, what came of it, and whether it failed. What it is called for later changes nothing.
    fn end(&self, result: &'static str, failed: bool);
}

/// The span of a message that is sent.
pub trait SendSpan: Send + Sync {
    /// Returns the header that continues the span's trace, to be sent along.
    fn header(&self) -> Option<String>;

    /// Ends the span: the id that the queue gave the message, or in a word why it was not sent.
    fn end(&self, sent: Result<&str, &'static str>);
}

/// A span of a tracing system; none where there is no system, and where it panicked. A panic of the system in one of these calls is
/// caught and costs only this span.
#[derive(Clone)]
pub(crate) struct Span<S>(Option<S>);

impl<S> Span<S> {
    pub(crate) const NONE: Self = Self(None);

    /// Opens a span.
    pub(crate) fn open(open: impl FnOnce() -> S) -> Self {
        Self(guarded_call(open))
    }

    pub(crate) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Tells the span something, and returns what it says. `None` where there is none.
    pub(crate) fn tell<R>(&self, tell: impl FnOnce(&S) -> R) -> Option<R> {
        let span = self.0.as_ref()?;
        guarded_call(|| tell(span))
    }
}

impl Span<Box<dyn MessageSpan>> {
    /// Opens the span of a step.
    pub(crate) fn step(&self, consumer: &ConsumerName, step: Step) -> Span<Arc<dyn StepSpan>> {
        Span(self.tell(|span| span.step(consumer, step)))
    }
}

impl<S> Drop for Span<S> {
    fn drop(&mut self) {
        if let Some(span) = self.0.take() {
            guarded_call(|| drop(span));
        }
    }
}

/// Calls a tracing system. `None` where it panicked.
fn guarded_call<R>(call: impl FnOnce() -> R) -> Option<R> {
    static IS_LOGGED: AtomicBool = AtomicBool::new(false);
    let returned = caught(call).ok();
    if returned.is_none() && !IS_LOGGED.swap(true, Ordering::Relaxed) {
        tracing::error!(
            "the tracing system panicked: spans are missing or incomplete, and no message is held up; this is not logged again"
        );
    }
    returned
}

/// The spans of an invocation's messages, by their indexes.
pub(crate) struct MessageSpans {
    system: Arc<dyn Spans>,
    messages: Vec<Span<Box<dyn MessageSpan>>>,
}

impl MessageSpans {
    /// Opens the spans of these messages, if there is a system for them.
    pub(crate) fn of(system: Option<&Arc<dyn Spans>>, batch: &[Message]) -> Option<Self> {
        let system = Arc::clone(system?);
        let messages = batch.iter().map(|message| Span::open(|| system.message(message))).collect();
        Some(Self { system, messages })
    }

    pub(crate) fn get(&self, message: usize) -> Option<&Span<Box<dyn MessageSpan>>> {
        self.messages.get(message)
    }

    /// Opens the span of one call for several messages.
    pub(crate) fn call(&self, consumer: &ConsumerName, steps: &[SpanIdentity]) -> Span<Arc<dyn StepSpan>> {
        Span::open(|| self.system.call(consumer, steps))
    }

    /// Ends all spans: what became of each message.
    pub(crate) fn end(&self, entries: &[Entry]) {
        for (span, entry) in self.messages.iter().zip(entries) {
            span.tell(|span| span.end(entry));
        }
    }
}
