//! Records in PostgreSQL.

mod meaning;
mod statements;

use claimant_core::{Error, StoreError, Variables};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool, Postgres};

use crate::migrations::Migrations;
use crate::session::pool_options;
use crate::settings::{CONNECTIONS_DEFAULT, Settings};
use crate::url::{OPTION, UrlRules};

pub use meaning::explain;
pub use statements::CLEAR;

/// The settings of each connection: a lock of another transaction fails a statement, rather than block it until long
/// after its caller has gone; each statement sees what was committed before it; a commit is answered when it outlasts a crash, also
/// where a role's or a database's default is `off`; no plan for any parameters has to be used (PostgreSQL 12 and newer), by which an inbox reads
/// its whole table; floats in text, which are the handlers', have all their digits; and a statement whose client is gone ends, as far as the
/// server's version and platform can tell. A transaction's own time (PostgreSQL 17 and newer) is no limit: a handler has as long as its
/// invocation.
pub const SESSION: &str = "SELECT set_config('transaction_timeout', '0', false) WHERE current_setting('transaction_timeout', true) <> '0'; \
    SET lock_timeout = '1s'; SET statement_timeout = '5s'; SET idle_in_transaction_session_timeout = '5s'; \
    SELECT set_config('plan_cache_mode', 'auto', false) WHERE current_setting('plan_cache_mode', true) = 'force_generic_plan'; \
    SET extra_float_digits = 2; SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'; \
    DO $$ BEGIN PERFORM set_config('client_connection_check_interval', '500ms', false); \
    EXCEPTION WHEN OTHERS THEN NULL; END $$";

/// What its URLs can have: what sqlx takes.
pub(crate) const URLS: UrlRules = UrlRules {
    form: "postgres://user:password@host:port/database",
    parameters: &[
        "sslrootcert",
        "ssl-root-cert",
        "ssl-ca",
        "sslcert",
        "ssl-cert",
        "sslkey",
        "ssl-key",
        "host",
        "hostaddr",
        "port",
        "dbname",
        "user",
        "password",
        "application_name",
        "options",
        OPTION,
        "statement-cache-capacity",
    ],
    tls: &["sslmode", "ssl-mode"],
    tls_modes: &["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
};

/// How its URLs begin.
const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

/// Records in one table, `claimant_records`, of a PostgreSQL database.
///
/// A claim of a fresh key is one statement, and so is that of finished work; a failed or abandoned key takes two. Several keys
/// share a statement. Cheap to clone; clones share connections.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod postgres { pub use claimant_sql::*; } }
/// use claimant::postgres::PostgresStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), claimant::Error> {
/// let store = PostgresStore::connect("postgres://user:password@db.example/shop", 10).await?; // connects at the first call
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    pool: PgPool,
}

impl PostgresStore {
    /// Opens the database with this URL, `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=…`, through
    /// at most this many connections, opened when they are needed: if the server is down, calls fail, not this.
    ///
    /// Needs a Tokio runtime.
    ///
    /// # Errors
    /// When the URL is not a valid one, is that of another database, or has a parameter that sqlx does not know. The error shows nothing of it.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, Error> {
        Settings::check_scheme(url, &SCHEMES)?;
        let options: PgConnectOptions = URLS.parse(url)?;
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("claimant"),
        };
        // Statements have no values in them, but they are internal to claimant.
        // PgBouncer refuses the parameter by which sqlx asks for all digits of floats: a statement does, once it is connected.
        let options = options.disable_statement_logging().extra_float_digits(None);
        Ok(Self::new(Self::pool_options().max_connections(connections).connect_lazy_with(options)))
    }

    /// Opens the database that the environment names, see [`Settings`]. Connects at the first call. Needs a Tokio runtime.
    ///
    /// # Errors
    /// When `CLAIMANT_DATABASE_URL` is not set or is not the URL of a PostgreSQL database, or a setting is malformed or its name misspelt: one
    /// error with every fault.
    pub async fn from_env() -> Result<Self, Error> {
        Self::from_variables(Variables::from_env()).await
    }

    /// Opens the database as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        let Settings { url, connections } = Settings::required(variables, "PostgreSQL", &SCHEMES)?;
        Self::connect(url.expose(), connections).await
    }

    /// Creates a store on the caller's pool. Make that with [`pool_options`](Self::pool_options), or set its connections up
    /// as they do: with a `lock_timeout` of about a second, a `statement_timeout` of a few, no `transaction_timeout`, READ COMMITTED, a
    /// `synchronous_commit` other than `off`, and a `plan_cache_mode` other than `force_generic_plan`.
    #[must_use]
    pub fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// Returns the options of the pools that [`connect`](Self::connect) makes: connections have timeouts on the server, and
    /// are tested before use only after they were idle for a while. What those have besides is of the options of a connection: they log no
    /// statements ([`disable_statement_logging`](sqlx::ConnectOptions::disable_statement_logging)), or a claim that waits for a busy key would be a slow one.
    #[must_use]
    pub fn pool_options() -> PgPoolOptions {
        pool_options().max_connections(CONNECTIONS_DEFAULT).after_connect(|connection: &mut PgConnection, _| {
            Box::pin(async move { connection.execute(SESSION).await.map(|_| ()) })
        })
    }

    /// Returns the pool, to inspect or close it.
    ///
    /// A handler with a transaction holds a connection already. If it queries this pool, too, it needs one more: where handlers hold all of
    /// them, each waits for the others until the deadline. Give its queries a pool of their own, or this one more connections than messages
    /// that run at once.
    #[must_use]
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Creates the table `claimant_records`, or brings it up to date, by migrations that are recorded in `claimant_migrations`;
    /// any number of callers may do so at once. For deployments and tests: a function's role does not need the permission.
    ///
    /// A change of the table waits until no open transaction has used it, for a minute at most: handlers with a transaction have to pause.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses, was migrated by a later version, or has transactions or other migrations
    /// that hold its locks for over a minute.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let files = &[
            (1, "records", include_str!("../../migrations/postgres/1_records.sql")),
            (2, "notes", include_str!("../../migrations/postgres/2_notes.sql")),
        ];
        migrate(&self.pool, &Migrations::of_records(files, None)).await
    }
}

/// Creates a table in PostgreSQL, or brings it up to date.
///
/// # Errors
/// When the database cannot be reached, refuses, was migrated by a later version, or has transactions or other migrations
/// that hold its locks for over a minute.
pub async fn migrate(pool: &PgPool, migrations: &Migrations) -> Result<(), StoreError> {
    let mut connection = migrations.take_out(pool).await?;
    let short = "SET lock_timeout = '500ms'; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";
    connection.execute(short).await.map_err(|e| migrations.failed::<Postgres>(e))?;
    migrations.run::<Postgres>(&migrations.migrator(), &mut connection).await?;
    connection.close().await.map_err(|e| migrations.failed::<Postgres>(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PgBouncer refuses every connection that sends it, unless it is set to ignore it.
    #[tokio::test]
    async fn a_connection_asks_for_no_digits_of_floats() {
        let store = PostgresStore::connect("postgres://u:p@localhost/d", 1).await.unwrap();
        let options = format!("{:?}", store.pool().connect_options());
        assert!(options.contains("extra_float_digits: None"), "{options}");
    }

    /// All of it is one transaction, which a short one would end. The servers of the tests are older than this setting.
    #[test]
    fn a_connection_sets_the_time_of_its_transactions_first() {
        assert!(SESSION.starts_with("SELECT set_config('transaction_timeout', '0', false)"));
    }
}
