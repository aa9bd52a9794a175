//! A consumer on local SQS, its store and everything that it shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::config::{Credentials, Region};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use claimant::lambda::{Service, Settings};
use claimant::memory::MemoryStore;
use claimant::store::Store;
use claimant::{Clock, Consumer, Consumers, Context, Error, HandlerError, SystemClock, Variables};
use claimant_local::sqs::{AttributeValue, NewMessage, QueueSettings, Received, Sqs};
use claimant_testkit::FaultyStore;
use claimant_testkit::logs::Logs;
use claimant_tests::wire::Wire;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The timeout of an invocation: none of these tests comes near it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The queue of every test, unless it says otherwise.
pub(super) const QUEUE: &str = "orders";

/// What a message asks the handler to do.
#[derive(Debug, Deserialize)]
pub(super) struct Work {
    pub(super) id: String,
    #[serde(rename = "do")]
    pub(super) action: String,
}

pub(super) async fn work(work: Work, cx: Context) -> Result<(), HandlerError> {
    assert_eq!(work.id, cx.key());
    match work.action.as_str() {
        "ok" => Ok(()),
        "fail" => Err(HandlerError::retry("no luck")),
        "at-once" => Err(HandlerError::retry("no luck").after(Duration::ZERO)),
        "panic" => panic!("on purpose"),
        reject => Err(HandlerError::terminal(reject.to_owned())),
    }
}

/// The body that asks for this.
pub(super) fn body(id: &str, action: &str) -> String {
    json!({ "id": id, "do": action }).to_string()
}

pub(super) struct World {
    pub(super) sqs: Sqs,
    pub(super) wire: Wire,
    pub(super) store: FaultyStore,
    pub(super) config: SdkConfig,
    pub(super) metrics: Arc<Mutex<Vec<Value>>>,
}

impl World {
    /// Local SQS with these queues beside [`QUEUE`]; none of them has a redrive policy.
    pub(super) async fn start(queues: &[&str]) -> Self {
        let sqs = Sqs::new();
        for name in queues.iter().chain(&[QUEUE]) {
            let fifo = name.ends_with(".fifo");
            sqs.create_queue(name, QueueSettings { fifo, ..QueueSettings::default() }).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        sqs.set_endpoint(&endpoint);
        tokio::spawn(sqs.clone().serve(listener, std::future::pending()));
        let wire = Wire::default();
        let config = aws(&endpoint, wire.clone()).await;
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        Self { sqs, wire, store, config, metrics: Arc::default() }
    }

    /// A service of [`work`] with these variables.
    pub(super) fn service(&self, variables: &[(&str, &str)]) -> Service {
        self.service_of(variables, Consumer::new("c", self.store.clone(), work).key(|w| &w.id))
    }

    pub(super) fn service_of(&self, variables: &[(&str, &str)], consumers: impl Into<Consumers>) -> Service {
        let metrics = Arc::clone(&self.metrics);
        let service = Service::with_aws(&settings(variables), consumers, Some(&self.config)).unwrap();
        service.metrics(move |line| metrics.lock().unwrap().push(serde_json::from_str(line).unwrap()))
    }

    /// A service of [`work`] that writes no metric records.
    pub(super) fn service_without_metrics(&self, store: impl Store) -> Service {
        let consumer = Consumer::new("order-confirmation", store, work).key(|w| &w.id);
        Service::with_aws(&settings(&[("CLAIMANT_METRICS", "off")]), consumer, Some(&self.config)).unwrap()
    }

    /// Sends these messages and receives them in one batch.
    pub(super) async fn batch(&self, queue: &str, messages: Vec<NewMessage>) -> Vec<Received> {
        let count = messages.len();
        for message in messages {
            self.sqs.send(queue, message).unwrap();
        }
        let received = self.sqs.receive(queue, count, Duration::ZERO).await.unwrap();
        assert_eq!(received.len(), count);
        received
    }

    pub(super) fn event(&self, queue: &str, messages: &[Received]) -> SqsEvent {
        let arn = self.sqs.queue_arn(queue);
        let records = messages.iter().map(|message| {
            json!({
                "messageId": message.message_id,
                "receiptHandle": message.receipt_handle,
                "body": message.body,
                "attributes": message.attributes,
                "messageAttributes": attributes(message),
                "eventSourceARN": arn,
            })
        });
        event(records.collect())
    }

    /// Every message that is visible in the queue.
    pub(super) async fn visible(&self, queue: &str) -> Vec<Received> {
        self.sqs.receive(queue, 100, Duration::ZERO).await.unwrap()
    }
}

fn attributes(message: &Received) -> BTreeMap<&str, Value> {
    let attributes = message.message_attributes.iter().map(|(name, attribute)| {
        let value = match &attribute.value {
            AttributeValue::Text(text) => json!({ "stringValue": text, "dataType": attribute.data_type }),
            AttributeValue::Binary(bytes) => {
                json!({ "binaryValue": BASE64.encode(bytes), "dataType": attribute.data_type })
            }
        };
        (name.as_str(), value)
    });
    attributes.collect()
}

/// The event with these records.
pub(crate) fn event(records: Vec<Value>) -> SqsEvent {
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

/// An AWS configuration for this endpoint.
pub(super) async fn aws(endpoint: &str, wire: Wire) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .endpoint_url(endpoint)
        .http_client(wire)
        .retry_config(aws_config::retry::RetryConfig::disabled())
        .load()
        .await
}

/// Settings from these variables; the mapping is not looked at unless they say so.
pub(crate) fn settings(variables: &[(&str, &str)]) -> Settings {
    let off = [("CLAIMANT_MAPPING_CHECK", "off")];
    let variables = off.iter().chain(variables).copied();
    Settings::from_variables(Variables::new(variables)).unwrap()
}

/// One invocation, with a deadline like Lambda's.
pub(super) async fn invoke(service: &Service, event: SqsEvent) -> Result<SqsBatchResponse, Error> {
    Ok(service.invoke(event, SystemClock.now().plus(TIMEOUT).as_millis(), "").await?.0)
}

/// The ids reported failed.
pub(crate) fn failures(response: &SqsBatchResponse) -> Vec<&str> {
    response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect()
}

/// Features of the functions here take these levels out of releases, and out of debug builds too where `tracing` is built without its
/// own assertions: tests that look for secrets at `TRACE` would see nothing.
#[test]
fn what_is_built_here_has_all_levels() {
    assert_eq!(tracing::level_filters::STATIC_MAX_LEVEL, tracing::level_filters::LevelFilter::TRACE);
}

#[test]
fn a_line_that_another_thread_met_first_is_recorded() {
    let logs = Logs::record();
    let line = || tracing::info!("met");
    std::thread::spawn(line).join().unwrap();
    assert_eq!(logs.text(), "");
    line();
    assert!(logs.text().contains("met"));
}
