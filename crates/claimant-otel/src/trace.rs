//! The two headers by which a producer's trace comes along, and the one that is sent.

use claimant_core::{SpanIdentity, trace};
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// Returns where a trace came from by its `AWSTraceHeader`: `Root=1-…;Parent=…;Sampled=1`; `None` where that names no span.
pub(crate) fn of_header(header: &str) -> Option<SpanContext> {
    trace::of_header(header).map(|span| context(&span, true))
}

/// Returns where a trace came from by a W3C `traceparent`; `None` where that is not well-formed.
pub(crate) fn of_traceparent(header: &str) -> Option<SpanContext> {
    trace::of_traceparent(header).map(|span| context(&span, true))
}

/// Returns the header that continues the trace of a span; `None` where there is none.
pub(crate) fn header(context: &SpanContext) -> Option<String> {
    context.is_valid().then(|| trace::header(&identity(context)))
}

pub(crate) fn identity(context: &SpanContext) -> SpanIdentity {
    SpanIdentity {
        trace_id: context.trace_id().to_bytes(),
        span_id: context.span_id().to_bytes(),
        sampled: context.is_sampled(),
    }
}

pub(crate) fn of_identity(identity: &SpanIdentity) -> SpanContext {
    context(identity, false)
}

fn context(identity: &SpanIdentity, is_remote: bool) -> SpanContext {
    let SpanIdentity { trace_id, span_id, sampled } = *identity;
    let (trace, span) = (TraceId::from_bytes(trace_id), SpanId::from_bytes(span_id));
    let flags = if sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    SpanContext::new(trace, span, flags, is_remote, TraceState::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "5759e988bd862e3fe1be46a994272793";
    const SPAN: &str = "53995c3f42cd8ad8";

    fn told(context: Option<SpanContext>) -> Option<(String, String, bool)> {
        context.map(|context| (context.trace_id().to_string(), context.span_id().to_string(), context.is_sampled()))
    }

    #[test]
    fn both_headers_name_the_producers_span_and_nothing_else_does() {
        let found = |sampled| Some((TRACE.to_owned(), SPAN.to_owned(), sampled));
        let root = "Root=1-5759e988-bd862e3fe1be46a994272793";
        for (header, wanted) in [
            (format!("{root};Parent={SPAN};Sampled=1"), found(true)),
            (format!("Sampled=0; Parent={SPAN} ;{root};Lineage=a:0"), found(false)),
            (format!("{root};Parent={SPAN};Sampled=?"), found(false)),
            (format!("{root};Parent={SPAN}"), found(false)),
            (root.to_owned(), None),
            (format!("{root};Parent={}", "0".repeat(16)), None),
            (format!("{root};Parent=+3995c3f42cd8ad8"), None),
            (format!("Root=2-5759e988-bd862e3fe1be46a994272793;Parent={SPAN}"), None),
            (format!("Root=1-5759e98-8bd862e3fe1be46a994272793;Parent={SPAN}"), None),
            (format!("Root=1-5759e988-bd862e3fe1be46a99427279é;Parent={SPAN}"), None),
            (String::new(), None),
        ] {
            assert_eq!(told(of_header(&header)), wanted, "{header}");
        }
        for (header, wanted) in [
            (format!("00-{TRACE}-{SPAN}-01"), found(true)),
            (format!("cc-{TRACE}-{SPAN}-02-later"), found(false)),
            (format!("+0-{TRACE}-{SPAN}-01"), None),
        ] {
            assert_eq!(told(of_traceparent(&header)), wanted, "{header}");
        }
    }

    #[test]
    fn what_is_sent_is_what_a_consumer_reads() {
        for sampled in [true, false] {
            let context = of_traceparent(&format!("00-{TRACE}-{SPAN}-0{}", u8::from(sampled))).unwrap();
            let header = header(&context).unwrap();
            assert_eq!(
                header,
                format!("Root=1-5759e988-bd862e3fe1be46a994272793;Parent={SPAN};Sampled={}", u8::from(sampled))
            );
            assert_eq!(of_header(&header), Some(context.clone()));
            assert_eq!(told(Some(of_identity(&identity(&context)))), told(Some(context)));
        }
        assert_eq!(header(&SpanContext::empty_context()), None);
    }
}
