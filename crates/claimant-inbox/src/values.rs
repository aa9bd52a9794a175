//! Converts values to columns and back.

use claimant_core::{StoreError, StoreErrorKind, Timestamp};
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row as _, Type};

use crate::error;

pub(crate) use claimant_sql::parts::{bigint, time};

/// Returns one column of a row.
pub(crate) fn column<'r, V>(row: &'r PgRow, name: &str) -> Result<V, StoreError>
where
    V: Decode<'r, Postgres> + Type<Postgres>,
{
    row.try_get(name).map_err(|error| error::explain("reading the inbox", &error))
}

pub(crate) fn text(row: &PgRow, name: &str) -> Result<String, StoreError> {
    optional_text(row, name)?.ok_or_else(|| corrupt(name))
}

pub(crate) fn optional_text(row: &PgRow, name: &str) -> Result<Option<String>, StoreError> {
    let bytes: Option<Vec<u8>> = column(row, name)?;
    bytes.map(|bytes| String::from_utf8(bytes).map_err(|_| corrupt(name))).transpose()
}

/// Returns a text as people are shown it: also that of a row whose column is not of its form.
pub(crate) fn shown(row: &PgRow, name: &str) -> Result<Option<String>, StoreError> {
    let bytes: Option<Vec<u8>> = column(row, name)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Returns a count as people are shown it: none for one below zero.
pub(crate) fn shown_count(row: &PgRow, name: &str) -> Result<u32, StoreError> {
    column::<i32>(row, name).map(|count| u32::try_from(count).unwrap_or_default())
}

/// Returns a time as people are shown it: the first one for one below zero.
pub(crate) fn shown_time(millis: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(millis).unwrap_or_default())
}

pub(crate) fn number(row: &PgRow, name: &str) -> Result<u64, StoreError> {
    u64::try_from(column::<i64>(row, name)?).map_err(|_| corrupt(name))
}

pub(crate) fn timestamp(row: &PgRow, name: &str) -> Result<Timestamp, StoreError> {
    number(row, name).map(Timestamp::from_millis)
}

pub(crate) fn count(row: &PgRow, name: &str) -> Result<u32, StoreError> {
    u32::try_from(column::<i32>(row, name)?).map_err(|_| corrupt(name))
}

/// Keeps the error of one row, which says nothing of the others of its answer.
///
/// # Errors
/// What is wrong with the whole table, such as a column of another type.
pub(crate) fn one<T>(read: Result<T, StoreError>) -> Result<Result<T, StoreError>, StoreError> {
    match read {
        Err(error) if error.kind() != StoreErrorKind::Corrupt => Err(error),
        read => Ok(read),
    }
}

pub(crate) fn corrupt(column: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!(
            "a row's column {column} is not of the form that claimant writes: is the table claimant_inbox used by something else?"
        ),
    )
}
