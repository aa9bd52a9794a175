//! What the result of an invocation means for the messages of its batch. Nothing else decides this.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lambda::Invocation;

/// What becomes of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every message is deleted.
    AllSucceeded,
    /// These message ids stay in the queue, the others are deleted.
    SomeFailed(BTreeSet<String>),
    /// Every message stays in the queue.
    AllFailed {
        /// Why, for the log; never a message's content.
        reason: String,
    },
}

impl Verdict {
    /// Whether the message stays in the queue.
    pub fn leaves(&self, message_id: &str) -> bool {
        match self {
            Self::AllSucceeded => false,
            Self::SomeFailed(ids) => ids.contains(message_id),
            Self::AllFailed { .. } => true,
        }
    }
}

/// Decides as Lambda does; `report` says whether the mapping has `ReportBatchItemFailures`.
///
/// Without `report` a response is not looked at. With it, an empty or null response or list means success, a sound list
/// means that its ids failed, and everything else fails the whole batch.
///
/// What is empty, AWS's documents say in the same words for queues and for streams. LocalStack's AWS-validated tests have `{}` for a
/// queue, and `{}`, `[]` and `null` for a Kinesis stream (`test_kinesis_report_batch_item_success_scenarios`; its empty text becomes a
/// `return` without a value). No source has JSON's empty text, two quotes, or an object without `batchItemFailures`:
/// here they fail, which is seen.
pub fn verdict(report: bool, batch_ids: &[String], invocation: &Invocation) -> Verdict {
    let body = match invocation {
        Invocation::Response(_) if !report => return Verdict::AllSucceeded,
        Invocation::Response(body) => body,
        // The message is the function's own and may hold anything; it has been shown with the function's output.
        Invocation::FunctionError { kind, .. } => return failed(format!("the function reported an error: {kind}")),
        Invocation::TimedOut => return failed("the function timed out"),
        Invocation::Crashed { status } => return failed(format!("the function's process ended: {status}")),
    };
    match failed_ids(batch_ids, body) {
        Ok(ids) if ids.is_empty() => Verdict::AllSucceeded,
        Ok(ids) => Verdict::SomeFailed(ids),
        Err(reason) => failed(reason),
    }
}

fn failed(reason: impl Into<String>) -> Verdict {
    Verdict::AllFailed { reason: reason.into() }
}

