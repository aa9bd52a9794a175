//! The span of a message.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use claimant_core::trace::TRACEPARENT;
use claimant_core::{ConsumerName, Entry, Message, MessageSpan, Outcome, Step, StepSpan};
use opentelemetry::trace::{Link, Span, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::step::OtelStep;
use crate::{names, trace};

/// The most links of a message: one for each of its events, and those of the message itself.
const LINKS_MAX: usize = 128;

pub(crate) struct OtelMessage<T> {
    tracer: Arc<T>,
    cx: Context,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// What it is linked to.
    links: Vec<SpanContext>,
    has_consumer: bool,
    stopped: Option<SystemTime>,
}

impl<T: Tracer<Span: Span + Send + Sync + 'static>> OtelMessage<T> {
    pub(crate) fn open(tracer: Arc<T>, message: &Message) -> Self {
        let queue = message.source_arn().and_then(|arn| arn.rsplit(':').next());
        let (name, mut attributes) = names::operation("process", queue);
        attributes.push(KeyValue::new(names::MESSAGE_ID, message.id().as_str().to_owned()));
        attributes.push(KeyValue::new(names::RECEIVE_COUNT, i64::from(message.receive_count())));
        if queue.is_some() {
            attributes.push(KeyValue::new("faas.trigger", "pubsub"));
        }
        let mut links = Vec::new();
        for producer in producers(message) {
            add(&mut links, producer);
        }
        let linked = links.iter().cloned().map(Link::with_context).collect();
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Consumer);
        let parent = Context::current();
        let span = tracer.build_with_context(builder.with_attributes(attributes).with_links(linked), &parent);
        let progress = Mutex::new(Progress { links, ..Progress::default() });
        Self { tracer, cx: parent.with_span(span), progress }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the spans that a message says it was sent by.
fn producers(message: &Message) -> impl Iterator<Item = SpanContext> {
    let traceparent = message.attribute(TRACEPARENT).and_then(|value| value.as_text());
    let header = message.trace().and_then(trace::of_header);
    header.into_iter().chain(traceparent.and_then(trace::of_traceparent))
}

/// Adds a link that is not there; returns whether it did.
fn add(links: &mut Vec<SpanContext>, link: SpanContext) -> bool {
    let known = |one: &SpanContext| (one.trace_id(), one.span_id()) == (link.trace_id(), link.span_id());
    let is_new = links.len() < LINKS_MAX && !links.iter().any(known);
    if is_new {
        links.push(link);
    }
    is_new
}

impl<T: Tracer<Span: Span + Send + Sync + 'static> + Send + Sync> MessageSpan for OtelMessage<T> {
    fn arrived(&self, consumer: &ConsumerName, event: &Message) {
        let mut progress = self.progress();
        let span = self.cx.span();
        if !std::mem::replace(&mut progress.has_consumer, true) {
            span.set_attribute(KeyValue::new(names::CONSUMER, consumer.as_str().to_owned()));
        }
        for producer in producers(event) {
            if add(&mut progress.links, producer.clone()) {
                span.add_link(producer, Vec::new());
            }
        }
    }

    fn step(&self, consumer: &ConsumerName, step: Step) -> Arc<dyn StepSpan> {
        let mut attributes = vec![KeyValue::new(names::CONSUMER, consumer.as_str().to_owned())];
        match step {
            Step::Handle { attempt } => attributes.push(KeyValue::new(names::ATTEMPT, i64::from(attempt))),
            Step::Settle { wanted } => attributes.push(KeyValue::new(names::WANTED, wanted)),
            _ => {}
        }
        let builder = SpanBuilder::from_name(step.word()).with_kind(SpanKind::Internal).with_attributes(attributes);
        Arc::new(OtelStep::open(self.tracer.as_ref(), builder, &self.cx))
    }

    #[expect(clippy::disallowed_methods, reason = "the time of a span decides nothing, and its start is the SDK's own")]
    fn stop(&self) {
        self.progress().stopped = Some(SystemTime::now());
    }

    fn end(&self, entry: &Entry) {
        let (span, word) = (self.cx.span(), entry.outcome.word());
        span.set_attribute(KeyValue::new(names::OUTCOME, word));
        if let Outcome::Rejected { dead_lettered, .. } | Outcome::Parked { dead_lettered } = entry.outcome {
            span.set_attribute(KeyValue::new(names::DEAD_LETTERED, dead_lettered));
        }
        if let Some(attempt) = entry.details.attempt {
            span.set_attribute(KeyValue::new(names::ATTEMPT, i64::from(attempt)));
        }
        if let Some(fence) = entry.details.fence {
            span.set_attribute(KeyValue::new(names::FENCE, names::number(fence.get())));
        }
        if entry.details.events > 1 {
            span.set_attribute(KeyValue::new(names::EVENTS, i64::from(entry.details.events)));
        }
        if is_error(&entry.outcome) {
            span.set_attribute(KeyValue::new(names::ERROR, word));
            span.set_status(Status::error(word));
        }
        match self.progress().stopped {
            Some(stopped) => span.end_with_timestamp(stopped),
            None => span.end(),
        }
    }
}

/// Returns whether something went wrong: what only waits for its turn, or for another owner, has not failed.
fn is_error(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Rejected { .. } | Outcome::Parked { .. } => true,
        Outcome::Busy { .. } | Outcome::NotStarted | Outcome::BreakerOpen | Outcome::RateLimited | Outcome::Blocked => {
            false
        }
        other => !other.is_success(),
    }
}
