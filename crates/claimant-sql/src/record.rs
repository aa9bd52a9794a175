//! Converts records to rows and back.

use std::collections::HashMap;

use claimant_core::{
    Fence, Filter, Fingerprint, MessageId, OwnerToken, Record, RecordId, Status, StoreErrorKind, Timestamp,
};
use sqlx::{ColumnIndex, Decode, Row, Type};

use crate::error::{ErrorCodes, RECORDS, SqlError};

/// The columns, in the order in which every statement names them.
macro_rules! columns {
    () => {
        "id, status, owner, fence, lease_until, attempts, message_id, fingerprint, created_at, updated_at, completed_at, \
         expires_at_s, result, error, note"
    };
}
pub(crate) use columns;

/// Binds a record's values for all columns but the id, in their order, by this method of a statement or of a row of one.
macro_rules! bound {
    ($to:expr, $bind:ident, $record:expr) => {{
        // Without `..`: the compiler names each place that writes a record and lacks a field.
        let Record {
            status,
            owner,
            fence,
            lease_until,
            attempts,
            message_id,
            fingerprint,
            created_at,
            updated_at,
            completed_at,
            expires_at_s,
            result,
            error,
            note,
        } = $record;
        $to.$bind(status.as_str())
            .$bind(owner.as_str().as_bytes())
            .$bind(bigint(fence.get()))
            .$bind(time(*lease_until))
            .$bind(i64::from(*attempts))
            .$bind(message_id.as_str().as_bytes())
            .$bind(fingerprint.to_stored())
            .$bind(time(*created_at))
            .$bind(time(*updated_at))
            .$bind(completed_at.map(time))
            .$bind(bigint(*expires_at_s))
            .$bind(result.as_deref().map(str::as_bytes))
            .$bind(error.as_deref().map(str::as_bytes))
            .$bind(note.as_deref().map(str::as_bytes))
    }};
}
pub(crate) use bound;

/// The columns of a list, in the same order: without results.
macro_rules! listed_columns {
    () => {
        "id, status, owner, fence, lease_until, attempts, message_id, fingerprint, created_at, updated_at, completed_at, \
         expires_at_s, NULL, error, note"
    };
}
pub(crate) use listed_columns;

/// Records that a list returned, and how many rows claimant did not write.
pub(crate) type Listed = (Vec<(RecordId, Record)>, u64);

/// Records that a statement returned, by their ids.
pub(crate) type Seen = HashMap<Vec<u8>, Record>;

