//! The report as a partial batch response.

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse};
use claimant_core::Report;

/// Returns the failures by id, each once. Lambda takes an id that is null, empty or foreign for a failure of the whole batch;
/// none can occur here, since a [`claimant_core::MessageId`] is neither and all come from the batch.
pub(crate) fn response(report: &Report) -> SqsBatchResponse {
    let failures = report.failures().into_iter().map(|id| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = id.as_str().to_owned();
        failure
    });
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failures.collect();
    response
}
