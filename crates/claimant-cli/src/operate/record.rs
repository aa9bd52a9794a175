//! Records as text and as JSON.

use claimant_core::{Clock as _, Record, RecordId, State, SystemClock, Timestamp};
use claimant_operate::keys::span;
use serde_json::{Value, json};

/// Returns how long ago this was.
pub(crate) fn age(time: Timestamp) -> String {
    span(SystemClock.now().since(time).as_secs())
}

/// Returns a record as JSON, without its result, which can be what customers got.
pub(crate) fn to_json(id: &RecordId, record: &Record, state: Option<State>) -> Value {
    json!({
        "record": id.as_str(),
        "consumer": id.consumer(),
        "key": id.key(),
        "state": state.map(State::as_str),
        "status": record.status.as_str(),
        "attempts": record.attempts,
        "fence": record.fence.get(),
        "message_id": record.message_id.as_str(),
        "created_at": record.created_at.to_utc(),
        "updated_at": record.updated_at.to_utc(),
        "lease_until": record.lease_until.to_utc(),
        "completed_at": record.completed_at.map(Timestamp::to_utc),
        "expires_at": Timestamp::from_millis(record.expires_at_s.saturating_mul(1_000)).to_utc(),
        "error": record.error,
        "note": record.note,
        "result_bytes": record.result.as_ref().map(String::len),
    })
}

/// Returns the lines of a record for people: a word and what it is.
pub(crate) fn lines(record: &Record) -> Vec<(&'static str, String)> {
    let mut lines = vec![
        ("status", record.status.to_string()),
        ("runs", record.attempts.to_string()),
        ("message", record.message_id.as_str().to_owned()),
        ("first claim", format!("{}, {} ago", record.created_at.to_utc(), age(record.created_at))),
        ("last write", format!("{}, {} ago", record.updated_at.to_utc(), age(record.updated_at))),
        ("lease until", record.lease_until.to_utc()),
        ("window until", Timestamp::from_millis(record.expires_at_s.saturating_mul(1_000)).to_utc()),
        ("fence", record.fence.get().to_string()),
    ];
    lines.extend(record.result.as_ref().map(|result| ("result", format!("{} bytes, not shown", result.len()))));
    lines.extend(record.error.as_ref().map(|error| ("error", error.clone())));
    lines.extend(record.note.as_ref().map(|note| ("note", note.clone())));
    lines
}
