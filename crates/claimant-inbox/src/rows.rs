//! Every statement of the worker: takes rows, and writes how their attempts end.
//!
//! An open row keeps later rows of its group from being taken; that alone keeps the order, as long as rows are only closed. One that an
//! operator retries opens again, and later ones may be taken by then, or come at that moment. So each attempt shares a lock of its group from
//! the beginning of its transaction, which a retry has for itself until it is committed, and then looks once more for an earlier open row.
//!
//! `waiting` only makes taking rows cheaper: it is set on a row while its predecessor is open and not locked by a worker, and cleared by the
//! transaction that closes the predecessor. So no row is forgotten, whenever a worker dies.

use std::time::Duration;

use claimant_core::limits::{BACKOFF_BASE_MS, BACKOFF_FACTOR, BACKOFF_MAX_MS};
use claimant_core::{MessageId, StoreError, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::query;

use crate::connections::AtServer;
use crate::limits::ATTEMPTS_MAX;
use crate::link::Statement;
use crate::offer::parts;
use crate::status::EntryStatus;
use crate::values::{bigint, column, corrupt, count, number, one, optional_text, text, time, timestamp};

/// A row that a worker took, without its body: its attempt is counted.
pub(crate) struct Taken {
    pub(crate) id: i64,
    pub(crate) fence: u64,
    pub(crate) attempt: u32,
    record_id: String,
    pub(crate) message_id: MessageId,
    pub(crate) group: Option<String>,
    pub(crate) event_type: String,
    pub(crate) trace: Option<String>,
    pub(crate) received_at: Timestamp,
    /// The number of its group's lock, if it has a group.
    pub(crate) group_lock: Option<i64>,
}

impl Taken {
    pub(crate) fn consumer(&self) -> &str {
        parts(&self.record_id).0
    }

    /// Returns the key of the work; its hash if the row has only that.
    pub(crate) fn key(&self) -> &str {
        parts(&self.record_id).1
    }
}

/// A row that a worker took and cannot read, since a column of it is not of its form.
pub(crate) struct Unreadable {
    pub(crate) id: i64,
    pub(crate) fence: i64,
    pub(crate) error: StoreError,
}

/// What a [`TakeQuery`] returned.
pub(crate) struct TakeAnswer {
    pub(crate) taken: Vec<Result<Taken, Unreadable>>,
    /// How many could be taken before that.
    pub(crate) ready: usize,
    /// There may be more due rows than were read.
    pub(crate) more: bool,
    /// A row whose last attempt ended its worker is due and was not taken.
    pub(crate) suspects: bool,
}

/// Which rows to take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TakeQuery<'a> {
    pub(crate) consumer: &'a str,
    pub(crate) now: Timestamp,
    /// For how long a row that is taken is not due.
    pub(crate) attempt_max: Duration,
    /// How many due rows are read.
    pub(crate) window: u32,
    /// How many are taken at most: none to look only.
    pub(crate) rows: usize,
    /// Whether to take rows whose last attempt did not write how it ended, or the others.
    pub(crate) suspects: bool,
}

/// The number of the lock of a row's group: an advisory one, since nothing is written under it. Two groups with the same number only wait
/// for each other's retries.
macro_rules! group_lock {
    ($row:literal) => {
        concat!("hashtextextended(", $row, ".consumer || encode(", $row, ".group_name, 'hex'), 0)")
    };
}

