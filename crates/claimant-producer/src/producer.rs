//! Sends requests to SQS.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::BuildError;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::builders::SendMessageBatchRequestEntryBuilder as EntryBuilder;
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeNameForSends as SystemAttribute, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry as Entry,
};
use claimant_aws::sqs::{MESSAGE_MAX_BYTES, whole_seconds};
use claimant_core::panics::caught;
use claimant_core::{AttributeValue, Error, PayloadSink, SendSpan, Spans, Variables};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, timeout};

use crate::answer::{outcomes, refusal, unknown};
use crate::backoff::backoff;
use crate::check::DELAY_MAX_S;
use crate::error::{SendError, SendErrorKind};
use crate::large;
use crate::outgoing::Outgoing;
use crate::plan::{Plan, REQUEST_MAX_MS, TryResult};
use crate::sent::Sent;

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_millis(REQUEST_MAX_MS);

/// Sends messages to one queue. Cheap to clone.
#[derive(Clone)]
pub struct Producer {
    client: Client,
    queue_url: String,
    large: Option<Arc<dyn PayloadSink>>,
    large_over_bytes: usize,
    spans: Option<Arc<dyn Spans>>,
}

impl Producer {
    /// Creates a producer for the queue with this URL; one that ends in `.fifo` is a FIFO queue. Needs `sqs:SendMessage`, and
    /// `kms:GenerateDataKey` and `kms:Decrypt` on the queue's key where that is your own. Its requests are not retried by the client,
    /// whatever its configuration says: [tries](Self::send_all) are the producer's.
    #[must_use]
    pub fn new(client: Client, queue_url: impl Into<String>) -> Self {
        // Of retries inside of one, only the last answer would be seen: a message that may be in the queue would be said not to be.
        let config = client.config().to_builder().retry_config(RetryConfig::disabled()).build();
        let client = Client::from_conf(config);
        Self { client, queue_url: queue_url.into(), large: None, large_over_bytes: MESSAGE_MAX_BYTES, spans: None }
    }

    /// Returns a producer for the queue whose URL is in this variable, through the process's shared AWS configuration.
    ///
    /// # Errors
    /// When the variable is not set, or holds no queue's URL; when an endpoint that is set for AWS [cannot be used](claimant_aws::config).
    pub async fn from_env(variable: &str) -> Result<Self, Error> {
        Self::from_variables(Variables::from_env(), variable).await
    }

