//! Errors that pass, errors of one record, and errors after a commit: what was done is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::protocol::{Ending, Settlement};
use claimant_core::{
    BatchTransactional, Call, ClaimAnswer, Clock as _, Consumer, Engine, InvocationTime, Meter, NoQueue, Settled,
    Store, StoreErrorKind,
};
use claimant_sql::{PostgresStore, PostgresTransactions};
use claimant_testkit::MovableClock;
use claimant_testkit::outcomes::{Work, message};
use claimant_tests::services::{MariaDb, Postgres};

use super::transactions::transactional;
use super::world::{AnyStore, Database, KEY, claim, completed, granted, id, request};

const LONG: Duration = Duration::from_secs(20);

/// How many completions in turn fail.
const ERRORS: u32 = 2;

/// A node of Galera's that is not ready, a statement to be prepared again, a full disk, a commit that the group rolled back, and
/// an error of no known meaning.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn a_completion_outlasts_an_error_that_passes() {
    let database = Database::MariaDb(MariaDb::shared().await);
    for number in [1047, 1615, 1021, 3101, 1644] {
        let AnyStore::MySql(store) = database.store(2).await else { panic!("MariaDB") };
        let mut party = database.party().await;
        // Its count outlasts the statement that fails.
        party.run("DROP TABLE IF EXISTS errors; CREATE TABLE errors (n int) ENGINE = MyISAM").await;
        party.run("INSERT INTO errors VALUES (0)").await;
        let trigger = format!(
            "CREATE TRIGGER passes BEFORE UPDATE ON claimant_records FOR EACH ROW BEGIN \
             IF NEW.status = 'COMPLETED' THEN UPDATE errors SET n = n + 1; \
             IF (SELECT n FROM errors) <= {ERRORS} THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {number}; END IF; \
             END IF; END"
        );
        party.run(&trigger).await;
        let (mails, clock) = (Arc::new(AtomicUsize::new(0)), MovableClock::start());
        let sent = Arc::clone(&mails);
        let handler = move |_: Work, _| {
            sent.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }
        };
        let consumer = Consumer::new("mails", store, handler).key(|work: &Work| &work.id);
        let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone()));
        let mut words = Vec::new();
        for receive in 1..=2 {
            let time =
                InvocationTime::new(clock.now(), clock.now().plus(LONG), Duration::from_millis(MARGIN_DEFAULT_MS));
            let report = engine.process(&[message(0, "a ok", receive)], time, &NoQueue).await;
            words.push(report.entries()[0].outcome.word());
            clock.advance(LONG * 2);
        }
        assert_eq!((&words[..], mails.load(Ordering::Relaxed)), (&["completed", "duplicate"][..], 1), "{number}");
        assert_eq!(party.count(&format!("errors WHERE n > {ERRORS}")).await, 1, "{number}: it failed first");
    }
}

/// Newer servers of MySQL say by a number why they ended a transaction; its SQLSTATE is that of most errors.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn errors_of_mysql_are_known_by_their_numbers() {
    let database = Database::MariaDb(MariaDb::shared().await);
    for (number, says) in [(4031, "leave .lease(…) out"), (1644, "(code 1644)")] {
        let store = database.store(2).await;
        let trigger = format!(
            "CREATE TRIGGER says BEFORE UPDATE ON claimant_records FOR EACH ROW \
             SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = {number}"
        );
        database.party().await.run(&trigger).await;
        let (request, meter) = (request(KEY), Meter::default());
        let call = Call { within: LONG, meter: &meter };
        let transactions = transactional(&store);
        let Ok(ClaimAnswer::Granted(claim)) = transactions.claim(&request, call).await else { panic!("it is fresh") };
        let settled = transactions.settle(claim, &completed(), call).await;
        let Settled::Aborted { failure, .. } = settled else { panic!("{number}: {settled:?}") };
        assert!(failure.why.contains(says), "{number}: {failure:?}");
    }
}

/// It can claim fresh keys, which is an INSERT.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_user_that_may_not_update_is_told_so_by_the_completion() {
    for database in Database::both().await {
        drop(database.store(1).await);
        let grantee = match &database {
            Database::Postgres(_) => {
                "CREATE ROLE only_claims LOGIN PASSWORD 'claimant'; GRANT SELECT, INSERT ON claimant_records TO only_claims"
            }
            Database::MariaDb(_) => {
                "CREATE USER only_claims@'%' IDENTIFIED BY 'claimant'; \
                 GRANT SELECT, INSERT ON claimant_records TO only_claims@'%'"
            }
        };
        database.party().await.run(grantee).await;
        let store = database.store_at(&database.url().replace("//claimant:", "//only_claims:"), 2).await;
        let (request, meter) = (request(KEY), Meter::default());
        let call = Call { within: LONG, meter: &meter };
        let transactions = transactional(&store);
        let claimed = transactions.claim(&request, call).await;
        let Ok(ClaimAnswer::Granted(claim)) = claimed else { panic!("{}: {claimed:?}", database.name()) };
        let settled = transactions.settle(claim, &completed(), call).await;
        let Settled::Aborted { failure, .. } = settled else { panic!("{}: {settled:?}", database.name()) };
        assert!(failure.why.contains("denied") && failure.why.contains("UPDATE"), "{failure:?}");
    }
}

