//! Invocations without a queue: the event is one payload, its result the response, its failure an error of the invocation.

use std::error::Error as StdError;
use std::fmt;

use aws_lambda_events::event::sqs::SqsEvent;
use claimant_core::{Error, Outcome, Report};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::event::QUEUES;
use crate::response::Response;
use crate::wire::{self, Lenient};

/// What an event is.
pub(crate) enum Incoming {
    /// A batch of a queue.
    Batch(SqsEvent),
    /// One payload.
    Payload(Box<RawValue>),
}

/// Returns what an event is: a batch of a queue if it has a list of `Records` one of which is of SQS; or none of which names a source, and one
/// has a message id. Others in such a list fail the batch, in which one message at least could be lost. Without one record it is none: SQS calls
/// no function for nothing, and a caller's payload would be answered as done.
///
/// # Errors
/// When it is such a batch, and a record has the wrong shape; or a list of records of SQS, as EventBridge Pipes sends: as one payload, all its
/// messages would be one piece of work, under the invocation's id.
pub(crate) fn read(event: Box<RawValue>) -> Result<Incoming, Error> {
    #[derive(Deserialize)]
    struct Shape<'a> {
        #[serde(rename = "Records", borrow)]
        records: Vec<&'a RawValue>,
    }
    #[derive(Default, Deserialize)]
    struct Record {
        #[serde(rename = "eventSource", alias = "EventSource")]
        source: Option<Lenient<String>>,
        #[serde(rename = "messageId", default, deserialize_with = "is_there")]
        has_id: bool,
    }
    let Ok(Shape { records }) = serde_json::from_str(event.get()) else {
        // A list of one source.
        let list = event.get().trim_start().strip_prefix('[');
        let first = list.and_then(|list| serde_json::Deserializer::from_str(list).into_iter::<Record>().next()?.ok());
        let source = first.and_then(|first| first.source?.read());
        return if source.is_some_and(|source| source == QUEUES) { Err(piped()) } else { Ok(Incoming::Payload(event)) };
    };
    let (mut of_queue, mut of_another, mut has_id) = (false, false, false);
    for record in records {
        let record: Record = serde_json::from_str(record.get()).unwrap_or_default();
        has_id |= record.has_id;
        match record.source.map(Lenient::read) {
            Some(Some(source)) if source == QUEUES => of_queue = true,
            Some(_) => of_another = true,
            None => {}
        }
    }
    if !of_queue && (of_another || !has_id) {
        return Ok(Incoming::Payload(event));
    }
    let batch = serde_json::from_str::<wire::Event>(event.get());
    batch.map(|batch| Incoming::Batch(batch.into())).map_err(|e| malformed(&e))
}

/// Returns that a field is there, also where it is null.
fn is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// Says where a batch is malformed, and not what stands there: what the decoder says can quote the event.
fn malformed(error: &serde_json::Error) -> Error {
    Error::invalid(format!(
        "the event has Records, and one of them is not as SQS writes it (line {}, column {}): `claimant_test::event` makes one for tests; \
         if it is a payload of your own, give its Records an `eventSource` other than `aws:sqs`, or the list another name",
        error.line(),
        error.column()
    ))
}

fn piped() -> Error {
    Error::invalid(
        "the event is a list of messages of a queue, as EventBridge Pipes sends it: give the function an event source mapping of that queue",
    )
}

/// Why the work of an event without a queue is not done.
#[derive(Debug)]
pub struct NotDone {
    outcome: &'static str,
    why: String,
}

impl NotDone {
    /// Returns the outcome's word, such as `retry` or `rejected`; `error` where the event was not worked on at all.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        self.outcome
    }
}