    /// Returns a producer as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(mut variables: Variables, variable: &str) -> Result<Self, Error> {
        variables.text_or_hint(variable, "give it the URL of the queue");
        let queue_url = claimant_aws::optional_queue_url(&mut variables, variable).unwrap_or_default();
        variables.finish()?;
        Ok(Self::new(Client::new(claimant_aws::config().await?), queue_url))
    }

    /// Keeps the bodies of messages that are larger than SQS takes (1 MiB with their attributes) here, such as in an `S3Payloads` (feature
    /// `s3`), and sends messages that point to them, as the SQS Extended Client does. A consumer reads them with
    /// `Consumer::large_payloads`.
    ///
    /// Each try writes a payload of its own, so that no two messages point to one. A payload whose message was not sent in the end
    /// stays: let a lifecycle rule of the bucket expire it.
    #[must_use]
    pub fn large_payloads(mut self, sink: impl PayloadSink) -> Self {
        self.large = Some(Arc::new(sink));
        self
    }

    /// Sets from which size on messages are [large](Self::large_payloads): those with more bytes than this, at most the 1 MiB that SQS
    /// takes. 262,144 is right for consumers whose batches would not fit into the 6 MB of an invocation otherwise. Without a place for large
    /// ones, none is.
    #[must_use]
    pub fn large_over_bytes(mut self, bytes: usize) -> Self {
        // Larger messages than SQS takes are large whatever is set.
        self.large_over_bytes = bytes.min(MESSAGE_MAX_BYTES);
        self
    }

    /// Sets the tracing system that is told of each message that is sent, and of what came of it. The message then takes that span's
    /// trace along, in place of the one that it was [given](Outgoing::trace), which that span is in.
    #[must_use]
    pub fn spans(mut self, spans: impl Spans) -> Self {
        self.spans = Some(Arc::new(spans));
        self
    }

    /// Sends one message.
    ///
    /// # Errors
    /// When the message was not sent, or it is not known whether it was.
    pub async fn send(&self, message: Outgoing) -> Result<Sent, SendError> {
        self.send_all([message]).await.pop().expect("send_all gives a result for each message")
    }

    /// Sends messages, up to ten and 1 MiB in a request, eight requests and eight large payloads at once: one result for each, in their
    /// order.
    ///
    /// A message that SQS fails to accept is tried five times in all, with a backoff; a request without an answer is sent again with
    /// the same ids, to a FIFO queue only while it knows them. A message that SQS refuses is not tried again, and fails alone. On a FIFO queue, groups stay in their order: a
    /// message goes out when SQS has confirmed the one before it in its group, so a long group takes a request for each
    /// message, and what follows one that was not sent is held back.
    ///
    /// Cancel safe in that sending the same messages again makes no second piece of work.
    pub async fn send_all(&self, messages: impl IntoIterator<Item = Outgoing>) -> Vec<Result<Sent, SendError>> {
        let mut opened = Vec::new();
        let messages = messages.into_iter().map(|message| {
            // A consumer follows one pointer, and what that leads to is its payload.
            let is_large = message.bytes() > self.large_over_bytes && !message.is_pointer();
            let outside = self.large.is_some() && is_large;
            self.in_span(Outgoing { outside, ..message }, &mut opened)
        });
        let results = self.send_planned(Plan::new(messages, self.is_fifo())).await;
        for (span, result) in opened.into_iter().zip(&results) {
            let end = result.as_ref().map(|sent| sent.message_id.as_str()).map_err(|error| error.kind().word());
            // What is sent does not hang on its span. The panic hook has logged a panic.
            let _ = caught(move || span.map(|span| span.end(end)));
        }
        results
    }

    /// Opens the span of a message, if there is a system for it, and returns the message as sent in it.
    fn in_span(&self, message: Outgoing, opened: &mut Vec<Option<Box<dyn SendSpan>>>) -> Outgoing {
        let Some(spans) = &self.spans else { return message };
        let opening = caught(|| spans.send(&self.queue_url, message.trace.as_deref()));
        let header = opening.as_ref().ok().and_then(|span| caught(|| span.header()).ok().flatten());
        let trace = header.or_else(|| message.trace.clone());
        opened.push(opening.ok());
        Outgoing { trace, ..message }
    }

    async fn send_planned(&self, mut plan: Plan) -> Vec<Result<Sent, SendError>> {
        let mut failures = 0;
        loop {
            let now = Instant::now();
            let batches = plan.next_batches(now);
            if batches.is_empty() {
                return plan.results();
            }
            let tries = join_all(batches.iter().map(|indexes| self.try_batch(&plan, indexes))).await;
            let mut again = false;
            for (index, tried) in batches.iter().flatten().zip(tries.into_iter().flatten()) {
                again |= plan.apply(*index, tried, now);
            }
            failures = if again { failures + 1 } else { 0 };
            if again {
                sleep(backoff(failures, &plan.message(batches[0][0]).deduplication_id)).await;
            }
        }
    }

    /// Sends one batch, and returns the result of each of its messages, in order.
    async fn try_batch(&self, plan: &Plan, indexes: &[usize]) -> Vec<TryResult> {
        let (mut entries, mut tries) = (Vec::new(), Vec::new());
        for (n, entry) in
            join_all(indexes.iter().map(|index| self.entry(plan.message(*index)))).await.into_iter().enumerate()
        {
            match entry.and_then(|entry| entry.id(n.to_string()).build().map_err(incomplete)) {
                Ok(entry) => {
                    entries.push(entry);
                    tries.push(None);
                }
                Err(tried) => tries.push(Some(tried)),
            }
        }
        let sent = if entries.is_empty() { Vec::new() } else { self.request(entries, indexes.len()).await };
        let mut sent = sent.into_iter();
        // One that was not in the request has its own; without a request, all have.
        let result = |tried: Option<TryResult>| {
            let answered = sent.next();
            tried.or(answered)
        };
        tries.into_iter().filter_map(result).collect()
    }

    /// Sends a request, and returns the result of each of so many messages; those that are not in the request have some result too.
    async fn request(&self, entries: Vec<Entry>, count: usize) -> Vec<TryResult> {
        let all = |tried: TryResult| vec![tried; count];
        let request = self.client.send_message_batch().queue_url(&self.queue_url).set_entries(Some(entries)).send();
        match timeout(REQUEST_MAX, request).await {
            Ok(Ok(output)) => outcomes(&output, count),
            Ok(Err(error)) => all(refusal(&error)),
            Err(_) => all(TryResult::Again(unknown(&format!("SQS gave no answer within {REQUEST_MAX_MS} ms")))),
        }
    }

    fn is_fifo(&self) -> bool {
        self.queue_url.ends_with(".fifo")
    }

    /// Returns a message as it is sent, without an id in the request. The payload of a large one is written first.
    async fn entry(&self, message: &Outgoing) -> Result<EntryBuilder, TryResult> {
        let written = match &self.large {
            Some(sink) if message.outside => Some(large::write(sink.as_ref(), message, REQUEST_MAX).await?),
            _ => None,
        };
        let mut entry = Entry::builder().message_body(written.as_ref().map_or(&message.body, |written| &written.body));
        let pointing = written.as_ref().map(|written| (written.attribute.as_str(), &written.value));
        for (name, value) in message.attributes.iter().chain(pointing) {
            entry = entry.message_attributes(name, attribute(value).map_err(incomplete)?);
        }
        if let Some(trace) = &message.trace {
            let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace);
            entry =
                entry.message_system_attributes(SystemAttribute::AwsTraceHeader, value.build().map_err(incomplete)?);
        }
        let fifo = self.is_fifo();
        // A standard queue refuses a deduplication id, and a FIFO queue a delay.
        let deduplication_id = fifo.then(|| message.deduplication_id.clone());
        let delay = message.delay.filter(|_| !fifo).map(|delay| whole_seconds(delay, DELAY_MAX_S));
        let entry = entry.set_message_group_id(message.group.clone()).set_message_deduplication_id(deduplication_id);
        Ok(entry.set_delay_seconds(delay))
    }
}

fn incomplete(error: BuildError) -> TryResult {
    let why = format!("the message is incomplete: {error}");
    TryResult::Refused(SendError::new(SendErrorKind::Refused, why))
}

/// Returns an attribute in the SDK's form.
fn attribute(value: &AttributeValue) -> Result<MessageAttributeValue, BuildError> {
    MessageAttributeValue::builder()
        .data_type(value.data_type())
        .set_string_value(value.as_sent().map(str::to_owned))
        .set_binary_value(value.as_bytes().map(Blob::new))
        .build()
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("queue_url", &self.queue_url).finish_non_exhaustive()
    }
}
