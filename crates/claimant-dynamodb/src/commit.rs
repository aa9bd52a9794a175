//! A transaction's commit: the lock record's write and the handler's own in one `TransactWriteItems`, and what its answers
//! say.

use std::ops::ControlFlow::{self, Break, Continue};

use aws_sdk_dynamodb::error::{ProvideErrorMetadata as _, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    CancellationReason, ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update,
};
use claimant_core::{AnyTransaction, Budget, Claim, Failure, Record, Settled, StoreError, StoreErrorKind};

use crate::error::store_error;
use crate::item;
use crate::table::{LockTable, ROUNDS_MAX};
use crate::transaction::{Transaction, Write, tables};

/// The next write of the lock record, or what its claim came to without one.
pub(crate) type Next = ControlFlow<Settled, UpdateItemFluentBuilder>;

/// What is known of the lock record before a try.
pub(crate) enum Seen {
    /// Nothing was read yet.
    Nothing,
    /// A refusal showed this.
    Refused(Option<Record>),
    /// No answer came, and this was read: the write may still be under way.
    Read(Option<Record>),
}

/// What one try came to.
enum Try {
    /// All of it is written.
    Applied,
    /// Nothing is: the condition on the lock record did not hold for this record.
    Refused(Option<Record>),
    /// Nothing is, and the same would happen again: a condition of the handler's own, or a write that DynamoDB does not take.
    Objected(Failure),
    /// Nothing is: another transaction was in the way.
    InTheWay(Failure),
    /// Nothing is: the capacity of a table was.
    Throttled(StoreError),
    /// Whether it is, is not known.
    NoAnswer(StoreError),
}

impl LockTable {
    /// The lock record's write and the handler's, until it is known what came of them or the time is over; `lock` gives
    /// the write, or the answer that the record seen leads to.
    pub(crate) async fn commit(
        &self,
        mut claim: Claim,
        mut transaction: Transaction,
        mut lock: impl FnMut(Seen) -> Next,
        budget: Budget<'_>,
    ) -> Settled {
        if let Some(failure) = transaction.too_large() {
            return Settled::Aborted { claim, failure };
        }
        let mut write = match lock(Seen::Nothing) {
            Continue(write) => write,
            Break(settled) => return settled,
        };
        let (mut unknown, mut in_the_way) = (None, None);
        for round in 0..ROUNDS_MAX {
            if round > 0 {
                tokio::time::sleep(budget.retry_wait(round)).await;
            }
            // The owner's token names this claim and nothing else; a write that starts from another record is another one.
            let token = format!("{}-{}", claim.owner.as_str(), transaction.changes);
            let seen = match self.transact(&write, &transaction.writes, &token, budget).await {
                Try::Applied => return Settled::Done,
                Try::Objected(failure) => return Settled::Aborted { claim, failure },
                Try::InTheWay(failure) => {
                    in_the_way = Some(failure);
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
                        // The table gives no answer at all: whoever has time tries again.
                        Err(_) => break,
                    }
                }
            };
            match seen.map(|seen| (matches!(seen, Seen::Refused(_)), lock(seen))) {
                Ok((_, Break(settled))) => return settled,
                Ok((changed, Continue(next))) => {
                    transaction.changes += u32::from(changed);
                    write = next;
                }
                Err(error) => unknown = Some(error),
            }
        }
        match (unknown, in_the_way) {
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
        let lock = match as_update(lock) {
            Ok(lock) => TransactWriteItem::builder().update(lock).build(),
            Err(error) => return Try::Objected(Failure::retry(error.to_string())),
        };
        let items = std::iter::once(lock).chain(writes.iter().map(|write| write.item.clone())).collect();
        let request = self.requests.client.transact_write_items().set_transact_items(Some(items));
        let request = request.client_request_token(token).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let error = match budget.send(request.send()).await {
            Ok(Ok(output)) => {
                let units = output.consumed_capacity().iter().filter_map(|c| c.capacity_units()).sum();
                budget.meter().units(units, 0.0);
                return Try::Applied;
            }
            Ok(Err(error)) => error,
            Err(error) => return Try::NoAnswer(error),
        };
        if let Some(TransactionCanceled(reasons)) = canceled(&error) {
            return self.canceled(reasons, writes);
        }
        let text = store_error("TransactWriteItems", self.name(), &error);
        match (&error, text.kind()) {
            (SdkError::ServiceError(_), StoreErrorKind::Throttled) => Try::Throttled(text),
            (SdkError::ServiceError(service), StoreErrorKind::Denied | StoreErrorKind::Misconfigured) => {
                // Of all the tables in it, the store's own is not the likeliest to be wrong.
                let what = service.err().message().unwrap_or("no message");
                let code = service.err().code().unwrap_or("no code");
                let (own, lock) = (tables(writes), self.name());
                Try::Objected(Failure::retry(format!(
                    "DynamoDB does not take the handler's transaction: {code}: {what}. Are its tables ({own}) and {lock:?} \
                     there, and may the function's role write to each of them?"
                )))
            }
            // A try with this token under way, too: the next one tells what came of it.
            _ => Try::NoAnswer(text),
        }
    }

