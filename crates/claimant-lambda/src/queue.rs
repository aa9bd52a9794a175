//! What the engine does in SQS while a batch runs: it extends visibility timeouts, deletes messages early, and copies messages
//! to the dead-letter queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_sqs::operation::change_message_visibility::ChangeMessageVisibilityError;
use aws_sdk_sqs::primitives::Blob;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, MessageAttributeValue, MessageSystemAttributeNameForSends as SystemAttribute,
    MessageSystemAttributeValue, SendMessageBatchRequestEntry as Entry,
};
use claimant_core::limits::DEAD_LETTERS_BATCH_MAX;
use claimant_core::{AttributeValue, Attributes, Confirmation, DeadLetter, HideAnswer, Queue, QueueFuture};

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::event::Batch;
use crate::visibility::{ENTRIES_MAX, whole_seconds};

/// Attributes that SQS allows on one message.
const ATTRIBUTES_MAX: usize = 10;

/// The largest total size of the messages of one request, as SQS counts it: the same 1 MiB as for a single message
/// ("SendMessageBatch" in the SQS API reference, since August 2025).
const REQUEST_MAX_BYTES: usize = 1 << 20;

/// The longest error text on a dead letter.
const ERROR_MAX_BYTES: usize = 1_024;

/// The prefix of the attributes that claimant adds to a dead letter.
const PREFIX: &str = "claimant-";

/// What became of the message: whether its work may be done.
const OUTCOME: &str = "claimant-outcome";
/// The id that the message had in its own queue: a copy has a new one.
const MESSAGE_ID: &str = "claimant-message-id";
/// The id that the producer's message had, where this one is a copy that was redriven from a dead-letter queue.
const FIRST_MESSAGE_ID: &str = "claimant-first-message-id";
/// How often the message was redriven from there.
const REDRIVES: &str = "claimant-redrives";

/// The queue of one batch.
pub(crate) struct SqsQueue<'a> {
    batch: &'a Batch,
    client: Option<&'a Client>,
    /// Whether visibility may be changed.
    hides: bool,
    dead_letters: Option<&'a str>,
    warned: AtomicBool,
}

impl<'a> SqsQueue<'a> {
    /// Returns the queue of this batch. Without a client, no call has an effect.
    pub(crate) fn new(
        batch: &'a Batch,
        client: Option<&'a Client>,
        hides: bool,
        dead_letters: Option<&'a str>,
    ) -> Self {
        Self { batch, client, hides, dead_letters, warned: AtomicBool::new(false) }
    }

