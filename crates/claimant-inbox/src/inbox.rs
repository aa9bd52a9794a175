//! The inbox: opening it, taking in, working off, and what people do with it.

use std::fmt;
use std::time::Duration;

use claimant_core::{Consumer, Error, StoreError, Timestamp, Variables};
use claimant_sql::PostgresStore;
use claimant_sql::parts::migrate;
use serde::de::DeserializeOwned;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error;
use crate::intake::Intake;
use crate::limits::STATEMENT_MAX_MS;
use crate::link::{self, end_of};
use crate::migrations::MIGRATIONS;
use crate::operate::{self, Counts, Entry};
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
/// // Takes messages in: a consumer for `claimant::lambda::run`.
/// let intake = inbox.intake("orders", |event: &Event| &event.kind).key(|event| &event.id);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Inbox {
    pool: PgPool,
}

impl Inbox {
    /// The database with this URL, `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=…`, through
    /// at most this many connections, made when they are needed: a server that is down fails the calls, not this. A worker
    /// needs one for each message that it works on at once.
    ///
    /// Needs a Tokio runtime.
    ///
    /// # Errors
    /// When the URL is none.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, Error> {
        Ok(Self::opened(PostgresStore::connect(url, connections).await?.pool()))
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
    /// As there: one error, with the faults of what was read before among the others.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        Ok(Self::opened(PostgresStore::from_variables(variables).await?.pool()))
    }

    /// The same database with connections that are tried out within a time when they come back from a transaction: one to
    /// a host that is gone would else take up its place until the operating system gives up, a quarter of an hour later.
    fn opened(pool: &PgPool) -> Self {
        let options = pool.options().clone().after_release(|connection: &mut PgConnection, _| {
            Box::pin(async move {
                let tried = timeout(Duration::from_millis(STATEMENT_MAX_MS), connection.ping()).await;
                tried.unwrap_or(Err(sqlx::Error::PoolTimedOut)).map(|()| true)
            })
        });
        Self::new(options.connect_lazy_with(pool.connect_options().as_ref().clone()))
    }

    /// The inbox on a pool of the caller's. Its connections need a `lock_timeout` of about a second, and READ COMMITTED, as
    /// [`PostgresStore::pool_options`] gives them.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// The pool, for looking at and for closing.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Makes the table `claimant_inbox`, or brings it up to date, by migrations that are noted in
    /// `claimant_inbox_migrations`; any number of callers may do so at once. For deployments and tests: a function's role
    /// need not be allowed to.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses, or was migrated by a later version.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        migrate(&self.pool, &MIGRATIONS).await
    }

    /// The consumer that takes messages in: for [`Engine`](claimant_core::Engine), and so for a Lambda function. Give it a
    /// key rule; `event_type` says where in the payload the type is that finds the handler, 1 to
    /// [`EVENT_TYPE_MAX_BYTES`](crate::limits::EVENT_TYPE_MAX_BYTES). It must not block.
    ///
    /// `T` need have no more of the body than key and type; the body is kept as it came. A message is a success once its
    /// row was seen committed. Of the consumer's settings, those about leases, attempts and abandoned work have nothing
    /// to do here; its window is until the row is [cleaned up](Self::delete_finished).
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
            pending::note(event_type(payload), message, row)
        })
    }

    /// A worker for the messages that the consumer of this name took in; give it handlers.
    #[must_use]
    pub fn worker(&self, consumer: impl Into<String>) -> Worker {
        Worker::new(self.pool.clone(), consumer.into())
    }

    /// How many messages of a consumer there are in each state. Reads as many index entries as there are messages.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn counts(&self, consumer: &str, now: Timestamp, within: Duration) -> Result<Counts, StoreError> {
        let rows = link::rows(&self.pool, end_of(within), "counting messages", operate::counts(consumer, now)).await?;
        Counts::read(&rows)
    }

    /// At most this many dead messages of a consumer, oldest first, that come after the one with the number `after`; begin
    /// with 0.
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
        let rows = link::rows(&self.pool, end_of(within), "listing dead messages", statement).await?;
        rows.iter().map(Entry::read).collect()
    }

    /// What is known of the message with this number, if it is there.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn get(&self, id: i64, within: Duration) -> Result<Option<Entry>, StoreError> {
        let rows = link::rows(&self.pool, end_of(within), "reading a message", operate::get(id)).await?;
        rows.first().map(Entry::read).transpose()
    }

    /// Lets a dead message be tried again, at once, as often as a new one.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn retry(&self, id: i64, now: Timestamp, within: Duration) -> Result<StateChange, StoreError> {
        let rows = link::rows(&self.pool, end_of(within), "retrying a message", operate::retry(id, now)).await?;
        Ok(StateChange::of(!rows.is_empty()))
    }

    /// Gives up a message that is dead or pending, so that its group goes on without it.
    ///
    /// # Errors
    /// When the database gave no answer within this time, or the message is being worked on.
    pub async fn discard(&self, id: i64, now: Timestamp, within: Duration) -> Result<StateChange, StoreError> {
        close(&self.pool, Closing::discard(id, now), end_of(within)).await
    }

    /// Deletes at most `portion` messages, of all consumers, that were done or discarded before this time, and returns how many:
    /// fewer than `portion` when there are no more. A message that comes again after that is worked on again, so
    /// keep them for longer than a queue and its dead-letter queue keep messages: 15 days and more.
    ///
    /// # Errors
    /// When the database gave no answer within this time.
    pub async fn delete_finished(&self, before: Timestamp, portion: u32, within: Duration) -> Result<u64, StoreError> {
        let statement = operate::delete_finished(before, portion);
        rows::written(&link::rows(&self.pool, end_of(within), "deleting finished messages", statement).await?)
    }
}

// Not derived: the options of a pool are nothing to log.
impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("connections", &self.pool.size()).finish_non_exhaustive()
    }
}

/// Ends a message outside its attempt's transaction: holds its row first, as an attempt does.
pub(crate) async fn close(pool: &PgPool, closing: Closing<'_>, until: Instant) -> Result<StateChange, StoreError> {
    const OPERATION: &str = "ending a message";
    let begun = timeout_at(until, pool.begin()).await.map_err(|_| error::no_answer(OPERATION))?;
    let mut own = begun.map_err(|error| error::explain(OPERATION, &error))?;
    transaction::rows(&mut own, until, OPERATION, rows::hold(closing.id)).await?;
    let rows = transaction::rows(&mut own, until, OPERATION, rows::close(closing)).await?;
    transaction::commit(own, until).await?;
    Ok(StateChange::of(rows::written(&rows)? == 1))
}
