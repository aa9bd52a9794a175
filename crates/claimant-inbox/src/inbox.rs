//! The inbox: opens it, makes consumers that store and workers that process, and what operators do with it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Consumer, Error, StoreError, Timestamp, Variables};
use claimant_sql::PostgresStore;
use claimant_sql::parts::{CLEAR, SESSION, migrate};
use serde::de::DeserializeOwned;
use sqlx::postgres::{PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, PgPool};
use tokio::time::{Instant, timeout};

use crate::connections::Connections;
use crate::intake::Intake;
use crate::limits::STATEMENT_MAX_MS;
use crate::link::end_of;
use crate::migrations::MIGRATIONS;
use crate::operate::{self, Counts, Entry, FinishedCounts};
use crate::pending;
use crate::rows::{self, Closing};
use crate::status::StateChange;
use crate::transaction;
use crate::worker::Worker;

/// Messages in one table, `claimant_inbox`, of a PostgreSQL database. Cheap to clone; clones share connections.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod inbox { pub use claimant_inbox::*; } }
/// use claimant::inbox::Inbox;
///
/// #[derive(serde::Deserialize)]
/// struct Event { id: String, kind: String }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), claimant::Error> {
/// let inbox = Inbox::connect("postgres://user:password@db.example/shop", 10).await?; // connects at the first call
/// // Stores messages: a consumer for `claimant::lambda::run`.
/// let intake = inbox.intake("orders", |event: &Event| &event.kind).key(|event| &event.id);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Inbox {
    pool: PgPool,
    connections: Arc<Connections>,
}

