//! Statements for operators, and their results.

use std::fmt;

use claimant_core::{StoreError, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::query;

use crate::link::Statement;
use crate::status::EntryStatus;
use crate::values::{column, corrupt, number, shown, shown_count, shown_time, time, timestamp};

/// Each part has the condition of an index that holds no finished rows: those that wait are not among the due ones.
const COUNTS: &str = "WITH pending AS (SELECT next_attempt_at, received_at FROM claimant_inbox \
    WHERE consumer = $1 AND status = 'PENDING' AND NOT waiting \
    UNION ALL SELECT next_attempt_at, received_at FROM claimant_inbox \
    WHERE consumer = $1 AND status = 'PENDING' AND waiting AND open AND group_name IS NOT NULL), \
    dead AS (SELECT count(*) AS dead FROM claimant_inbox WHERE consumer = $1 AND status = 'DEAD') \
    SELECT count(*) AS pending, count(*) FILTER (WHERE next_attempt_at <= $2) AS due, min(received_at) AS oldest, \
    (SELECT dead FROM dead) AS dead FROM pending";

const COUNTS_FINISHED: &str = "SELECT count(*) FILTER (WHERE status = 'DONE') AS done, \
    count(*) FILTER (WHERE status = 'DISCARDED') AS discarded \
    FROM claimant_inbox WHERE consumer = $1 AND status IN ('DONE', 'DISCARDED')";

macro_rules! entry {
    () => {
        "SELECT id, consumer, event_type, group_name, message_id, status, attempts, next_attempt_at, received_at, \
         finished_at, error, octet_length(body) AS body_bytes FROM claimant_inbox WHERE "
    };
}

const DEAD: &str = concat!(entry!(), "status = 'DEAD' AND consumer = $1 AND id > $2 ORDER BY id LIMIT $3");

const GET: &str = concat!(entry!(), "id = $1");

/// The error stays: it says why the message was dead.
const RETRY: &str = "UPDATE claimant_inbox SET status = 'PENDING', open = true, waiting = false, cut_off = false, \
    attempts = 0, next_attempt_at = $2, updated_at = $2, finished_at = NULL WHERE id = $1 AND status = 'DEAD' RETURNING id";

const DELETE_FINISHED: &str = "WITH gone AS (DELETE FROM claimant_inbox WHERE id IN (SELECT id FROM claimant_inbox \
    WHERE status IN ('DONE', 'DISCARDED') AND finished_at < $1 ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED) \
    RETURNING 1) SELECT count(*) AS rows FROM gone";

/// How many messages of a consumer are to be processed, or wait for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// To be processed, now, later, or after others of their group; includes those in flight.
    pub pending: u64,
    /// Of these, those that are due.
    pub due: u64,
    /// Waiting for an operator's decision.
    pub dead: u64,
    /// When the oldest pending one was stored: how far behind the workers are.
    pub oldest: Option<Timestamp>,
}

impl Counts {
    pub(crate) fn read(rows: &[PgRow]) -> Result<Self, StoreError> {
        // OK because an aggregate without groups has one row.
        let row = rows.first().ok_or_else(|| corrupt("pending"))?;
        let oldest: Option<i64> = column(row, "oldest")?;
        Ok(Self {
            pending: number(row, "pending")?,
            due: number(row, "due")?,
            dead: number(row, "dead")?,
            oldest: oldest.is_some().then(|| timestamp(row, "oldest")).transpose()?,
        })
    }
}

/// How many messages of a consumer are finished, and not cleaned up yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FinishedCounts {
    /// Processed.
    pub done: u64,
    /// Discarded by an operator.
    pub discarded: u64,
}

impl FinishedCounts {
    pub(crate) fn read(rows: &[PgRow]) -> Result<Self, StoreError> {
        // OK because an aggregate without groups has one row.
        let row = rows.first().ok_or_else(|| corrupt("done"))?;
        Ok(Self { done: number(row, "done")?, discarded: number(row, "discarded")? })
    }
}

/// One message as operators see it. Its body is in the table alone: `convert_from(body, 'UTF8')`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its number.
    pub id: i64,
    /// The consumer that stored it.
    pub consumer: String,
    /// Selects its handler.
    pub event_type: String,
    /// Its group, if it has one.
    pub group: Option<String>,
    /// The id of the SQS message.
    pub message_id: String,
    /// Its state.
    pub status: EntryStatus,
    /// Attempts so far, since an operator last retried it.
    pub attempts: u32,
    /// When it was stored and finished, and when its next attempt is due.
    pub times: EntryTimes,
    /// The last failure; holds no payload data unless the handler put it into its error.
    pub error: Option<String>,
    /// The length of its body.
    pub body_bytes: u32,
}

/// The times of a message in the inbox, by the clocks of the functions and workers that wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryTimes {
    /// When the next attempt is due; means nothing once the message is finished.
    pub next_attempt_at: Timestamp,
    /// When it was stored.
    pub received_at: Timestamp,
    /// When it was done, dead or discarded.
    pub finished_at: Option<Timestamp>,
}

impl Entry {
    pub(crate) fn read(row: &PgRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: column(row, "id")?,
            consumer: column(row, "consumer")?,
            event_type: shown(row, "event_type")?.unwrap_or_default(),
            group: shown(row, "group_name")?,
            message_id: shown(row, "message_id")?.unwrap_or_default(),
            status: EntryStatus::of_word(column(row, "status")?).ok_or_else(|| corrupt("status"))?,
            attempts: shown_count(row, "attempts")?,
            times: EntryTimes {
                next_attempt_at: shown_time(column(row, "next_attempt_at")?),
                received_at: shown_time(column(row, "received_at")?),
                finished_at: column::<Option<i64>>(row, "finished_at")?.map(shown_time),
            },
            error: shown(row, "error")?,
            body_bytes: shown_count(row, "body_bytes")?,
        })
    }
}

// A group can be personal data.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, status, attempts, error, .. } = self;
        let mut shown = f.debug_struct("Entry");
        shown.field("id", id).field("status", status).field("attempts", attempts).field("error", error);
        shown.finish_non_exhaustive()
    }
}

pub(crate) fn counts(consumer: &str, now: Timestamp) -> Statement<'_> {
    query(COUNTS).bind(consumer).bind(time(now))
}

pub(crate) fn counts_finished(consumer: &str) -> Statement<'_> {
    query(COUNTS_FINISHED).bind(consumer)
}

pub(crate) fn dead(consumer: &str, after: i64, most: u32) -> Statement<'_> {
    query(DEAD).bind(consumer).bind(after).bind(i64::from(most))
}

pub(crate) fn get<'q>(id: i64) -> Statement<'q> {
    query(GET).bind(id)
}

pub(crate) fn retry<'q>(id: i64, now: Timestamp) -> Statement<'q> {
    query(RETRY).bind(id).bind(time(now))
}

pub(crate) fn delete_finished<'q>(before: Timestamp, portion: u32) -> Statement<'q> {
    query(DELETE_FINISHED).bind(time(before)).bind(i64::from(portion))
}
