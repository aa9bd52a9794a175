//! What the engine does in SQS while a batch runs: it extends visibility timeouts, deletes messages early, and copies messages
//! to the dead-letter queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_config::SdkConfig;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry as Deletion, MessageSystemAttributeNameForSends as SystemAttribute,
    MessageSystemAttributeValue, SendMessageBatchRequestEntry as Entry,
};
use claimant_aws::Later;
use claimant_aws::intake::Mapping;
use claimant_aws::sqs::{MESSAGE_MAX_BYTES, whole_seconds};
use claimant_core::limits::{DEAD_LETTERS_BATCH_MAX, VISIBILITY_MAX_S};
use claimant_core::{Confirmation, DeadLetter, HideAnswer, Intake, Queue, SendAgain};

use futures_util::future::{BoxFuture, join_all};
use tokio::time::{sleep, timeout};

use crate::entries::Failed;
use crate::event::Batch;
use crate::letter::{self, DeadLetterQueue};
use crate::schedules::Schedules;

/// After how long what SQS throttled of a deletion, or could not do, is asked for again.
const DELETE_AGAIN: Duration = Duration::from_millis(200);

/// The longest that one try of a request may take, which has up to a megabyte: one whose connection is gone without a word leaves time
/// for another.
const TRY_MAX_MS: u64 = 5_000;

/// Returns a client whose tries end in time.
pub(crate) fn client(config: &SdkConfig) -> Client {
    let timeouts = config.timeout_config().map_or_else(TimeoutConfig::builder, TimeoutConfig::to_builder);
    let timeouts = timeouts.operation_attempt_timeout(Duration::from_millis(TRY_MAX_MS)).build();
    Client::from_conf(aws_sdk_sqs::config::Builder::from(config).timeout_config(timeouts).build())
}

/// What the function may do with SQS. The client is created at its first use.
pub(crate) struct SqsAccess {
    /// Without it, no call has an effect.
    pub(crate) client: Option<Later<Client>>,
    /// Whether visibility may be changed.
    pub(crate) may_hide: bool,
    pub(crate) dead_letters: Option<DeadLetterQueue>,
    pub(crate) schedules: Option<Schedules>,
}

impl SqsAccess {
    /// Returns the client by which visibility is changed, unless it stays as it is.
    pub(crate) fn hiding(&self) -> Option<&Later<Client>> {
        self.client.as_ref().filter(|_| self.may_hide)
    }
}

/// The queue of one batch.
pub(crate) struct SqsQueue<'a> {
    batch: &'a Batch,
    access: &'a SqsAccess,
    /// Where dead letters are copied to, if they are.
    dead_letters: Option<&'a str>,
    /// What an open breaker pauses.
    intake: Option<Mapping<'a>>,
    warned: AtomicBool,
}

impl<'a> SqsQueue<'a> {
    pub(crate) fn new(batch: &'a Batch, access: &'a SqsAccess, intake: Option<Mapping<'a>>) -> Self {
        let dead_letters = access.dead_letters.as_ref().and_then(|queue| queue.for_batch_of(batch.source.as_ref()));
        Self { batch, access, dead_letters, intake, warned: AtomicBool::new(false) }
    }