/// Converts a number to `bigint`, with its maximum for larger ones. OK because no time, fence or count gets near it.
pub fn bigint(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a time to milliseconds as `bigint`.
pub fn time(time: Timestamp) -> i64 {
    bigint(time.as_millis())
}

/// Returns a record's id as its column holds it.
pub(crate) fn key(id: &RecordId) -> &[u8] {
    id.as_str().as_bytes()
}

/// Returns a text as its column holds it.
pub(crate) fn bytes(text: Option<&str>) -> Option<Vec<u8>> {
    text.map(|text| text.as_bytes().to_vec())
}

/// Returns the statuses that a list reads, and before when its records were written.
pub(crate) fn asked_for(filter: &Filter) -> (Vec<&'static str>, i64) {
    let mut statuses = filter.statuses();
    if statuses.is_empty() {
        statuses = Status::ALL.into();
    }
    (statuses.into_iter().map(Status::as_str).collect(), filter.written_before.map_or(i64::MAX, time))
}

/// Returns the records in rows of [`columns`].
pub(crate) fn seen<R>(rows: &[R]) -> Result<Seen, SqlError>
where
    R: Row,
    R::Database: ErrorCodes,
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
{
    rows.iter().map(|row| Fields { row }.record()).collect()
}

/// Returns the records in rows of [`listed_columns`].
pub(crate) fn listed<R>(rows: &[R]) -> Result<Listed, SqlError>
where
    R: Row,
    R::Database: ErrorCodes,
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
{
    let (mut records, mut foreign) = (Vec::new(), 0);
    for row in rows {
        let (id, record) = match (Fields { row }).record() {
            Ok(read) => read,
            Err(error) if error.kind == StoreErrorKind::Corrupt => {
                foreign += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        match String::from_utf8(id).ok().and_then(|id| RecordId::from_stored(id).ok()) {
            Some(id) => records.push((id, record)),
            None => foreign += 1,
        }
    }
    Ok((records, foreign))
}

/// Returns the number that a statement returned, or its number in this column.
pub(crate) fn number<R>(rows: &[R], column: usize) -> Result<i64, SqlError>
where
    R: Row,
    R::Database: ErrorCodes,
    usize: ColumnIndex<R>,
    for<'r> i64: Decode<'r, R::Database> + Type<R::Database>,
{
    let row = rows.first().ok_or_else(|| SqlError::new(StoreErrorKind::Other, "the server returned no number"))?;
    row.try_get(column).map_err(|error| SqlError::of::<R::Database>("reading a number", &error, &RECORDS))
}

/// Returns the ids that a statement returned.
pub(crate) fn ids<R>(rows: &[R]) -> Result<Vec<Vec<u8>>, SqlError>
where
    R: Row,
    R::Database: ErrorCodes,
    usize: ColumnIndex<R>,
    for<'r> Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
{
    let ids: Result<_, _> = rows.iter().map(|row| row.try_get(0)).collect();
    ids.map_err(|error| SqlError::of::<R::Database>("reading an id", &error, &RECORDS))
}

struct Fields<'r, R> {
    row: &'r R,
}

impl<'r, R> Fields<'r, R>
where
    R: Row,
    R::Database: ErrorCodes,
    usize: ColumnIndex<R>,
    i64: Decode<'r, R::Database> + Type<R::Database>,
    Vec<u8>: Decode<'r, R::Database> + Type<R::Database>,
    String: Decode<'r, R::Database> + Type<R::Database>,
{
    fn record(&self) -> Result<(Vec<u8>, Record), SqlError> {
        let status: String = self.value(1)?;
        let fingerprint: Vec<u8> = self.value(7)?;
        let record = Record {
            status: status.parse::<Status>().map_err(|_| corrupt("status"))?,
            owner: OwnerToken::from_stored(self.text("owner", self.value(2)?)?),
            fence: Fence::new(self.number(3, "fence")?),
            lease_until: self.time(4, "lease_until")?,
            attempts: u32::try_from(self.number(5, "attempts")?).map_err(|_| corrupt("attempts"))?,
            message_id: MessageId::new(self.text("message_id", self.value(6)?)?).map_err(|_| corrupt("message_id"))?,
            fingerprint: Fingerprint::from_stored(&fingerprint).map_err(|_| corrupt("fingerprint"))?,
            created_at: self.time(8, "created_at")?,
            updated_at: self.time(9, "updated_at")?,
            completed_at: self
                .value::<Option<i64>>(10)?
                .map(|n| unsigned(n, "completed_at").map(Timestamp::from_millis))
                .transpose()?,
            expires_at_s: self.number(11, "expires_at_s")?,
            result: self.value::<Option<_>>(12)?.map(|bytes| self.text("result", bytes)).transpose()?,
            error: self.value::<Option<_>>(13)?.map(|bytes| self.text("error", bytes)).transpose()?,
            note: self.value::<Option<_>>(14)?.map(|bytes| self.text("note", bytes)).transpose()?,
        };
        Ok((self.value(0)?, record))
    }

    fn value<T: Decode<'r, R::Database> + Type<R::Database>>(&self, index: usize) -> Result<T, SqlError> {
        self.row.try_get(index).map_err(|error| SqlError::of::<R::Database>("reading a record", &error, &RECORDS))
    }

    fn number(&self, index: usize, column: &str) -> Result<u64, SqlError> {
        unsigned(self.value(index)?, column)
    }

    fn time(&self, index: usize, column: &str) -> Result<Timestamp, SqlError> {
        self.number(index, column).map(Timestamp::from_millis)
    }

    fn text(&self, column: &str, bytes: Vec<u8>) -> Result<String, SqlError> {
        String::from_utf8(bytes).map_err(|_| corrupt(column))
    }
}

pub(crate) fn unsigned(number: i64, column: &str) -> Result<u64, SqlError> {
    u64::try_from(number).map_err(|_| corrupt(column))
}

fn corrupt(column: &str) -> SqlError {
    SqlError::new(
        StoreErrorKind::Corrupt,
        format!(
            "a record's column {column} is not of the form that claimant writes: is the table used by something else?"
        ),
    )
}