fn failed_ids(batch_ids: &[String], body: &[u8]) -> Result<BTreeSet<String>, &'static str> {
    if body.trim_ascii().is_empty() {
        return Ok(BTreeSet::new());
    }
    let response: Value = serde_json::from_slice(body).map_err(|_| "the response is not JSON")?;
    let list = match &response {
        Value::Null => return Ok(BTreeSet::new()),
        Value::Array(items) if items.is_empty() => return Ok(BTreeSet::new()),
        Value::Object(fields) if fields.is_empty() => return Ok(BTreeSet::new()),
        Value::Object(fields) => fields.get("batchItemFailures").ok_or("the response has no `batchItemFailures`")?,
        _ => return Err("the response is not an object"),
    };
    let items = match list {
        Value::Null => return Ok(BTreeSet::new()),
        Value::Array(items) => items,
        _ => return Err("`batchItemFailures` is not a list"),
    };
    items
        .iter()
        .map(|item| match item.get("itemIdentifier") {
            None => Err("an item has no `itemIdentifier`"),
            Some(Value::String(id)) if id.is_empty() => Err("an `itemIdentifier` is empty"),
            Some(Value::String(id)) if !batch_ids.contains(id) => Err("an `itemIdentifier` is not in the batch"),
            Some(Value::String(id)) => Ok(id.clone()),
            Some(Value::Null) => Err("an `itemIdentifier` is null"),
            Some(_) => Err("an `itemIdentifier` is not a text"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Expected {
        Success,
        Left(&'static [&'static str]),
        Failure(&'static str),
    }
    use Expected::{Failure, Left, Success};

    fn check(report: bool, invocation: &Invocation, expected: &Expected) {
        // A receive may hand out one message twice.
        let batch = ["a", "b", "b", "c"].map(str::to_owned);
        let verdict = verdict(report, &batch, invocation);
        match (&verdict, expected) {
            (Verdict::AllSucceeded, Success) => {}
            (Verdict::SomeFailed(ids), Left(expected)) => {
                assert_eq!(ids.iter().map(String::as_str).collect::<Vec<_>>(), *expected);
                assert!(verdict.leaves(expected[0]) && !verdict.leaves("c"));
            }
            (Verdict::AllFailed { reason }, Failure(part)) => {
                assert!(reason.contains(part), "`{reason}` must have `{part}`");
                assert!(verdict.leaves("a") && verdict.leaves("c"));
            }
            _ => panic!("report {report}, {invocation:?}: expected {expected:?}, got {verdict:?}"),
        }
    }

    #[test]
    fn every_response_has_its_verdict() {
        let table: &[(&str, Expected)] = &[
            // The whole batch succeeds.
            ("", Success),
            (" \n", Success),
            ("null", Success),
            ("{}", Success),
            ("[]", Success),
            (r#"{"batchItemFailures": []}"#, Success),
            (r#"{"batchItemFailures": null}"#, Success),
            (r#"{"batchItemFailures": [], "more": 1}"#, Success),
            // Those listed stay.
            (r#"{"batchItemFailures": [{"itemIdentifier": "a"}]}"#, Left(&["a"])),
            (r#"{"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "a"}]}"#, Left(&["a", "b"])),
            (r#"{"batchItemFailures": [{"itemIdentifier": "b"}, {"itemIdentifier": "b"}]}"#, Left(&["b"])),
            (r#"{"batchItemFailures": [{"itemIdentifier": "a", "more": 1}]}"#, Left(&["a"])),
            // The whole batch fails.
            ("{", Failure("not JSON")),
            ("done", Failure("not JSON")),
            ("{} {}", Failure("not JSON")),
            (r#""done""#, Failure("not an object")),
            (r#""""#, Failure("not an object")),
            (r#"[{"itemIdentifier": "a"}]"#, Failure("not an object")),
            ("true", Failure("not an object")),
            (r#"{"batchItemFailure": []}"#, Failure("no `batchItemFailures`")),
            (r#"{"batch_item_failures": [{"itemIdentifier": "a"}]}"#, Failure("no `batchItemFailures`")),
            (r#"{"batchItemFailures": {}}"#, Failure("not a list")),
            (r#"{"batchItemFailures": "a"}"#, Failure("not a list")),
            (r#"{"batchItemFailures": ["a"]}"#, Failure("no `itemIdentifier`")),
            (r#"{"batchItemFailures": [null]}"#, Failure("no `itemIdentifier`")),
            (r#"{"batchItemFailures": [{"itemIdentifer": "a"}]}"#, Failure("no `itemIdentifier`")),
            (r#"{"batchItemFailures": [{"item_identifier": "a"}]}"#, Failure("no `itemIdentifier`")),
            (r#"{"batchItemFailures": [{"itemIdentifier": null}]}"#, Failure("null")),
            (r#"{"batchItemFailures": [{"itemIdentifier": ""}]}"#, Failure("empty")),
            (r#"{"batchItemFailures": [{"itemIdentifier": 7}]}"#, Failure("not a text")),
            (r#"{"batchItemFailures": [{"itemIdentifier": "z"}]}"#, Failure("not in the batch")),
            (
                r#"{"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": "z"}]}"#,
                Failure("not in the batch"),
            ),
            (r#"{"batchItemFailures": [{"itemIdentifier": "a"}, {"itemIdentifier": null}]}"#, Failure("null")),
        ];
        for (body, expected) in table {
            let invocation = Invocation::Response(body.as_bytes().to_vec());
            check(true, &invocation, expected);
            check(false, &invocation, &Success);
        }
    }

    #[test]
    fn an_invocation_without_response_fails_the_batch_either_way() {
        let error = Invocation::FunctionError { kind: "Runtime.InitError".to_owned(), message: "secret".to_owned() };
        let crash = Invocation::Crashed { status: "signal: 9 (SIGKILL)".to_owned() };
        for report in [true, false] {
            check(report, &error, &Failure("Runtime.InitError"));
            check(report, &Invocation::TimedOut, &Failure("timed out"));
            check(report, &crash, &Failure("SIGKILL"));
        }
    }
}
