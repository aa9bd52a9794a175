//! Invocations without a queue: the event is one payload, its result the response, its failure an error of the invocation.

use std::error::Error as StdError;
use std::fmt;

use aws_lambda_events::event::sqs::SqsEvent;
use claimant_core::{Error, Outcome, Report};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an event is.
pub(crate) enum Incoming {
    /// A batch of a queue.
    Batch(SqsEvent),
    /// One payload.
    Payload(Box<RawValue>),
}

/// Returns what an event is: a batch of a queue if it has a list of `Records` that do not say that they come from elsewhere.
///
/// # Errors
/// When it is such a batch, and a record has the wrong shape.
pub(crate) fn read(event: Box<RawValue>) -> Result<Incoming, Error> {
    #[derive(Deserialize)]
    struct Shape {
        #[serde(rename = "Records")]
        records: Vec<Record>,
    }
    #[derive(Deserialize)]
    struct Record {
        #[serde(rename = "eventSource", alias = "EventSource")]
        source: Option<String>,
    }
    let from_queue = |record: &Record| record.source.as_deref().is_none_or(|source| source == "aws:sqs");
    match serde_json::from_str::<Shape>(event.get()) {
        Ok(shape) if shape.records.iter().all(from_queue) => serde_json::from_str(event.get())
            .map(Incoming::Batch)
            .map_err(|e| Error::invalid("the event is not a batch of a queue, though it has Records").caused_by(e)),
        _ => Ok(Incoming::Payload(event)),
    }
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
pub(crate) fn response(report: &Report) -> Result<Box<RawValue>, NotDone> {
    let [entry] = report.entries() else { return Err(Error::new("the event has no outcome").into()) };
    if entry.outcome.is_success() {
        let json = entry.result.as_ref().map_or("null", |result| result.as_json());
        return serde_json::from_str(json)
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
    use super::*;

    #[test]
    fn only_records_of_a_queue_are_a_batch() {
        for (event, records) in [
            (r#"{"Records":[{"messageId":"m","eventSource":"aws:sqs"}]}"#, Some(1)),
            (r#"{"Records":[{"messageId":"m"},{"messageId":"n","eventSource":"aws:sqs"}]}"#, Some(2)),
            (r#"{"Records":[]}"#, Some(0)),
            (r#"{"Records":[{"eventSource":"aws:s3"}]}"#, None),
            (r#"{"Records":[{"EventSource":"aws:sns"}]}"#, None),
            (r#"{"Records":7}"#, None),
            (r#"{"order_id":"ord-1"}"#, None),
            ("[]", None),
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
        assert!(read(serde_json::from_str(r#"{"Records":[{"messageId":7}]}"#).unwrap()).is_err());
    }
}
