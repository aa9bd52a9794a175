//! Runtimes that are wrong on purpose: the checker must see each.

use clap::ValueEnum;
use serde_json::{Value, json};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mutant {
    /// Claims are written whatever the record shows.
    ClaimsWithoutCondition,
    /// Leases that are not over are taken over.
    LiveLeasesTakenOver,
    /// Endings are written whoever holds the claim.
    SettlesUnguarded,
    /// Endings are written whoever holds the claim, as long as somebody does.
    SettlesForOthers,
    /// Transactions commit whoever holds the claim.
    CommitsUnguarded,
    /// Claims do not count.
    FenceStandsStill,
    /// A duplicate of unfinished work is acknowledged.
    BusyIsDone,
    /// An ending whose answer is missing counts as written.
    UnknownIsDone,
    /// A lost claim counts as settled.
    LostIsDone,
    /// A claim is tried again long after its invocation has returned.
    WritesAfterReturn,
    /// Dead letters are taken for sent.
    LettersUnconfirmed,
    /// Nothing is ever hidden.
    VisibilityForgotten,
    /// Failures are not reported.
    FailuresForgotten,
    /// FIFO groups are not kept in order.
    GroupsIgnored,
    /// A renewal counts as made, whatever its answer.
    RenewalsPretended,
    /// Abandoned work of an at-most-once consumer is run again.
    AbandonedRerun,
    /// Two payloads of one key count as the same work.
    ConflictsIgnored,
    /// The deadline is taken to be later than it is.
    DeadlineIgnored,
    /// Finished work is forgotten after a minute.
    WindowForgotten,
    /// Work that an earlier owner may have died of runs beside the others.
    SuspectsUnknown,
    /// At most once, by keys that do not outlive a redrive.
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
    /// A claim's fence is not the record's.
    FenceMadeUp,
    /// How often a message was received is not looked at.
    ReceivesUnseen,
    /// The consumer's limits hold for each invocation, not for the process.
    LimitsForEach,
}

impl Mutant {
    /// The request to the store as the wrong runtime would have sent it.
    pub fn bend_request(self, operation: &str, request: &mut Value) {
        let is_claim =
            |update: &Value| update["UpdateExpression"].as_str().is_some_and(|e| e.contains("#attempts, :zero"));
        let is_ending = |update: &Value| update["ExpressionAttributeValues"].get(":ended").is_some();
        match (self, operation) {
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
            _ => {}
        }
    }

    /// Whether it is the store's answers that are wrong.
    #[must_use]
    pub const fn bends_answers(self) -> bool {
        matches!(
            self,
            Self::BusyIsDone
                | Self::UnknownIsDone
                | Self::LostIsDone
                | Self::WritesAfterReturn
                | Self::RenewalsPretended
                | Self::SettlesGivenUp
                | Self::SuspectsUnknown
                | Self::ClaimsAhead
                | Self::FenceMadeUp
        )
    }
}
