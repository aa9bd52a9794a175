//! One PostgreSQL transaction for a call: each effect is there exactly when its own key is completed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{
    Clock as _, Consumer, Engine, HandlerError, InvocationTime, Items, Key, Meter, NoQueue, RecordId, Report, Status,
    Store, TransactionGuard,
};
use claimant_sql::{PgTransaction, PostgresStore};
use claimant_testkit::MovableClock;
use claimant_testkit::contract;
use claimant_testkit::outcomes::{self, Work, message};
use futures_util::future::join_all;
use sqlx::PgPool;

use super::cut::Cut;
use super::world::{AnyStore, Database, Rows};

const INVOCATION: Duration = Duration::from_secs(3);
const HOUR: Duration = Duration::from_secs(3_600);

/// A consumer of batches, and what it works with.
struct World {
    engine: Engine,
    store: PostgresStore,
    clock: MovableClock,
}

/// Writes all effects by one statement, and then does what the words say.
async fn act(
    items: Items<Work>,
    mut tx: TransactionGuard<PgTransaction>,
    clock: MovableClock,
    store: PostgresStore,
) -> Result<Vec<Result<(), HandlerError>>, HandlerError> {
    let ids: Vec<String> = items.payloads().map(|work| work.id.clone()).collect();
    sqlx::query("INSERT INTO effects SELECT unnest($1::text[])").bind(ids).execute(&mut *tx).await?;
    let mut results = Vec::new();
    for item in &items {
        results.push(match item.payload.action.as_str() {
            "fail" => Err(HandlerError::retry("no luck")),
            "reject" => Err(HandlerError::terminal("no use")),
            "panic" => panic!("on purpose"),
            "cut" if items.len() > 1 => {
                let sleep = sqlx::query("SELECT pg_sleep(9)").execute(&mut *tx);
                let _ = tokio::time::timeout(Duration::from_millis(50), sleep).await;
                Ok(())
            }
            "die" if items.len() > 1 => {
                let end = sqlx::query("SELECT pg_terminate_backend(pg_backend_pid())").execute(&mut *tx);
                drop(end.await);
                Ok(())
            }
            "ignore" => {
                drop(sqlx::query("SELECT 1 / 0").execute(&mut *tx).await);
                Ok(())
            }
            "commit" => sqlx::query("COMMIT").execute(&mut *tx).await.map(drop).map_err(HandlerError::terminal),
            "robbed" if items.len() > 1 => {
                clock.advance(HOUR);
                outcomes::rob(&store, &item.cx, clock.now()).await;
                Ok(())
            }
            _ => Ok(()),
        });
    }
    Ok(results)
}

impl World {
    fn new(store: &PostgresStore) -> Self {
        let (store, clock) = (store.clone(), MovableClock::start());
        let shared = (store.clone(), clock.clone());
        let handler = move |items, tx| act(items, tx, shared.1.clone(), shared.0.clone());
        let consumer = Consumer::batch_transactional("effects", store.clone(), handler).key(|work| &work.id);
        let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone()));
        Self { engine, store, clock }
    }

    async fn deliver(&self, batch: &[String], receives: u32) -> Report {
        let batch: Vec<_> = batch.iter().enumerate().map(|(n, text)| message(n, text, receives)).collect();
        let now = self.engine.now();
        let time = InvocationTime::new(now, now.plus(INVOCATION), Duration::from_millis(MARGIN_DEFAULT_MS));
        self.engine.process(&batch, time, &NoQueue).await
    }

    async fn status(&self, key: &str) -> Option<Status> {
        let (meter, id) = (Meter::default(), RecordId::new(self.engine.name(), &Key::new(key).unwrap()));
        let call = claimant_core::Call { within: HOUR, meter: &meter };
        self.store.get(&id, call).await.unwrap().map(|record| record.status)
    }
}

fn words(report: &Report) -> String {
    report.entries().iter().map(|entry| entry.outcome.word()).collect::<Vec<_>>().join(" ")
}

