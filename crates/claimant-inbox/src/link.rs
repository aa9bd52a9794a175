//! One statement on a connection of the pool, within its time.

use std::time::Duration;

use claimant_core::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgPool, Postgres};
use tokio::time::{Instant, timeout_at};

use crate::error;
use crate::limits::{BEGIN_MAX_MS, BODIES_BYTES_PER_S, CALL_MAX_MS, STATEMENT_MAX_MS};

/// A statement with its values.
pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// The longest that one short statement may take.
pub(crate) const STATEMENT_MAX: Duration = Duration::from_millis(STATEMENT_MAX_MS);

/// The longest that a first statement may take, which may have to open a connection.
pub(crate) const BEGIN_MAX: Duration = Duration::from_millis(BEGIN_MAX_MS);

/// Returns the instant after this much time.
pub(crate) fn end_of(within: Duration) -> Instant {
    Instant::now() + within.min(Duration::from_millis(CALL_MAX_MS))
}

/// Returns the longest that a statement may take that stores so many bytes of bodies.
pub(crate) fn time_for(bytes: usize) -> Duration {
    // OK because a usize fits a u64.
    STATEMENT_MAX + Duration::from_millis((bytes as u64).saturating_mul(1_000) / BODIES_BYTES_PER_S)
}

/// Runs a short statement, which has [`STATEMENT_MAX`] once there is a connection, and returns its rows, which are committed by then.
pub(crate) async fn rows(
    pool: &PgPool,
    until: Instant,
    operation: &str,
    statement: Statement<'_>,
) -> Result<Vec<PgRow>, StoreError> {
    rows_within(pool, until, (STATEMENT_MAX, error::explain), operation, statement).await
}

/// Returns the error of an operation.
pub(crate) type Explain = fn(&str, &sqlx::Error) -> StoreError;

/// Runs a statement, which has this time once there is a connection, and returns its rows, which are committed by then.
///
/// One that is cut off, by its timeout or because the caller dropped the future, may have been executed or not. Its
/// connection is in the middle of a response, so it is closed.
pub(crate) async fn rows_within(
    pool: &PgPool,
    until: Instant,
    (within, explain): (Duration, Explain),
    operation: &str,
    statement: Statement<'_>,
) -> Result<Vec<PgRow>, StoreError> {
    let connection = match timeout_at(until, pool.acquire()).await {
        Ok(connection) => connection.map_err(|error| explain(operation, &error))?,
        Err(_) => return Err(explain(operation, &sqlx::Error::PoolTimedOut)),
    };
    let mut link = Link { connection: Some(connection) };
    let Some(connection) = &mut link.connection else { return Err(error::no_answer(operation)) };
    let until = until.min(end_of(within));
    let answer = timeout_at(until, statement.fetch_all(&mut **connection)).await;
    // After a response of the server, an error or not, the connection is clean and returns to the pool.
    if let Ok(Ok(_) | Err(sqlx::Error::Database(_))) = answer {
        link.connection = None;
    }
    match answer {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => Err(explain(operation, &error)),
        Err(_) => Err(error::no_answer(operation)),
    }
}

/// A connection with a statement in flight.
struct Link {
    connection: Option<PoolConnection<Postgres>>,
}

impl Drop for Link {
    /// Closes the socket without a farewell message: the server may not be reachable.
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}
