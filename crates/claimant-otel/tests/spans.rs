//! What OpenTelemetry is told of messages: by an engine on the store in memory, and the SDK's exporter in memory.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use claimant_core::batch::Items;
use claimant_core::{
    AttributeValue, Consumer, Consumers, Context, HandlerError, HandlerThreads, InvocationTime, MemoryStore, Message,
    NoQueue, Router, Routes, Terminal as _,
};
use claimant_otel::OtelSpans;
use opentelemetry::trace::{SpanId, SpanKind, Status, TraceContextExt as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

const TRACE: &str = "5759e988bd862e3fe1be46a994272793";
const QUEUE: &str = "arn:aws:sqs:eu-west-1:123456789012:orders";

/// What was exported.
struct Exported(Vec<SpanData>);

impl Exported {
    /// Returns the only span of this name.
    fn one<'a>(&'a self, name: &'a str) -> &'a SpanData {
        let mut named = self.named(name);
        let (first, more) = (named.next(), named.next());
        assert!(more.is_none(), "there are several of {name}");
        first.unwrap_or_else(|| panic!("there is no {name}"))
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a SpanData> {
        self.0.iter().filter(move |span| span.name == name)
    }

    /// Returns the names of the spans beneath this one, in the order in which they ended, with what came of each.
    fn beneath(&self, parent: &SpanData) -> Vec<String> {
        let id = parent.span_context.span_id();
        let children = self.0.iter().filter(|span| span.parent_span_id == id);
        children.map(|span| format!("{} {}", span.name, attribute(span, "claimant.result"))).collect()
    }

    /// Returns the span of the message with this id.
    fn of_message(&self, id: &str) -> &SpanData {
        self.named("process orders").find(|span| attribute(span, "messaging.message.id") == id).unwrap()
    }
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

fn links(span: &SpanData) -> Vec<String> {
    span.links.iter().map(|link| format!("{}/{}", link.span_context.trace_id(), link.span_context.span_id())).collect()
}

fn message(id: &str, body: &str) -> Message {
    Message::new(id, body).unwrap().with_source_arn(QUEUE)
}

/// Works on a batch, and returns what was exported.
async fn work(consumers: impl Into<Consumers>, batch: &[Message]) -> Exported {
    work_on(None, consumers, batch).await
}

/// The same, with handlers on these threads.
async fn work_on(threads: Option<HandlerThreads>, consumers: impl Into<Consumers>, batch: &[Message]) -> Exported {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let consumers = consumers.into().spans(OtelSpans::new(&provider));
    let mut router = Router::new(consumers, 10).unwrap();
    if let Some(threads) = threads {
        router = router.handlers_on(threads);
    }
    let now = router.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(30)), Duration::from_millis(500));
    router.process(batch, time, &NoQueue).await;
    Exported(exporter.get_finished_spans().unwrap())
}

async fn even(number: u64, _: Context) -> Result<(), HandlerError> {
    match number {
        9 => Err(HandlerError::retry("a secret: 9")),
        7 => panic!("seven"),
        odd if odd % 2 == 1 => Err("a secret").terminal(),
        _ => Ok(()),
    }
}

fn consumer() -> Consumer<u64> {
    Consumer::new("even", MemoryStore::new(), even).key(|number| number)
}

#[tokio::test(start_paused = true)]
async fn a_message_is_a_span_with_its_steps_under_it_and_a_link_to_its_producer() {
    let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    let traceparent = AttributeValue::text(format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let sent = message("m-1", "2").with_trace(header).with_attribute("traceparent", traceparent).with_receive_count(3);
    let exported = work(consumer(), &[sent]).await;
    let span = exported.one("process orders");
    assert_eq!((&span.span_kind, &span.status), (&SpanKind::Consumer, &Status::Unset));
    assert_eq!(span.parent_span_id, SpanId::INVALID);
    assert_eq!(links(span), [format!("{TRACE}/53995c3f42cd8ad8"), format!("{TRACE}/00f067aa0ba902b7")]);
    let wanted = [
        ("messaging.system", "aws_sqs"),
        ("messaging.operation.name", "process"),
        ("messaging.operation.type", "process"),
        ("messaging.destination.name", "orders"),
        ("messaging.message.id", "m-1"),
        ("messaging.consumer.group.name", "even"),
        ("faas.trigger", "pubsub"),
        ("claimant.outcome", "completed"),
        ("claimant.receive_count", "3"),
        ("claimant.attempt", "1"),
        ("claimant.fence", "1"),
    ];
    let found: BTreeMap<_, _> = span.attributes.iter().map(|a| (a.key.to_string(), a.value.to_string())).collect();
    assert_eq!(found, wanted.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert_eq!(exported.beneath(span), ["claim granted", "handle returned", "settle settled"]);
    assert_eq!(attribute(exported.one("settle"), "claimant.wanted"), "completed");
    for step in ["claim", "handle", "settle"].map(|name| exported.one(name)) {
        assert_eq!(step.span_context.trace_id(), span.span_context.trace_id());
        assert!(span.start_time <= step.start_time && step.end_time <= span.end_time, "{}", step.name);
    }
}

#[tokio::test(start_paused = true)]
async fn each_outcome_is_told_and_no_payload_is() {
    let bodies = ["2", "2", "3", "9", "7", "x"];
    let batch: Vec<_> = bodies.iter().enumerate().map(|(n, body)| message(&format!("m-{n}"), body)).collect();
    let exported = work(consumer(), &batch).await;
    let told = |id: &str| {
        let span = exported.of_message(id);
        (attribute(span, "claimant.outcome"), attribute(span, "error.type"), exported.beneath(span).join(", "))
    };
    let row = |outcome: &str, error: &str, beneath: &str| (outcome.to_owned(), error.to_owned(), beneath.to_owned());
    assert_eq!(told("m-0"), row("completed", "", "claim granted, handle returned, settle settled"));
    assert_eq!(told("m-1"), row("duplicate", "", ""));
    assert_eq!(told("m-2"), row("rejected", "rejected", "claim granted, handle rejected, settle settled"));
    assert_eq!(told("m-3"), row("retry", "retry", "claim granted, handle failed, settle settled"));
    assert_eq!(told("m-4"), row("retry", "retry", "claim granted, handle panicked, settle settled"));
    assert_eq!(told("m-5"), row("rejected", "rejected", ""));
    assert_eq!(exported.of_message("m-2").status, Status::error("rejected"));
    assert_eq!(attribute(exported.of_message("m-2"), "claimant.dead_lettered"), "false");
    let all = format!("{:?}", exported.0);
    assert!(!all.contains("secret") && !all.contains("seven"), "{all}");
}

#[tokio::test]
async fn what_a_handler_opens_is_under_its_own_span() {
    static SEEN: Mutex<Vec<(String, SpanId)>> = Mutex::new(Vec::new());
    async fn look(name: String, _: Context) -> Result<(), HandlerError> {
        tokio::task::yield_now().await;
        let current = opentelemetry::Context::current();
        SEEN.lock().unwrap().push((name, current.span().span_context().span_id()));
        Ok(())
    }
    let consumer = Consumer::new("look", MemoryStore::new(), look).key(|name| name);
    let exported = work(consumer, &[message("m-a", r#""a""#), message("m-b", r#""b""#)]).await;
    let seen = SEEN.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    for (name, current) in seen {
        let handle = exported.named("handle").find(|span| span.span_context.span_id() == current).unwrap();
        let parent = exported.of_message(&format!("m-{name}"));
        assert_eq!(handle.parent_span_id, parent.span_context.span_id());
    }
    assert!(!opentelemetry::Context::current().span().span_context().is_valid());
}

#[tokio::test(start_paused = true)]
async fn a_call_for_several_messages_is_linked_to_the_step_of_each() {
    async fn each(items: Items<u64>) -> Result<Vec<Result<(), HandlerError>>, HandlerError> {
        Ok(items.payloads().map(|n| if *n == 1 { Err(HandlerError::retry("no")) } else { Ok(()) }).collect())
    }
    let consumer = Consumer::batch("each", MemoryStore::new(), each).key(|number| number);
    let exported = work(consumer, &["0", "1", "2"].map(|n| message(&format!("m-{n}"), n))).await;
    let call = exported.one("call");
    let handles = exported
        .named("handle")
        .map(|span| format!("{}/{}", span.span_context.trace_id(), span.span_context.span_id()));
    let (mut handles, mut linked) = (handles.collect::<Vec<_>>(), links(call));
    handles.sort();
    linked.sort();
    assert_eq!((linked.len(), linked), (3, handles));
    assert_eq!(
        (attribute(call, "claimant.items").as_str(), attribute(call, "claimant.result").as_str()),
        ("3", "returned")
    );
    for (id, wanted) in [("m-0", "handle returned"), ("m-1", "handle failed")] {
        assert_eq!(exported.beneath(exported.of_message(id))[1], wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_for_several_consumers_is_one_span_also_where_no_route_takes_it() {
    let by_name = |name: &str| Consumer::new(name, MemoryStore::new(), even).key(|number| number);
    // What any part is given is for all.
    let routes = Routes::by_attribute("kind").on("a", by_name("first")).on("b", by_name("second"));
    let of = |id: &str, kind: &str| message(id, "2").with_attribute("kind", AttributeValue::text(kind));
    let exported = work(routes, &[of("m-a", "a"), of("m-b", "b"), of("m-c", "c")]).await;
    let told = |id: &str| {
        let span = exported.of_message(id);
        (attribute(span, "messaging.consumer.group.name"), attribute(span, "claimant.outcome"))
    };
    assert_eq!(told("m-a"), ("first".to_owned(), "completed".to_owned()));
    assert_eq!(told("m-b"), ("second".to_owned(), "completed".to_owned()));
    assert_eq!(told("m-c"), (String::new(), "rejected".to_owned()));
    assert_eq!(exported.named("process orders").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_never_ends_does_not_keep_its_spans() {
    async fn sleep(_: u64, _: Context) -> Result<(), HandlerError> {
        std::future::pending().await
    }
    let consumer = Consumer::new("sleep", MemoryStore::new(), sleep).key(|n| n).timeout(Duration::from_secs(1));
    let exported = work(consumer, &[message("m-1", "1")]).await;
    assert_eq!(attribute(exported.of_message("m-1"), "claimant.outcome"), "cancelled");
    assert_eq!(attribute(exported.one("handle"), "error.type"), "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_blocks_its_thread_for_good_does_not_keep_its_spans_either() {
    static HELD: OnceLock<Mutex<Receiver<()>>> = OnceLock::new();
    async fn block(_: u64, _: Context) -> Result<(), HandlerError> {
        let _ = HELD.get().unwrap().lock().unwrap().recv();
        Ok(())
    }
    let (hold, held) = channel();
    HELD.set(Mutex::new(held)).unwrap();
    let threads = |count| tokio::runtime::Builder::new_multi_thread().worker_threads(count).enable_all().build();
    let threads = HandlerThreads::new(1, threads).unwrap();
    let consumer = Consumer::new("block", MemoryStore::new(), block).key(|n| n).timeout(Duration::from_millis(50));
    let exported = work_on(Some(threads), consumer, &[message("m-1", "1")]).await;
    assert_eq!(attribute(exported.of_message("m-1"), "claimant.outcome"), "stuck");
    assert_eq!(attribute(exported.one("handle"), "claimant.result"), "stuck");
    drop(hold);
}