async fn postgres(connections: u32) -> (Database, PostgresStore) {
    let [database, _] = Database::both().await;
    let AnyStore::Postgres(store) = database.store(connections).await else { panic!("the first is PostgreSQL") };
    let mut party = database.party().await;
    // One effect that no transaction takes, by its statement or by its commit; copies are allowed, and must not be.
    party.run("DROP TABLE IF EXISTS effects").await;
    party.run("CREATE TABLE effects (id text CHECK (id <> 'bad'))").await;
    party
        .run(
            "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF NEW.id = 'late' THEN RAISE EXCEPTION 'refused at the commit'; END IF; RETURN NULL; END $$",
        )
        .await;
    party
        .run(
            "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    (database, store)
}

async fn effects(pool: &PgPool) -> String {
    let ids: Vec<String> = sqlx::query_scalar("SELECT id FROM effects ORDER BY id").fetch_all(pool).await.unwrap();
    ids.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn effects_of_a_call_are_there_exactly_when_they_are_completed() {
    let (_database, store) = postgres(3).await;
    // What the items are, what they come to, which effects there are.
    let rows: [(&[&str], &str, &str); 12] = [
        (&["a ok", "b ok", "c ok"], "completed completed completed", "a b c"),
        (&["a ok", "b fail", "c ok"], "completed retry completed", "a c"),
        (&["a ok", "b reject", "c ok"], "completed rejected completed", "a c"),
        (&["a ok", "b panic", "c ok"], "completed retry completed", "a c"),
        // One statement for all: if it fails, each is tried by itself.
        (&["a ok", "bad ok", "c ok"], "completed retry completed", "a c"),
        (&["a ok", "late ok", "c ok"], "completed retry completed", "a c"),
        // A transaction that is over commits nothing, whatever the handler returns.
        (&["a ok", "b ignore", "c ok"], "completed retry completed", "a c"),
        (&["a ok", "b cut", "c ok"], "completed completed completed", "a b c"),
        (&["a ok", "b die", "c ok"], "completed completed completed", "a b c"),
        (&["a ok", "b commit", "c ok"], "completed rejected completed", "a c"),
        // Another worker took one key meanwhile: its effect is not there, and its neighbours' are.
        (&["a ok", "b robbed", "c ok"], "completed lease_lost completed", "a c"),
        (&["a ok", "a ok", "b ok"], "completed duplicate completed", "a b"),
    ];
    for (batch, wanted, there) in rows {
        sqlx::raw_sql("TRUNCATE effects, claimant_records").execute(store.pool()).await.unwrap();
        let world = World::new(&store);
        let batch: Vec<String> = batch.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(words(&world.deliver(&batch, 1).await), wanted, "{batch:?}");
        assert_eq!(effects(store.pool()).await, there, "{batch:?}");
        world.deliver(&batch, 2).await;
        let again = effects(store.pool()).await;
        assert!(again.split(' ').eq(there.split(' ')), "{batch:?} again: {again}");
        AnyStore::Postgres(store.clone()).all_returned().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn many_claims_in_one_transaction_keep_the_contract() {
    let (database, store) = postgres(3).await;
    println!("{}", contract::check_transactions(Arc::new(store), &Rows::of(&database).await).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_call_takes_five_requests_and_the_handlers_own() {
    let (_database, store) = postgres(3).await;
    let world = World::new(&store);
    let batch: Vec<String> = (0..25).map(|n| format!("k{n} ok")).collect();
    let report = world.deliver(&batch, 1).await;
    assert_eq!(report.counts()["completed"], 25);
    // Claims, the beginning in two, the completions, the commit.
    assert_eq!(report.totals.usage.requests, 5);
    // A pool of one connection: the call has it, and gives it back.
    let (_database, store) = postgres(1).await;
    let world = World::new(&store);
    assert_eq!(world.deliver(&batch, 1).await.counts()["completed"], 25);
    assert_eq!(world.deliver(&batch, 2).await.counts()["duplicate"], 25);
}

/// Cuts each connection at each piece of its traffic; the process then dies, or goes on and finds out what became of it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn calls_cut_at_every_piece_of_traffic_leave_one_effect_of_each_item() {
    let (database, store) = postgres(8).await;
    let ways = [(true, false), (false, false), (true, true), (false, true)];
    let counts = join_all(ways.map(|(arrives, dies)| cut_everywhere(&database, &store, arrives, dies))).await;
    let (cuts, unanswered) = counts.into_iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    println!("{cuts} cuts, {unanswered} of them seen by the messages");
    assert!(cuts > 80 && unanswered > 40, "{cuts}, {unanswered}");
}

/// Returns how many cuts there were, and how many of them the messages saw.
async fn cut_everywhere(database: &Database, healthy: &PostgresStore, arrives: bool, dies: bool) -> (usize, usize) {
    let again = World::new(healthy);
    let (mut cuts, mut unanswered) = (0, 0);
    for piece in 1.. {
        let cut = Cut::start(&database.url(), piece, arrives).await;
        let keys: Vec<String> = (0..3).map(|n| format!("{piece}-{arrives}-{dies}-{n}")).collect();
        let batch: Vec<String> = keys.iter().map(|key| format!("{key} ok")).collect();
        let AnyStore::Postgres(store) = database.store_at(&cut.url, 3).await else { panic!("PostgreSQL") };
        let world = World::new(&store);
        let first = tokio::select! {
            report = world.deliver(&batch, 1) => words(&report),
            () = cut.reached(), if dies => "died".to_owned(),
        };
        let came_to_it = cut.happened();
        drop((world, store, cut));
        let mut last = first.clone();
        for receives in 2..20 {
            if last.split(' ').all(|word| word == "completed" || word == "duplicate") {
                break;
            }
            // Beyond any lease. A server notices after a moment that the other end is gone.
            again.clock.advance(HOUR);
            last = words(&again.deliver(&batch, receives).await);
        }
        for key in &keys {
            let count = database.party().await.count(&format!("effects WHERE id = '{key}'")).await;
            assert_eq!(count, 1, "{key}: cut at piece {piece}, which arrives: {arrives}; {first}; {last}");
            assert_eq!(again.status(key).await, Some(Status::Completed), "{key}: {first}; {last}");
        }
        if !came_to_it {
            return (cuts, unanswered);
        }
        cuts += 1;
        unanswered += usize::from(first != "completed completed completed");
    }
    unreachable!("the traffic of a delivery ends")
}

/// A commit whose answer is lost, and that takes a while; and records whose leases are longer than their owner knows, as after a renewal
/// without an answer.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn no_handler_runs_beside_its_own_commit() {
    let (database, healthy) = postgres(3).await;
    let slow = "CREATE TABLE ran (id text, run integer); \
        CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.3); RETURN NULL; END $$; \
        CREATE CONSTRAINT TRIGGER linger AFTER INSERT ON ran DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW WHEN (NEW.id LIKE 'slow%') EXECUTE FUNCTION linger()";
    sqlx::raw_sql(slow).execute(healthy.pool()).await.unwrap();
    // Whether the first run was committed, for each piece of traffic after the handler.
    let mut committed_first = Vec::new();
    for piece in 1.. {
        let returned = Arc::new(AtomicBool::new(false));
        let cut = Cut::start_once(Arc::clone(&returned), &database.url(), piece, true).await;
        let AnyStore::Postgres(store) = database.store_at(&cut.url, 3).await else { panic!("PostgreSQL") };
        let runs = Arc::new(Mutex::new(HashMap::<String, i32>::new()));
        let shared = (Arc::clone(&runs), returned, healthy.pool().clone());
        let handler = move |items: Items<Work>, mut tx: TransactionGuard<PgTransaction>| {
            let (runs, returned, pool) = shared.clone();
            async move {
                let longer =
                    "UPDATE claimant_records SET lease_until = lease_until + 3600000 WHERE status = 'IN_PROGRESS'";
                sqlx::raw_sql(longer).execute(&pool).await?;
                let mut results = Vec::new();
                for work in items.payloads() {
                    let run = *runs.lock().unwrap().entry(work.id.clone()).and_modify(|run| *run += 1).or_insert(1);
                    let ran = sqlx::query("INSERT INTO ran VALUES ($1, $2)").bind(work.id.clone()).bind(run);
                    ran.execute(&mut *tx).await?;
                    results.push(Ok(()));
                }
                returned.store(true, Ordering::SeqCst);
                Ok(results)
            }
        };
        let clock = MovableClock::start();
        let consumer = Consumer::batch_transactional("effects", store.clone(), handler).key(|work: &Work| &work.id);
        let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone()));
        let world = World { engine, store, clock };
        let keys = [format!("slow-{piece}"), format!("quick-{piece}")];
        let report = world.deliver(&keys.each_ref().map(|key| format!("{key} ok")), 1).await;
        for key in &keys {
            let committed = sqlx::query_scalar::<_, i32>("SELECT run FROM ran WHERE id = $1").bind(key);
            let committed = committed.fetch_optional(healthy.pool()).await.unwrap();
            let ran = runs.lock().unwrap().get(key).copied();
            assert!(
                committed.is_none() || committed == ran,
                "piece {piece}: {committed:?} {ran:?}; {}",
                words(&report)
            );
            committed_first.push(committed == Some(1));
        }
        if !cut.happened() {
            break;
        }
    }
    // Without an answer to its ending it is rolled back, and runs again; from its commit on, it does not.
    assert!(!committed_first[0] && committed_first.ends_with(&[true; 4]), "{committed_first:?}");
}
