//! One statement on a connection of the pool, within its time.

use std::time::Duration;

use claimant_core::StoreError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgPool, Postgres};
use tokio::time::{Instant, timeout_at};

use crate::error;
use crate::limits::{BEGIN_MAX_MS, CALL_MAX_MS, STATEMENT_MAX_MS};

/// A statement with its values.
pub(crate) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// The time that one short statement is given.
pub(crate) const STATEMENT_MAX: Duration = Duration::from_millis(STATEMENT_MAX_MS);

/// The time that the beginning of something is given.
pub(crate) const BEGIN_MAX: Duration = Duration::from_millis(BEGIN_MAX_MS);

/// When this much time is over.
pub(crate) fn end_of(within: Duration) -> Instant {
    Instant::now() + within.min(Duration::from_millis(CALL_MAX_MS))
}

/// The rows that a statement gives, committed when they are there.
///
/// A statement that is cut off, by its time or because the caller dropped this, may have been carried out or not. Its
/// connection is in the middle of an answer, so it is closed.
pub(crate) async fn rows(
    pool: &PgPool,
    until: Instant,
    operation: &str,
    statement: Statement<'_>,
) -> Result<Vec<PgRow>, StoreError> {
    let connection = match timeout_at(until, pool.acquire()).await {
        Ok(connection) => connection.map_err(|error| error::explain(operation, &error))?,
        Err(_) => return Err(error::explain(operation, &sqlx::Error::PoolTimedOut)),
    };
    let mut link = Link { connection: Some(connection) };
    let Some(connection) = &mut link.connection else { return Err(error::no_answer(operation)) };
    let until = until.min(end_of(STATEMENT_MAX));
    let answer = timeout_at(until, statement.fetch_all(&mut **connection)).await;
    // After an answer of the server, an error or not, the connection is at rest, and the pool's again.
    if let Ok(Ok(_) | Err(sqlx::Error::Database(_))) = answer {
        link.connection = None;
    }
    match answer {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => Err(error::explain(operation, &error)),
        Err(_) => Err(error::no_answer(operation)),
    }
}

/// A connection that is under way.
struct Link {
    connection: Option<PoolConnection<Postgres>>,
}

impl Drop for Link {
    /// Closes the socket, without a word: whoever is at the other end may not be listening.
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}
