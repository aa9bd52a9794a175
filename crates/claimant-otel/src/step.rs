//! The span of a step, or of a call for several messages.

use claimant_core::{SpanIdentity, StepSpan};
use opentelemetry::trace::{Span, SpanBuilder, Status, TraceContextExt as _, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::{names, trace};

pub(crate) struct OtelStep(Context);

impl OtelStep {
    pub(crate) fn open<T>(tracer: &T, builder: SpanBuilder, parent: &Context) -> Self
    where
        T: Tracer<Span: Span + Send + Sync + 'static>,
    {
        Self(parent.with_span(tracer.build_with_context(builder, parent)))
    }
}

impl StepSpan for OtelStep {
    fn identity(&self) -> SpanIdentity {
        trace::identity(self.0.span().span_context())
    }

    fn within(&self, work: &mut dyn FnMut()) {
        let _attached = self.0.clone().attach();
        work();
    }

    fn end(&self, result: &'static str, failed: bool) {
        let span = self.0.span();
        span.set_attribute(KeyValue::new(names::RESULT, result));
        if failed {
            span.set_attribute(KeyValue::new(names::ERROR, result));
            span.set_status(Status::error(result));
        }
        span.end();
    }
}
