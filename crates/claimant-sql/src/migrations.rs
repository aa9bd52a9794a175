//! The table, made by the files in `migrations/`.

use claimant_core::{StoreError, StoreErrorKind};
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::trouble::{Meaning, Trouble};

/// Where the applied migrations are noted: not in sqlx's own table, which may be that of the user's migrations.
const TABLE: &str = "claimant_migrations";

/// The migrations with these numbers, names and texts.
pub(crate) fn migrator(files: &[(i64, &'static str, &'static str)]) -> Migrator {
    let migration = |(version, name, text): &(i64, &'static str, &'static str)| {
        Migration::new(*version, (*name).into(), MigrationType::Simple, (*text).into_sql_str(), false)
    };
    let mut migrator = Migrator::with_migrations(files.iter().map(migration).collect());
    migrator.dangerous_set_table_name(TABLE);
    migrator
}

pub(crate) fn store_error(error: &MigrateError, meaning: fn(&str, u16) -> Meaning) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            Trouble::of("a migration", error, meaning).into()
        }
        MigrateError::Dirty(version) => StoreError::new(
            StoreErrorKind::Misconfigured,
            format!(
                "migration {version} was cut off: undo by hand what it did, delete its row from {TABLE}, and migrate again"
            ),
        ),
        MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => StoreError::new(
            StoreErrorKind::Misconfigured,
            format!(
                "migration {version} in {TABLE} is not of this version of claimant: use the version that applied it, or a later one"
            ),
        ),
        // The rest tells of files and targets, of which there are none here.
        other => StoreError::new(StoreErrorKind::Other, format!("a migration failed: {other}")),
    }
}