    /// What the reasons say: one for each write, the lock record's first, and that one counts most.
    fn canceled(&self, reasons: &[CancellationReason], writes: &[Write]) -> Try {
        let code = |reason: &CancellationReason| reason.code().unwrap_or("None").to_owned();
        if let Some(reason) = reasons.first().filter(|reason| code(reason) == "ConditionalCheckFailed") {
            return match reason.item().map(|item| item::record(item, &self.requests.names)).transpose() {
                Ok(record) => Try::Refused(record),
                Err(error) => Try::NoAnswer(error),
            };
        }
        // Another owner is writing the lock record: what the handler's conditions met is not the last word.
        if let Some(code) = reasons.first().map(code).filter(|code| code != "None") {
            if is_throttling(&code) {
                return Try::Throttled(throttled(&code));
            }
            return Try::InTheWay(Failure::retry(format!("the transaction was cancelled: {code} on the lock record")));
        }
        let own = reasons.iter().skip(1).zip(writes).enumerate();
        let mut in_the_way = None;
        for (place, (reason, write)) in own {
            match code(reason).as_str() {
                "None" => {}
                "ConditionalCheckFailed" => return Try::Objected(write.refused.clone()),
                code @ ("ValidationError" | "ItemCollectionSizeLimitExceeded") => {
                    let what = reason.message().unwrap_or("no message");
                    let place = place + 1;
                    return Try::Objected(Failure::terminal(format!(
                        "DynamoDB does not take write {place} of the handler's transaction: {code}: {what}"
                    )));
                }
                // A conflict, throttling, or something that passes as they do.
                code => in_the_way = Some(code.to_owned()),
            }
        }
        if let Some(code) = in_the_way.as_ref().filter(|code| is_throttling(code)) {
            return Try::Throttled(throttled(code));
        }
        let what = in_the_way.unwrap_or_else(|| "no reason given".into());
        Try::InTheWay(Failure::retry(format!("the transaction was cancelled: {what}")))
    }
}

/// Whether this reason of a cancelled transaction is a table's capacity.
fn is_throttling(code: &str) -> bool {
    matches!(code, "ThrottlingError" | "ProvisionedThroughputExceeded" | "RequestLimitExceeded")
}

fn throttled(code: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Throttled, format!("the transaction was cancelled: {code}"))
}

/// The reasons of a cancelled transaction.
struct TransactionCanceled<'a>(&'a [CancellationReason]);

fn canceled(error: &SdkError<TransactWriteItemsError>) -> Option<TransactionCanceled<'_>> {
    match error.as_service_error()? {
        TransactWriteItemsError::TransactionCanceledException(canceled) => {
            Some(TransactionCanceled(canceled.cancellation_reasons()))
        }
        _ => None,
    }
}

/// The same write as part of a transaction.
fn as_update(request: &UpdateItemFluentBuilder) -> Result<Update, StoreError> {
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
