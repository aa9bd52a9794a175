//! The function's life: one invocation after the other.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::Client;
use claimant_core::{Consumer, Engine, Error, Report, Schedule, Settings, Timestamp};
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};

use crate::deadline::Deadlines;
use crate::event::{self, Queue};
use crate::{logging, response, visibility};

/// The part of an invocation kept for changing the visibility of failed messages.
const VISIBILITY_RESERVE_MS: u64 = 300;

/// Runs a consumer as a Lambda function until the runtime ends it: the one call in `main`.
///
/// Sets up logs by Lambda's variables, unless the function has a `tracing` subscriber already.
///
/// # Errors
/// When the consumer's settings are not usable, or there is no Lambda runtime to talk to.
pub async fn run<T>(settings: &Settings, consumer: Consumer<T>) -> Result<(), Error>
where
    T: for<'de> serde::Deserialize<'de> + Send + 'static,
{
    logging::init();
    if std::env::var_os("AWS_LAMBDA_RUNTIME_API").is_none() {
        return Err(Error::new(
            "there is no Lambda runtime here (AWS_LAMBDA_RUNTIME_API is not set): start the function with `claimant local`, \
             `cargo lambda watch` or on Lambda, not by itself",
        ));
    }
    let service = Arc::new(Service::new(settings, consumer).await?);
    let invoke = service_fn(move |event: LambdaEvent<SqsEvent>| {
        let service = Arc::clone(&service);
        async move { service.invoke(event.payload, event.context.deadline).await.map_err(diagnostic) }
    });
    lambda_runtime::run(invoke).await.map_err(|e| Error::new("the Lambda runtime ended").caused_by(e))
}

fn diagnostic(error: Error) -> Diagnostic {
    Diagnostic { error_type: "claimant::Error".to_owned(), error_message: error.to_string() }
}

/// One consumer, ready for invocations. [`run`] drives it; tests can do so without a Lambda runtime.
#[derive(Debug)]
pub struct Service<T> {
    engine: Engine<T>,
    deadlines: Deadlines,
    margin: Duration,
    queue_client: Option<Client>,
}

impl<T> Service<T>
where
    T: for<'de> serde::Deserialize<'de> + Send + 'static,
{
    /// A service for this consumer.
    ///
    /// # Errors
    /// When the consumer's settings are not usable: one error with every fault.
    pub async fn new(settings: &Settings, consumer: Consumer<T>) -> Result<Self, Error> {
        let queue_client = match settings.change_visibility {
            true => Some(Client::new(claimant_aws::config().await)),
            false => None,
        };
        Self::with_queue_client(settings, consumer, queue_client)
    }

    /// As [`new`](Self::new), with this client for changing visibility, or none to leave it as it is.
    ///
    /// # Errors
    /// As there.
    pub fn with_queue_client(
        settings: &Settings,
        consumer: Consumer<T>,
        queue_client: Option<Client>,
    ) -> Result<Self, Error> {
        Ok(Self {
            engine: Engine::new(consumer, settings.concurrency)?,
            deadlines: Deadlines::new(settings.local_timeout),
            margin: settings.margin,
            queue_client,
        })
    }

    /// One invocation: the event's records in, a partial batch response out, before the deadline (in milliseconds since
    /// the epoch, as the runtime gives it).
    ///
    /// # Errors
    /// Only when a record has no usable message id: the whole batch then fails and nothing is deleted.
    pub async fn invoke(&self, event: SqsEvent, deadline_ms: u64) -> Result<SqsBatchResponse, Error> {
        let batch = event::batch(event)?;
        let now = self.engine.now();
        let deadline = self.deadlines.of(deadline_ms, now);
        let reserve = self.queue_client.as_ref().map_or(0, |_| VISIBILITY_RESERVE_MS);
        let schedule = Schedule::new(now, deadline, self.margin + Duration::from_millis(reserve));
        let report = self.engine.process(batch.messages, schedule).await;
        self.summarize(&report);
        self.change_visibility(batch.queue.as_ref(), &batch.receipts, &report, deadline).await;
        Ok(response::response(&report))
    }

    async fn change_visibility(
        &self,
        queue: Option<&Queue>,
        receipts: &[Option<String>],
        report: &Report,
        deadline: Timestamp,
    ) {
        if let (Some(client), Some(queue)) = (&self.queue_client, queue) {
            let within = deadline.minus(self.margin).since(self.engine.now());
            visibility::change(client, queue, receipts, report, within).await;
        }
    }

    /// One line for each batch.
    fn summarize(&self, report: &Report) {
        let counts = report.counts();
        let count = |word: &str| counts.get(word).copied().unwrap_or_default();
        tracing::info!(
            consumer = %self.engine.name(),
            received = report.entries().len(),
            failed = report.failures().len(),
            completed = count("completed"),
            duplicate = count("duplicate"),
            busy = count("busy"),
            retry = count("retry"),
            rejected = count("rejected"),
            parked = count("parked"),
            not_started = count("not_started"),
            blocked = count("blocked"),
            stuck = count("stuck"),
            lost = count("lost"),
            unsettled = count("unsettled"),
            store_failed = count("store_failed"),
            "batch done"
        );
    }
}
