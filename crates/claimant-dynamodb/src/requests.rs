//! Every request to the lock table, with its condition.
//!
//! The blind writes below carry conditions of their own. Each is narrower than, or the same as, what the pure
//! decision of the protocol grants, so that a write that applies is one that the decision allows; what is refused is
//! decided by the protocol on the record that came back with the refusal.

use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::builders::DeleteBuilder;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, ReturnConsumedCapacity, ReturnValue, ReturnValuesOnConditionCheckFailure,
};
use claimant_aws::Later;
use claimant_core::protocol::{Abandoned, ClaimRequest, Renewal, Settlement, expiry, fresh_claim, window_end};
use claimant_core::{Claim, Record, RecordId, Status};

use crate::item::{self, bytes, number, text, time, values};
use crate::names::AttributeNames;
use crate::tables::Tables;

/// There is no record.
const ABSENT: &str = "attribute_not_exists(#id)";

/// Claims a key that has no record, one that failed, or one whose owner's lease is over.
///
/// It does not hold for records that expired, were rejected or carry another payload, which are rare: the protocol decides on
/// the record that the refusal returns.
///
/// Nor does it hold for this attempt's own write whose answer was lost: not if its lease is over by the clock, and not if its
/// run has failed since and this is an abandoned try that arrives late, whose claim would have no owner.
const CLAIM_CONDITION: &str = "attribute_not_exists(#id) OR \
    (#fingerprint = :fingerprint AND #expires_at >= :now_s AND #owner <> :owner AND \
    (#status = :failed OR #status = :in_progress AND #lease_until < :dead))";

/// The same for consumers that park abandoned work.
const CLAIM_CONDITION_PARKING: &str = "attribute_not_exists(#id) OR \
    (#fingerprint = :fingerprint AND #expires_at >= :now_s AND #owner <> :owner AND #status = :failed)";

/// The error stays until the claim ends: it says how many owners did not finish the work.
const CLAIM_UPDATE: &str = "SET #status = :in_progress, #owner = :owner, #lease_until = :lease_until, \
    #message_id = :message_id, #fingerprint = :fingerprint, #updated_at = :now, #expires_at = :expires_at, \
    #created_at = if_not_exists(#created_at, :now), #fence = if_not_exists(#fence, :zero) + :one, \
    #attempts = if_not_exists(#attempts, :zero) + :one REMOVE #completed_at, #result";

/// Holds only under exactly this claim: guards every write after the claim.
const HELD: &str = "#status = :in_progress AND #owner = :owner AND #fence = :fence";

/// Holds as long as the record is the one that was seen: owner and fence name one claim, status and lease everything that can
/// happen to it.
const UNCHANGED: &str = "#status = :status AND #owner = :owner AND #fence = :fence AND #lease_until = :lease_until";

/// Builds requests to the tables of records, with their attribute names.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) client: Later<aws_sdk_dynamodb::Client>,
    pub(crate) tables: Tables,
    /// Where records were before, until they are moved.
    pub(crate) before: Option<Tables>,
    pub(crate) names: AttributeNames,
}

impl Requests {
    /// Returns the table that had this record before, if it is another one.
    pub(crate) fn before(&self, id: &RecordId) -> Option<&str> {
        self.before.as_ref().map(|b| b.of(id)).filter(|b| *b != self.tables.of(id))
    }

