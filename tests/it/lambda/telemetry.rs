//! Spans, from a producer through the local SQS and a service to a real collector: by OTLP, as a function sends them.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use claimant::memory::MemoryStore;
use claimant::otel::OtelSpans;
use claimant::producer::{Outgoing, Producer};
use claimant::{AttributeValue, Consumer, Consumers, Context, HandlerError, Key};
use claimant_servers::{CollectedSpan, Collector};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use tokio::runtime::Handle;

use super::world::{QUEUE, World, body, event, invoke, work};

/// Another producer's trace, by the attribute of OpenTelemetry's instrumentations.
const TRACE: &str = "5759e988bd862e3fe1be46a994272793";

/// The tests' own HTTP client. The SDK calls it on a thread without a runtime.
struct OnRuntime {
    runtime: Handle,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl fmt::Debug for OnRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRuntime")
    }
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for OnRuntime {
    fn send_bytes<'a, 'b>(&'a self, request: Request<Bytes>) -> Answer<'b>
    where
        'a: 'b,
        Self: 'b,
    {
        let (client, runtime) = (self.client.clone(), self.runtime.clone());
        Box::pin(async move {
            let sent = runtime.spawn(async move {
                let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
                Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
            });
            sent.await?
        })
    }
}

/// A provider that exports to this collector, and only when it is flushed.
fn provider(collector: &Collector) -> SdkTracerProvider {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(OnRuntime { runtime: Handle::current(), client })
        .with_endpoint(collector.traces_url())
        .build()
        .unwrap();
    let config = BatchConfigBuilder::default().with_scheduled_delay(Duration::from_secs(3_600)).build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
    let resource = Resource::builder_empty().with_service_name("orders").build();
    SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource).build()
}

