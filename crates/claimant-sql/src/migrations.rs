//! Tables, made by the files in `migrations/`.

use claimant_core::{StoreError, StoreErrorKind};
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::dialect::Dialect;
use crate::error::{RECORDS, SqlError};

/// What makes a table, and how it fails.
#[derive(Debug, Clone, Copy)]
pub struct Migrations {
    /// Where the applied ones are noted: not in sqlx's own table, which may be that of the user's migrations.
    pub noted_in: &'static str,
    /// Their numbers, names and texts.
    pub files: &'static [(i64, &'static str, &'static str)],
    /// Says what an operation ran into.
    pub explain: fn(&str, &sqlx::Error) -> StoreError,
}

impl Migrations {
    /// Those of the stores' table.
    pub(crate) fn of_records<D: Dialect>(files: &'static [(i64, &'static str, &'static str)]) -> Self {
        let explain = |operation: &str, error: &_| SqlError::of::<D>(operation, error, &RECORDS).into();
        Self { noted_in: "claimant_migrations", files, explain }
    }

    pub(crate) fn migrator(&self) -> Migrator {
        let migration = |(version, name, text): &(i64, &'static str, &'static str)| {
            Migration::new(*version, (*name).into(), MigrationType::Simple, (*text).into_sql_str(), false)
        };
        let mut migrator = Migrator::with_migrations(self.files.iter().map(migration).collect());
        migrator.dangerous_set_table_name(self.noted_in);
        migrator
    }

    pub(crate) fn failed(&self, error: impl Into<MigrateError>) -> StoreError {
        let misconfigured = |text| StoreError::new(StoreErrorKind::Misconfigured, text);
        let noted_in = self.noted_in;
        match error.into() {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                (self.explain)("a migration", &error)
            }
            MigrateError::Dirty(version) => misconfigured(format!(
                "migration {version} was cut off: undo by hand what it did, delete its row from {noted_in}, and migrate again"
            )),
            MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => misconfigured(format!(
                "migration {version} in {noted_in} is not of this version of claimant: use the version that applied it, or a \
                 later one"
            )),
            // The rest tells of files and targets, of which there are none here.
            other => StoreError::new(StoreErrorKind::Other, format!("a migration failed: {other}")),
        }
    }
}
