//! Errors that pass, and errors of one record: what was done is settled.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::protocol::{Ending, Settlement};
use claimant_core::{Call, Clock as _, Consumer, Engine, Meter, NoQueue, Schedule, Settled};
use claimant_testkit::MovableClock;
use claimant_testkit::outcomes::{Work, message};
use claimant_tests::services::MariaDb;

use super::world::{AnyStore, Database, completed, granted, id};

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
            let schedule = Schedule::new(clock.now(), clock.now().plus(LONG), Duration::from_millis(MARGIN_DEFAULT_MS));
            let report = engine.process(&[message(0, "a ok", receive)], schedule, &NoQueue).await;
            words.push(report.entries()[0].outcome.word());
            clock.advance(LONG * 2);
        }
        assert_eq!((&words[..], mails.load(Ordering::Relaxed)), (&["completed", "duplicate"][..], 1), "{number}");
        assert_eq!(party.count(&format!("errors WHERE n > {ERRORS}")).await, 1, "{number}: it failed first");
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
