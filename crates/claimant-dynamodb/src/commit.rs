//! A transaction's commit: the lock record's write and the handler's own in one `TransactWriteItems`, and what its answers
//! mean.

use std::ops::ControlFlow::{self, Break, Continue};

use aws_sdk_dynamodb::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    CancellationReason, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use claimant_aws::said;
use claimant_core::{AnyTransaction, Budget, Claim, Failure, Record, Settled, StoreError, StoreErrorKind};

use crate::error::{consumed_by_all, is_about_key, lacks_key, store_error};
use crate::item;
use crate::table::{LockTable, ROUNDS_MAX};
use crate::transaction::{Transaction, Write, tables};

/// The next write of the lock record, or how its claim was settled without one.
pub(crate) type Next = ControlFlow<Settled, UpdateItemFluentBuilder>;

/// What is known about the lock record before a try.
pub(crate) enum Seen {
    /// Nothing was read yet.
    Nothing,
    /// A refusal returned this.
    Refused(Option<Record>),
    /// No answer came, and this was read: the write may still be under way.
    Read(Option<Record>),
}

/// The result of one try.
enum Try {
    /// All writes applied.
    Applied,
    /// No write applied: the condition on the lock record did not hold for this record.
    Refused(Option<Record>),
    /// No write applied, and the same would happen again: a condition of the handler did not hold, or DynamoDB refuses a write.
    Failed(Failure),
    /// No write applied: there was a conflict with another transaction.
    Conflict(Failure),
    /// No write applied: the capacity of a table was exceeded.
    Throttled(StoreError),
    /// It is not known whether the writes applied.
    NoAnswer(StoreError),
}

impl LockTable {
    /// Commits the lock record's write and the handler's; tries until it is known whether they applied, or the time is over. `lock`
    /// returns the write, or the answer that follows from the record seen.
    pub(crate) async fn commit(
        &self,
        mut claim: Claim,
        mut transaction: Transaction,
        mut lock: impl FnMut(&Claim, Seen) -> Next,
        budget: Budget<'_>,
    ) -> Settled {
        if let Some(failure) = transaction.too_large() {
            return Settled::Aborted { claim, failure };
        }
        let mut write = match lock(&claim, Seen::Nothing) {
            Continue(write) => write,
            Break(settled) => return settled,
        };
        let (mut unknown, mut conflict) = (None, None);
        for round in 0..ROUNDS_MAX {
            if round > 0 && !budget.wait(round).await {
                break;
            }
            // The owner's token names this claim and nothing else; a write that starts from another record is another one.
            let token = format!("{}-{}", claim.owner.as_str(), transaction.changes);
            let seen = match self.transact(&write, &transaction.writes, &token, budget).await {
                Try::Applied => return Settled::Done,
                Try::Failed(failure) => return Settled::Aborted { claim, failure },
                Try::Conflict(failure) => {
                    conflict = Some(failure);
                    continue;
                }
                Try::Throttled(error) => {
                    unknown = Some(error);
                    break;
                }
                Try::Refused(shown) => self.refused_by(&claim.id, shown, budget).await.map(Seen::Refused),
                Try::NoAnswer(error) => {
                    unknown = Some(error);
                    match self.read(&claim.id, budget).await {
                        Ok(seen) => Ok(Seen::Read(seen)),
                        // The table gives no answer at all: the caller tries again if it has time.
                        Err(_) => break,
                    }
                }
            };
            match seen.map(|seen| (matches!(seen, Seen::Refused(_)), lock(&claim, seen))) {
                Ok((_, Break(settled))) => return settled,
                Ok((changed, Continue(next))) => {
                    transaction.changes += u32::from(changed);
                    write = next;
                }
                Err(error) => unknown = Some(error),
            }
        }
        match (unknown, conflict) {
            (None, Some(failure)) => Settled::Aborted { claim, failure },
            (unknown, _) => {
                claim.transaction = Some(AnyTransaction::new(transaction));
                Settled::unknown(claim, unknown.unwrap_or_else(|| StoreError::no_answer(budget.left())))
            }
        }
    }

