//! A connection for one call, within the time of the call.

use std::time::Duration;

use claimant_core::limits::STORE_BUDGET_MAX_MS;
use claimant_core::{Budget, StoreErrorKind};
use sqlx::pool::{PoolConnection, PoolOptions};
use sqlx::{Connection, Database, Execute, Executor, Pool};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{ErrorCodes, RECORDS, SqlError};

/// The longest that one statement may take: if the connection died while the function was frozen, that leaves time for
/// another one.
const TRY_MAX_MS: u64 = 2_000;

/// A connection that was idle for longer is tested before it is used: it may have died while the function was frozen.
const TEST_AFTER_IDLE_MS: u64 = 1_000;

/// The longest that this test may take.
const TEST_MAX_MS: u64 = 500;

/// The longest that a connection may take to return to the pool. A server that is this slow is no reason to open connections anew.
const RETURN_MAX_MS: u64 = TRY_MAX_MS;

/// Returns the options of a pool for calls that have their own timeouts. In a busy function no connection is tested, so that a
/// statement is one round trip.
pub(crate) fn pool_options<DB: Database>() -> PoolOptions<DB> {
    PoolOptions::new()
        .acquire_timeout(Duration::from_millis(STORE_BUDGET_MAX_MS))
        .test_before_acquire(false)
        .before_acquire(|connection: &mut DB::Connection, meta| {
            Box::pin(async move {
                if meta.idle_for < Duration::from_millis(TEST_AFTER_IDLE_MS) {
                    return Ok(true);
                }
                Ok(is_alive(connection, Duration::MAX).await)
            })
        })
}

/// Returns whether a connection answers within this time, or within that of a test.
async fn is_alive(connection: &mut impl Connection, within: Duration) -> bool {
    let tried = timeout(within.min(Duration::from_millis(TEST_MAX_MS)), connection.ping()).await;
    tried.is_ok_and(|answer| answer.is_ok())
}

/// A connection of the pool.
///
/// It returns to the pool only if its statements ended: one that was cut off, by its timeout or because the caller dropped
/// the call, left the connection in the middle of a response, so it is closed.
pub(crate) struct Session<'a, D: Database> {
    /// Set until this is dropped, or a statement broke it.
    pub(crate) connection: Option<PoolConnection<D>>,
    under_way: bool,
    /// Whether a transaction is open, with which the connection must not return to the pool.
    pub(crate) in_transaction: bool,
    /// The longest that a statement may take.
    try_max: Duration,
    budget: Budget<'a>,
}

impl<'a, D: ErrorCodes> Session<'a, D> {
    /// Waits for a connection, as long as the call has time.
    pub(crate) async fn open(pool: &Pool<D>, budget: Budget<'a>) -> Result<Self, SqlError> {
        let left = budget.left();
        loop {
            let mut connection = match timeout_at(budget.until(), pool.acquire()).await {
                Ok(Ok(connection)) => connection,
                Ok(Err(sqlx::Error::PoolTimedOut)) | Err(_) => return Err(no_connection(pool, left)),
                Ok(Err(error)) => return Err(SqlError::of_connecting::<D>(&error)),
            };
            // Without time left no statement is sent on it: it goes back as it is.
            let untested = !budget.has_failed() || budget.left().is_zero();
            if untested || is_alive(&mut *connection, budget.left()).await {
                return Ok(Self {
                    connection: Some(connection),
                    under_way: false,
                    in_transaction: false,
                    try_max: Duration::from_millis(TRY_MAX_MS),
                    budget,
                });
            }
            drop(connection.detach());
        }
    }

    /// Lets its statements take as long as the call: no lease depends on them.
    pub(crate) fn patient(mut self) -> Self {
        self.try_max = Duration::from_millis(STORE_BUDGET_MAX_MS);
        self
    }

    /// Resumes on the connection of a transaction that its handler returned.
    pub(crate) fn resume(connection: PoolConnection<D>, budget: Budget<'a>) -> Self {
        let connection = Some(connection);
        // There is no other connection to try it on, and a commit can have checks and replicas to wait for.
        Self {
            connection,
            under_way: false,
            in_transaction: true,
            try_max: Duration::from_millis(STORE_BUDGET_MAX_MS),
            budget,
        }
    }

