//! The transaction that a claim carries, as its handler sees it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::{Database, Describe, Either, Error, Execute, Executor, SqlStr};

use crate::dialect::AtServer;
use crate::guard;
use crate::rounds::Grant;

/// The transaction of a claim, or of the claims of a call, in which the handler reads and writes:
/// `sqlx::query(…).execute(&mut *tx)`.
///
/// Its writes are committed exactly when the claim is completed, or all of them are. Statements that would end it, or nest another one in it,
/// are refused with [`sqlx::Error::InvalidArgument`]: the handler returns `Ok` to commit, and an error to roll back. Dropping it
/// closes its connection, and the server rolls back.
///
/// It is READ COMMITTED, and each statement sees what was committed before it. On MySQL, only tables with transactions (InnoDB)
/// take part in it.
///
/// A statement that is cut off, such as a query in a timeout of the handler's own, makes the commit fail: return the error.
pub struct SqlTransaction<D: Database> {
    /// Set until the transaction is over.
    connection: Option<PoolConnection<D>>,
    /// Whether a statement is in flight, or was dropped before its answer came; or the handler has kept the connection.
    cut_off: bool,
    /// What it is to the server; `None` once it is over.
    at: Option<AtServer>,
    /// The claim that is written in it; `None` where it is one for many.
    grant: Option<Box<Grant>>,
    /// Whether its commit was sent and had no answer.
    in_doubt: bool,
}

/// What remains of a transaction when its handler has ended.
pub(crate) struct Remains<D: Database> {
    /// Its connection, if no statement is in flight on it.
    pub(crate) connection: Option<PoolConnection<D>>,
    /// What was cut off, or kept: its statement may still run at the server, or the transaction still be open.
    pub(crate) cut_off: Option<AtServer>,
    pub(crate) grant: Option<Box<Grant>>,
    /// Whether its commit was sent and had no answer.
    pub(crate) in_doubt: bool,
}

impl<D: Database> SqlTransaction<D> {
    pub(crate) fn new(connection: Option<PoolConnection<D>>, at: AtServer, grant: Box<Grant>) -> Self {
        Self { connection, cut_off: false, at: Some(at), grant: Some(grant), in_doubt: false }
    }

    /// Returns a transaction in which no claim is written.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_many(connection: Option<PoolConnection<D>>, at: AtServer) -> Self {
        Self { connection, cut_off: false, at: Some(at), grant: None, in_doubt: false }
    }

    /// Returns what is left of a transaction that its handler has kept: the connection is the handler's.
    pub(crate) fn kept(at: AtServer, grant: Box<Grant>) -> Self {
        Self { connection: None, cut_off: true, at: Some(at), grant: Some(grant), in_doubt: false }
    }

    /// Returns a transaction that is over, for what is still to be written about its claim.
    pub(crate) fn over(grant: Box<Grant>, in_doubt: bool) -> Self {
        Self { connection: None, cut_off: false, at: None, grant: Some(grant), in_doubt }
    }

    pub(crate) fn into_remains(mut self) -> Remains<D> {
        let cut_off = self.at.filter(|_| self.cut_off);
        let connection = if self.cut_off { None } else { self.connection.take() };
        Remains { connection, cut_off, grant: self.grant.clone(), in_doubt: self.in_doubt }
    }
}

// Closes the connection without a farewell message: the server rolls back, and the caller need not wait for it.
impl<D: Database> Drop for SqlTransaction<D> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}

impl<D: Database> fmt::Debug for SqlTransaction<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlTransaction").finish_non_exhaustive()
    }
}

/// A statement that the guard has allowed.
struct Checked<D: Database> {
    sql: SqlStr,
    arguments: Option<D::Arguments>,
    persistent: bool,
}

impl<D: Database> Checked<D> {
    fn new<'q>(mut query: impl Execute<'q, D>, rules: &guard::Rules) -> Result<Self, Error> {
        let arguments = query.take_arguments().map_err(Error::Encode)?;
        let persistent = query.persistent();
        let sql = query.sql();
        match guard::refusal(sql.as_str(), arguments.is_some(), rules) {
            Some(why) => Err(Error::InvalidArgument(why.to_owned())),
            None => Ok(Self { sql, arguments, persistent }),
        }
    }
}