impl From<Error> for NotDone {
    fn from(error: Error) -> Self {
        Self { outcome: "error", why: error.to_string() }
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl StdError for NotDone {}

/// Returns the handler's result, now or when the work was done; `null` where there is none.
pub(crate) fn response(report: &Report) -> Result<Response<Box<RawValue>>, NotDone> {
    let [entry] = report.entries() else { return Err(Error::new("the event has no outcome").into()) };
    if entry.outcome.is_success() {
        let json = entry.result.as_ref().map_or("null", |result| result.as_json());
        return serde_json::from_str(json)
            .map(Response)
            .map_err(|_| Error::new("the work is done, and the result that was kept of it is not JSON").into());
    }
    let why = match &entry.outcome {
        Outcome::Rejected { rejection, .. } => format!("the event is rejected, and no retry can fix it: {rejection}"),
        Outcome::Parked { .. } => "the work may be done, and is not run again by itself".to_owned(),
        Outcome::Busy { .. } => "another invocation works on the same key: try again later".to_owned(),
        Outcome::Retry => "the handler failed, as the logs say: try again".to_owned(),
        other => format!("the work is not known to be done (outcome {}): try again", other.word()),
    };
    Err(NotDone { outcome: entry.outcome.word(), why })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use claimant_core::report::OUTCOME_WORDS;
    use claimant_core::{Entry, MessageId, Rejection, Timestamp};

    use super::*;

    /// The wrong way round, a state machine would go on without the work.
    #[test]
    fn what_is_not_done_is_an_error_with_its_word() {
        let rejected = |dead_lettered| Outcome::Rejected { rejection: Rejection::new("no"), dead_lettered };
        let undone = [
            rejected(false),
            Outcome::Parked { dead_lettered: false },
            Outcome::Busy { until: Timestamp::from_millis(7) },
            Outcome::Retry,
            Outcome::Cancelled,
            Outcome::Stuck,
            Outcome::NotStarted,
            Outcome::BreakerOpen,
            Outcome::RateLimited,
            Outcome::Blocked,
            Outcome::LeaseLost,
            Outcome::SettleUnknown,
            Outcome::StoreFailed,
            Outcome::FetchFailed,
        ];
        let done = [Outcome::Completed, Outcome::Duplicate, Outcome::Scheduled, Outcome::Empty, Outcome::Ignored];
        let answer =
            |outcome: &Outcome| response(&Report::new(vec![Entry::new(MessageId::new("m").unwrap(), outcome.clone())]));
        for outcome in &done {
            assert_eq!(answer(outcome).unwrap().0.get(), "null", "{outcome:?}");
        }
        for outcome in &undone {
            assert_eq!(answer(outcome).unwrap_err().outcome(), outcome.word(), "{outcome:?}");
        }
        let mut words: BTreeSet<_> = done.iter().chain(&undone).map(Outcome::word).collect();
        // An engine alone can reject for a conflict: functions/gift-card has one.
        words.insert("conflict");
        assert_eq!(words, BTreeSet::from(OUTCOME_WORDS));
    }

    #[test]
    fn only_records_of_a_queue_are_a_batch() {
        for (event, records) in [
            (r#"{"Records":[{"messageId":"m","eventSource":"aws:sqs"}]}"#, Some(1)),
            (r#"{"Records":[{"messageId":"m"},{"messageId":"n","eventSource":"aws:sqs"}]}"#, Some(2)),
            (r#"{"Records":[]}"#, None),
            (r#"{"Records":[{"eventSource":"aws:s3"}]}"#, None),
            (r#"{"Records":[{"id":1}]}"#, None),
            (r#"{"Records":[{"eventSource":"aws:sqs"}]}"#, Some(1)),
            // What fails the batch, since it has no id.
            (r#"{"Records":[{"messageId":"m","eventSource":"aws:sqs"},{"body":"b"}]}"#, Some(2)),
            (r#"{"Records":[{"messageId":"m"},{"body":"b"}]}"#, Some(2)),
            (r#"{"Records":[{"messageId":null,"body":"b"}]}"#, Some(1)),
            (r#"{"Records":[{"messageId":"m","eventSource":"aws:sqs"},{"eventSource":"aws:s3"}]}"#, Some(2)),
            (r#"{"Records":[{"messageId":"m"},{"eventSource":"aws:s3"}]}"#, None),
            (r#"{"Records":[{"messageId":"m","eventSource":7}]}"#, None),
            (r#"{"Records":[7]}"#, None),
            (r#"{"Records":[{"EventSource":"aws:sns"}]}"#, None),
            (r#"{"Records":7}"#, None),
            (r#"{"order_id":"ord-1"}"#, None),
            ("[]", None),
            (r#"[7,{"eventSource":"aws:sqs"}]"#, None),
            (r#"[{"eventSource":"aws:kinesis"}]"#, None),
            ("7", None),
        ] {
            let found = match read(serde_json::from_str(event).unwrap()).unwrap() {
                Incoming::Batch(batch) => Some(batch.records.len()),
                Incoming::Payload(payload) => {
                    assert_eq!(payload.get(), event);
                    None
                }
            };
            assert_eq!(found, records, "{event}");
        }
        for malformed in [
            r#"{"Records":[{"messageId":"m","attributes":"secret"}]}"#,
            r#"{"Records":[{"messageId":"m"},"secret"]}"#,
            r#"{"Records":[{"eventSource":"aws:sqs"},{"eventSource":7}]}"#,
        ] {
            let error = read(serde_json::from_str(malformed).unwrap()).map(drop).unwrap_err();
            let (said, cause) = (error.to_string(), StdError::source(&error));
            assert!(said.contains("(line 1, column ") && said.contains("eventSource") && cause.is_none(), "{said}");
            assert!(!said.contains("secret"), "{said}");
        }
        let piped = r#"[{"messageId":"m","body":"secret","eventSource":"aws:sqs"},{"messageId":"n"}]"#;
        let said = read(serde_json::from_str(piped).unwrap()).map(drop).unwrap_err().to_string();
        assert!(said.contains("EventBridge Pipes") && !said.contains("secret"), "{said}");
    }
}
