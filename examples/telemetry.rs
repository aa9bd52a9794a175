//! Spans in OpenTelemetry: a message is linked to the span that sent it, and its claim, its handler and its settlement are under it.
//!
//! What the handler opens itself, here `charge`, is under its own. The exporter is yours; this one keeps spans in memory.
//!
//! ```text
//! send orders
//! process orders, linked to send orders: completed
//!   claim granted
//!   handle returned
//!     charge
//!   settle settled
//! process orders, linked to send orders: duplicate
//!   claim completed
//! ```

use std::time::Duration;

use claimant::engine::{Message, NoQueue, Router, InvocationTime};
use claimant::memory::MemoryStore;
use claimant::otel::OtelSpans;
use claimant::producer::{Outgoing, Producer};
use claimant::{Consumer, Consumers, Context, HandlerError, Key};
use claimant_local::sqs::{QueueSettings, Received, Sqs};
use opentelemetry::global;
use opentelemetry::trace::{Span as _, SpanId, Tracer as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

async fn charge(_order: String, _: Context) -> Result<(), HandlerError> {
    global::tracer("payments").start("charge").end();
    Ok(())
}

fn consumers(provider: &SdkTracerProvider) -> Consumers {
    let consumer = Consumer::new("payment", MemoryStore::new(), charge).key(|order| order);
    Consumers::from(consumer).spans(OtelSpans::new(provider))
}

#[tokio::main]
pub(crate) async fn main() -> crate::Result {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    global::set_tracer_provider(provider.clone());

    let (sqs, client) = crate::support::sqs().await?;
    sqs.create_queue("orders", QueueSettings::default())?;
    let producer = Producer::new(client, sqs.queue_url("orders")).spans(OtelSpans::new(&provider));
    producer.send(Outgoing::new(Key::new("ord-1")?, r#""ord-1""#)).await?;

    // In a function, `claimant::lambda::run` takes these consumers.
    let router = Router::new(consumers(&provider), 10)?;
    for received in sqs.receive("orders", 1, Duration::ZERO).await? {
        // The queue delivers it twice.
        deliver(&router, &sqs, &received).await?;
        deliver(&router, &sqs, &received).await?;
    }

    let spans = exporter.get_finished_spans()?;
    spans.iter().filter(|span| !has_parent(span)).for_each(|root| show(&spans, root, 0));
    Ok(())
}

async fn deliver(router: &Router, sqs: &Sqs, received: &Received) -> crate::Result {
    let message = Message::new(&*received.message_id, &*received.body)?.with_source_arn(sqs.queue_arn("orders"));
    let message = message.with_trace(&received.attributes["AWSTraceHeader"]);
    let now = router.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(30)), Duration::from_millis(500));
    router.process(&[message], time, &NoQueue).await;
    Ok(())
}

fn has_parent(span: &SpanData) -> bool {
    span.parent_span_id != SpanId::INVALID
}

/// Prints a span and all beneath it, in the order in which they began.
fn show(spans: &[SpanData], span: &SpanData, depth: usize) {
    let attribute = |name: &str| span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    let result = attribute("claimant.result").map(|result| format!(" {}", result.value)).unwrap_or_default();
    let outcome = attribute("claimant.outcome").map(|outcome| format!(": {}", outcome.value)).unwrap_or_default();
    let linked = span.links.iter().filter_map(|link| spans.iter().find(|other| other.span_context.span_id() == link.span_context.span_id()));
    let linked: String = linked.map(|other| format!(", linked to {}", other.name)).collect();
    println!("{}{}{result}{linked}{outcome}", "  ".repeat(depth), span.name);
    let mut beneath: Vec<_> = spans.iter().filter(|other| other.parent_span_id == span.span_context.span_id()).collect();
    beneath.sort_by_key(|other| other.start_time);
    beneath.iter().for_each(|other| show(spans, other, depth + 1));
}

#[cfg(test)]
mod tests {
    use claimant_test::{Scenario, TestMessage, TestQueue};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_order_is_charged_whatever_happens_and_has_its_spans() {
        for scenario in Scenario::all() {
            let exporter = InMemorySpanExporter::default();
            let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
            let queue = TestQueue::new(consumers(&provider));
            queue.play(&scenario, &[TestMessage::text(r#""ord-1""#)]).await.assert_done();
            assert!(!exporter.get_finished_spans().unwrap().is_empty(), "{scenario}");
        }
    }
}
