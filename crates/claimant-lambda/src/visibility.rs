//! When failed messages come back.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry as Entry;
use claimant_core::{Report, limits::VISIBILITY_MAX_S};
use tokio::time::timeout;

use crate::event::Queue;

/// Entries in one SQS batch request.
const ENTRIES_MAX: usize = 10;

/// Shows failed messages again after the time that their entries ask for, within this time.
///
/// A failure to do so changes no outcome: the message then comes back after the queue's own visibility timeout.
pub(crate) async fn change(
    client: &Client,
    queue: &Queue,
    receipts: &[Option<String>],
    report: &Report,
    within: Duration,
) {
    let entries: Vec<Entry> = report
        .entries()
        .iter()
        .zip(receipts)
        .enumerate()
        .filter(|(_, (entry, _))| !entry.outcome.is_success())
        .filter_map(|(place, (entry, receipt))| {
            let seconds = whole_seconds(entry.visible_after?);
            let request = Entry::builder().id(place.to_string()).visibility_timeout(seconds);
            request.receipt_handle(receipt.as_deref()?).build().ok()
        })
        .collect();
    let wanted = entries.len();
    if wanted == 0 {
        return;
    }
    match timeout(within, send(client, queue, entries)).await {
        Ok(0) => tracing::debug!(messages = wanted, "visibility changed"),
        Ok(failed) => tracing::warn!(
            failed,
            messages = wanted,
            "visibility of failed messages was not changed: they come back after the queue's visibility timeout. \
             Does the function's role have sqs:ChangeMessageVisibility? CLAIMANT_VISIBILITY=off turns this off"
        ),
        Err(_) => tracing::warn!(messages = wanted, "no time was left to change the visibility of failed messages"),
    }
}

/// Sends all entries, ten to a request, and counts those that failed.
async fn send(client: &Client, queue: &Queue, entries: Vec<Entry>) -> usize {
    let mut failed = 0;
    for chunk in entries.chunks(ENTRIES_MAX) {
        let request = client.change_message_visibility_batch().queue_url(&queue.url).set_entries(Some(chunk.to_vec()));
        match request.send().await {
            Ok(output) => failed += output.failed().len(),
            Err(error) => {
                use aws_sdk_sqs::error::ProvideErrorMetadata as _;
                tracing::debug!(code = error.code().unwrap_or("none"), "ChangeMessageVisibilityBatch failed");
                failed += chunk.len();
            }
        }
    }
    failed
}

/// SQS counts in whole seconds, within bounds; rounded up, so that a message never comes back too early.
fn whole_seconds(delay: Duration) -> i32 {
    let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
    // OK because the limit fits an i32.
    seconds.min(VISIBILITY_MAX_S) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_whole_rounded_up_and_bounded() {
        for (ms, s) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2), (u64::MAX, 42_300)] {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), s, "{ms} ms");
        }
    }
}
