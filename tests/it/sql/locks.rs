//! Another owner's transaction holds a record.

use std::time::{Duration, Instant};

use claimant_core::protocol::{Ending, Settlement};
use claimant_core::{BatchedClaim, Call, ClaimAnswer, Meter, Settled, Status, StoreErrorKind};

use claimant_tests::services::MariaDb;

use super::transactions::transactional;
use claimant_testkit::faulty::stale_copy;

use super::world::{Database, NOW, claim, completed, granted, id, request, settle};

const WITHIN: Duration = Duration::from_millis(700);
const GRACE: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_locked_record_holds_up_its_own_calls_only_and_not_for_long() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(8).await;
        let held = granted(&store, "held").await;
        let mut party = database.party().await;
        // One record is locked, another one is not visible to others yet.
        party.run("BEGIN").await;
        party.run("UPDATE claimant_records SET attempts = attempts").await;
        party.run(&database.insert("new")).await;

        let start = Instant::now();
        let settled = settle(&store, stale_copy(&held), WITHIN).await;
        assert!(matches!(settled, Settled::Unknown { claim: Some(_), .. }), "{name}: {settled:?}");
        let error = claim(&store, "new", WITHIN).await.unwrap_err();
        assert!(start.elapsed() < 2 * WITHIN + GRACE, "{name}: {:?} {error}", start.elapsed());

        // In company, the others get their answers.
        let requests = [request("new"), request("free"), request("held")];
        let meter = Meter::default();
        let answers = store.shared().claim_all(&requests, Call { within: LONG, meter: &meter }).await;
        assert!(answers.iter().all(|answer| matches!(answer, Ok(BatchedClaim::ClaimAlone))), "{name}: {answers:?}");
        drop(granted(&store, "free").await);

        // A call that is dropped while it waits leaves nothing behind.
        let dropped = tokio::time::timeout(Duration::from_millis(100), settle(&store, stale_copy(&held), LONG)).await;
        assert!(dropped.is_err());
        store.all_returned().await;

        party.run("ROLLBACK").await;
        assert!(matches!(settle(&store, held, LONG).await, Settled::Done), "{name}");
        assert!(matches!(claim(&store, "new", LONG).await.unwrap(), ClaimAnswer::Granted(_)), "{name}");
        let record = store.shared().get(&id("held"), Call { within: LONG, meter: &meter }).await.unwrap().unwrap();
        assert_eq!(record.status, Status::Completed, "{name}");
        store.all_returned().await;
    }
}

/// It waits for whoever takes the key over, and then looks at what that left.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_completion_of_many_that_waits_for_a_takeover_is_lost() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(4).await;
        let held = granted(&store, "held").await;
        let mut party = database.party().await;
        party.run("BEGIN").await;
        party.run("UPDATE claimant_records SET owner = 'o', fence = fence + 1").await;
        let beside = granted(&store, "beside").await;
        let (store, meter) = (store.shared(), Meter::default());
        let call = Call { within: LONG, meter: &meter };
        let commits = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            party.run("COMMIT").await;
        };
        let both = vec![(held, completed()), (beside, completed())];
        let (settled, ()) = tokio::join!(store.settle_all(both, call), commits);
        assert!(matches!(settled[..], [Settled::Lost, Settled::Done]), "{name}: {settled:?}");
        let record = store.get(&id("held"), call).await.unwrap().unwrap();
        assert_eq!((record.status, record.owner.as_str()), (Status::InProgress, "o"), "{name}");
    }
}

/// A key that came again after its window, by a handler that is at work. It holds the record that expired first.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn an_expired_record_that_is_held_keeps_no_other_from_being_deleted() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await;
        let (mut holder, mut party) = (database.party().await, database.party().await);
        let ids: Vec<_> = (0..6).map(|n| id(&format!("old {n}"))).collect();
        for (n, id) in ids.iter().enumerate() {
            party.run(&database.insert_ids([id.as_str()], 1 + n as u64)).await;
        }
        holder.run("BEGIN").await;
        holder.run("UPDATE claimant_records SET expires_at_s = 4000000000 WHERE expires_at_s = 1").await;
        let mut deleted = Vec::new();
        for _ in 0..3 {
            deleted.push(store.delete_expired(NOW, 3).await.expect(name));
        }
        assert_eq!(deleted, [3, 2, 0], "{name}");
        holder.run("COMMIT").await;
        assert_eq!(store.delete_expired(NOW, 3).await.expect(name), 0, "{name}: its window goes on");
        assert_eq!(party.count("claimant_records").await, 1, "{name}");
    }
}

