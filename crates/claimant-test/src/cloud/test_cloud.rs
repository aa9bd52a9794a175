//! One function of a template in the local cloud.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use claimant_core::own_attributes::ERROR;
use claimant_core::{ConsumerName, Key, RecordId};
use claimant_local::cloud::{Cloud, CloudConfig};
use claimant_local::dynamodb::Item;
use claimant_local::lambda::Function;
use claimant_local::sqs::{AttributeValue, MessageAttribute, NewMessage};
use claimant_local::stack::{FunctionSpec, Stack};

use crate::message::TestMessage;

/// How long anything may take that a test waits for; nothing is decided by how long it took.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The timeout of the function and the visibility timeout of the queues: how long a test waits for what a dead process held.
const SHORT: Duration = Duration::from_secs(3);

/// Between two looks at what a test waits for.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Most messages that are taken from a dead-letter queue at once.
const LETTERS_MAX: usize = 10_000;

/// A function's binary, the template that it is in, and what differs from it.
///
/// The function's timeout and the queues' visibility timeouts are 3 s, since that is what a test waits for after a process died, and
/// its logs are at `TRACE`, so that a test sees all that could be logged.
#[derive(Debug, Clone)]
pub struct TestCloudConfig {
    template: PathBuf,
    binary: PathBuf,
    parameters: BTreeMap<String, String>,
    variables: BTreeMap<String, String>,
    timeout: Duration,
    slow_charge: Duration,
}

impl TestCloudConfig {
    /// Returns the function of this template that has this binary, such as `env!("CARGO_BIN_EXE_payment")`.
    pub fn new(template: impl Into<PathBuf>, binary: impl Into<PathBuf>) -> Self {
        Self {
            template: template.into(),
            binary: binary.into(),
            parameters: BTreeMap::new(),
            variables: BTreeMap::new(),
            timeout: SHORT,
            slow_charge: Duration::ZERO,
        }
    }

    /// Sets a parameter of the template.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.insert(name.into(), value.into());
        self
    }

    /// Sets a variable of the function, over the template's: also one that the template would refuse.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the function's timeout and the queues' visibility timeouts, instead of 3 s.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sets how long a charge of the local payment gateway takes whose order begins with `slow`, instead of no time.
    #[must_use]
    pub fn slow_charge(self, delay: Duration) -> Self {
        Self { slow_charge: delay, ..self }
    }

    /// Starts the cloud with this function. Its process starts with the first message.
    ///
    /// # Panics
    /// When the template cannot be used, or has no function with this binary and a queue.
    pub async fn start(self) -> TestCloud {
        let name = self.binary.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (logs, timeout, variables) = (Arc::<Mutex<Vec<String>>>::default(), self.timeout, self.variables);
        let (sink, of) = (Arc::clone(&logs), name.clone());
        let mut config = CloudConfig {
            parameters: self.parameters,
            only: vec![name.clone()],
            logs: Arc::new(move |_, line| sink.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned())),
            adjust: Arc::new(move |stack| shorten(stack, &of, timeout, &variables)),
            ..CloudConfig::new(self.template, self.binary.parent().unwrap_or(Path::new(".")))
        };
        config.delays.charge = self.slow_charge;
        let cloud =
            Cloud::start(config).await.unwrap_or_else(|error| panic!("the local cloud does not start: {error:?}"));
        let spec = cloud.stack().functions.iter().find(|spec| spec.is_called(&name)).cloned();
        let spec = spec.expect("the cloud starts only with the function that was asked for");
        let queue = spec.mappings.first().map(|mapping| mapping.queue.clone());
        let queue = queue.unwrap_or_else(|| panic!("the template gives {name} no queue"));
        TestCloud { cloud, spec, queue, logs }
    }
}

/// Makes the times of a template short, and sets a function's variables.
fn shorten(stack: &mut Stack, function: &str, timeout: Duration, variables: &BTreeMap<String, String>) {
    for queue in &mut stack.queues {
        queue.settings.visibility_timeout = timeout;
    }
    for spec in stack.functions.iter_mut().filter(|spec| spec.is_called(function)) {
        spec.timeout = timeout;
        // A test sees every line, those for each message too, whatever the template's `LoggingConfig`.
        spec.log_level = None;
        for (name, value) in [("AWS_LAMBDA_LOG_LEVEL", "TRACE"), ("CLAIMANT_LOG_MESSAGES", "on")] {
            spec.environment.insert(name.to_owned(), value.to_owned());
        }
        spec.environment.extend(variables.clone());
    }
}

/// A function in the local cloud. Dropping it stops the endpoints and the function's processes.
pub struct TestCloud {
    cloud: Cloud,
    spec: FunctionSpec,
    queue: String,
    logs: Arc<Mutex<Vec<String>>>,
}

impl TestCloud {
    /// Returns the cloud: its tables, queues, mailbox and payment gateway.
    #[must_use]
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// Returns the function.
    ///
    /// # Panics
    /// Never: the cloud was started with it.
    #[must_use]
    pub fn function(&self) -> &Function {
        self.cloud.function(&self.spec.name).expect("the cloud was started with it")
    }

