//! Records in MySQL and MariaDB.

mod meaning;
mod statements;

use claimant_core::{Error, StoreError, StoreErrorKind, Variables};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, MySql, MySqlConnection, MySqlPool};

use crate::migrations::Migrations;
use crate::session::pool_options;
use crate::settings::{CONNECTIONS_DEFAULT, Settings};
use crate::url::UrlRules;

/// The settings of each connection: a lock of another transaction, on a row or on the table, fails a statement, rather than block it until
/// long after its caller has gone; each statement sees what was committed before it, and locks the rows that it writes and no
/// gaps between them; a value that is too long is refused, never cut; and what has no transaction of its own commits, whatever the server's
/// defaults are: also after another one's `COMMIT` on the connection, and after what the server ran first (`init_connect`), which can have
/// left a transaction open: it ends where autocommit goes from off to on. (With an expired password `SET` is taken and `COMMIT` is not: the
/// first statement of a call then says what is wrong.) A query returns all of its rows, also where the server's default is to cut them.
const SESSION: &str = "SET SESSION completion_type = 0, autocommit = 0, autocommit = 1, innodb_lock_wait_timeout = 1, \
                       lock_wait_timeout = 1, sql_select_limit = 18446744073709551615, \
                       sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'); \
                       SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE";

/// What its URLs can have: what sqlx takes.
pub(crate) const URLS: UrlRules = UrlRules {
    form: "mysql://user:password@host:port/database",
    parameters: &[
        "ssl-ca",
        "sslca",
        "ssl-cert",
        "sslcert",
        "ssl-key",
        "sslkey",
        "charset",
        "collation",
        "timezone",
        "time-zone",
        "socket",
        "statement-cache-capacity",
    ],
    tls: &["ssl-mode", "sslmode"],
    tls_modes: &["DISABLED", "PREFERRED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"],
};

/// Makes migrations of one database wait for each other: null where there is none. Lock names are global to the server, and short.
/// (`SHA1` and `MD5` are in no MySQL 9.7 without a component of its own.)
const LOCK: &str =
    "SELECT IF(DATABASE() IS NULL, NULL, GET_LOCK(CONCAT('claimant', LEFT(SHA2(DATABASE(), 256), 40)), ?))";

/// How long they wait.
const LOCK_WAIT_MAX_S: i64 = 60;

/// A change of a table waits for a lock for a second, since all others would wait behind it. What is written of it waits for a minute: a backup
/// may have locked all tables meanwhile.
const HASTY: (&str, &str) = ("SET SESSION lock_wait_timeout = 1", "SET SESSION lock_wait_timeout = 60");

/// How its URLs begin.
const SCHEMES: [&str; 2] = ["mysql", "mariadb"];

/// Records in one table, `claimant_records`, of a MySQL or MariaDB database.
///
/// A claim of a fresh key is one statement, that of finished work two, of a failed or abandoned key three. Several keys share
/// statements. Cheap to clone; clones share connections.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod mysql { pub use claimant_sql::*; } }
/// use claimant::mysql::MySqlStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), claimant::Error> {
/// let store = MySqlStore::connect("mysql://user:password@db.example/shop", 10).await?; // connects at the first call
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MySqlStore {
    pool: MySqlPool,
}