/// A handler's transaction is open: the migration waits for it, and others do not wait behind the migration.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_migration_that_waits_for_a_transaction_holds_up_nothing_else() {
    const PENDING: &str = "DELETE FROM claimant_migrations WHERE description = 'notes'";
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await;
        let (mut holder, mut other) = (database.party().await, database.party().await);
        for sql in ["ALTER TABLE claimant_records DROP COLUMN note", PENDING, "BEGIN", &database.insert("held")] {
            holder.run(sql).await;
        }
        let others = async move {
            for n in 0..6 {
                let begun = Instant::now();
                other.run(&database.insert(&format!("free {n}"))).await;
                assert!(begun.elapsed() < WITHIN + GRACE, "{name}: {:?}", begun.elapsed());
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            let applied = other.count("claimant_migrations WHERE description = 'notes' AND success").await;
            assert_eq!(applied, 0, "{name}: nobody waited for the transaction");
            holder.run("ROLLBACK").await;
        };
        let (migrated, others) = tokio::join!(store.migrate(), tokio::time::timeout(LONG, others));
        others.unwrap_or_else(|_| panic!("{name}: others wait behind the migration"));
        migrated.expect(name);
        drop(granted(&store, "after").await);
    }
}

/// A backup locks all tables while the migration waits for a transaction.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn a_migration_that_waits_is_not_left_half_recorded_by_a_backup() {
    // Of its own: the backup locks every database of the server.
    let database = Database::MariaDb(MariaDb::start());
    let store = database.store(2).await;
    let (mut holder, mut backup) = (database.party().await, database.party().await);
    let pending = "DELETE FROM claimant_migrations WHERE description = 'notes'";
    // The change is refused while the backup runs, and made just before.
    for (backup_ms, end_ms) in [(600, 3_400), (400, 700)] {
        for sql in ["ALTER TABLE claimant_records DROP COLUMN note", pending, "BEGIN", &database.insert("held")] {
            holder.run(sql).await;
        }
        let holds = async {
            tokio::time::sleep(Duration::from_millis(end_ms)).await;
            holder.run("ROLLBACK").await;
        };
        let backs_up = async {
            tokio::time::sleep(Duration::from_millis(backup_ms)).await;
            backup.run("FLUSH TABLES WITH READ LOCK").await;
            tokio::time::sleep(Duration::from_millis(2_600)).await;
            backup.run("UNLOCK TABLES").await;
        };
        let others = async { tokio::join!(holds, backs_up) };
        let (migrated, others) = tokio::join!(store.migrate(), tokio::time::timeout(LONG, others));
        others.expect("the backup has its lock");
        migrated.unwrap();
        store.migrate().await.unwrap();
    }
}

/// What no other transaction holds up is not tried for a minute.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_migration_on_a_full_disk_ends_at_once() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(1).await;
        let mut party = database.party().await;
        let full: &[&str] = match &database {
            Database::Postgres(_) => &[
                "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$",
                "CREATE TRIGGER full_disk BEFORE INSERT ON claimant_migrations EXECUTE FUNCTION full_disk()",
            ],
            Database::MariaDb(_) => &["CREATE TRIGGER full_disk BEFORE INSERT ON claimant_migrations FOR EACH ROW \
                 SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1114, MESSAGE_TEXT = 'the table is full'"],
        };
        for sql in
            ["ALTER TABLE claimant_records DROP COLUMN note", "DELETE FROM claimant_migrations WHERE version > 1"]
        {
            party.run(sql).await;
        }
        for sql in full {
            party.run(sql).await;
        }
        let migrated = tokio::time::timeout(WITHIN + GRACE, store.migrate()).await;
        let error = migrated.expect(name).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Throttled, "{name}: {error}");
        assert!(!error.to_string().contains("transaction"), "{name}: {error}");
    }
}

