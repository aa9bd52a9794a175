//! Creates tables by the files in `migrations/`.

use std::time::Duration;

use claimant_core::{StoreError, StoreErrorKind};
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Executor, Pool};
use tokio::time::{Instant, sleep, timeout};

use crate::error::{ErrorCodes, RECORDS, SqlError, Table};
use crate::session::no_connection;

/// The longest that migrations wait for a connection: a server that is starting needs seconds.
const TAKE_OUT_MAX: Duration = Duration::from_secs(30);

/// How long migrations are tried again where others hold a lock, and the pause between two tries. While a change of a table waits
/// for a lock, whatever comes later waits behind it: so each try waits for a moment only, and then lets others through.
const HELD_MAX: Duration = Duration::from_secs(60);
const HELD_PAUSE: Duration = Duration::from_secs(2);

/// The migrations of a table.
#[derive(Debug, Clone, Copy)]
pub struct Migrations {
    /// The table that records the applied ones: not sqlx's default, which the user's own migrations may use.
    pub version_table: &'static str,
    /// Their numbers, names and texts.
    pub files: &'static [(i64, &'static str, &'static str)],
    /// What has a statement wait for a lock for a moment only, and what ends that: where a refused file leaves a row that it began, as in MySQL.
    /// Only the file itself may be refused, since whatever records it has to follow.
    pub hasty: Option<(&'static str, &'static str)>,
    /// What they create.
    pub table: Table,
}

impl Migrations {
    /// Returns the migrations of the stores' table.
    pub(crate) fn of_records(
        files: &'static [(i64, &'static str, &'static str)],
        hasty: Option<(&'static str, &'static str)>,
    ) -> Self {
        Self { version_table: "claimant_migrations", files, hasty, table: RECORDS }
    }

    pub(crate) fn migrator(&self) -> Migrator {
        let migration = |(version, name, text): &(i64, &'static str, &'static str)| {
            let mut one =
                Migration::new(*version, (*name).into(), MigrationType::Simple, (*text).into_sql_str(), false);
            if let Some((begin, end)) = self.hasty {
                // The checksum stays the file's.
                let statement = text.trim_end().trim_end_matches(';');
                one.sql = AssertSqlSafe(format!("{begin}; {statement}; {end}")).into_sql_str();
            }
            one
        };
        let mut migrator = Migrator::with_migrations(self.files.iter().map(migration).collect());
        migrator.dangerous_set_table_name(self.version_table);
        migrator
    }

    /// Applies what is pending. Its statements wait for a lock for a moment only, and are tried again.
    pub(crate) async fn run<D>(&self, migrator: &Migrator, connection: &mut D::Connection) -> Result<(), StoreError>
    where
        D: ErrorCodes,
        D::Connection: Migrate,
        for<'c> &'c mut D::Connection: Executor<'c>,
    {
        let begun = Instant::now();
        loop {
            let Err(error) = migrator.run_direct(None, connection, false).await else { return Ok(()) };
            let refused = refused_one(&error);
            let (locked, error) = (is_locked::<D>(&error), self.failed::<D>(error));
            // Each file of MySQL's is one statement, which changed nothing. There sqlx has committed that it began.
            if let (Some(version), Some((_, end))) = (refused, self.hasty) {
                let delete = format!("DELETE FROM {} WHERE version = {version} AND NOT success", self.version_table);
                let forgotten = match connection.execute(end).await {
                    Ok(_) => connection.execute(AssertSqlSafe(delete)).await,
                    Err(error) => Err(error),
                };
                // Why the file was refused says more.
                if forgotten.is_err() {
                    return Err(error);
                }
            }
            if !locked {
                return Err(error);
            }
            if begun.elapsed() >= HELD_MAX {
                return Err(StoreError::new(
                    StoreErrorKind::Throttled,
                    format!(
                        "{error}. It was tried for {} s: a change of the table waits for every open transaction that has used it, and for \
                         the other migrations of the database. Migrate while no handler with a transaction runs, or see which \
                         transaction stays open, or which migration runs",
                        HELD_MAX.as_secs()
                    ),
                ));
            }
            sleep(HELD_PAUSE).await;
        }
    }

    /// Takes a connection out of the pool, which is gone afterwards.
    pub(crate) async fn take_out<D: ErrorCodes>(&self, pool: &Pool<D>) -> Result<D::Connection, StoreError> {
        match timeout(TAKE_OUT_MAX, pool.acquire()).await {
            Ok(acquired) => acquired.map(PoolConnection::detach).map_err(|error| self.failed::<D>(error)),
            Err(_) => Err(no_connection(pool, TAKE_OUT_MAX).into()),
        }
    }

    pub(crate) fn failed<D: ErrorCodes>(&self, error: impl Into<MigrateError>) -> StoreError {
        let misconfigured = |text| StoreError::new(StoreErrorKind::Misconfigured, text);
        let version_table = self.version_table;
        match error.into() {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                let table = Table { is_migrated: true, ..self.table };
                SqlError::of::<D>("a migration", &error, &table).into()
            }
            MigrateError::Dirty(version) => misconfigured(format!(
                "migration {version} began, and {version_table} does not say that it ended. It is one statement, in {}: see whether the table \
                 {} is as that makes it. If it is, set success to 1 in its row of {version_table}; if not, delete that row. Then migrate \
                 again. Do not drop the table: its records say what is done",
                self.table.migrations, self.table.name
            )),
            MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => misconfigured(format!(
                "migration {version} in {version_table} is not of this version of claimant: use the version that applied it, or a \
                 later one"
            )),
            // The other errors are about files and targets, of which there are none here.
            other => StoreError::new(StoreErrorKind::Other, format!("a migration failed: {other}")),
        }
    }
}

/// Returns the migration whose file the server refused.
fn refused_one(error: &MigrateError) -> Option<i64> {
    match error {
        MigrateError::ExecuteMigration(sqlx::Error::Database(_), version) => Some(*version),
        _ => None,
    }
}

/// Returns whether a lock of others is in the way.
fn is_locked<D: ErrorCodes>(error: &MigrateError) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else { return false };
    error.as_database_error().is_some_and(|answer| D::meaning(answer, &RECORDS).contended)
}