    /// Extends the visibility timeout of one message. Only SQS's word that it is gone counts as lost; on other errors the lease
    /// decides.
    async fn hide_one(&self, index: usize, period: Duration) -> HideAnswer {
        let (Some(client), Some(source), Some(Some(receipt))) =
            (self.access.hiding(), &self.batch.source, self.batch.receipts.get(index))
        else {
            return HideAnswer::Hidden;
        };
        let request = client.change_message_visibility().queue_url(&source.url).receipt_handle(receipt);
        match request.visibility_timeout(whole_seconds(period, VISIBILITY_MAX_S)).send().await {
            Ok(_) => HideAnswer::Hidden,
            Err(error) if error.code().is_some_and(is_gone) => HideAnswer::Lost,
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        code = error.code().unwrap_or("none"),
                        "the visibility timeout of a message could not be extended while its handler runs; the renewed lease excludes other deliveries. \
                         Does the function's role have sqs:ChangeMessageVisibility?"
                    );
                }
                HideAnswer::Hidden
            }
        }
    }

    /// Deletes messages, ten in a request and the requests concurrently; returns whether SQS has confirmed each. One without a
    /// receipt handle cannot be deleted.
    async fn delete_all(&self, indexes: &[usize]) -> Confirmation {
        let Some(source) = &self.batch.source else { return Confirmation::Unconfirmed };
        let Some(client) = &self.access.client else {
            if !self.warned.swap(true, Ordering::Relaxed) {
                tracing::warn!(
                    "completed messages are not deleted ahead of the report, since the function has no client of SQS: it makes one \
                     where CLAIMANT_VISIBILITY or CLAIMANT_MAPPING_CHECK is not off, or a dead-letter queue, schedules or a role that \
                     resumes the intake are set"
                );
            }
            return Confirmation::Unconfirmed;
        };
        let entry = |index: &usize| {
            let receipt = self.batch.receipts.get(*index)?.as_deref()?;
            Deletion::builder().id(index.to_string()).receipt_handle(receipt).build().ok()
        };
        let entries: Vec<_> = indexes.iter().filter_map(entry).collect();
        let request = |chunk: &[Deletion]| -> BoxFuture<'_, Failed> {
            Box::pin(delete_batch(client, &source.url, chunk.to_vec()))
        };
        let failed = Failed::of_all(&entries, request).await;
        if failed.entries > 0 {
            tracing::warn!(
                failed = failed.entries,
                messages = entries.len(),
                code = failed.code.as_deref().unwrap_or("none"),
                "completed messages are not known to be deleted ahead of the report: if work that is run again ends the process, they come \
                 back as duplicates, and large payloads that were to be removed stay. Does the function's role have \
                 sqs:DeleteMessage?"
            );
        }
        let gone = failed.entries == 0 && entries.len() == indexes.len();
        if gone { Confirmation::Confirmed } else { Confirmation::Unconfirmed }
    }

    /// Sends copies, as many in one request as fit, and the requests concurrently.
    async fn send(&self, dead_letters: &[DeadLetter], within: Duration) -> Vec<Confirmation> {
        let (Some(client), Some(url)) = (&self.access.client, self.dead_letters) else {
            return Vec::new();
        };
        let (mut requests, mut sizes) = (Vec::<Vec<_>>::new(), Vec::new());
        for (number, dead_letter) in dead_letters.iter().enumerate() {
            let Some((entry, bytes)) = self.entry_for(dead_letter, number, url) else { continue };
            let room = sizes.last().is_some_and(|sum| sum + bytes <= MESSAGE_MAX_BYTES);
            match (requests.last_mut(), sizes.last_mut()) {
                (Some(request), Some(sum)) if room && request.len() < DEAD_LETTERS_BATCH_MAX => {
                    request.push(entry);
                    *sum += bytes;
                }
                _ => {
                    requests.push(vec![entry]);
                    sizes.push(bytes);
                }
            }
        }
        // Each has its own timeout: a request that hangs does not lose the confirmations of the others.
        let sent = join_all(
            requests.into_iter().map(|entries| timeout(within, send_batch(client, url, dead_letters, entries))),
        );
        let mut answers = vec![Confirmation::Unconfirmed; dead_letters.len()];
        for number in sent.await.into_iter().filter_map(Result::ok).flatten() {
            if let Some(answer) = answers.get_mut(number) {
                *answer = Confirmation::Confirmed;
            }
        }
        answers
    }

    /// Returns a copy with all of the original's attributes and with claimant's, and its size; `None` where they do not fit, and the message
    /// stays where it is. So does one with an empty body, which SQS refuses and no message from SQS has.
    fn entry_for(&self, dead_letter: &DeadLetter, number: usize, url: &str) -> Option<(Entry, usize)> {
        let message = self.batch.messages.get(dead_letter.index)?;
        let body = message.body();
        let room = MESSAGE_MAX_BYTES.saturating_sub(body.len());
        let Some((attributes, bytes)) = letter::attributes(dead_letter, message.attributes(), room) else {
            tracing::warn!(
                message_id = dead_letter.message_id.as_str(),
                "a message was not copied to the dead-letter queue: with claimant's attributes and all of its own it would be larger than \
                 the 1 MiB that SQS takes, or have more than the ten attributes, or one of its own has no value of its type. It stays in \
                 its queue, whose redrive policy, if it has one, moves it as it is"
            );
            return None;
        };
        let mut entry = Entry::builder().id(number.to_string()).message_body(body);
        for (name, value) in attributes {
            entry = entry.message_attributes(name, value);
        }
        if let Some(trace) = message.trace_header() {
            let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace).build();
            if let Ok(value) = value {
                entry = entry.message_system_attributes(SystemAttribute::AwsTraceHeader, value);
            }
        }
        let fifo = url.ends_with(".fifo");
        // On a standard queue too, as SQS's own redrive keeps it: it is a fair queue's tenant, and a FIFO queue's order after a redrive.
        let group = message.group().filter(|group| !group.is_empty());
        let group = group.or_else(|| fifo.then_some(dead_letter.consumer.as_str()));
        let deduplication_id = fifo.then(|| dead_letter.message_id.as_str().to_owned());
        entry = entry.set_message_group_id(group.map(str::to_owned)).set_message_deduplication_id(deduplication_id);
        Some((entry.build().ok()?, body.len() + bytes))
    }
}

