//! The table, made by the files in `migrations/`.

use claimant_core::{StoreError, StoreErrorKind};
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::{Connection as _, Executor as _, PgPool, SqlSafeStr as _};

use crate::trouble::explain;

/// Where the applied migrations are noted: neither sqlx's own table, which may be that of the user's migrations, nor that of
/// the records, which count for themselves.
const TABLE: &str = "claimant_inbox_migrations";

const OPERATION: &str = "a migration";

const FILES: [(i64, &str, &str); 1] = [(1, "inbox", include_str!("../migrations/1_inbox.sql"))];

pub(crate) async fn migrate(pool: &PgPool) -> Result<(), StoreError> {
    let migration = |(version, name, text): (i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
    };
    let mut migrator = Migrator::with_migrations(FILES.into_iter().map(migration).collect());
    migrator.dangerous_set_table_name(TABLE);
    // A connection of its own, without the short time limits, and gone afterwards.
    let mut connection = pool.acquire().await.map_err(|e| explain(OPERATION, &e))?.detach();
    let unlimited = "SET lock_timeout = 0; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0";
    connection.execute(unlimited).await.map_err(|e| explain(OPERATION, &e))?;
    migrator.run(&mut connection).await.map_err(|e| store_error(&e))?;
    connection.close().await.map_err(|e| explain(OPERATION, &e))
}

fn store_error(error: &MigrateError) -> StoreError {
    let misconfigured = |text| StoreError::new(StoreErrorKind::Misconfigured, text);
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => explain(OPERATION, error),
        MigrateError::Dirty(version) => misconfigured(format!(
            "migration {version} was cut off: undo by hand what it did, delete its row from {TABLE}, and migrate again"
        )),
        MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => misconfigured(format!(
            "migration {version} in {TABLE} is not of this version of claimant: use the version that applied it, or a later one"
        )),
        // The rest tells of files and targets, of which there are none here.
        other => StoreError::new(StoreErrorKind::Other, format!("a migration failed: {other}")),
    }
}
