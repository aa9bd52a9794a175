//! Records, inspections and acts as text for people and as JSON: one form for commands and pages.

use std::time::Duration;

use claimant_core::protocol::{Act, OperateRefusal, interruptions_in, runs};
use claimant_core::{Record, RecordId, State, Timestamp};
use serde_json::{Value, json};

use super::act::Acted;
use super::beside::Beside;
use super::inspect::Inspection;
use super::times::when;

/// Returns a record as JSON, without its result, which can be what customers got.
#[must_use]
pub fn record_json(id: &RecordId, record: &Record, state: State) -> Value {
    // Without `..`: the compiler names each place that shows or writes a record and lacks a field.
    let Record {
        status,
        owner: _,
        fence,
        lease_until,
        attempts,
        message_id,
        fingerprint: _,
        created_at,
        updated_at,
        completed_at,
        expires_at_s: _,
        result,
        error,
        note,
    } = record;
    json!({
        "record": id.as_str(),
        "consumer": id.consumer(),
        "key": id.key(),
        "state": state.as_str(),
        "status": status.as_str(),
        "attempts": attempts,
        "fence": fence.get(),
        "message_id": message_id.as_str(),
        "created_at": created_at.to_utc(),
        "updated_at": updated_at.to_utc(),
        "lease_until": lease_until.to_utc(),
        "completed_at": completed_at.map(Timestamp::to_utc),
        "expires_at": window_end(record).to_utc(),
        "error": error,
        "note": note,
        "result_bytes": result.as_ref().map(String::len),
    })
}

/// Returns the lines of a record for people: a word and what it is. Its result is not shown.
#[must_use]
pub fn record_lines(record: &Record, now: Timestamp) -> Vec<(&'static str, String)> {
    let ago = |time: Timestamp| format!("{}, {}", time.to_utc(), when(time, now));
    let mut lines = vec![
        ("status", record.status.to_string()),
        ("runs", runs(record).to_string()),
        ("message", record.message_id.as_str().to_owned()),
        ("first claim", ago(record.created_at)),
        ("last write", ago(record.updated_at)),
        ("lease until", record.lease_until.to_utc()),
        ("window until", window_end(record).to_utc()),
        ("fence", record.fence.get().to_string()),
    ];
    lines.extend(record.result.as_ref().map(|result| ("result", format!("{} bytes, not shown", result.len()))));
    lines.extend(record.error.as_ref().map(|error| (word_of(error), error.clone())));
    lines.extend(record.note.as_ref().map(|note| ("note", note.clone())));
    lines
}

/// Returns what the error of a record is: that how many owners left its work is no error of a run.
fn word_of(error: &str) -> &'static str {
    if interruptions_in(Some(error)) > 0 { "set aside" } else { "last error" }
}

fn window_end(record: &Record) -> Timestamp {
    Timestamp::from_millis(record.expires_at_s.saturating_mul(1_000))
}

impl Inspection {
    /// Returns it as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Self { id, record, state, next, acts, .. } = self;
        json!({
            "record": id.as_str(),
            "says": self.headline(),
            "found": record.as_ref().zip(*state).map(|(record, state)| record_json(id, record, state)),
            "next": next.iter().map(|f| json!({ "case": f.case, "outcome": f.outcome, "says": f.says })).collect::<Vec<_>>(),
            "acts": acts.iter().map(|a| json!({ "act": a.act.as_str(), "writes": a.writes, "says": a.says })).collect::<Vec<_>>(),
        })
    }
}

fn status(record: Option<&Record>) -> String {
    record.map_or_else(|| "absent".to_owned(), |record| record.status.to_string())
}

impl Acted {
    /// Returns whether it is now, or would be, as the act leaves it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::WouldWrite { .. } | Self::NothingToDo(_))
    }

    /// Returns what came of the act on the record of this id, in a sentence that follows the id.
    #[must_use]
    pub fn in_words(&self, act: Act, id: &RecordId) -> String {
        let beside = Beside::of(id);
        let became = |after: &Record| match (beside, act) {
            (Some(beside), _) => beside.becomes(act).to_owned(),
            (None, Act::Release) => "may run again".to_owned(),
            (None, Act::Reset) => "may run again, its attempts counted from 0".to_owned(),
            (None, Act::Forget) => "forgotten: its next message runs as new".to_owned(),
            (None, Act::Resolve) => format!("counts as done (fence {})", after.fence.get()),
        };
        match self {
            Self::Done { before, after } => format!("was {}; {}.", before.status, became(after)),
            Self::WouldWrite { before, after } => format!("would change: is {}; {}.", before.status, became(after)),
            Self::NothingToDo(record) => match beside {
                Some(beside) => format!("nothing to do, it is so already: {}.", beside.becomes(act)),
                None => format!("nothing to do: it is {} already.", record.status),
            },
            Self::Refused { why: OperateRefusal::Absent, .. } if beside.is_some() => {
                "refused: there is no record of it, or its window is over.".to_owned()
            }
            Self::Refused { why: OperateRefusal::Absent, .. } => {
                "refused: there is no record of it, or its window is over; its next message runs as it is.".to_owned()
            }
            Self::Refused { why: OperateRefusal::Live { until }, .. } => match beside {
                Some(beside) => {
                    format!("refused: {}, until {} at least. Wait, or force it.", beside.is_live(), until.to_utc())
                }
                None => format!(
                    "refused: an owner works on it until {} at least. Wait, or force it: its work can then run twice.",
                    until.to_utc()
                ),
            },
            Self::Refused { why: OperateRefusal::Completed, .. } => match act {
                _ if beside.is_some() => format!("refused: {}.", beside.map_or("", Beside::is_completed)),
                Act::Forget => "refused: it is done. If forced, its next message does the work again.".to_owned(),
                _ => "refused: it is done. To have its work done again, force it to be forgotten.".to_owned(),
            },
            Self::Changed(record) => {
                format!(
                    "left as it is: the key has gone on since it was looked at, and is {} now.",
                    status(record.as_deref())
                )
            }
            Self::Superseded(record) => {
                format!("the answer was lost and the key has gone on since: it is {} now.", status(record.as_deref()))
            }
            Self::Unknown { why } => {
                format!("not known whether it was done, try again: the store did not confirm it: {why}")
            }
        }
    }

    /// Returns it as JSON: the outcome, and the record before and after as far as they are known, with the states that these have at this time,
    /// with this clock-skew margin.
    #[must_use]
    pub fn to_json(&self, id: &RecordId, (now, skew): (Timestamp, Duration)) -> Value {
        let (outcome, before, after) = match self {
            Self::Done { before, after } => ("done", Some(before), Some(after)),
            Self::WouldWrite { before, after } => ("would_write", Some(before), Some(after)),
            Self::NothingToDo(record) => ("nothing_to_do", Some(record), None),
            Self::Refused { record, .. } => ("refused", record.as_ref(), None),
            Self::Changed(record) => ("changed", record.as_ref(), None),
            Self::Superseded(record) => ("superseded", None, record.as_ref()),
            Self::Unknown { .. } => ("unknown", None, None),
        };
        let why = match self {
            Self::Refused { why, .. } => Some(match why {
                OperateRefusal::Absent => "absent",
                OperateRefusal::Live { .. } => "live",
                OperateRefusal::Completed => "completed",
            }),
            Self::Unknown { why } => Some(why.as_str()),
            _ => None,
        };
        let shown =
            |record: Option<&Box<Record>>| record.map(|record| record_json(id, record, State::of(record, now, skew)));
        json!({ "record": id.as_str(), "outcome": outcome, "why": why, "before": shown(before), "after": shown(after) })
    }
}