/// Counts the attempt, and makes the row due again after the backoff, in case its end is never written; but not while the attempt can last:
/// another worker could take it between its rollback and the record of its failure. One that reads the same row finds it locked, or not due.
///
/// It returns no bodies: it commits only once its answer is sent, and until then nothing of it is taken, and all of it is locked. Each attempt
/// reads its own.
///
/// It names the columns that it returns: each connection keeps the statement, and the server refuses that once `*` means others.
const TAKE: &str = concat!(
    "WITH due AS MATERIALIZED (SELECT id, group_name, cut_off FROM claimant_inbox \
    WHERE consumer = $1 AND status = 'PENDING' AND NOT waiting AND next_attempt_at <= $2 \
    ORDER BY next_attempt_at, id LIMIT $3), \
    heads AS MATERIALIZED (SELECT d.id, d.cut_off FROM due d WHERE d.group_name IS NULL OR (SELECT e.id \
    FROM claimant_inbox e WHERE e.consumer = $1 AND e.group_name = d.group_name AND e.group_name IS NOT NULL AND e.open \
    AND e.id < d.id ORDER BY e.id LIMIT 1) IS NULL), \
    locked AS MATERIALIZED (SELECT i.id FROM claimant_inbox i WHERE i.id IN (SELECT id FROM heads WHERE cut_off = $4) \
    AND i.status = 'PENDING' AND NOT i.waiting AND i.next_attempt_at <= $2 \
    ORDER BY i.next_attempt_at, i.id LIMIT $5 FOR UPDATE SKIP LOCKED), \
    suspect AS MATERIALIZED (SELECT i.id FROM claimant_inbox i WHERE i.id IN (SELECT id FROM heads WHERE cut_off) \
    AND i.status = 'PENDING' AND i.next_attempt_at <= $2 LIMIT 1 FOR UPDATE SKIP LOCKED), \
    taken AS (UPDATE claimant_inbox i SET attempts = i.attempts + 1, fence = i.fence + 1, cut_off = true, updated_at = $2, \
    next_attempt_at = $2 + greatest($9::bigint, least($6::float8, $7::float8 * power($8::float8, least(i.attempts, 20)))::bigint) \
    FROM locked WHERE i.id = locked.id RETURNING i.id, i.fence, i.attempts, i.consumer, i.record_id, i.message_id, \
    i.group_name, i.event_type, i.trace, i.received_at) \
    SELECT (SELECT count(*) FROM due) AS looked_at, (SELECT count(*) FROM heads WHERE cut_off = $4) AS ready, \
    NOT $4 AND EXISTS (SELECT 1 FROM suspect) AS suspects, t.*, ",
    group_lock!("t"),
    " AS group_lock FROM (SELECT 1) AS one LEFT JOIN taken t ON true ORDER BY t.received_at, t.id"
);

/// Marks due rows that wait for a predecessor as waiting. The predecessor is locked meanwhile, so that no transaction that
/// closes it can have read its successors before.
const PARK: &str = "WITH due AS MATERIALIZED (SELECT id, group_name FROM claimant_inbox \
    WHERE consumer = $1 AND status = 'PENDING' AND NOT waiting AND next_attempt_at <= $2 \
    ORDER BY next_attempt_at, id LIMIT $3 FOR UPDATE SKIP LOCKED), \
    behind AS MATERIALIZED (SELECT d.id, (SELECT e.id FROM claimant_inbox e WHERE e.consumer = $1 \
    AND e.group_name = d.group_name AND e.group_name IS NOT NULL AND e.open AND e.id < d.id ORDER BY e.id DESC LIMIT 1) \
    AS before FROM due d WHERE d.group_name IS NOT NULL), \
    held AS MATERIALIZED (SELECT p.id FROM claimant_inbox p WHERE p.id IN (SELECT before FROM behind) AND p.open \
    FOR SHARE SKIP LOCKED), \
    parked AS (UPDATE claimant_inbox i SET waiting = true FROM behind b JOIN held h ON h.id = b.before \
    WHERE i.id = b.id AND i.status = 'PENDING' AND NOT i.waiting RETURNING 1) SELECT count(*) AS rows FROM parked";

/// Locks a row for its attempt, until the transaction ends, unless an earlier one of its group is open or being opened: its transaction has to
/// share the lock of the group, so that none is opened from when this statement begins. Once it is locked, the transaction waits for locks as
/// the server's settings say: it is the handler's.
///
/// Returns first which transaction has it locked, and then its body: the first row is sent as soon as the server has the second one, and comes
/// however long the line takes for that.
const LOCK: &str = "WITH locked AS MATERIALIZED (SELECT i.body FROM claimant_inbox i \
    WHERE i.id = $1 AND i.fence = $2 AND i.status = 'PENDING' \
    AND (i.group_name IS NULL OR current_setting('claimant.shares', true) = 'true') AND (SELECT e.id FROM claimant_inbox e \
    WHERE e.consumer = i.consumer AND e.group_name = i.group_name AND e.group_name IS NOT NULL AND e.open AND e.id < i.id \
    ORDER BY e.id LIMIT 1) IS NULL FOR UPDATE) SELECT txid_current() AS transaction, pg_backend_pid()::bigint AS backend, NULL::bytea AS body, \
    set_config('lock_timeout', current_setting('claimant.lock_timeout'), true) FROM locked \
    UNION ALL SELECT NULL, NULL, body, NULL FROM locked";

