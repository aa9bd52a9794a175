//! What a function answers.

use aws_lambda_events::event::sqs::{BatchItemFailure, SqsBatchResponse};
use claimant_core::Report;
use serde::Serialize;

/// The answer to an invocation: what a function returns to Lambda as it is. To a batch, it says which messages failed: from a function that
/// answers something else, or nothing, Lambda takes that all have succeeded, and deletes them. So the compiler warns where it is dropped:
///
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # mod claimant {
/// #     pub use claimant_core::Error;
/// #     pub mod lambda { pub use claimant_lambda::*; }
/// # }
/// use claimant::lambda::{Service, SqsEvent};
///
/// async fn handle(service: &Service, batch: SqsEvent) -> Result<(), claimant::Error> {
///     service.invoke(batch, 0, "").await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
#[must_use = "return it as the function's answer: without it, Lambda deletes messages that failed, and a caller gets no result"]
pub struct Response<T>(pub T);

/// Returns the failures by id, each once. Lambda takes an id that is null, empty or foreign for a failure of the whole batch;
/// none can occur here, since a [`claimant_core::MessageId`] is neither and all come from the batch.
pub(crate) fn response(report: &Report) -> Response<SqsBatchResponse> {
    let failures = report.failures().into_iter().map(|id| {
        let mut failure = BatchItemFailure::default();
        failure.item_identifier = id.as_str().to_owned();
        failure
    });
    let mut response = SqsBatchResponse::default();
    response.batch_item_failures = failures.collect();
    Response(response)
}