impl Inbox {
    /// Opens the database with this URL, `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=…`, through
    /// at most this many connections, opened when they are needed: if the server is down, calls fail, not this. Workers
    /// need one for each message that they handle at once, all workers of the inbox together, and now and then one beside these, to end a
    /// transaction at the server.
    ///
    /// Needs a Tokio runtime.
    ///
    /// # Errors
    /// When the URL is not a valid one, is that of another database, or has a parameter that sqlx does not know. The error shows nothing of it.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, Error> {
        Ok(Self::opened(PostgresStore::connect(url, connections).await?.pool()))
    }

    /// Returns the options of the pools that an inbox [opens itself](Self::from_env): [`PostgresStore::pool_options`], and each
    /// connection that returns is cleared, within a time limit. Without that, the next message on it has the settings, locks and temporary
    /// tables that a handler left in its session, a connection to a lost host occupies the pool until the operating system gives
    /// up, a quarter of an hour later, and what is stored on one with an open transaction is not committed: sqlx (0.9) leaves one open whose
    /// `BEGIN` was cut off, as by a time limit. One that cannot be cleared is closed.
    ///
    /// For settings of your own, such as a `search_path` or a `role`, use the URL (`?options[search_path]=shop`) or [`PgConnectOptions::options`],
    /// which the clearing keeps. Do not use `after_connect`: it takes the place of this one, and what it sets ends when the connection returns for
    /// the first time, so that only the first message has it.
    ///
    /// [`PgConnectOptions::options`]: sqlx::postgres::PgConnectOptions::options
    #[must_use]
    pub fn pool_options() -> PgPoolOptions {
        PostgresStore::pool_options().after_release(|connection: &mut PgConnection, _| {
            Box::pin(async move {
                let cleared = timeout(Duration::from_millis(STATEMENT_MAX_MS), clear(connection)).await;
                cleared.unwrap_or(Err(sqlx::Error::PoolTimedOut))
            })
        })
    }

    /// Opens the database that the environment names, see [`Settings`](crate::Settings). Connects at the first call. Needs
    /// a Tokio runtime.
    ///
    /// # Errors
    /// When `CLAIMANT_DATABASE_URL` is not set or is not the URL of a PostgreSQL database, or a setting is malformed or its name
    /// misspelt: one error with every fault.
    pub async fn from_env() -> Result<Self, Error> {
        Self::from_variables(Variables::from_env()).await
    }

    /// Opens the database as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        Ok(Self::opened(PostgresStore::from_variables(variables).await?.pool()))
    }

    /// Opens an inbox on the database of this pool.
    fn opened(pool: &PgPool) -> Self {
        let options = Self::pool_options().max_connections(pool.options().get_max_connections());
        Self::new(options.connect_lazy_with(pool.connect_options().as_ref().clone()))
    }

    /// Creates an inbox on the caller's pool. Make that with [`pool_options`](Self::pool_options), or set its connections up as they do:
    /// with a `lock_timeout` of about a second, no `transaction_timeout`, READ COMMITTED, a `synchronous_commit` other than `off` and a
    /// `plan_cache_mode` other than `force_generic_plan`, and with an `after_release` that clears them. Handlers wait for locks as the server's
    /// settings say, whatever its `after_connect` sets. Other settings of yours are for its URL, as [`pool_options`](Self::pool_options) says.
    ///
    /// Make one for a pool, and clone it: its workers then take no message for which the others leave no connection.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        let connections = Arc::new(Connections::of(&pool));
        Self { pool, connections }
    }

    /// Returns the pool, to inspect or close it.
    ///
    /// A handler holds a connection already. If it queries this pool, too, it needs one more: where handlers hold all of them, each waits for the
    /// others until its timeout. Give its queries a pool of their own, or this one more connections than messages that are processed at once.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Creates the table `claimant_inbox`, or brings it up to date, by migrations that are recorded in
    /// `claimant_inbox_migrations`; any number of callers may do so at once. For deployments and tests: a function's role
    /// does not need the permission.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses, was migrated by a later version, or has transactions or other migrations
    /// that hold its locks for over a minute.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate(&self.pool, &MIGRATIONS).await
    }

    /// Returns a consumer that stores messages: for [`Engine`](claimant_core::Engine), and so for a Lambda function. Give it a
    /// key rule. `event_type` returns the part of the payload that selects the handler, 1 to
    /// [`EVENT_TYPE_MAX_BYTES`](crate::limits::EVENT_TYPE_MAX_BYTES) long; it must not block.
    ///
    /// `T` needs only the fields of the key and the type; the content is stored as received: the body, or what is in its envelopes, or the
    /// payload that it points to. A message is successful once its row was seen committed. Of the consumer's settings, those about leases
    /// and attempts have no effect here; at most once, breakers and limits are refused at the start, since they are for handlers, which
    /// the [worker](Self::worker) has; its window lasts until the row is [cleaned up](Self::delete_finished).
    #[must_use]
    pub fn intake<T>(
        &self,
        consumer: impl Into<String>,
        event_type: impl for<'a> Fn(&'a T) -> &'a str + Send + Sync + 'static,
    ) -> Consumer<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let store = Intake { pool: self.pool.clone() };
        Consumer::storing(consumer, store, move |payload, message, row| {
            pending::fill_row(event_type(payload), message, row)
        })
    }

    /// Returns a worker for the messages that the consumer of this name stored; give it handlers.
    #[must_use]
    pub fn worker(&self, consumer: impl Into<String>) -> Worker {
        Worker::new(self.pool.clone(), Arc::clone(&self.connections), consumer.into())
    }

    /// Counts the messages of a consumer that are to be processed or dead: how far behind its workers are. Reads the rows of those, however
    /// many others are finished.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn counts(&self, consumer: &str, now: Timestamp, within: Duration) -> Result<Counts, StoreError> {
        let rows =
            transaction::rows_within(&self.pool, within, "counting messages", operate::counts(consumer, now)).await?;
        Counts::read(&rows)
    }

    /// Counts the messages of a consumer that are done or discarded and were not [cleaned up](Self::delete_finished). Reads the rows of all
    /// consumers, which takes long where there are millions: for the lag of workers call [`counts`](Self::counts).
    ///
    /// # Errors
    /// As for [`counts`](Self::counts).
    pub async fn counts_finished(&self, consumer: &str, within: Duration) -> Result<FinishedCounts, StoreError> {
        let statement = operate::counts_finished(consumer);
        let rows = transaction::rows_within(&self.pool, within, "counting finished messages", statement).await?;
        FinishedCounts::read(&rows)
    }

    /// Returns at most this many dead messages of a consumer, oldest first, after the one with the number `after`; start with 0.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn dead(
        &self,
        consumer: &str,
        after: i64,
        most: u32,
        within: Duration,
    ) -> Result<Vec<Entry>, StoreError> {
        let statement = operate::dead(consumer, after, most);
        let rows = transaction::rows_within(&self.pool, within, "listing dead messages", statement).await?;
        rows.iter().map(Entry::read).collect()
    }

    /// Returns the message with this number, if there is one.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn get(&self, id: i64, within: Duration) -> Result<Option<Entry>, StoreError> {
        let rows = transaction::rows_within(&self.pool, within, "reading a message", operate::get(id)).await?;
        rows.first().map(Entry::read).transpose()
    }

    /// Makes a dead message due at once, with as many attempts as a new one. What came after it in its group waits for it from then on.
    ///
    /// # Errors
    /// When the database gave no answer within this time, or a message of its group is being processed.
    pub async fn retry(&self, id: i64, now: Timestamp, within: Duration) -> Result<StateChange, StoreError> {
        const OPERATION: &str = "retrying a message";
        let until = end_of(within);
        let mut own = transaction::begin_by(&self.pool, "BEGIN".to_owned(), until).await?;
        transaction::rows(&mut own, until, OPERATION, rows::hold_group(id)).await?;
        let rows = transaction::rows(&mut own, until, OPERATION, operate::retry(id, now)).await?;
        transaction::commit(own, until).await?;
        Ok(StateChange::of(!rows.is_empty()))
    }

    /// Discards a message that is dead or pending, so that its group goes on without it.
    ///
    /// # Errors
    /// When the database gave no answer within this time, or the message is being processed.
    pub async fn discard(&self, id: i64, now: Timestamp, within: Duration) -> Result<StateChange, StoreError> {
        close(&self.pool, Closing::discard(id, now), end_of(within)).await
    }

    /// Deletes at most `portion` messages, of all consumers, that were done or discarded before this time, and returns how many:
    /// fewer than `portion` when there are no more. A message that is delivered again after that is processed again, so
    /// keep them for longer than a queue and its dead-letter queue keep messages: 15 days and more.
    ///
    /// A portion is one statement, which is done as a whole or not at all: where messages are large, give a smaller portion.
    ///
    /// # Errors
    /// When the database gave no answer within this time: nothing may be deleted then, so try a smaller portion.
    pub async fn delete_finished(&self, before: Timestamp, portion: u32, within: Duration) -> Result<u64, StoreError> {
        let statement = operate::delete_finished(before, portion);
        rows::written(&transaction::rows_within(&self.pool, within, "deleting finished messages", statement).await?)
    }
}

// Not derived: a pool's options are not for logs.
impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("connections", &self.pool.size()).finish_non_exhaustive()
    }
}

/// Clears what a handler left in the session of a connection, and returns whether no transaction is open on it.
async fn clear(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    const RESET: &str = "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL";
    // It begins nothing, which sqlx notices unless there is a transaction already. Prepared statements stay: they are sqlx's.
    match connection.begin_with(AssertSqlSafe([RESET, CLEAR, SESSION].join("; "))).await {
        Ok(_) => Ok(false),
        Err(sqlx::Error::BeginFailed) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Ends a message outside its attempt's transaction: locks its row first, as an attempt does.
pub(crate) async fn close(pool: &PgPool, closing: Closing<'_>, until: Instant) -> Result<StateChange, StoreError> {
    const OPERATION: &str = "ending a message";
    let mut own = transaction::begin_by(pool, "BEGIN".to_owned(), until).await?;
    transaction::rows(&mut own, until, OPERATION, rows::hold(closing.id)).await?;
    let rows = transaction::rows(&mut own, until, OPERATION, rows::close(closing)).await?;
    transaction::commit(own, until).await?;
    Ok(StateChange::of(rows::written(&rows)? == 1))
}