/// Deletes the messages of one request; returns what of it failed. What is no fault of the request, such as a throttle, the SDK does not ask
/// for again: it is asked for once more. A message that is done, and kept on its last receive, would be dead-lettered if the next handler ended
/// the process.
async fn delete_batch(client: &Client, url: &str, entries: Vec<Deletion>) -> Failed {
    let (wrong, _, rest) = delete(client, url, entries).await;
    if rest.is_empty() {
        return wrong;
    }
    sleep(DELETE_AGAIN).await;
    let (again, still, _) = delete(client, url, rest).await;
    wrong.and(again).and(still)
}

/// Sends one request; returns what failed by a fault of its own, and what else did, which can be asked for again.
async fn delete(client: &Client, url: &str, mut entries: Vec<Deletion>) -> (Failed, Failed, Vec<Deletion>) {
    let count = entries.len();
    match client.delete_message_batch().queue_url(url).set_entries(Some(entries.clone())).send().await {
        Ok(output) => {
            let (wrong, rest) = Failed::by_fault(count, output.successful().len(), output.failed());
            entries.retain(|entry| {
                output.failed().iter().any(|failed| failed.id() == entry.id() && !failed.sender_fault())
            });
            (wrong, rest, entries)
        }
        Err(error) => (Failed { entries: count, code: error.code().map(str::to_owned) }, Failed::default(), Vec::new()),
    }
}

/// Sends one request, and returns the indexes of the dead letters that the queue has confirmed.
async fn send_batch(client: &Client, url: &str, dead_letters: &[DeadLetter], entries: Vec<Entry>) -> Vec<usize> {
    let count = entries.len();
    match client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await {
        Ok(output) => {
            for failed in output.failed() {
                let dead_letter = failed.id().parse().ok().and_then(|number: usize| dead_letters.get(number));
                warn_not_sent(dead_letter.map(|dead_letter| dead_letter.message_id.as_str()), 1, failed.code());
            }
            let confirmed = output.successful().iter().filter(|taken| !taken.message_id().is_empty());
            confirmed.filter_map(|taken| taken.id().parse().ok()).collect()
        }
        Err(error) => {
            warn_not_sent(None, count, error.code().unwrap_or("none"));
            Vec::new()
        }
    }
}

fn warn_not_sent(message_id: Option<&str>, messages: usize, code: &str) {
    let fix = if code.ends_with("InvalidParameterValue") {
        "Is one larger than the queue's MaximumMessageSize? Set that to 1048576"
    } else {
        "Does the function's role have sqs:SendMessage for it, and is CLAIMANT_DEAD_LETTER_QUEUE_URL right?"
    };
    tracing::warn!(message_id, messages, code, "messages are not known to be in the dead-letter queue. {fix}");
}

impl Queue for SqsQueue<'_> {
    fn hide(&self, index: usize, period: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(self.hide_one(index, period))
    }

    fn delete<'a>(&'a self, indexes: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        Box::pin(self.delete_all(indexes))
    }

    fn has_dead_letters(&self) -> bool {
        self.access.client.is_some() && self.dead_letters.is_some()
    }

    fn dead_letters<'a>(
        &'a self,
        dead_letters: &'a [DeadLetter],
        within: Duration,
    ) -> BoxFuture<'a, Vec<Confirmation>> {
        Box::pin(self.send(dead_letters, within))
    }

    fn has_schedules(&self) -> bool {
        self.access.schedules.is_some() && self.batch.source.is_some()
    }

    fn send_again<'a>(&'a self, messages: &'a [SendAgain], within: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        match &self.access.schedules {
            Some(schedules) => Box::pin(schedules.send_again(self.batch, messages, within)),
            None => Box::pin(std::future::ready(Vec::new())),
        }
    }

    fn intake(&self) -> Option<&dyn Intake> {
        self.intake.as_ref().map(|mapping| mapping as &dyn Intake)
    }
}

/// Returns whether a code of SQS says that the message was deleted, or on a FIFO queue that it is visible to others again. A standard queue
/// does not tell the latter: it accepts the change, and changes nothing.
fn is_gone(code: &str) -> bool {
    // AWS writes the first one with a prefix. The last is what a FIFO queue returns for a receipt handle whose visibility timeout has ended.
    ["MessageNotInflight", "ReceiptHandleIsInvalid", "InvalidParameterValue"].iter().any(|gone| code.ends_with(gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_sqs_says_of_the_message_itself_means_that_it_is_gone() {
        for (code, gone) in [
            ("AWS.SimpleQueueService.MessageNotInflight", true),
            ("MessageNotInflight", true),
            ("ReceiptHandleIsInvalid", true),
            ("InvalidParameterValue", true),
            ("AWS.SimpleQueueService.NonExistentQueue", false),
            ("AccessDenied", false),
            ("RequestThrottled", false),
            ("InvalidSecurity", false),
        ] {
            assert_eq!(is_gone(code), gone, "{code}");
        }
    }
}