/// It is nobody's claim of the key, so the key is not busy.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_table_that_is_locked_for_a_moment_makes_no_key_busy() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(2).await;
        let mut party = database.party().await;
        // PostgreSQL's is that of an index that is made.
        let (lock, unlock) = match &database {
            Database::Postgres(_) => ("BEGIN; LOCK TABLE claimant_records IN SHARE MODE", "ROLLBACK"),
            Database::MariaDb(_) => ("LOCK TABLES claimant_records WRITE", "UNLOCK TABLES"),
        };
        for (key, ms) in [("one try", 1_500), ("two", 3_000)] {
            party.run(lock).await;
            let unlocks = async {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                party.run(unlock).await;
            };
            let transactions = transactional(&store);
            let (request, meter) = (request(key), Meter::default());
            let claim = transactions.claim(&request, Call { within: LONG, meter: &meter });
            let (claimed, ()) = tokio::join!(claim, unlocks);
            assert!(matches!(claimed, Ok(ClaimAnswer::Granted(_))), "{name}, {key}: {claimed:?}");
            drop(claimed);
            store.all_returned().await;
        }
        // A lock that outlasts the call leaves it without an answer.
        party.run(lock).await;
        let (request, meter) = (request("none"), Meter::default());
        let claimed = transactional(&store).claim(&request, Call { within: 2 * WITHIN, meter: &meter }).await;
        party.run(unlock).await;
        assert!(claimed.as_ref().is_err_and(|error| error.kind().is_transient()), "{name}: {claimed:?}");
    }
}

/// Its transaction is over by then, so that is the next claim of the key, or it lasts as long as one.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_failure_that_waits_for_the_lock_of_another_transaction_is_lost() {
    for database in Database::both().await {
        let name = database.name();
        let store = transactional(&database.store(2).await);
        let (mut party, mut other) = (database.party().await, database.party().await);
        let (lock, unlock) = match &database {
            Database::Postgres(_) => ("BEGIN; LOCK TABLE claimant_records", "ROLLBACK"),
            Database::MariaDb(_) => ("LOCK TABLES claimant_records WRITE", "UNLOCK TABLES"),
        };
        let (request, meter) = (request("k"), Meter::default());
        let call = Call { within: LONG, meter: &meter };
        let Ok(ClaimAnswer::Granted(claim)) = store.claim(&request, call).await else { panic!("{name}: it is fresh") };
        // It waits for the transaction, before whatever comes after that.
        let locking = tokio::spawn(async move {
            party.run(lock).await;
            party
        });
        while other.count(database.waits()).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let failed = Settlement { ending: Ending::Failed { error: "no luck".into() }, ..completed() };
        let settled = store.settle(claim, &failed, call).await;
        assert!(matches!(settled, Settled::Lost), "{name}: {settled:?}");
        locking.await.unwrap().run(unlock).await;
    }
}

/// By anybody's change of it, or by a backup.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_locked_table_refuses_a_statement_in_time_and_costs_no_connection() {
    for database in Database::both().await {
        let name = database.name();
        let store = database.store(1).await;
        let before = store.connection().await;
        let mut party = database.party().await;
        let (lock, unlock) = match &database {
            Database::Postgres(_) => ("BEGIN; LOCK TABLE claimant_records", "ROLLBACK"),
            Database::MariaDb(_) => ("LOCK TABLES claimant_records WRITE", "UNLOCK TABLES"),
        };
        party.run(lock).await;
        let meter = Meter::default();
        let answers = store.shared().claim_all(&[request("k")], Call { within: LONG, meter: &meter }).await;
        assert!(matches!(answers[..], [Ok(BatchedClaim::ClaimAlone)]), "{name}: {answers:?}");
        party.run(unlock).await;
        drop(granted(&store, "k").await);
        assert_eq!(store.connection().await, before, "{name}: its connection was closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn calls_that_are_dropped_at_any_point_poison_no_connection() {
    for database in Database::both().await {
        let store = database.store(2).await;
        for n in 0..60_u64 {
            let key = format!("key {n}");
            let cut_off = claim(&store, &key, LONG);
            // Some end before the connection is there, some in the middle of the answer, some after it.
            let _ = tokio::time::timeout(Duration::from_micros(n * 40), cut_off).await;
            let other = format!("other {n}");
            assert!(matches!(claim(&store, &other, LONG).await.unwrap(), ClaimAnswer::Granted(_)));
        }
        store.all_returned().await;
    }
}
