//! Migrations that are refused, cut off, or not the first to make the table.

use claimant_core::StoreErrorKind;
use claimant_tests::services::MariaDb;

use super::world::{Database, KEY, Party};

/// A database without claimant's tables, and with a user who has these rights on it.
async fn without_tables(user: &str, rights: &str) -> (Database, Party) {
    let database = Database::MariaDb(MariaDb::shared().await);
    let mut party = database.party().await;
    party.run("DROP TABLE IF EXISTS claimant_records, claimant_migrations").await;
    party.run(&format!("CREATE USER {user}@'%' IDENTIFIED BY 'claimant'")).await;
    party.run(&format!("GRANT {rights} ON * TO {user}@'%'")).await;
    (database, party)
}

/// What the error asks for suffices: nothing is left of the file that was refused.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn a_migration_that_was_refused_goes_on_when_it_is_allowed() {
    let (database, mut party) = without_tables("no_alter", "SELECT, INSERT, UPDATE, DELETE, CREATE").await;
    let url = database.url().replace("//claimant:", "//no_alter:");
    let store = database.store_at(&url, 1).await;
    for _ in 0..2 {
        let error = store.migrate().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Denied, "{error}");
        assert!(error.to_string().contains("has to be allowed to create tables"), "{error}");
    }
    assert_eq!(party.count("claimant_migrations WHERE success").await, 1);
    assert_eq!(party.count("claimant_migrations").await, 1);
    party.run("GRANT ALTER ON * TO no_alter@'%'").await;
    // Connections have the rights of when they were made.
    database.store_at(&url, 1).await.migrate().await.unwrap();
}

/// Who may not take back that it began is told why the file was refused, and afterwards how to go on.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn a_migration_that_cannot_be_taken_back_says_first_why_it_was_refused() {
    let (database, mut party) = without_tables("no_delete", "SELECT, INSERT, UPDATE, CREATE").await;
    let store = database.store_at(&database.url().replace("//claimant:", "//no_delete:"), 1).await;
    let error = store.migrate().await.unwrap_err().to_string();
    assert!(error.contains("(code 1142)") && error.contains("ALTER"), "{error}");
    let error = store.migrate().await.unwrap_err().to_string();
    assert!(error.contains("migration 2 began") && error.contains("delete that row"), "{error}");
    party.run("DELETE FROM claimant_migrations WHERE version = 2").await;
    database.store_at(&database.url(), 1).await.migrate().await.unwrap();
}

/// A process that ended before or after the file: its row says which of both it may be, and what it takes to go on.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn a_migration_that_was_cut_off_is_looked_at_and_no_table_is_dropped() {
    let database = Database::MariaDb(MariaDb::shared().await);
    let store = database.store(1).await;
    let mut party = database.party().await;
    party.run(&database.insert(KEY)).await;
    let begun = "UPDATE claimant_migrations SET success = 0 WHERE version = 3";
    for (cut_off, fix) in [
        (begun.to_owned(), "UPDATE claimant_migrations SET success = 1 WHERE version = 3"),
        (
            format!("{begun}; ALTER TABLE claimant_records DROP COLUMN note"),
            "DELETE FROM claimant_migrations WHERE version = 3",
        ),
    ] {
        party.run(&cut_off).await;
        let error = store.migrate().await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        let text = error.to_string();
        for says in ["migration 3 began", "set success to 1", "delete that row", "Do not drop the table"] {
            assert!(text.contains(says), "{text}");
        }
        party.run(fix).await;
        store.migrate().await.unwrap();
        assert_eq!(party.count("claimant_records WHERE note IS NULL").await, 1);
    }
}

/// The files made it, by a tool of one's own, or the record of the migrations is gone.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_table_that_other_hands_made_is_kept() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(1).await;
        let mut party = database.party().await;
        party.run(&database.insert(KEY)).await;
        for unknown in ["DELETE FROM claimant_migrations WHERE description = 'notes'", "DROP TABLE claimant_migrations"]
        {
            party.run(unknown).await;
            for _ in 0..2 {
                let error = store.migrate().await.unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{name}: {error}");
                let text = error.to_string();
                assert!(text.contains("already exists") || text.contains("Duplicate column name"), "{name}: {text}");
                assert!(text.contains("migrate() did not make it"), "{name}: {text}");
                assert!(text.contains("Do not drop the table") && !text.contains("is missing"), "{name}: {text}");
            }
            assert_eq!(party.count("claimant_records").await, 1, "{name}");
        }
    }
}