    /// Returns whether it has a connection without a statement in flight.
    pub(crate) fn is_usable(&self) -> bool {
        self.connection.is_some() && !self.in_transaction
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn rows<'q, E>(&mut self, operation: &str, statement: E) -> Result<Vec<D::Row>, SqlError>
    where
        E: Execute<'q, D> + 'q,
        for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    {
        let until = self.start()?;
        let Some(connection) = &mut self.connection else { return Err(broken(operation)) };
        let answer = timeout_at(until, connection.fetch_all(statement)).await;
        self.end(operation, answer)
    }

    /// Runs a statement and returns its result, which has the number of rows.
    pub(crate) async fn execute<'q, E>(&mut self, operation: &str, statement: E) -> Result<D::QueryResult, SqlError>
    where
        E: Execute<'q, D> + 'q,
        for<'c> &'c mut D::Connection: Executor<'c, Database = D>,
    {
        let until = self.start()?;
        let Some(connection) = &mut self.connection else { return Err(broken(operation)) };
        let answer = timeout_at(until, connection.execute(statement)).await;
        self.end(operation, answer)
    }

    /// Returns when a statement that is sent now times out.
    fn start(&mut self) -> Result<Instant, SqlError> {
        if self.budget.left().is_zero() {
            return Err(SqlError::new(StoreErrorKind::Unreachable, "no time was left for the statement"));
        }
        self.under_way = true;
        self.budget.meter().request();
        Ok(self.budget.until().min(Instant::now() + self.try_max))
    }

    fn end<T>(&mut self, operation: &str, answer: Result<Result<T, sqlx::Error>, Elapsed>) -> Result<T, SqlError> {
        // After a response of the server, an error or not, the connection is clean, unless the server closed it.
        self.under_way = !matches!(answer, Ok(Ok(_) | Err(sqlx::Error::Database(_))));
        let answer = match answer {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(SqlError::of::<D>(operation, &error, &RECORDS)),
            Err(_) => Err(SqlError::new(
                StoreErrorKind::Unreachable,
                format!("{operation}: the server gave no answer in time"),
            )),
        };
        if self.under_way || answer.as_ref().is_err_and(|error| error.ends_connection) {
            self.close();
        }
        answer
    }
}

impl<D: Database> Session<'_, D> {
    /// Closes the socket without a farewell message: the server may not be reachable.
    pub(crate) fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

impl<D: Database> Drop for Session<'_, D> {
    fn drop(&mut self) {
        if self.under_way || self.in_transaction {
            self.close();
        } else if let Some(connection) = self.connection.take() {
            give_back(connection);
        }
    }
}

/// Returns a connection to its pool, or closes it if that takes too long: the pool tests it by an empty query without a time
/// limit. If the function was frozen during that, the answer may never come, and the connection would keep its place.
fn give_back<DB: Database>(mut connection: PoolConnection<DB>) {
    // Hidden in sqlx's documentation; it is what `drop` does in a task of its own.
    let returned = connection.return_to_pool();
    tokio::spawn(timeout(Duration::from_millis(RETURN_MAX_MS), returned));
}

fn broken(operation: &str) -> SqlError {
    SqlError::new(StoreErrorKind::Unreachable, format!("{operation}: the connection broke before it"))
}

/// Returns the error of a pool without a connection in time. The pool does not tell whether its connections are in use or could
/// not be opened.
pub(crate) fn no_connection<DB: Database>(pool: &Pool<DB>, waited: Duration) -> SqlError {
    let (open, most) = (pool.size(), pool.options().get_max_connections());
    let why = if open < most {
        "is the server up, are host and port right, may the function reach it, and does it take one connection more? If the \
         log has `error returned from after_connect`, it refused the settings of a connection, and that says which"
            .to_owned()
    } else {
        format!(
            "all {most} of the pool are in use, or on their way to a server that does not answer: see whether it is up and can \
             be reached, or allow more connections (CLAIMANT_DATABASE_CONNECTIONS)"
        )
    };
    let text = match waited.as_millis() {
        0 => "no time was left for a connection to the database".to_owned(),
        waited => format!("no connection to the database within {waited} ms: {why}"),
    };
    SqlError::new(StoreErrorKind::Unreachable, text)
}
