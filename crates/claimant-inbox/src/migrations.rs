//! Creates the table by the files in `migrations/`.

use claimant_sql::parts::Migrations;

use crate::error::INBOX;

/// Recorded apart from the migrations of `claimant_records`, which have version numbers of their own.
pub(crate) const MIGRATIONS: Migrations = Migrations {
    version_table: "claimant_inbox_migrations",
    files: &[(1, "inbox", include_str!("../migrations/1_inbox.sql"))],
    hasty: None,
    table: INBOX,
};
