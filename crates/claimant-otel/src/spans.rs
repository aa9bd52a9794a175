//! What opens spans.

use std::fmt;
use std::sync::Arc;

use claimant_core::{ConsumerName, Error, Message, MessageSpan, SendSpan, SpanIdentity, Spans, StepSpan};
use opentelemetry::trace::{Link, Span, SpanBuilder, SpanKind, Tracer, TracerProvider};
use opentelemetry::{Context, InstrumentationScope, KeyValue};

use crate::message::OtelMessage;
use crate::names;
use crate::send::OtelSend;
use crate::step::OtelStep;
use crate::trace;

type Flush = dyn Fn() -> Result<(), Error> + Send + Sync;

/// Spans of messages in OpenTelemetry, by a tracer of your provider: for `Consumers::spans` and `Producer::spans`.
///
/// | span | kind | is |
/// | --- | --- | --- |
/// | `process QUEUE` | consumer | one message, from its delivery to its outcome; linked to the span that sent it |
/// | `claim`, `handle`, `settle` | internal | a step of it, each try by itself |
/// | `call` | internal | one call of a batch handler for several messages, linked to the `handle` of each |
/// | `send QUEUE` | producer | one message that a `Producer` sends |
///
/// A handler runs in the context of its `handle`, or of its `call`: what it opens by OpenTelemetry's API is under it, and so is what
/// `tracing-opentelemetry` makes of spans of `tracing`.
///
/// Nothing of bodies, keys and attributes is in a span, nor what a handler's error says.
pub struct OtelSpans<T> {
    tracer: Arc<T>,
    flush: Option<Box<Flush>>,
}

impl<T> OtelSpans<T> {
    /// Creates them, with a tracer of this provider.
    #[must_use]
    pub fn new(provider: &impl TracerProvider<Tracer = T>) -> Self {
        let scope = InstrumentationScope::builder("claimant").with_version(env!("CARGO_PKG_VERSION")).build();
        Self { tracer: Arc::new(provider.tracer_with_scope(scope)), flush: None }
    }

    /// Sets what exports the spans that have ended, such as the provider's `force_flush`. A Lambda function calls it at the end of each
    /// invocation, since its process is frozen after that; it may block. Its error is logged, the same one once.
    #[must_use]
    pub fn flush_with<E: fmt::Display>(mut self, flush: impl Fn() -> Result<(), E> + Send + Sync + 'static) -> Self {
        self.flush = Some(Box::new(move || flush().map_err(|error| Error::new(error.to_string()))));
        self
    }
}

impl<T: Tracer<Span: Span + Send + Sync + 'static> + Send + Sync + 'static> Spans for OtelSpans<T> {
    fn message(&self, message: &Message) -> Box<dyn MessageSpan> {
        Box::new(OtelMessage::open(Arc::clone(&self.tracer), message))
    }

    fn call(&self, consumer: &ConsumerName, steps: &[SpanIdentity]) -> Arc<dyn StepSpan> {
        let links = steps.iter().map(|step| Link::with_context(trace::of_identity(step))).collect();
        let attributes = vec![
            KeyValue::new(names::CONSUMER, consumer.as_str().to_owned()),
            KeyValue::new(names::ITEMS, names::number(steps.len())),
        ];
        let builder = SpanBuilder::from_name("call").with_kind(SpanKind::Internal);
        let builder = builder.with_attributes(attributes).with_links(links);
        Arc::new(OtelStep::open(self.tracer.as_ref(), builder, &Context::current()))
    }

    fn send(&self, queue_url: &str, header: Option<&str>) -> Box<dyn SendSpan> {
        Box::new(OtelSend::open(self.tracer.as_ref(), queue_url, header))
    }

    fn flush(&self) -> Result<(), Error> {
        self.flush.as_ref().map_or(Ok(()), |flush| flush())
    }
}

impl<T> fmt::Debug for OtelSpans<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtelSpans").field("flushes", &self.flush.is_some()).finish_non_exhaustive()
    }
}