/// Takes the lock of a row's group for this transaction alone: waits for an attempt in flight, up to the lock timeout.
const HOLD_GROUP: &str = concat!(
    "SELECT pg_advisory_xact_lock(",
    group_lock!("i"),
    ") FROM claimant_inbox i WHERE i.id = $1 AND i.group_name IS NOT NULL"
);

/// Locks a row that is ended without an attempt: waits for an attempt in flight, up to the lock timeout.
const HOLD: &str = "SELECT id FROM claimant_inbox WHERE id = $1 FOR UPDATE";

/// Ends a locked row, and clears `waiting` of the next one in its group. No worker parks rows behind a locked one, so this
/// statement sees all that were parked. If `$8` is set, it applies only in that transaction: a handler that ended its
/// transaction has not ended its row.
///
/// From here on the transaction waits a second for each lock, also in its commit, where the server has no other limit: it is the handler's no
/// more. So does that in which an operator discards a message, whatever the pool's own limit is.
const CLOSE: &str = "WITH own AS MATERIALIZED (SELECT set_config('lock_timeout', '1s', true)), closed AS (UPDATE claimant_inbox SET status = $3, open = $4 AND group_name IS NOT NULL, \
    waiting = false, cut_off = false, error = CASE WHEN $3 = 'DONE' THEN NULL ELSE coalesce($5, error) END, \
    attempts = least(attempts, $6), updated_at = $7, finished_at = $7 \
    FROM own WHERE id = $1 AND ($2::bigint IS NULL OR fence = $2) AND ($8::bigint IS NULL OR txid_current() = $8) \
    AND (status = 'PENDING' OR status = 'DEAD' AND $3 = 'DISCARDED') RETURNING consumer, group_name, id, open), \
    next AS (UPDATE claimant_inbox SET waiting = false WHERE waiting AND id = (SELECT n.id FROM closed c \
    JOIN claimant_inbox n ON n.consumer = c.consumer AND n.group_name = c.group_name AND n.id > c.id \
    WHERE n.group_name IS NOT NULL AND n.open AND NOT c.open ORDER BY n.id LIMIT 1)) SELECT count(*) AS rows FROM closed";

/// Records that an attempt failed, or gives it back.
const AGAIN: &str = "UPDATE claimant_inbox SET cut_off = false, error = coalesce($3, error), attempts = attempts - $4, \
    next_attempt_at = $5, updated_at = $6 WHERE id = $1 AND fence = $2 AND status = 'PENDING' RETURNING id";

pub(crate) fn take<'q>(wanted: TakeQuery<'q>) -> Statement<'q> {
    query(TAKE)
        .bind(wanted.consumer)
        .bind(time(wanted.now))
        .bind(i64::from(wanted.window))
        .bind(wanted.suspects)
        // OK because it is bounded by the concurrency.
        .bind(wanted.rows as i64)
        .bind(BACKOFF_MAX_MS as f64)
        .bind(BACKOFF_BASE_MS as f64)
        .bind(BACKOFF_FACTOR as f64)
        // OK because the timeout is bounded.
        .bind(wanted.attempt_max.as_millis() as i64)
}

pub(crate) fn park<'q>(wanted: TakeQuery<'q>) -> Statement<'q> {
    query(PARK).bind(wanted.consumer).bind(time(wanted.now)).bind(i64::from(wanted.window))
}

pub(crate) fn lock<'q>(id: i64, fence: u64) -> Statement<'q> {
    query(LOCK).bind(id).bind(bigint(fence))
}