    /// Sends the lock record's write and the handler's in one transaction. Tries with the same token, at most 36 characters,
    /// apply once: within ten minutes DynamoDB answers a repeat with the first one's success.
    async fn transact(&self, lock: &UpdateItemFluentBuilder, writes: &[Write], token: &str, budget: Budget<'_>) -> Try {
        let table = lock.get_table_name().clone().unwrap_or_default();
        let lock = match as_update(lock) {
            Ok(lock) => TransactWriteItem::builder().update(lock).build(),
            Err(error) => return Try::Failed(Failure::retry(error.to_string())),
        };
        let items = std::iter::once(lock).chain(writes.iter().map(|write| write.item.clone())).collect();
        let request = self.requests.client.transact_write_items().set_transact_items(Some(items));
        let request = request.client_request_token(token).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let error = match budget.send(Box::pin(request.send())).await {
            Ok(Ok(output)) => match consumed_by_all(&table, &output) {
                Ok(units) => {
                    budget.meter().units(units, 0.0);
                    return Try::Applied;
                }
                Err(error) => return Try::NoAnswer(error),
            },
            Ok(Err(error)) => error,
            Err(error) => return Try::NoAnswer(error),
        };
        if let Some(TransactionCanceled(reasons)) = canceled(&error) {
            return self.canceled(reasons, writes);
        }
        let text = store_error("TransactWriteItems", &table, &error);
        match (&error, text.kind()) {
            (SdkError::ServiceError(_), StoreErrorKind::Throttled) => Try::Throttled(text),
            (SdkError::ServiceError(service), StoreErrorKind::Denied | StoreErrorKind::Misconfigured) => {
                let (code, message) = (service.err().code().unwrap_or("no code"), service.err().message().map(said));
                // The fault may be in any of the transaction's tables, so the error names all of them.
                let own = tables(writes);
                let (what, fix) = if code == "ValidationException" && is_about_key(message) {
                    let fix = format!("Are the KMS keys of its tables ({own}) and of {table:?} there and enabled?");
                    (message.unwrap_or("no message"), fix)
                } else if code == "ValidationException" {
                    let fix = format!(
                        "Does it write an item twice, a key or a value of another type than its table has ({own}), or a \
                         number that is none?"
                    );
                    (without_values(message), fix)
                } else if lacks_key(message) {
                    let fix = format!(
                        "The function's role needs kms:Decrypt on the keys of its tables ({own}) and of {table:?}"
                    );
                    (message.unwrap_or("no message"), fix)
                } else {
                    let fix = format!(
                        "Are its tables ({own}) and {table:?} there, and may the function's role write to each of them?"
                    );
                    (message.unwrap_or("no message"), fix)
                };
                Try::Failed(Failure::retry(format!(
                    "DynamoDB does not take the handler's transaction: {code}: {what}. {fix}"
                )))
            }
            // Includes a try with this token that is still in flight: the next one tells how it ended.
            _ => Try::NoAnswer(text),
        }
    }

    /// Interprets the reasons: one for each write, the lock record's first, which takes precedence.
    fn canceled(&self, reasons: &[CancellationReason], writes: &[Write]) -> Try {
        let code = |reason: &CancellationReason| reason.code().unwrap_or("None").to_owned();
        if let Some(reason) = reasons.first().filter(|reason| code(reason) == "ConditionalCheckFailed") {
            return match reason.item().map(|item| item::record(item, &self.requests.names)).transpose() {
                Ok(record) => Try::Refused(record),
                Err(error) => Try::NoAnswer(error),
            };
        }
        // Another owner is writing the lock record: the handler's conditions may hold when it has finished.
        if let Some(code) = reasons.first().map(code).filter(|code| code != "None") {
            if is_throttling(&code) {
                return Try::Throttled(throttled(&code));
            }
            return Try::Conflict(Failure::retry(format!("the transaction was cancelled: {code} on the lock record")));
        }
        let own = reasons.iter().skip(1).zip(writes).enumerate();
        let mut conflict = None;
        for (number, (reason, write)) in own {
            match code(reason).as_str() {
                "None" => {}
                "ConditionalCheckFailed" => return Try::Failed(write.refused.clone()),
                code @ ("ValidationError" | "ItemCollectionSizeLimitExceeded") => {
                    let what = without_values(reason.message());
                    let number = number + 1;
                    let why =
                        format!("DynamoDB does not take write {number} of the handler's transaction: {code}: {what}");
                    // It can be enabled again.
                    let is_temporary = is_about_key(reason.message());
                    return Try::Failed(if is_temporary { Failure::retry(why) } else { Failure::terminal(why) });
                }
                // A conflict, throttling, or something as temporary.
                code => conflict = Some(code.to_owned()),
            }
        }
        if let Some(code) = conflict.as_ref().filter(|code| is_throttling(code)) {
            return Try::Throttled(throttled(code));
        }
        let what = conflict.unwrap_or_else(|| "no reason given".into());
        Try::Conflict(Failure::retry(format!("the transaction was cancelled: {what}")))
    }
}

/// Returns what DynamoDB's message says before it quotes a value, which is the handler's own: "The parameter cannot be converted to a
/// numeric value: …", "Input collection […] contains duplicates".
fn without_values(message: Option<&str>) -> &str {
    message.and_then(|message| message.split([':', '[', '\'', '"']).next()).unwrap_or("no message").trim_end()
}

/// Returns whether this reason of a cancelled transaction is a table's capacity.
fn is_throttling(code: &str) -> bool {
    matches!(code, "ThrottlingError" | "ProvisionedThroughputExceeded" | "RequestLimitExceeded")
}

fn throttled(code: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Throttled, format!("the transaction was cancelled: {code}"))
}

/// The reasons of a cancelled transaction.
pub(crate) struct TransactionCanceled<'a>(pub(crate) &'a [CancellationReason]);

pub(crate) fn canceled(error: &SdkError<TransactWriteItemsError>) -> Option<TransactionCanceled<'_>> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(canceled) => {
            Some(TransactionCanceled(canceled.cancellation_reasons()))
        }
        _ => None,
    }
}

/// Converts a write to a part of a transaction.
pub(crate) fn as_update(request: &UpdateItemFluentBuilder) -> Result<Update, StoreError> {
    let update = Update::builder()
        .set_table_name(request.get_table_name().clone())
        .set_key(request.get_key().clone())
        .set_update_expression(request.get_update_expression().clone())
        .set_condition_expression(request.get_condition_expression().clone())
        .set_expression_attribute_names(request.get_expression_attribute_names().clone())
        .set_expression_attribute_values(request.get_expression_attribute_values().clone())
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    // It has a key and an expression, since all of them are made in `requests`.
    update.build().map_err(|error| StoreError::new(StoreErrorKind::Other, error.to_string()))
}
