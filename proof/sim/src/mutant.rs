//! Bugs put into the runtime on purpose: the checker must report each.

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::calls::LOCKS;

/// A bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mutant {
    /// Claims are written without their condition.
    ClaimsWithoutCondition,
    /// Leases that have not expired are taken over.
    LiveLeasesTakenOver,
    /// Settlements are written without their guard.
    SettlesUnguarded,
    /// Settlements are written if any owner holds the claim.
    SettlesForOthers,
    /// Transactions commit without the claim's guard.
    CommitsUnguarded,
    /// A claim does not raise the fencing token.
    FenceStandsStill,
    /// A duplicate of unfinished work is acknowledged.
    BusyIsDone,
    /// A settlement without an answer counts as written.
    UnknownIsDone,
    /// A lost claim counts as settled.
    LostIsDone,
    /// A claim is tried again long after its invocation has returned.
    WritesAfterReturn,
    /// Dead letters count as sent without a confirmation.
    LettersUnconfirmed,
    /// Schedules count as made without a confirmation.
    SchedulesUnconfirmed,
    /// Visibility timeouts are never changed.
    VisibilityForgotten,
    /// Failures are not reported.
    FailuresForgotten,
    /// FIFO groups are not kept in order.
    GroupsIgnored,
    /// A renewal counts as made whatever its answer.
    RenewalsPretended,
    /// Abandoned work of an at-most-once consumer is run again.
    AbandonedRerun,
    /// Two payloads of one key count as the same work.
    ConflictsIgnored,
    /// The deadline is taken to be later than it is.
    DeadlineIgnored,
    /// Finished work is forgotten after a minute.
    WindowForgotten,
    /// Suspects run beside other messages.
    SuspectsUnknown,
    /// An at-most-once consumer uses message ids as keys, which a redrive changes.
    MessageIdsForKeys,
    /// Claims are taken ahead of free slots though abandoned work is parked.
    ClaimsAhead,
    /// Finished work whose result is too large is rejected.
    LargeRejected,
    /// A settlement without an answer is not tried again.
    SettlesGivenUp,
    /// Fingerprints of different rules are compared.
    RulesMixed,
    /// Handlers' threads are never replaced.
    ThreadsForEver,
    /// A claim's fencing token is not that of the record.
    FenceMadeUp,
    /// Receive counts are ignored.
    ReceivesUnseen,
    /// The consumer's limits hold for each invocation instead of the process.
    LimitsForEach,
    /// Of several events in a message, only the first is seen.
    EventsForgotten,
    /// The results of a call are given to the wrong items.
    ResultsMixedUp,
    /// What no route takes is acknowledged, and not rejected.
    UnknownAcknowledged,
    /// A payload that cannot be fetched now counts as one that never can be.
    UnfetchedRejected,
    /// Operators write without their condition.
    ActsUnguarded,
    /// Operators force each act.
    ActsForced,
    /// A process that reads the record of an open breaker sees none.
    BreakerUnseen,
    /// A breaker counts as closed before its release is even sent.
    ReleasesPretended,
    /// The intake is switched off though its return was not confirmed.
    ReturnsUnconfirmed,
    /// A slot of a limit that another process holds counts as granted.
    SlotsShared,
    /// A consumer that runs work at most once, or so many times, runs nothing, and reports that it failed.
    LeftUndone,
    /// Such a consumer rejects its work, and runs nothing.
    RejectedUntried,
    /// A handler is run once more under the claim under which it was done.
    RunsTwice,
    /// A message that fails on its last receive is hidden as on any other.
    LastReceiveHidden,
    /// Work is run as often as its messages come.
    AttemptsUnbounded,
    /// A failed attempt is given back.
    AttemptsGivenBack,
    /// Dead letters are sent without the body of their message.
    LettersEmpty,
    /// Schedules are made for a time that has passed.
    SchedulesAtOnce,
    /// What fails is scheduled for a day later, though nobody asked for that.
    SchedulesUnasked,
    /// Records are read without asking for the last writes.
    ReadsEventually,
}

impl Mutant {
    /// The request as the wrong runtime would have sent it.
    pub fn bend_request(self, operation: &str, request: &mut Value) {
        let is_claim =
            |update: &Value| update["UpdateExpression"].as_str().is_some_and(|e| e.contains("#attempts, :zero"));
        let is_ending = |update: &Value| update["ExpressionAttributeValues"].get(":ended").is_some();
        match (self, operation) {
            (Self::ClaimsWithoutCondition, "PutItem") => request["ConditionExpression"] = Value::Null,
            (Self::ClaimsWithoutCondition, "UpdateItem") if is_claim(request) => {
                request["ConditionExpression"] = Value::Null;
            }
            (Self::LiveLeasesTakenOver, "UpdateItem") => {
                if let Some(dead) = request["ExpressionAttributeValues"].get_mut(":dead") {
                    *dead = json!({ "N": "9999999999999" });
                }
            }
            (Self::FenceStandsStill, "UpdateItem") if is_claim(request) => {
                let update = request["UpdateExpression"].as_str().unwrap_or_default();
                let update = update.replace("#fence = if_not_exists(#fence, :zero) + :one", "#fence = :one");
                request["UpdateExpression"] = json!(update);
            }
            (Self::SettlesUnguarded, "UpdateItem") if is_ending(request) => {
                request["ConditionExpression"] = Value::Null;
            }
            (Self::SettlesForOthers, "UpdateItem") if is_ending(request) => {
                request["ConditionExpression"] = json!("#status = :in_progress");
            }
            (Self::CommitsUnguarded, "TransactWriteItems") => {
                request["TransactItems"][0]["Update"]["ConditionExpression"] = Value::Null;
            }
            (Self::ReadsEventually, "GetItem") => request["ConsistentRead"] = json!(false),
            (Self::ReadsEventually, "BatchGetItem") => request["RequestItems"][LOCKS]["ConsistentRead"] = json!(false),
            (Self::LettersEmpty, "SendMessageBatch") => {
                let entries = request["Entries"].as_array_mut().into_iter().flatten();
                entries.for_each(|entry| entry["MessageBody"] = json!("{}"));
            }
            (Self::SchedulesAtOnce, "CreateSchedule") => {
                request["ScheduleExpression"] = json!("at(1970-01-01T00:00:00)");
            }
            _ => {}
        }
    }
}