    /// Sends messages to the function's queue.
    ///
    /// # Panics
    /// When the queue refuses one.
    pub fn send(&self, messages: &[TestMessage]) {
        for message in messages {
            let sent = self.cloud.sqs().send(&self.queue, outgoing(message));
            sent.unwrap_or_else(|error| panic!("the queue refuses a message: {error:?}"));
        }
    }

    /// Waits until no queue holds a message, dead-letter queues aside.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`], with the function's logs.
    pub async fn drained(&self) {
        let is_empty = || self.cloud.drained().unwrap_or_else(|error| panic!("a queue is gone: {error:?}"));
        self.until("the queue is empty", is_empty).await;
    }

    /// Waits until this holds.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`], with the function's logs.
    pub async fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let start = Instant::now();
        while !holds() {
            assert!(start.elapsed() < PATIENCE, "waited for: {what}; logs:\n{}", self.logged());
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the record of a key of this consumer in the lock table, which `CLAIMANT_TABLE` names, also where keys are hashed.
    ///
    /// # Panics
    /// When there is no such table, and when this is no name of a consumer, or no key.
    #[must_use]
    pub fn record(&self, consumer: &str, key: &str) -> Option<Item> {
        let tables = self.spec.environment.get("CLAIMANT_TABLE").expect("the function has a lock table");
        let items = tables.split(',').flat_map(|table| {
            self.cloud.dynamodb().items(table.trim()).unwrap_or_else(|error| panic!("no lock table: {error:?}"))
        });
        let name = ConsumerName::new(consumer).expect("it is the name of a consumer");
        let key = Key::new(key).expect("a key is not empty and not too long");
        let ids = RecordId::both(&name, &key);
        items.into_iter().find(|item| item.text("id").is_some_and(|id| ids.iter().any(|own| own.as_str() == id)))
    }

    /// Takes the messages out of the queue's dead-letter queue: body and reason of each, in no order. The reason is empty where the
    /// queue itself has moved a message.
    ///
    /// # Panics
    /// When there is no dead-letter queue.
    pub async fn dead_letters(&self) -> Vec<(String, String)> {
        let queue = self.cloud.stack().queues.iter().find(|queue| queue.name == self.queue);
        let redrive =
            queue.and_then(|queue| queue.settings.redrive.as_ref()).expect("the queue has a dead-letter queue");
        let letters = self.cloud.sqs().receive(&redrive.dead_letter_queue, LETTERS_MAX, Duration::ZERO).await;
        let letters = letters.unwrap_or_else(|error| panic!("no dead-letter queue: {error:?}"));
        let reason = |value: &AttributeValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let each = letters.into_iter().map(|letter| {
            let taken = self.cloud.sqs().delete(&redrive.dead_letter_queue, &letter.receipt_handle);
            taken.unwrap_or_else(|error| panic!("a dead letter cannot be deleted: {error:?}"));
            let why = letter.message_attributes.get(ERROR).map(|attribute| reason(&attribute.value));
            (letter.body, why.unwrap_or_default())
        });
        each.collect()
    }

    /// Returns what the function wrote so far, a line each.
    #[must_use]
    pub fn logged(&self) -> String {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Stops everything, and returns what the function wrote.
    pub async fn stop(self) -> String {
        let Self { cloud, logs, .. } = self;
        cloud.stop().await;
        logs.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}

impl std::fmt::Debug for TestCloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestCloud").field("function", &self.spec.name).finish_non_exhaustive()
    }
}

/// Returns a message as the queue takes it. A FIFO queue deduplicates by all that differs: body, attributes, group and copy.
fn outgoing(message: &TestMessage) -> NewMessage {
    let parts = message.message(1);
    let attributes = parts.attributes().iter().map(|(name, value)| {
        let text = || AttributeValue::Text(value.as_sent().unwrap_or_default().to_owned());
        let value_of = value.as_bytes().map_or_else(text, |bytes| AttributeValue::Binary(bytes.to_vec()));
        (name.to_owned(), MessageAttribute { data_type: value.data_type(), value: value_of })
    });
    NewMessage {
        group_id: parts.group().map(str::to_owned),
        deduplication_id: parts.ordered_group().map(|_| message.deduplication_id()),
        message_attributes: attributes.collect(),
        trace_header: parts.trace_header().map(str::to_owned),
        ..NewMessage::new(message.body())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_that_of_the_test_whatever_the_templates() {
        let template = "Transform: AWS::Serverless-2016-10-31
Resources:
  F:
    Type: AWS::Serverless::Function
    Properties: {Runtime: provided.al2023, LoggingConfig: {LogFormat: JSON, ApplicationLogLevel: WARN}}
";
        let debug = BTreeMap::from([("AWS_LAMBDA_LOG_LEVEL".to_owned(), "DEBUG".to_owned())]);
        for (variables, expected) in [(BTreeMap::new(), "TRACE"), (debug, "DEBUG")] {
            let mut stack = Stack::parse(template, &BTreeMap::new()).unwrap();
            shorten(&mut stack, "F", SHORT, &variables);
            let spec = &stack.functions[0];
            assert_eq!((spec.environment["AWS_LAMBDA_LOG_LEVEL"].as_str(), &spec.log_level), (expected, &None));
        }
    }
}