    /// Extends the visibility timeout of one message. Only SQS's word that it is gone counts as lost; on other errors the lease
    /// decides.
    async fn hide_one(&self, index: usize, period: Duration) -> HideAnswer {
        let (Some(client), Some(source), Some(receipt), true) =
            (self.client, &self.batch.source, self.batch.receipts.get(index), self.hides)
        else {
            return HideAnswer::Hidden;
        };
        let Some(receipt) = receipt else { return HideAnswer::Hidden };
        let request = client.change_message_visibility().queue_url(&source.url).receipt_handle(receipt);
        match request.visibility_timeout(whole_seconds(period)).send().await {
            Ok(_) => HideAnswer::Hidden,
            Err(error) if is_gone(&error) => HideAnswer::Lost,
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

    /// Deletes messages, ten in a request; returns whether SQS has confirmed each. One without a receipt handle cannot be deleted.
    async fn delete_all(&self, indexes: &[usize]) -> Confirmation {
        let (Some(client), Some(source)) = (self.client, &self.batch.source) else { return Confirmation::Unconfirmed };
        let entry = |index: &usize| {
            let receipt = self.batch.receipts.get(*index)?.as_deref()?;
            DeleteMessageBatchRequestEntry::builder().id(index.to_string()).receipt_handle(receipt).build().ok()
        };
        let entries: Vec<_> = indexes.iter().filter_map(entry).collect();
        let mut gone = entries.len() == indexes.len();
        for chunk in entries.chunks(ENTRIES_MAX) {
            let request = client.delete_message_batch().queue_url(&source.url).set_entries(Some(chunk.to_vec()));
            match request.send().await {
                Ok(output) => gone &= output.failed().is_empty(),
                Err(error) => {
                    gone = false;
                    tracing::warn!(
                        code = error.code().unwrap_or("none"),
                        "completed messages were not deleted ahead of the report: if work that is run again ends the process, they come \
                         back as duplicates, and large payloads that were to be removed stay. Does the function's role have \
                         sqs:DeleteMessage?"
                    );
                }
            }
        }
        if gone { Confirmation::Confirmed } else { Confirmation::Unconfirmed }
    }

    /// Sends copies, as many in one request as fit, and the requests concurrently.
    async fn send(&self, dead_letters: &[DeadLetter], within: Duration) -> Vec<Confirmation> {
        let (Some(client), Some(url)) = (self.client, self.dead_letters) else { return Vec::new() };
        let (mut requests, mut sizes) = (Vec::<Vec<_>>::new(), Vec::new());
        for (number, dead_letter) in dead_letters.iter().enumerate() {
            let Some((entry, bytes)) = self.entry_for(dead_letter, number, url) else { continue };
            let room = sizes.last().is_some_and(|sum| sum + bytes <= REQUEST_MAX_BYTES);
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

    /// Returns a copy with as many of the original's attributes as fit beside claimant's, and its size. SQS refuses an empty
    /// body, which no message from SQS has: such a message stays where it is.
    fn entry_for(&self, dead_letter: &DeadLetter, number: usize, url: &str) -> Option<(Entry, usize)> {
        let message = self.batch.messages.get(dead_letter.index)?;
        let mut attributes: Vec<_> = our_attributes(dead_letter, message.attributes());
        let mut theirs: Vec<_> = message.attributes().iter().filter(|(name, _)| !name.starts_with(PREFIX)).collect();
        theirs.sort_by_key(|(name, _)| *name);
        let theirs = theirs.into_iter().filter_map(|(name, value)| Some((name, copied(value)?)));
        attributes.extend(theirs.take(ATTRIBUTES_MAX - attributes.len()));
        let body = message.body();
        let size = body.len() + attributes.iter().map(|(name, value)| attribute_bytes(name, value)).sum::<usize>();
        let mut entry = Entry::builder().id(number.to_string()).message_body(body);
        for (name, value) in attributes {
            entry = entry.message_attributes(name, value);
        }
        if let Some(trace) = message.trace() {
            let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace).build();
            if let Ok(value) = value {
                entry = entry.message_system_attributes(SystemAttribute::AwsTraceHeader, value);
            }
        }
        if url.ends_with(".fifo") {
            let group = message.group().filter(|group| !group.is_empty());
            entry = entry
                .message_group_id(group.unwrap_or(dead_letter.consumer.as_str()))
                .message_deduplication_id(dead_letter.message_id.as_str());
        }
        Some((entry.build().ok()?, size))
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
    tracing::warn!(
        message_id,
        messages,
        code,
        "messages were not copied to the dead-letter queue. Does the function's role have sqs:SendMessage for it, \
         and is CLAIMANT_DEAD_LETTER_QUEUE_URL right?"
    );
}

impl Queue for SqsQueue<'_> {
    fn hide(&self, index: usize, period: Duration) -> QueueFuture<'_, HideAnswer> {
        Box::pin(self.hide_one(index, period))
    }

    fn delete<'a>(&'a self, indexes: &'a [usize]) -> QueueFuture<'a, Confirmation> {
        Box::pin(self.delete_all(indexes))
    }

    fn has_dead_letters(&self) -> bool {
        self.client.is_some() && self.dead_letters.is_some()
    }

    fn dead_letters<'a>(
        &'a self,
        dead_letters: &'a [DeadLetter],
        within: Duration,
    ) -> QueueFuture<'a, Vec<Confirmation>> {
        Box::pin(self.send(dead_letters, within))
    }
}

/// Returns whether SQS says that the message was deleted, or on a FIFO queue that it is visible to others again. A standard queue
/// does not tell the latter: it accepts the change, and changes nothing.
fn is_gone(error: &SdkError<ChangeMessageVisibilityError>) -> bool {
    error.as_service_error().is_some_and(|service| {
        service.is_message_not_inflight()
            || service.is_receipt_handle_is_invalid()
            // The code that a FIFO queue returns for a receipt handle whose visibility timeout has ended.
            || service.code() == Some("InvalidParameterValue")
    })
}

