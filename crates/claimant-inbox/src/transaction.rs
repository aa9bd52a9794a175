//! The transaction of an attempt, which its handler borrows.
//!
//! One that is dropped is rolled back by sqlx before its connection is used again.
//!
//! Invariant: a handler cannot reach the connection in it, and so not sqlx's `begin()`. Where that fails or is cancelled, sqlx (0.9) rolls back the
//! whole transaction, and what the handler sent after it would commit by itself, at each attempt.

use std::time::Duration;

use claimant_core::StoreError;
use claimant_sql::parts;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt as _, TryStreamExt as _};
use sqlx::postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{
    AssertSqlSafe, Describe, Either, Error, Execute, Executor, PgConnection, PgPool, PgTransaction, Postgres, SqlStr,
};
use tokio::time::{Instant, timeout_at};

use crate::error::{explain, explain_after_handler, explain_commit, no_answer};
use crate::limits::CALL_MAX_MS;
use crate::link::{Statement, end_of};

/// The transaction in which an attempt's effect and the end of its message commit together. In a handler,
/// `sqlx::query(…).execute(&mut *tx)`; a function of several statements takes `&mut Transaction`.
///
/// For a savepoint, send the statements: `SAVEPOINT a` and `ROLLBACK TO SAVEPOINT a`. There is no `begin()`:
///
/// ```compile_fail
/// # use claimant_inbox::Transaction;
/// # use sqlx::Connection as _;
/// async fn nest(tx: &mut Transaction) {
///     let nested = tx.begin().await;
/// }
/// ```
///
/// Its statements wait for locks as the server's settings say, as long as the handler has time. Its commit waits a second for each
/// one of what is checked only then, such as a deferred foreign key, and is given up after two seconds in all.
///
/// Settings, locks, temporary tables, cursors, channels and what `currval` returns: what a handler leaves of them in the session ends when its
/// connection returns to the [pool](crate::Inbox::pool_options). What it prepares by `PREPARE`, or loads by `LOAD`, stays: it should do neither.
///
/// The worker commits it when the handler returns `Ok`, and rolls it back otherwise. Statements that would end it, such as `COMMIT` and
/// `ROLLBACK`, are refused with [`sqlx::Error::InvalidArgument`] before they are sent; so are several in one text, and a `;` inside a text
/// that is not sent by `sqlx::query`, as in `DO $$…$$`.
#[derive(Debug)]
pub struct Transaction(PgTransaction<'static>);

impl Transaction {
    fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }
}

impl<'c> Executor<'c> for &'c mut Transaction {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        match parts::of_inbox(query) {
            Ok(query) => self.connection().fetch_many(query),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        match parts::of_inbox(query) {
            Ok(query) => self.connection().fetch_optional(query),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.connection().prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        self.connection().describe(sql)
    }
}

/// Begins a transaction that shares the lock with this number, unless another one has it for itself: the setting `claimant.shares` says whether
/// it does. The server ends it if one of its statements, or the wait for the next one, takes longer than `within`. It waits a second for locks;
/// the setting `claimant.lock_timeout` says how long the server's settings let it.
pub(crate) async fn begin(
    pool: &PgPool,
    shares: Option<i64>,
    within: Duration,
    until: Instant,
) -> Result<Transaction, StoreError> {
    // In the same message, so that it takes no round trip. It neither waits nor fails: sqlx leaves a transaction open whose beginning failed.
    let share = shares.map_or_else(String::new, |number| {
        format!("; SELECT set_config('claimant.shares', pg_try_advisory_xact_lock_shared('{number}')::text, true)")
    });
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {0}; \
         SET LOCAL idle_in_transaction_session_timeout = {0}; SET LOCAL lock_timeout = DEFAULT; \
         SELECT set_config('claimant.lock_timeout', current_setting('lock_timeout'), true); SET LOCAL lock_timeout = '1s'{share}",
        within.as_millis()
    );
    begin_by(pool, begin, until).await
}

/// Begins a transaction by these statements, into which only numbers were inserted.
pub(crate) async fn begin_by(pool: &PgPool, statements: String, until: Instant) -> Result<Transaction, StoreError> {
    let begun = timeout_at(until, pool.begin_with(AssertSqlSafe(statements))).await;
    // It is the connection that is usually missing.
    let begun = begun.unwrap_or(Err(Error::PoolTimedOut)).map(Transaction);
    begun.map_err(|error| explain("beginning a transaction", &error))
}

/// Runs an operator's statement, which has all of the time that is given, whatever a statement on the pool's connections has otherwise, and
/// returns its rows, which are committed by then.
pub(crate) async fn rows_within(
    pool: &PgPool,
    within: Duration,
    operation: &str,
    statement: Statement<'_>,
) -> Result<Vec<PgRow>, StoreError> {
    // To the server, no time would be no limit.
    let within = within.clamp(Duration::from_millis(1), Duration::from_millis(CALL_MAX_MS));
    let until = end_of(within);
    // Not read-write: what only reads can be asked of a replica.
    let begin = format!("BEGIN; SET LOCAL statement_timeout = {}", within.as_millis());
    let mut own = begin_by(pool, begin, until).await?;
    let rows = self::rows(&mut own, until, operation, statement).await?;
    commit(own, until).await?;
    Ok(rows)
}

/// Runs a statement in a transaction and returns its rows.
pub(crate) async fn rows(
    transaction: &mut Transaction,
    until: Instant,
    operation: &str,
    statement: Statement<'_>,
) -> Result<Vec<PgRow>, StoreError> {
    rows_or(transaction, until, operation, statement, explain).await
}

/// Runs a statement, as [`rows`], in the transaction of a handler that has returned.
pub(crate) async fn rows_after_handler(
    transaction: &mut Transaction,
    until: Instant,
    operation: &str,
    statement: Statement<'_>,
) -> Result<Vec<PgRow>, StoreError> {
    rows_or(transaction, until, operation, statement, explain_after_handler).await
}

async fn rows_or(
    transaction: &mut Transaction,
    until: Instant,
    operation: &str,
    statement: Statement<'_>,
    explain: fn(&str, &sqlx::Error) -> StoreError,
) -> Result<Vec<PgRow>, StoreError> {
    let rows = timeout_at(until, statement.fetch_all(transaction.connection())).await;
    rows.map_err(|_| no_answer(operation))?.map_err(|error| explain(operation, &error))
}

/// Runs a statement in a transaction, and passes on each row as it comes: also where a later one does not.
pub(crate) async fn each_row(
    transaction: &mut Transaction,
    until: Instant,
    operation: &str,
    statement: Statement<'_>,
    mut pass_on: impl FnMut(PgRow) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let all = async {
        let mut rows = statement.fetch(transaction.connection());
        while let Some(row) = rows.try_next().await.map_err(|error| explain(operation, &error))? {
            pass_on(row)?;
        }
        Ok(())
    };
    timeout_at(until, all).await.unwrap_or_else(|_| Err(no_answer(operation)))
}

/// Commits. After an error, the transaction may be committed or not.
pub(crate) async fn commit(transaction: Transaction, until: Instant) -> Result<(), StoreError> {
    let committed = timeout_at(until, transaction.0.commit()).await;
    committed.map_err(|_| no_answer("committing"))?.map_err(|error| explain_commit(&error))
}

/// Rolls back, so that the locks are released when this returns, and returns whether that ended in time.
pub(crate) async fn give_up(transaction: Transaction, until: Instant) -> bool {
    // Where it fails, the connection has failed, and the transaction with it; or the error is that of the statement before it, and sqlx rolls back
    // what is dropped.
    timeout_at(until, transaction.0.rollback()).await.is_ok()
}