/// What PgBouncer without prepared statements of its own makes of those of a client: there already, or not there.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_pooler_that_changes_connections_is_named() {
    let database = Database::Postgres(Postgres::shared().await);
    for claimed_before in [false, true] {
        let AnyStore::Postgres(store) = database.store(1).await else { panic!("PostgreSQL") };
        let whole = AnyStore::Postgres(store.clone());
        let mut connection = store.pool().acquire().await.unwrap();
        let statements: &[&str] = if claimed_before {
            drop(connection);
            drop(granted(&whole, "before").await);
            connection = store.pool().acquire().await.unwrap();
            &["DEALLOCATE ALL"]
        } else {
            &["PREPARE sqlx_s_1 AS SELECT 1", "PREPARE sqlx_s_2 AS SELECT 1", "PREPARE sqlx_s_3 AS SELECT 1"]
        };
        for statement in statements {
            sqlx::raw_sql(*statement).execute(&mut *connection).await.unwrap();
        }
        drop(connection);
        whole.all_returned().await;
        let error = claim(&whole, KEY, LONG).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("a pooler gives each transaction another") && !text.contains("migrations"), "{text}");
        // On another connection the same statement can succeed: what was done is not given up.
        assert_eq!(error.kind(), StoreErrorKind::Other, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_record_that_cannot_be_written_leaves_its_neighbours_settled() {
    for database in Database::both().await {
        let store = database.store(4).await;
        let hex: String = id("k2").as_str().bytes().map(|b| format!("{b:02x}")).collect();
        let refuse = match database {
            Database::Postgres(_) => format!(
                "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$; \
                 CREATE TRIGGER refuse BEFORE UPDATE ON claimant_records FOR EACH ROW \
                 WHEN (NEW.id = decode('{hex}', 'hex')) EXECUTE FUNCTION refuse()"
            ),
            Database::MariaDb(_) => format!(
                "CREATE TRIGGER refuse BEFORE UPDATE ON claimant_records FOR EACH ROW \
                 IF NEW.id = X'{hex}' THEN SIGNAL SQLSTATE '45000'; END IF"
            ),
        };
        database.party().await.run(&refuse).await;
        let mut endings = Vec::new();
        for n in 0..5 {
            // Results that differ are a statement each in MariaDB.
            let ending = Ending::Completed { result: Some(format!("[{n}]")) };
            endings.push((granted(&store, &format!("k{n}")).await, Settlement { ending, ..completed() }));
        }
        let meter = Meter::default();
        let settled = store.shared().settle_all(endings, Call { within: LONG, meter: &meter }).await;
        for (n, settled) in settled.iter().enumerate() {
            let wanted =
                if n == 2 { matches!(settled, Settled::Unknown { .. }) } else { matches!(settled, Settled::Done) };
            assert!(wanted, "{}, {n}: {settled:?}", database.name());
        }
    }
}

/// A database with the table of records, and a store of a user that may do what functions need, less this.
async fn bare(user: &str, revoked: &str) -> (Database, PostgresStore) {
    let database = Database::Postgres(Postgres::shared().await);
    drop(database.store(1).await);
    let rights = format!(
        "CREATE ROLE {user} LOGIN PASSWORD 'claimant'; GRANT SELECT, INSERT, UPDATE ON claimant_records TO {user}; \
         REVOKE {revoked} FROM PUBLIC"
    );
    database.party().await.run(&rights).await;
    let url = database.url().replace("//claimant:", &format!("//{user}:"));
    let AnyStore::Postgres(store) = database.store_at(&url, 4).await else { panic!("PostgreSQL") };
    (database, store)
}

/// What follows the commit in its request fails: the commit applied.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_commit_that_applied_is_a_completion_whatever_fails_after_it() {
    let (_database, store) = bare("unlocks_nothing", "EXECUTE ON FUNCTION pg_advisory_unlock_all()").await;
    let meter = Meter::default();
    let call = Call { within: LONG, meter: &meter };

    let transactions = PostgresTransactions::new(store.clone());
    let ClaimAnswer::Granted(claim) = transactions.claim(&request("alone"), call).await.unwrap() else {
        panic!("fresh")
    };
    let settled = transactions.settle(claim, &completed(), call).await;
    assert!(matches!(settled, Settled::Done), "{settled:?}");

    let plain = AnyStore::Postgres(store.clone());
    let completions = vec![(granted(&plain, "one").await, completed()), (granted(&plain, "two").await, completed())];
    let transaction = store.begin(LONG, call).await.unwrap();
    let settled = BatchTransactional::commit(&store, transaction, completions, call).await;
    assert!(matches!(settled[..], [Settled::Done, Settled::Done]), "{settled:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_completion_outlasts_a_crash_whatever_the_database_s_default() {
    let database = Database::Postgres(Postgres::shared().await);
    for (default, wanted) in [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")] {
        let set = format!(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = {default}', current_database()); END $$"
        );
        database.party().await.run(&set).await;
        let pool = PostgresStore::pool_options().connect(&database.url()).await.unwrap();
        let is: String = sqlx::query_scalar("SHOW synchronous_commit").fetch_one(&pool).await.unwrap();
        assert_eq!(is, wanted, "{default}");
    }
}

/// The pool takes it for a server that is down, and logs the reason.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_refused_setting_is_looked_for_in_the_log() {
    let (_database, store) = bare("runs_nothing", "USAGE ON LANGUAGE plpgsql").await;
    let error = claim(&AnyStore::Postgres(store), KEY, Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().contains("`error returned from after_connect`"), "{error}");
}
