//! Running consumers on AWS Lambda.

use claimant_core::{Consumers, Error};
#[doc(inline)]
pub use claimant_lambda::{NotDone, QueueBatch, Response, Service, Settings, SqsBatchResponse, SqsEvent, init_logs};

/// Runs one consumer, or several behind [`Routes`](crate::Routes), as a Lambda function until the runtime ends it: the last call in
/// `main`. Reads the function's [`Settings`] from the environment: one error lists every fault of any setting of claimant, unknown
/// `CLAIMANT_` names included, and those of [variables](crate::variables) that were read and not checked. A store that was opened by `from_env` has
/// read its own settings alone by then; one opened by `from_variables(claimant::variables())` has reported all of that itself.
///
/// One thread is enough for it, `#[tokio::main(flavor = "current_thread")]`, and costs the least: handlers run on threads of their own.
///
/// # Errors
/// When the settings of the environment or of a consumer are not usable, or there is no Lambda runtime to talk to.
pub async fn run(consumers: impl Into<Consumers>) -> Result<(), Error> {
    claimant_lambda::run(crate::variables(), consumers).await
}

/// Runs consumers as [`run`] does; and an event that is no batch of a queue is one message, whose payload is the whole event, as
/// Step Functions, EventBridge Scheduler or `sam remote invoke` send it. What its handler returns is the response, as JSON; for a
/// duplicate, what it returned then. The response is `null` where that is nothing, and where it could not be kept: more than 65,536 bytes of JSON
/// ([`RESULT_MAX_BYTES`](crate::limits::RESULT_MAX_BYTES)), or what cannot be written as JSON. The work is done then all the same, and the
/// log has an error. A failure is an error of the invocation, of the type `claimant::` and the outcome
/// (`claimant::busy`, `claimant::rejected`), for callers that try some of them again.
///
/// Give the consumer a key of the payload: without one, the id of the invocation is the key, which only Lambda's own second tries
/// share. Nothing is sent to a dead-letter queue, and no visibility timeout changes: there is no message.
///
/// ```no_run
/// use claimant::dynamodb::LockTable;
/// use claimant::{Consumer, Context, HandlerError};
///
/// #[derive(serde::Deserialize)]
/// struct Order { order_id: String, total_cents: u64 }
///
/// #[derive(serde::Serialize)]
/// struct Receipt { charge: String }
///
/// async fn charge(order: Order, cx: Context) -> Result<Receipt, HandlerError> {
///     Ok(Receipt { charge: format!("{}-{}", cx.key(), order.total_cents) })
/// }
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> Result<(), claimant::Error> {
///     let table = LockTable::from_env().await?;
///     let consumer = Consumer::new("charging", table, charge).key(|order| &order.order_id);
///     claimant::lambda::run_with_direct_events(consumer).await
/// }
/// ```
///
/// # Errors
/// As for [`run`].
pub async fn run_with_direct_events(consumers: impl Into<Consumers>) -> Result<(), Error> {
    claimant_lambda::run_with_direct_events(crate::variables(), consumers).await
}
