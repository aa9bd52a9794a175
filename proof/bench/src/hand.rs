//! The claim and the completion that a careful engineer writes by hand, one request each.
//!
//! Compiled into the benchmark, `cold-by-hand` and `cold-defaults`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::AttributeValue::{N, S};
use aws_sdk_dynamodb::types::ReturnValuesOnConditionCheckFailure::AllOld;

/// How long a finished order keeps duplicates out.
const WINDOW: Duration = Duration::from_hours(15 * 24);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What the table says of an order.
pub(crate) enum Claimed {
    /// It is ours to do, as this owner.
    Ours(String),
    /// It is done.
    Done,
    /// Someone else is at it.
    Busy,
}

/// The table of orders.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) client: Client,
    pub(crate) table: String,
}

impl Orders {
    /// Claims an order that is new, abandoned, or long forgotten. The claim is honoured for as long as the lease.
    pub(crate) async fn claim(&self, id: &str, owner: &str, lease: Duration) -> Result<Claimed, BoxError> {
        let now = now();
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .item("id", S(id.to_owned()))
            .item("status", S("IN_PROGRESS".to_owned()))
            .item("owner", S(owner.to_owned()))
            .item("lease_until", N((now + lease).as_millis().to_string()))
            .condition_expression(
                "attribute_not_exists(id) OR (#status = :in_progress AND lease_until < :now) OR expires_at < :now_s",
            )
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":in_progress", S("IN_PROGRESS".to_owned()))
            .expression_attribute_values(":now", N(now.as_millis().to_string()))
            .expression_attribute_values(":now_s", N(now.as_secs().to_string()))
            .return_values_on_condition_check_failure(AllOld)
            .send()
            .await;
        match put {
            Ok(_) => Ok(Claimed::Ours(owner.to_owned())),
            Err(SdkError::ServiceError(refused)) if refused.err().is_conditional_check_failed_exception() => {
                let PutItemError::ConditionalCheckFailedException(refusal) = refused.into_err() else {
                    return Err("a refusal changed its kind".into());
                };
                let status = refusal.item().and_then(|item| item.get("status")).and_then(|s| s.as_s().ok());
                Ok(if status.is_some_and(|s| s == "COMPLETED") { Claimed::Done } else { Claimed::Busy })
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Marks an order done, if it is still this owner's.
    pub(crate) async fn complete(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        let expires_at = (now() + WINDOW).as_secs();
        self.client
            .update_item()
            .table_name(&self.table)
            .key("id", S(id.to_owned()))
            .update_expression("SET #status = :completed, expires_at = :expires_at REMOVE lease_until")
            .condition_expression("#owner = :owner AND #status = :in_progress")
            .expression_attribute_names("#status", "status")
            .expression_attribute_names("#owner", "owner")
            .expression_attribute_values(":completed", S("COMPLETED".to_owned()))
            .expression_attribute_values(":in_progress", S("IN_PROGRESS".to_owned()))
            .expression_attribute_values(":expires_at", N(expires_at.to_string()))
            .expression_attribute_values(":owner", S(owner.to_owned()))
            .send()
            .await?;
        Ok(())
    }
}

/// The time since 1970.
#[allow(clippy::disallowed_methods, reason = "nothing of claimant is used here, its clock neither")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