impl MySqlStore {
    /// Opens the database with this URL, `mysql://user:password@host:port/database?ssl-mode=VERIFY_IDENTITY&ssl-ca=…`, through
    /// at most this many connections, opened when they are needed: if the server is down, calls fail, not this.
    ///
    /// MySQL's `caching_sha2_password` needs TLS.
    ///
    /// Needs a Tokio runtime.
    ///
    /// # Errors
    /// When the URL is not a valid one, is that of another database, or has a parameter that sqlx does not know. The error shows nothing of it.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, Error> {
        Settings::check_scheme(url, &SCHEMES)?;
        let options: MySqlConnectOptions = URLS.parse(url)?;
        // Statements have no values in them, but they are internal to claimant.
        let options = options.disable_statement_logging();
        Ok(Self::new(Self::pool_options().max_connections(connections).connect_lazy_with(options)))
    }

    /// Opens the database that the environment names, see [`Settings`]. Connects at the first call. Needs a Tokio runtime.
    ///
    /// # Errors
    /// When `CLAIMANT_DATABASE_URL` is not set or is not the URL of a MySQL or MariaDB database, or a setting is malformed or its name misspelt: one
    /// error with every fault.
    pub async fn from_env() -> Result<Self, Error> {
        Self::from_variables(Variables::from_env()).await
    }

    /// Opens the database as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub async fn from_variables(variables: Variables) -> Result<Self, Error> {
        let Settings { url, connections } = Settings::required(variables, "MySQL", &SCHEMES)?;
        Self::connect(url.expose(), connections).await
    }

    /// Creates a store on the caller's pool. Make that with [`pool_options`](Self::pool_options), or set its connections up
    /// as they do: with an `innodb_lock_wait_timeout` and a `lock_wait_timeout` of a second, READ COMMITTED, a strict SQL mode, `autocommit`, and
    /// a `completion_type` of `NO_CHAIN`. A claim or a completion on a connection with an open transaction is lost when that is rolled back.
    #[must_use]
    pub fn new(pool: MySqlPool) -> Self {
        Self { pool }
    }

    /// Returns the options of the pools that [`connect`](Self::connect) makes: connections have timeouts on the server, and
    /// are tested before use only after they were idle for a while. What those have besides is of the options of a connection: they log no
    /// statements ([`disable_statement_logging`](sqlx::ConnectOptions::disable_statement_logging)), or a claim that waits for a busy key would be a slow one.
    #[must_use]
    pub fn pool_options() -> MySqlPoolOptions {
        pool_options().max_connections(CONNECTIONS_DEFAULT).after_connect(|connection: &mut MySqlConnection, _| {
            Box::pin(async move { connection.execute(SESSION).await.map(|_| ()) })
        })
    }

    /// Returns the pool, to inspect or close it.
    ///
    /// A handler with a transaction holds a connection already. If it queries this pool, too, it needs one more: where handlers hold all of
    /// them, each waits for the others until the deadline. Give its queries a pool of their own, or this one more connections than messages
    /// that run at once.
    #[must_use]
    pub fn pool(&self) -> &MySqlPool {
        &self.pool
    }

    /// Creates the table `claimant_records`, or brings it up to date, by migrations that are recorded in `claimant_migrations`;
    /// any number of callers of one version may do so at once. For deployments and tests: a function's role does not need the permission.
    ///
    /// A change of the table waits until no open transaction has used it, for a minute at most: handlers with a transaction have to pause.
    ///
    /// # Errors
    /// When the database cannot be reached, refuses, was migrated by a later version, or has transactions or other migrations
    /// that hold its locks for over a minute.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        let files = &[
            (1, "records", include_str!("../../migrations/mysql/1_records.sql")),
            (2, "fingerprints", include_str!("../../migrations/mysql/2_fingerprints.sql")),
            (3, "notes", include_str!("../../migrations/mysql/3_notes.sql")),
        ];
        let migrations = Migrations::of_records(files, Some(HASTY));
        let mut migrator = migrations.migrator();
        // sqlx's lock has a timeout that MariaDB does not understand; it then does not lock.
        migrator.set_locking(false);
        let mut connection = migrations.take_out(&self.pool).await?;
        connection.execute(HASTY.1).await.map_err(|e| migrations.failed::<MySql>(e))?;
        let locked = sqlx::query_scalar::<_, Option<i64>>(LOCK).bind(LOCK_WAIT_MAX_S).fetch_one(&mut connection).await;
        match locked.map_err(|e| migrations.failed::<MySql>(e))? {
            Some(1) => {}
            Some(_) => {
                return Err(StoreError::new(
                    StoreErrorKind::Throttled,
                    format!(
                        "another process has been migrating this database for {LOCK_WAIT_MAX_S} s: see what blocks it"
                    ),
                ));
            }
            None => {
                return Err(StoreError::new(
                    StoreErrorKind::Misconfigured,
                    "the database URL names no database: end it with the name of one that exists, \
                     mysql://user:password@host:port/database",
                ));
            }
        }
        migrations.run::<MySql>(&migrator, &mut connection).await?;
        connection.close().await.map_err(|e| migrations.failed::<MySql>(e))
    }
}