/// Returns the attributes that claimant adds to a dead letter, beside the message's own (`received`).
///
/// | attribute | holds |
/// | --- | --- |
/// | `claimant-error` | why, at most 1,024 bytes |
/// | `claimant-outcome` | `rejected` or `conflict`: this message's work is not done; `parked`: it may be done |
/// | `claimant-consumer` | the consumer's name |
/// | `claimant-record` | the id of the record of its key, as the store has it |
/// | `claimant-message-id` | the id it had in its own queue: a copy has a new one |
/// | `claimant-attempt` | which run of the handler rejected it, if one did |
/// | `claimant-first-message-id`, `claimant-redrives` | the producer's id, and how often it came back from a dead-letter queue, if it did |
fn our_attributes(dead_letter: &DeadLetter, received: &Attributes) -> Vec<(&'static str, MessageAttributeValue)> {
    let text = |name: &str| received.get(name).and_then(AttributeValue::as_sent);
    let redriven = text(MESSAGE_ID).is_some() || text(REDRIVES).is_some();
    let counted = text(REDRIVES).and_then(|count| count.parse::<u32>().ok()).unwrap_or_default();
    // A redrive of SQS leaves a copy as it is, and counts nothing; `claimant dead redrive` counts, and removes the outcome.
    let redrives = counted.saturating_add(u32::from(text(OUTCOME).is_some()));
    let said = [
        ("claimant-error", Some(dead_letter.error.clone())),
        (OUTCOME, Some(dead_letter.reason.as_str().to_owned())),
        ("claimant-consumer", Some(dead_letter.consumer.as_str().to_owned())),
        // An id that SQS cannot carry as it is would name another record.
        (
            "claimant-record",
            dead_letter.record.as_ref().map(|id| id.as_str().to_owned()).filter(|id| sendable(id) == *id),
        ),
        (MESSAGE_ID, Some(dead_letter.message_id.as_str().to_owned())),
        ("claimant-attempt", dead_letter.attempt.map(|attempt| attempt.to_string())),
        (FIRST_MESSAGE_ID, text(FIRST_MESSAGE_ID).or_else(|| text(MESSAGE_ID)).map(str::to_owned)),
        (REDRIVES, redriven.then(|| redrives.to_string())),
    ];
    let said = said.into_iter().filter_map(|(name, value)| {
        let value = MessageAttributeValue::builder().data_type("String").string_value(sendable(&value?));
        // A value with its type always builds.
        Some((name, value.build().ok()?))
    });
    said.collect()
}

/// Returns what an attribute counts towards the size of its message: its name, type and value.
fn attribute_bytes(name: &str, value: &MessageAttributeValue) -> usize {
    let binary = value.binary_value().map_or(0, |bytes| bytes.as_ref().len());
    name.len() + value.data_type().len() + value.string_value().map_or(0, str::len) + binary
}

/// Returns an attribute as it was received; `None` if it has no value of its type, which SQS would refuse with the whole copy.
fn copied(attribute: &AttributeValue) -> Option<MessageAttributeValue> {
    if attribute.as_sent().is_none() && attribute.as_bytes().is_none() {
        return None;
    }
    let value = MessageAttributeValue::builder()
        .data_type(attribute.data_type())
        .set_string_value(attribute.as_sent().map(str::to_owned))
        .set_binary_value(attribute.as_bytes().map(Blob::new));
    // A value with its type always builds.
    value.build().ok()
}

/// Returns the text in a form that SQS accepts: not empty, without characters that XML 1.0 lacks, and not too long.
fn sendable(text: &str) -> String {
    let allowed =
        |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let mut sendable = String::new();
    for c in text.chars().map(|c| if allowed(c) { c } else { char::REPLACEMENT_CHARACTER }) {
        if sendable.len() + c.len_utf8() > ERROR_MAX_BYTES {
            break;
        }
        sendable.push(c);
    }
    if sendable.is_empty() { "none given".to_owned() } else { sendable }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_values_are_what_sqs_takes() {
        for (text, wanted) in [
            ("no luck\t\u{e9}", "no luck\t\u{e9}".to_owned()),
            ("a\u{0}b\u{ffff}\u{1b}", "a\u{fffd}b\u{fffd}\u{fffd}".to_owned()),
            ("", "none given".to_owned()),
            (&"\u{20ac}".repeat(400), "\u{20ac}".repeat(341)),
        ] {
            assert_eq!(sendable(text), wanted);
        }
    }
}