impl<D: Database> Execute<'_, D> for Checked<D> {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&D::Statement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<D::Arguments>, BoxDynError> {
        Ok(self.arguments.take())
    }

    fn persistent(&self) -> bool {
        self.persistent
    }
}

/// Returns the statement of an inbox's handler, if it leaves the end of the transaction to the worker.
///
/// # Errors
/// [`sqlx::Error::InvalidArgument`], where it does not.
#[cfg(feature = "postgres")]
pub fn of_inbox<'q>(query: impl Execute<'q, sqlx::Postgres>) -> Result<impl Execute<'q, sqlx::Postgres>, Error> {
    Checked::new(query, &guard::INBOX)
}

/// A statement in flight; records whether it was dropped before its end.
struct Watched<'e, F> {
    inner: F,
    cut_off: &'e mut bool,
}

impl<F: Future + Unpin> Future for Watched<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = Pin::new(&mut self.inner).poll(cx);
        *self.cut_off = polled.is_pending();
        polled
    }
}

impl<F: Stream + Unpin> Stream for Watched<'_, F> {
    type Item = F::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Item>> {
        let polled = self.inner.poll_next_unpin(cx);
        *self.cut_off = polled.is_pending();
        polled
    }
}

impl<D: Database> SqlTransaction<D> {
    /// Returns the connection, and the flag that a statement was cut off.
    fn parts(&mut self) -> Result<(&mut D::Connection, &mut bool), Error> {
        match &mut self.connection {
            Some(_) if self.cut_off => Err(Error::InvalidArgument(
                "a statement before this one was cut off in the middle of its answer: return the error, and the work is tried again"
                    .to_owned(),
            )),
            Some(connection) => Ok((&mut **connection, &mut self.cut_off)),
            None => Err(Error::InvalidArgument("the transaction is over".to_owned())),
        }
    }
}

type Step<D> = Either<<D as Database>::QueryResult, <D as Database>::Row>;

/// Implements sqlx's `Executor`, which cannot be implemented for all databases at once.
macro_rules! executor {
    ($database:ty, $rules:path) => {
        impl<'c> Executor<'c> for &'c mut SqlTransaction<$database> {
            type Database = $database;

            fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Step<$database>, Error>>
            where
                'c: 'e,
                E: 'q + Execute<'q, $database>,
            {
                let checked = Checked::new(query, &$rules);
                match self.parts().and_then(|parts| Ok((parts, checked?))) {
                    Ok(((connection, cut_off), query)) => {
                        Watched { inner: connection.fetch_many(query), cut_off }.boxed()
                    }
                    Err(error) => stream::once(async { Err(error) }).boxed(),
                }
            }

            fn fetch_optional<'e, 'q: 'e, E>(
                self,
                query: E,
            ) -> BoxFuture<'e, Result<Option<<$database as Database>::Row>, Error>>
            where
                'c: 'e,
                E: 'q + Execute<'q, $database>,
            {
                let checked = Checked::new(query, &$rules);
                match self.parts().and_then(|parts| Ok((parts, checked?))) {
                    Ok(((connection, cut_off), query)) => {
                        Box::pin(Watched { inner: connection.fetch_optional(query), cut_off })
                    }
                    Err(error) => Box::pin(async { Err(error) }),
                }
            }

            fn prepare_with<'e>(
                self,
                sql: SqlStr,
                parameters: &'e [<$database as Database>::TypeInfo],
            ) -> BoxFuture<'e, Result<<$database as Database>::Statement, Error>>
            where
                'c: 'e,
            {
                match self.parts() {
                    Ok((connection, cut_off)) => {
                        Box::pin(Watched { inner: connection.prepare_with(sql, parameters), cut_off })
                    }
                    Err(error) => Box::pin(async { Err(error) }),
                }
            }

            fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<$database>, Error>>
            where
                'c: 'e,
            {
                match self.parts() {
                    Ok((connection, cut_off)) => Box::pin(Watched { inner: connection.describe(sql), cut_off }),
                    Err(error) => Box::pin(async { Err(error) }),
                }
            }
        }
    };
}

#[cfg(feature = "mysql")]
executor!(sqlx::MySql, guard::MYSQL);
#[cfg(feature = "postgres")]
executor!(sqlx::Postgres, guard::POSTGRES);
