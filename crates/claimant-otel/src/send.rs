//! The span of a message that is sent.

use claimant_core::SendSpan;
use opentelemetry::trace::{Span, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::{names, trace};

pub(crate) struct OtelSend(Context);

impl OtelSend {
    pub(crate) fn open<T>(tracer: &T, queue_url: &str, header: Option<&str>) -> Self
    where
        T: Tracer<Span: Span + Send + Sync + 'static>,
    {
        let (name, mut attributes) = names::operation("send", queue_url.rsplit('/').next());
        attributes.push(KeyValue::new(names::QUEUE_URL, queue_url.to_owned()));
        let current = Context::current();
        let parent = match header.and_then(trace::of_header) {
            Some(producer) => current.with_remote_span_context(producer),
            None => current,
        };
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Producer).with_attributes(attributes);
        Self(parent.with_span(tracer.build_with_context(builder, &parent)))
    }
}

impl SendSpan for OtelSend {
    fn header(&self) -> Option<String> {
        trace::header(self.0.span().span_context())
    }

    fn end(&self, sent: Result<&str, &'static str>) {
        let span = self.0.span();
        match sent {
            Ok(message_id) => span.set_attribute(KeyValue::new(names::MESSAGE_ID, message_id.to_owned())),
            Err(why) => {
                span.set_attribute(KeyValue::new(names::ERROR, why));
                span.set_status(Status::error(why));
            }
        }
        span.end();
    }
}
