//! When failed messages come back.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;
use aws_sdk_sqs::types::ChangeMessageVisibilityBatchRequestEntry as Entry;
use claimant_aws::sqs::whole_seconds;
use claimant_core::{Report, limits::VISIBILITY_MAX_S};
use futures_util::future::BoxFuture;
use tokio::time::timeout;

use crate::entries::Failed;
use crate::event::Batch;

/// Makes failed messages visible again after the delays in their entries; takes no longer than `within`.
///
/// A failure to do so changes no outcome: the message then comes back after the queue's own visibility timeout.
pub(crate) async fn change(client: &Client, batch: &Batch, report: &Report, within: Duration) {
    let Some(source) = &batch.source else { return };
    let entries = entries(batch, report);
    let wanted = entries.len();
    if wanted == 0 {
        return;
    }
    let request = |chunk: &[Entry]| -> BoxFuture<'_, Failed> { Box::pin(send(client, &source.url, chunk.to_vec())) };
    match timeout(within, Failed::of_all(&entries, request)).await {
        Ok(Failed { entries: 0, .. }) => tracing::debug!(messages = wanted, "visibility changed"),
        Ok(Failed { entries: failed, code }) => {
            let code = code.as_deref().unwrap_or("none");
            let advice = if is_denied(code) { DENIED } else { "" };
            tracing::warn!(
                failed,
                messages = wanted,
                code,
                "visibility of failed messages was not changed: they come back after the queue's visibility timeout{advice}"
            );
        }
        Err(_) => tracing::warn!(messages = wanted, "no time was left to change the visibility of all failed messages"),
    }
}

fn entries(batch: &Batch, report: &Report) -> Vec<Entry> {
    let places = report.entries().iter().zip(&batch.receipts).enumerate();
    let failed = places.filter(|(_, (entry, _))| !entry.outcome.is_success());
    let entry = failed.filter_map(|(place, (entry, receipt))| {
        let seconds = whole_seconds(entry.visible_after?, VISIBILITY_MAX_S);
        let request = Entry::builder().id(place.to_string()).visibility_timeout(seconds);
        request.receipt_handle(receipt.as_deref()?).build().ok()
    });
    entry.collect()
}

/// What is asked where SQS denies the change.
const DENIED: &str =
    ". Does the function's role have sqs:ChangeMessageVisibility? CLAIMANT_VISIBILITY=off does without";

/// Returns whether a code says that the role lacks the permission.
fn is_denied(code: &str) -> bool {
    code.starts_with("AccessDenied")
}

/// Sends one request; returns what of it failed.
async fn send(client: &Client, url: &str, entries: Vec<Entry>) -> Failed {
    let count = entries.len();
    match client.change_message_visibility_batch().queue_url(url).set_entries(Some(entries)).send().await {
        Ok(output) => Failed::of(count, output.successful().len(), output.failed()),
        Err(error) => Failed { entries: count, code: error.code().map(str::to_owned) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_permission_is_asked_for_where_it_is_denied() {
        for (code, denied) in [
            ("AccessDenied", true),
            ("AccessDeniedException", true),
            ("RequestThrottled", false),
            ("ReceiptHandleIsInvalid", false),
            ("none", false),
        ] {
            assert_eq!(is_denied(code), denied, "{code}");
        }
    }
}