fn beneath<'a>(spans: &'a [CollectedSpan], parent: &CollectedSpan) -> Vec<(&'a str, &'a str)> {
    let children = spans.iter().filter(|span| span.parent_id == parent.id && span.trace_id == parent.trace_id);
    children.map(|span| (span.name.as_str(), span.attributes["claimant.result"].as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the collector (scripts/tools rotel)"]
async fn a_collector_gets_a_message_from_its_sending_to_its_end() {
    let mut collector = Collector::start().unwrap();
    let provider = provider(&collector);
    let world = World::start(&[]).await;

    let client = aws_sdk_sqs::Client::new(&world.config);
    let producer = Producer::new(client, world.sqs.queue_url(QUEUE)).spans(OtelSpans::new(&provider));
    let sent = |id: &str, action: &str| Outgoing::new(Key::new(id).unwrap(), body(id, action));
    let traceparent = AttributeValue::text(format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let messages = [sent("done", "ok"), sent("failed", "fail").attribute("traceparent", traceparent)];
    let results = producer.send_all(messages).await;
    assert!(results.iter().all(Result::is_ok));

    let flushed = provider.clone();
    let spans = OtelSpans::new(&provider).flush_with(move || flushed.force_flush());
    let consumer = Consumer::new("c", world.store.clone(), work).key(|work| &work.id);
    let service = world.service_of(&[], Consumers::from(consumer).spans(spans));
    let received = world.sqs.receive(QUEUE, 2, Duration::ZERO).await.unwrap();
    invoke(&service, world.event(QUEUE, &received)).await.unwrap();

    // Ten spans: two of the producer's, and two times a message with its three steps.
    let spans =
        tokio::task::spawn_blocking(move || collector.spans(|spans| spans.len() >= 10, Duration::from_secs(30)));
    let spans = spans.await.unwrap();
    assert_eq!(spans.len(), 10, "{spans:#?}");
    let sends: Vec<_> = spans.iter().filter(|span| span.name == "send orders").collect();
    assert!(sends.iter().all(|span| span.kind == "SPAN_KIND_PRODUCER"), "{sends:?}");
    for (n, status, outcome, handled) in
        [(0, "STATUS_CODE_UNSET", "completed", "returned"), (1, "STATUS_CODE_ERROR", "retry", "failed")]
    {
        let id = format!("Str({})", results[n].as_ref().unwrap().message_id);
        let of_it = |name: &str| {
            let mut named = spans.iter().filter(|span| span.name == name);
            named.find(|span| span.attributes["messaging.message.id"] == id).unwrap()
        };
        let (send, process) = (of_it("send orders"), of_it("process orders"));
        assert_eq!((process.kind.as_str(), process.status.as_str()), ("SPAN_KIND_CONSUMER", status));
        let mut links = vec![(send.trace_id.clone(), send.id.clone())];
        links.extend((n == 1).then(|| (TRACE.to_owned(), "00f067aa0ba902b7".to_owned())));
        assert_eq!(process.links, links);
        for (name, value) in [
            ("claimant.outcome", outcome),
            ("messaging.consumer.group.name", "c"),
            ("messaging.destination.name", QUEUE),
            ("messaging.system", "aws_sqs"),
        ] {
            assert_eq!(process.attributes[name], format!("Str({value})"));
        }
        let steps = [("claim", "Str(granted)"), ("handle", &*format!("Str({handled})")), ("settle", "Str(settled)")];
        assert_eq!(beneath(&spans, process), steps);
    }
    let everything = format!("{spans:?}");
    assert!(!everything.contains("no luck"), "what a handler says stays with its logs: {everything}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_gives_no_answer_holds_up_hardly_a_report() {
    let provider = SdkTracerProvider::builder().build();
    let world = World::start(&[]).await;
    let (answer, answers) = std::sync::mpsc::channel::<()>();
    let (answers, flushes) = (std::sync::Mutex::new(answers), Arc::<AtomicUsize>::default());
    let begun = Arc::clone(&flushes);
    let spans = OtelSpans::new(&provider).flush_with(move || {
        begun.fetch_add(1, Ordering::SeqCst);
        answers.lock().unwrap().recv().map_err(|_| "the test is over")
    });
    async fn nothing(_: String, _: Context) -> Result<(), HandlerError> {
        Ok(())
    }
    let consumer = Consumer::new("c", MemoryStore::new(), nothing).key(|text| text);
    let service = world.service_of(&[], Consumers::from(consumer).spans(spans));
    let invoked = || async {
        let (record, start) = (serde_json::json!({ "messageId": "m-1", "body": "\"a\"" }), Instant::now());
        let deadline = claimant::Clock::now(&claimant::SystemClock).plus(Duration::from_secs(30)).as_millis();
        let response = service.invoke(event(vec![record]), deadline, "").await.unwrap();
        assert!(response.0.batch_item_failures.is_empty());
        start.elapsed()
    };
    // The first waits half a second, and no longer. The next ones find its flush still running. What waits does so each time, and a machine
    // that stands still does not: the quickest of three decides.
    let first = invoked().await;
    assert!((Duration::from_millis(500)..Duration::from_secs(5)).contains(&first), "{first:?}");
    let during = [invoked().await, invoked().await, invoked().await];
    assert!(during.iter().min() < Some(&Duration::from_millis(400)), "{during:?}");
    assert_eq!(flushes.load(Ordering::SeqCst), 1, "one export at a time");
    // Those that begin the next twenty do not wait either: each time the last call, by which it has begun. One slow one may be a machine
    // that stands still. Who begins the one after these waits again.
    let mut beginning = [Duration::ZERO; 21];
    for (number, took) in (2..).zip(&mut beginning) {
        answer.send(()).unwrap();
        while flushes.load(Ordering::SeqCst) < number {
            *took = invoked().await;
        }
    }
    let [unawaited @ .., awaited] = &beginning;
    let slow = unawaited.iter().filter(|took| **took >= Duration::from_millis(400)).count();
    assert!(slow <= 1 && *awaited >= Duration::from_millis(500), "{beginning:?}");
    drop(answer);
}