    fn update(&self, id: &RecordId) -> UpdateItemFluentBuilder {
        self.client
            .update_item()
            .table_name(self.tables.of(id))
            .key(&self.names.id, text(id.as_str()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Claims a key that has no record, with the record that the protocol makes for it. Of all that can, this is the request with
    /// the least to send and to read.
    pub(crate) fn claim_new(&self, request: &ClaimRequest) -> PutItemFluentBuilder {
        self.client
            .put_item()
            .table_name(self.tables.of(&request.id))
            .set_item(Some(item::item(&request.id, &fresh_claim(request), &self.names)))
            .condition_expression(ABSENT)
            .expression_attribute_names("#id", &self.names.id)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }

    /// Builds the blind claim: one request for a first delivery, a retry and a takeover. Returns the old record when it applies.
    pub(crate) fn claim(&self, request: &ClaimRequest) -> UpdateItemFluentBuilder {
        let n = &self.names;
        let rerun = request.policy.abandoned == Abandoned::Rerun;
        let update = self
            .update(&request.id)
            .update_expression(CLAIM_UPDATE)
            .condition_expression(if rerun { CLAIM_CONDITION } else { CLAIM_CONDITION_PARKING })
            .return_values(ReturnValue::AllOld)
            .expression_attribute_names("#id", &n.id)
            .expression_attribute_names("#status", &n.status)
            .expression_attribute_names("#owner", &n.owner)
            .expression_attribute_names("#fence", &n.fence)
            .expression_attribute_names("#lease_until", &n.lease_until)
            .expression_attribute_names("#attempts", &n.attempts)
            .expression_attribute_names("#message_id", &n.message_id)
            .expression_attribute_names("#fingerprint", &n.fingerprint)
            .expression_attribute_names("#created_at", &n.created_at)
            .expression_attribute_names("#updated_at", &n.updated_at)
            .expression_attribute_names("#completed_at", &n.completed_at)
            .expression_attribute_names("#expires_at", &n.expires_at)
            .expression_attribute_names("#result", &n.result)
            .expression_attribute_values(":in_progress", text(Status::InProgress.as_str()))
            .expression_attribute_values(":failed", text(Status::Failed.as_str()))
            .expression_attribute_values(":owner", text(request.owner.as_str()))
            .expression_attribute_values(":lease_until", time(request.lease_until))
            .expression_attribute_values(":message_id", text(request.message_id.as_str()))
            .expression_attribute_values(":fingerprint", bytes(&request.fingerprint))
            .expression_attribute_values(":now", time(request.now))
            .expression_attribute_values(":now_s", number(request.now.as_secs_rounded_up()))
            .expression_attribute_values(
                ":expires_at",
                number(expiry(request.now, request.lease_until, &request.policy)),
            )
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":one", number(1));
        // DynamoDB refuses values that no expression uses.
        if rerun {
            update.expression_attribute_values(":dead", time(request.now.minus(request.policy.skew)))
        } else {
            update
        }
    }

    /// Writes `next` in full, if there is no record.
    pub(crate) fn create(&self, id: &RecordId, next: &Record) -> UpdateItemFluentBuilder {
        self.write(id, next).condition_expression(ABSENT).expression_attribute_names("#id", &self.names.id)
    }

    /// Writes `next` in full, if the record is still the one that was read.
    pub(crate) fn replace(&self, id: &RecordId, seen: &Record, next: &Record) -> UpdateItemFluentBuilder {
        let update = self.write(id, next).condition_expression(UNCHANGED);
        self.compared(seen).into_iter().fold(update, |update, (name, attribute, of_value, value)| {
            update.expression_attribute_names(name, attribute).expression_attribute_values(of_value, value)
        })
    }

    /// Deletes a record from the table that had it before, if it is still the one that was read.
    pub(crate) fn delete(&self, before: &str, id: &RecordId, seen: &Record) -> DeleteBuilder {
        let key = Delete::builder().table_name(before).key(&self.names.id, text(id.as_str()));
        let delete = key.condition_expression(UNCHANGED);
        self.compared(seen).into_iter().fold(delete, |delete, (name, attribute, of_value, value)| {
            delete.expression_attribute_names(name, attribute).expression_attribute_values(of_value, value)
        })
    }

    /// Returns what [`UNCHANGED`] names and compares.
    fn compared(&self, seen: &Record) -> [(&str, &str, &str, AttributeValue); 4] {
        let AttributeNames { status, owner, fence, lease_until, .. } = &self.names;
        [
            ("#status", status, ":status", text(seen.status.as_str())),
            ("#owner", owner, ":owner", text(seen.owner.as_str())),
            ("#fence", fence, ":fence", number(seen.fence.get())),
            ("#lease_until", lease_until, ":lease_until", time(seen.lease_until)),
        ]
    }

    fn write(&self, id: &RecordId, next: &Record) -> UpdateItemFluentBuilder {
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        let mut update = self.update(id);
        for (index, (name, value)) in values(next, &self.names).into_iter().enumerate() {
            update = update.expression_attribute_names(format!("#n{index}"), name);
            match value {
                Some(value) => {
                    set.push(format!("#n{index} = :n{index}"));
                    update = update.expression_attribute_values(format!(":n{index}"), value);
                }
                None => remove.push(format!("#n{index}")),
            }
        }
        let remove = if remove.is_empty() { String::new() } else { format!(" REMOVE {}", remove.join(", ")) };
        update.update_expression(format!("SET {}{remove}", set.join(", ")))
    }

    /// Builds a write that applies only under exactly this claim.
    fn held(&self, claim: &Claim) -> UpdateItemFluentBuilder {
        self.update(&claim.id)
            .expression_attribute_names("#status", &self.names.status)
            .expression_attribute_names("#owner", &self.names.owner)
            .expression_attribute_names("#fence", &self.names.fence)
            .expression_attribute_names("#updated_at", &self.names.updated_at)
            .expression_attribute_names("#expires_at", &self.names.expires_at)
            .expression_attribute_values(":in_progress", text(Status::InProgress.as_str()))
            .expression_attribute_values(":owner", text(claim.owner.as_str()))
            .expression_attribute_values(":fence", number(claim.fence.get()))
    }

    /// Makes the lease longer.
    pub(crate) fn renew(&self, claim: &Claim, renewal: &Renewal) -> UpdateItemFluentBuilder {
        self.held(claim)
            .update_expression("SET #lease_until = :lease_until, #updated_at = :now, #expires_at = :expires_at")
            .condition_expression(format!("{HELD} AND #lease_until < :lease_until"))
            .expression_attribute_names("#lease_until", &self.names.lease_until)
            .expression_attribute_values(":lease_until", time(renewal.lease_until))
            .expression_attribute_values(":now", time(renewal.now))
            .expression_attribute_values(
                ":expires_at",
                number(expiry(renewal.now, renewal.lease_until, &renewal.policy)),
            )
    }

    /// Ends the claim.
    pub(crate) fn settle(&self, claim: &Claim, settlement: &Settlement) -> UpdateItemFluentBuilder {
        let ending = &settlement.ending;
        let mut update = self
            .held(claim)
            .condition_expression(HELD)
            .expression_attribute_values(":ended", text(ending.status().as_str()))
            .expression_attribute_values(":now", time(settlement.now))
            .expression_attribute_values(":expires_at", number(window_end(settlement.now, &settlement.policy)));
        let mut set = "SET #status = :ended, #updated_at = :now, #expires_at = :expires_at".to_owned();
        if ending.status() == Status::Completed {
            set.push_str(", #completed_at = :now");
            update = update.expression_attribute_names("#completed_at", &self.names.completed_at);
        }
        if let Some(result) = ending.result() {
            set.push_str(", #result = :result");
            update = update
                .expression_attribute_names("#result", &self.names.result)
                .expression_attribute_values(":result", text(result));
        }
        if ending.attempts_back() > 0 {
            set.push_str(", #attempts = #attempts - :back");
            update = update
                .expression_attribute_names("#attempts", &self.names.attempts)
                .expression_attribute_values(":back", number(ending.attempts_back().into()));
        }
        if let Some(error) = ending.error() {
            set.push_str(", #error = :error");
            update = update
                .expression_attribute_names("#error", &self.names.error)
                .expression_attribute_values(":error", text(error));
        }
        if ending.removes_error(claim) {
            set.push_str(" REMOVE #error");
            update = update.expression_attribute_names("#error", &self.names.error);
        }
        update.update_expression(set)
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::Client;
    use aws_sdk_dynamodb::config::{BehaviorVersion, Config};
    use claimant_core::{ConsumerName, Key};

    use super::*;
    use crate::table::LockTable;

    /// Two ways of writing are taken for two tables: what DynamoDB refuses is seen, and records that are passed over are not.
    #[test]
    fn a_table_is_the_one_from_before_where_it_is_written_alike() {
        let config = Config::builder().behavior_version(BehaviorVersion::latest()).build();
        let elsewhere = "arn:aws:dynamodb:eu-west-1:111111111111:table/locks";
        let id = RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new("1").unwrap());
        for (now, before, read) in
            [("locks", "locks", None), ("locks", "old", Some("old")), ("locks", elsewhere, Some(elsewhere))]
        {
            let table = LockTable::new(Client::from_conf(config.clone()), now.parse::<Tables>().unwrap());
            let requests = table.before(before.parse::<Tables>().unwrap()).requests;
            assert_eq!(requests.before(&id), read, "{now} after {before}");
        }
    }
}