pub(crate) fn hold<'q>(id: i64) -> Statement<'q> {
    query(HOLD).bind(id)
}

pub(crate) fn hold_group<'q>(id: i64) -> Statement<'q> {
    query(HOLD_GROUP).bind(id)
}

/// How a row ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Closing<'a> {
    pub(crate) id: i64,
    /// Of the attempt; `None` for an operator.
    pub(crate) fence: Option<i64>,
    pub(crate) status: EntryStatus,
    /// Whether later rows of its group still have to wait.
    pub(crate) holds_group: bool,
    pub(crate) error: Option<&'a str>,
    pub(crate) attempts_max: u32,
    pub(crate) now: Timestamp,
    /// The only transaction in which this may apply.
    pub(crate) transaction: Option<i64>,
}

impl Closing<'_> {
    /// Returns how an operator discards a message.
    pub(crate) fn discard(id: i64, now: Timestamp) -> Self {
        Self {
            id,
            fence: None,
            status: EntryStatus::Discarded,
            holds_group: false,
            error: None,
            attempts_max: ATTEMPTS_MAX,
            now,
            transaction: None,
        }
    }
}

pub(crate) fn close<'q>(closing: Closing<'q>) -> Statement<'q> {
    query(CLOSE)
        .bind(closing.id)
        .bind(closing.fence)
        .bind(closing.status.word())
        .bind(closing.holds_group)
        .bind(closing.error.map(str::as_bytes))
        .bind(i32::try_from(closing.attempts_max).unwrap_or(i32::MAX))
        .bind(time(closing.now))
        .bind(closing.transaction)
}

/// Ends an attempt whose row is tried again; with `given_back` the handler did not run, and the attempt does not count.
pub(crate) fn again<'q>(
    taken: &Taken,
    error: Option<&'q str>,
    given_back: bool,
    due: Timestamp,
    now: Timestamp,
) -> Statement<'q> {
    query(AGAIN)
        .bind(taken.id)
        .bind(bigint(taken.fence))
        .bind(error.map(str::as_bytes))
        .bind(i32::from(given_back))
        .bind(time(due))
        .bind(time(now))
}

/// Returns what locking a row returned first: the transaction that has it locked.
pub(crate) fn locked_by(row: &PgRow) -> Result<AtServer, StoreError> {
    Ok(AtServer { transaction: column(row, "transaction")?, backend: column(row, "backend")? })
}

/// Returns what it returned then: the body.
pub(crate) fn body(row: &PgRow) -> Result<String, StoreError> {
    text(row, "body")
}

/// Returns how many rows a statement wrote.
pub(crate) fn written(rows: &[PgRow]) -> Result<u64, StoreError> {
    rows.first().map_or(Ok(0), |row| number(row, "rows"))
}

pub(crate) fn found(rows: &[PgRow], window: u32) -> Result<TakeAnswer, StoreError> {
    let Some(first) = rows.first() else { return Err(corrupt("looked_at")) };
    let mut taken = Vec::new();
    for row in rows {
        if let Some(id) = column(row, "id")? {
            let fence = column(row, "fence")?;
            taken.push(one(read(row))?.map_err(|error| Unreadable { id, fence, error }));
        }
    }
    let more = number(first, "looked_at")? >= u64::from(window);
    // OK because it is no more than the window.
    let ready = number(first, "ready")? as usize;
    Ok(TakeAnswer { taken, ready, more, suspects: column(first, "suspects")? })
}

fn read(row: &PgRow) -> Result<Taken, StoreError> {
    Ok(Taken {
        id: column(row, "id")?,
        fence: number(row, "fence")?,
        attempt: count(row, "attempts")?,
        record_id: text(row, "record_id")?,
        message_id: MessageId::new(text(row, "message_id")?).map_err(|_| corrupt("message_id"))?,
        group: optional_text(row, "group_name")?,
        event_type: text(row, "event_type")?,
        trace: optional_text(row, "trace")?,
        received_at: timestamp(row, "received_at")?,
        group_lock: column(row, "group_lock")?,
    })
}
