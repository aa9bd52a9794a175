//! The table, made by the files in `migrations/`.

use claimant_sql::parts::Migrations;

use crate::error::explain;

/// Noted apart from the migrations of the records, which count for themselves.
pub(crate) const MIGRATIONS: Migrations = Migrations {
    noted_in: "claimant_inbox_migrations",
    files: &[(1, "inbox", include_str!("../migrations/1_inbox.sql"))],
    explain,
};
