//! Settings of a server or a database that are not those which a store needs.

use std::time::Duration;

use claimant_core::protocol::Refusal;
use claimant_core::{Call, ClaimAnswer, Cursor, Filter, Meter, Settled, State};
use sqlx::{query, query_scalar};

use super::transactions::transactional;
use super::world::{AnyStore, Database, NOW, Party, completed, granted, request, settle};

const LONG: Duration = Duration::from_secs(20);

/// The defaults of PostgreSQL's database, and those of the server of MariaDB or MySQL, with what ends them.
const POSTGRES: &[&str] = &[
    "default_transaction_read_only = on",
    "default_transaction_isolation = serializable",
    "default_transaction_deferrable = on",
    // As PostgreSQL 11 has it.
    "extra_float_digits = 0",
    // In PostgreSQL 17 and newer: shorter than the handler's transaction.
    "transaction_timeout = 50",
];
const MARIADB: &[(&str, &str)] = &[
    ("completion_type = 'CHAIN'", "completion_type = DEFAULT"),
    ("completion_type = 'RELEASE'", "completion_type = DEFAULT"),
    ("autocommit = 0", "autocommit = DEFAULT"),
    ("sql_select_limit = 1", "sql_select_limit = DEFAULT"),
    ("TRANSACTION READ ONLY", "TRANSACTION READ WRITE"),
    ("TRANSACTION ISOLATION LEVEL SERIALIZABLE", "TRANSACTION ISOLATION LEVEL REPEATABLE READ"),
    ("init_connect = 'START TRANSACTION'", "init_connect = DEFAULT"),
    ("sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH'", "sql_mode = DEFAULT"),
    // Each server's own.
    ("sql_mode = /*M! 'ORACLE' */ /*!50700 'ANSI,HIGH_NOT_PRECEDENCE' */", "sql_mode = DEFAULT"),
];

/// Returns the statements that make and end each default.
async fn settings(party: &mut Party) -> Vec<(String, String)> {
    if let Party::MariaDb(_) = party {
        let global = |setting: &str| format!("SET GLOBAL {setting}");
        return MARIADB.iter().map(|(set, end)| (global(set), global(end))).collect();
    }
    let mut all = Vec::new();
    for setting in POSTGRES {
        let name = setting.split(' ').next().unwrap();
        if party.count(&format!("pg_settings WHERE name = '{name}'")).await == 1 {
            let alter = "ALTER DATABASE claimant";
            all.push((format!("{alter} SET {setting}"), format!("{alter} RESET {name}")));
        }
    }
    // An older server lacks the last one.
    assert!(all.len() + 1 >= POSTGRES.len(), "{all:?}");
    all
}

/// Writes the effect of a handler in a transaction of its own, on a connection that its store then has.
async fn write_effect(store: &AnyStore) {
    const EFFECT: &str = "INSERT INTO effects VALUES ('own')";
    match store {
        AnyStore::Postgres(store) => {
            let mut own = store.pool().begin().await.unwrap();
            query(EFFECT).execute(&mut *own).await.unwrap();
            let digits =
                query_scalar("SELECT (0.1::float8 + 0.2)::text FROM pg_sleep(0.06)").fetch_one(&mut *own).await;
            assert_eq!(digits.as_ref().map(String::as_str).unwrap(), "0.30000000000000004");
            own.commit().await.unwrap();
        }
        AnyStore::MySql(store) => {
            // Not sqlx's own `BEGIN`, which is something else in Oracle's mode.
            let mut own = store.pool().begin_with("START TRANSACTION").await.unwrap();
            query(EFFECT).execute(&mut *own).await.unwrap();
            own.commit().await.unwrap();
        }
    }
}

/// What is reported as completed is there for others, also when the process ends: no transaction is open where none was begun.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn what_is_completed_is_committed_whatever_the_defaults_are() {
    for database in Database::alone() {
        drop(database.store(1).await);
        let mut party = database.party().await;
        party.run("CREATE TABLE effects (id varchar(100))").await;
        // The one who has all rights is spared what a server runs first for others.
        let user = match &party {
            Party::Postgres(_) => {
                "CREATE ROLE plain LOGIN PASSWORD 'claimant'; GRANT ALL ON claimant_records, effects TO plain"
            }
            Party::MariaDb(_) => "CREATE USER plain@'%' IDENTIFIED BY 'claimant'; GRANT ALL ON claimant.* TO plain@'%'",
        };
        party.run(user).await;
        let url = database.url().replace("//claimant:", "//plain:");
        for (set, reset) in settings(&mut party).await {
            let what = format!("{}, {set}", database.name());
            party.run(&set).await;
            // With one connection, what one leaves the other has.
            let store = database.store_at(&url, 1).await;
            let claim = granted(&store, "leased").await;
            // Before the handler's own transaction would commit an open one.
            assert_eq!(party.count("claimant_records").await, 1, "{what}");
            write_effect(&store).await;
            let settled = settle(&store, claim, LONG).await;
            assert!(matches!(settled, Settled::Done), "{what}: {settled:?}");

            let (request, meter) = (request("transactional"), Meter::default());
            let call = Call { within: LONG, meter: &meter };
            let transactions = transactional(&store);
            let claimed = transactions.claim(&request, call).await;
            let Ok(ClaimAnswer::Granted(claim)) = claimed else { panic!("{what}: {claimed:?}") };
            let settled = transactions.settle(claim, &completed(), call).await;
            assert!(matches!(settled, Settled::Done), "{what}: {settled:?}");
            let copy = transactions.claim(&request, call).await;
            assert!(matches!(copy, Ok(ClaimAnswer::Refused(Refusal::Completed { .. }))), "{what}: {copy:?}");
            drop(granted(&store, "after").await);
            let states = vec![State::Completed, State::Stuck];
            let filter =
                Filter { states, consumer: None, written_before: None, now: NOW, skew: Duration::from_secs(1) };
            let listed = store.records().list(&filter, &Cursor::new(""), call).await.unwrap();
            assert_eq!(listed.looked_at, 3, "{what}");

            assert_eq!(party.count("claimant_records WHERE status = 'COMPLETED'").await, 2, "{what}");
            assert_eq!(party.count("claimant_records").await, 3, "{what}");
            party.run(&reset).await;
            party.run("DELETE FROM claimant_records").await;
        }
    }
}
