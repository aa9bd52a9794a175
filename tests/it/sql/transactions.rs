//! Transactional consumers: the effect is there exactly when the key is completed.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::{
    Call, ClaimAnswer, Consumer, Context, Engine, HandlerError, InvocationTime, Key, Meter, NoQueue, Record, RecordId,
    Settled, Status, Store, TransactionGuard, Transactional,
};
use claimant_sql::{MySqlTransactions, PostgresTransactions, SqlTransaction};
use claimant_testkit::faulty::{Call as Faulty, Fault};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{MovableClock, contract, outcomes};
use claimant_tests::services::Postgres;
use futures_util::TryStreamExt as _;
use sqlx::{AssertSqlSafe, Database as SqlDatabase, Executor, IntoArguments};
use tokio::sync::Semaphore;

use super::cut::Cut;
use super::world::{AnyStore, Database, NOW, Rows, completed, request};

/// How long an invocation may take.
const INVOCATION: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(20);

/// What handlers share.
struct Stage<D: SqlDatabase> {
    /// Transactions that they did not give back.
    kept: Mutex<Vec<TransactionGuard<SqlTransaction<D>>>>,
    /// Those that pause have begun, and may end.
    begun: Arc<Semaphore>,
    may_end: Arc<Semaphore>,
}

impl<D: SqlDatabase> Stage<D> {
    async fn pause(&self) {
        self.begun.add_permits(1);
        self.may_end.acquire().await.unwrap().forget();
    }
}

/// Makes an effect, and then does what its message says.
async fn act<D>(
    work: Work,
    mut tx: TransactionGuard<SqlTransaction<D>>,
    cx: Context,
    stage: Arc<Stage<D>>,
) -> Result<Option<String>, HandlerError>
where
    D: SqlDatabase<Arguments: IntoArguments<D>>,
    for<'c> &'c mut SqlTransaction<D>: Executor<'c, Database = D>,
{
    let effect = AssertSqlSafe(format!("INSERT INTO effects VALUES ('{}')", work.id));
    (&mut *tx).execute(sqlx::query::<D>(effect)).await?;
    match work.action.as_str() {
        "ok" => {}
        "value" => return Ok(Some("made".to_owned())),
        "flaky" if cx.attempt() > 1 => {}
        "slow" if cx.attempt() > 1 => stage.pause().await,
        "fail" | "flaky" | "slow" => return Err(HandlerError::retry("no luck")),
        "reject" => return Err(HandlerError::terminal("no use")),
        "panic" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        "pause" => stage.pause().await,
        "commit" => drop((&mut *tx).execute(sqlx::query::<D>("COMMIT")).await?),
        "hide" => drop((&mut *tx).execute("SELECT 1; COMMIT; SELECT 2").await?),
        "nest" => drop((&mut *tx).execute(sqlx::query::<D>("SAVEPOINT a")).await?),
        "ignore" => drop((&mut *tx).execute("COMMIT").await),
        "cut" if cx.attempt() == 1 => {
            let sleep = if D::NAME == "PostgreSQL" { "SELECT pg_sleep(9)" } else { "SELECT SLEEP(9)" };
            let _ = tokio::time::timeout(Duration::from_millis(50), (&mut *tx).execute(sqlx::query::<D>(sleep))).await;
        }
        "die" if cx.attempt() == 1 => {
            let end = if D::NAME == "PostgreSQL" { "SELECT pg_terminate_backend(pg_backend_pid())" } else { "DO 1" };
            drop((&mut *tx).execute(sqlx::query::<D>(end)).await);
            if D::NAME != "PostgreSQL" {
                return Err(HandlerError::retry(
                    "MariaDB has no statement that is let through and ends its own connection",
                ));
            }
        }
        // What the database keeps for a session: locks, a temporary table, a cursor, what it listens for, and a sequence's last number.
        "lock" | "lock-and-fail" => {
            let locks: &[&'static str] = if D::NAME == "PostgreSQL" {
                &[
                    "SELECT pg_advisory_lock(7)",
                    "CREATE FUNCTION pg_temp.hides() RETURNS void LANGUAGE plpgsql AS $$ \
                     BEGIN PERFORM pg_advisory_lock(8); EXECUTE 'LISTEN news'; END $$",
                    "SELECT pg_temp.hides()",
                    "CREATE TEMPORARY TABLE scratch (id int)",
                    "CREATE SEQUENCE IF NOT EXISTS numbers",
                    "SELECT nextval('numbers')",
                    "DECLARE held CURSOR WITH HOLD FOR SELECT 1",
                ]
            } else {
                &["SELECT GET_LOCK('claimant test', 5)", "DO GET_LOCK('another', 5)"]
            };
            for sql in locks {
                (&mut *tx).execute(sqlx::query::<D>(*sql)).await?;
            }
            if work.action == "lock-and-fail" {
                return Err(HandlerError::retry("no luck"));
            }
        }
        "set" => {
            let sql = if D::NAME == "PostgreSQL" { "SELECT set_config('a.b', '7', false)" } else { "SELECT @a := 7" };
            drop((&mut *tx).execute(sqlx::query::<D>(sql)).await?);
        }
        "unread" => {
            let rows = sqlx::query::<D>("SELECT 1 / (200 - g) FROM generate_series(1, 300) g");
            let first = (&mut *tx).fetch(rows).try_next().await?;
            assert!(first.is_some());
        }
        "elsewhere" => drop((&mut *tx).execute(sqlx::query::<D>("SET LOCAL search_path = pg_catalog")).await?),
        "keep" => stage.kept.lock().unwrap().push(tx),
        _ => {}
    }
    Ok(None)
}

/// A consumer on a transactional store, and its clock.
struct World {
    engine: Engine,
    store: Arc<dyn Store>,
    begun: Arc<Semaphore>,
    may_end: Arc<Semaphore>,
}

impl World {
    fn new<S, D>(store: S) -> Self
    where
        S: Transactional<Transaction = SqlTransaction<D>> + Clone,
        D: SqlDatabase<Arguments: IntoArguments<D>>,
        for<'c> &'c mut SqlTransaction<D>: Executor<'c, Database = D>,
    {
        let (begun, may_end) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let stage = Stage { kept: Mutex::default(), begun: Arc::clone(&begun), may_end: Arc::clone(&may_end) };
        let (stage, shared) = (Arc::new(stage), Arc::new(store.clone()));
        let handler = move |work, tx, cx| act(work, tx, cx, Arc::clone(&stage));
        let consumer = Consumer::transactional("effects", store, handler).key(|w| &w.id);
        let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()));
        Self { engine, store: shared, begun, may_end }
    }

    fn on(store: &AnyStore) -> Self {
        match store {
            AnyStore::Postgres(store) => Self::new(PostgresTransactions::new(store.clone())),
            AnyStore::MySql(store) => Self::new(MySqlTransactions::new(store.clone())),
        }
    }

    async fn deliver(&self, text: &str, number: u32) -> String {
        self.deliver_within(INVOCATION, text, number).await
    }

    async fn deliver_within(&self, invocation: Duration, text: &str, number: u32) -> String {
        let (now, margin) = (self.engine.now(), Duration::from_millis(MARGIN_DEFAULT_MS));
        let time = InvocationTime::new(now, now.plus(invocation), margin);
        let report = self.engine.process(&[message(0, text, number)], time, &NoQueue).await;
        report.entries()[0].outcome.word().to_owned()
    }

    async fn status(&self, key: &str) -> Option<Status> {
        self.record(key).await.map(|record| record.status)
    }

    async fn record(&self, key: &str) -> Option<Record> {
        let id = RecordId::new(self.engine.name(), &Key::new(key).unwrap());
        let call = Call { within: LONG, meter: &Meter::default() };
        self.store.get(&id, call).await.unwrap()
    }
}

async fn table(database: &Database) {
    let sql = "DROP TABLE IF EXISTS effects; CREATE TABLE effects (id varchar(100))";
    database.party().await.run(sql).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn effects_are_there_exactly_when_the_key_is_completed() {
    use Status::{Completed, Failed, Rejected};
    // What the handler does, what two deliveries come to, where the key stands, how often its effect is there.
    let rows = [
        ("ok", "completed duplicate", Some(Completed), 1),
        ("value", "completed duplicate", Some(Completed), 1),
        ("flaky", "retry completed", Some(Completed), 1),
        ("fail", "retry retry", Some(Failed), 0),
        ("reject", "rejected rejected", Some(Rejected), 0),
        ("panic", "retry retry", Some(Failed), 0),
        ("hang", "cancelled cancelled", Some(Failed), 0),
        ("commit", "retry retry", Some(Failed), 0),
        ("hide", "retry retry", Some(Failed), 0),
        ("nest", "retry retry", Some(Failed), 0),
        ("ignore", "completed duplicate", Some(Completed), 1),
        ("cut", "retry completed", Some(Completed), 1),
        ("die", "retry completed", Some(Completed), 1),
        ("set", "retry retry", Some(Failed), 0),
        ("keep", "retry retry", Some(Failed), 0),
    ];
    for database in Database::both().await {
        let store = database.store(4).await;
        table(&database).await;
        let world = World::on(&store);
        for (action, wanted, status, effects) in rows {
            let (name, text) = (format!("{}, {action}", database.name()), format!("{action}-key {action}"));
            let seen = [world.deliver(&text, 1).await, world.deliver(&text, 2).await];
            assert_eq!(seen.join(" "), wanted, "{name}");
            assert_eq!(world.status(&format!("{action}-key")).await, status, "{name}");
            let count = database.party().await.count(&format!("effects WHERE id = '{action}-key'")).await;
            assert_eq!(count, effects, "{name}");
        }
        drop(world);
        store.all_returned().await;
    }
}

/// The handler has the pool's only connection: what ends its transaction, and records that it failed, waits for none.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_transaction_that_is_kept_with_the_last_connection_is_ended_beside_the_pool() {
    for database in Database::both().await {
        let name = database.name();
        drop(database.store(1).await);
        table(&database).await;
        let mut keeping = Vec::new();
        for attempts in [1, 2] {
            let world = World::on(&database.store_at(&database.url(), 1).await);
            assert_eq!(world.deliver_within(LONG, "a keep", attempts).await, "retry", "{name}");
            // Not by its own store, which has no connection left.
            let seen = World::on(&database.store_at(&database.url(), 1).await);
            let record = seen.record("a").await.unwrap();
            assert_eq!((record.status, record.attempts), (Status::Failed, attempts), "{name}");
            assert_eq!(database.party().await.count("effects").await, 0, "{name}");
            keeping.push(world);
        }
    }
}

/// The completion is written by the handler's transaction, with the settings that the handler made for it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn what_a_handler_left_in_the_way_of_its_completion_is_named() {
    let database = Database::Postgres(Postgres::shared().await);
    let store = database.store(1).await;
    table(&database).await;
    let world = World::on(&store);
    for (action, says) in [
        ("elsewhere", "did the handler set a search_path"),
        ("unread", "(code 22012): a statement of the handler failed after it had stopped reading its rows"),
    ] {
        assert_eq!(world.deliver(&format!("{action} {action}"), 1).await, "retry");
        let id = RecordId::new(world.engine.name(), &Key::new(action).unwrap());
        let call = Call { within: LONG, meter: &Meter::default() };
        let error = world.store.get(&id, call).await.unwrap().unwrap().error.unwrap_or_default();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(database.party().await.count("effects").await, 0);
}

/// With a single connection, which every call here gets.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_connection_keeps_nothing_of_its_handlers() {
    for database in Database::both().await {
        let (store, name) = (database.store(1).await, database.name());
        table(&database).await;
        let world = World::on(&store);
        let locks = match database {
            Database::Postgres(_) => {
                "pg_locks WHERE locktype = 'advisory' \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            }
            Database::MariaDb(_) => {
                "(SELECT IS_USED_LOCK('claimant test') a UNION ALL SELECT IS_USED_LOCK('another')) l WHERE a IS NOT NULL"
            }
        };
        for (text, wanted) in [("a lock", "completed"), ("b lock-and-fail", "retry"), ("c lock", "completed")] {
            // A temporary table that is still there would fail the next one.
            assert_eq!(world.deliver(text, 1).await, wanted, "{name}: {text}");
            assert_eq!(database.party().await.count(locks).await, 0, "{name}: {text}");
            if let AnyStore::Postgres(store) = &store {
                let left = "SELECT (SELECT count(*) FROM pg_cursors WHERE is_holdable) + (SELECT count(*) FROM pg_listening_channels())";
                let left: i64 = sqlx::query_scalar(left).fetch_one(store.pool()).await.unwrap();
                assert_eq!(left, 0, "{name}: {text}");
                let number = sqlx::query("SELECT lastval()").execute(store.pool()).await.unwrap_err();
                assert!(number.to_string().contains("not yet defined"), "{name}: {text}: {number}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn errors_that_the_handler_keeps_to_itself_do_not_commit_half_of_its_work() {
    for database in Database::both().await {
        let (store, name) = (database.store(4).await, database.name());
        let mut party = database.party().await;
        party.run("DROP TABLE IF EXISTS effects; CREATE TABLE effects (id varchar(100))").await;
        match database {
            // A constraint that is looked at by the commit alone.
            Database::Postgres(_) => {
                party.run("ALTER TABLE effects ADD UNIQUE (id) DEFERRABLE INITIALLY DEFERRED").await;
                party.run("INSERT INTO effects VALUES ('a')").await;
            }
            // No retry fixes a table without transactions; one can fix a trigger that fails.
            Database::MariaDb(_) => {
                party.run("CREATE TRIGGER no BEFORE INSERT ON effects FOR EACH ROW SIGNAL SQLSTATE '45000'").await;
            }
        }
        let world = World::on(&store);
        assert_eq!(world.deliver("a ok", 1).await, "retry", "{name}");
        assert_eq!(world.status("a").await, Some(Status::Failed), "{name}");
        store.all_returned().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_duplicate_at_the_same_time_is_busy_soon_and_runs_nothing() {
    for database in Database::both().await {
        let (store, name) = (database.store(4).await, database.name());
        table(&database).await;
        // One key without a record, and one that failed before.
        let (first, second) = (World::on(&store), World::on(&store));
        assert_eq!(first.deliver("old slow", 1).await, "retry");
        for text in ["new pause", "old slow"] {
            let key = &text[..3];
            let other = async {
                first.begun.acquire().await.unwrap().forget();
                let word = second.deliver_within(LONG, text, 2).await;
                first.may_end.add_permits(1);
                word
            };
            let (one, other) = tokio::join!(first.deliver_within(LONG, text, 1), other);
            assert_eq!((one.as_str(), other.as_str()), ("completed", "busy"), "{name}, {key}");
            assert_eq!(second.deliver(text, 3).await, "duplicate", "{name}, {key}");
            assert_eq!(database.party().await.count(&format!("effects WHERE id = '{key}'")).await, 1, "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_claim_and_its_effects_in_one_transaction_keep_the_contract() {
    for database in Database::both().await {
        let store = database.store(4).await;
        table(&database).await;
        let rows = Rows::of(&database).await;
        let findings = match store {
            AnyStore::Postgres(store) => {
                contract::check_transactional(Arc::new(PostgresTransactions::new(store)), &rows).await
            }
            AnyStore::MySql(store) => {
                contract::check_transactional(Arc::new(MySqlTransactions::new(store)), &rows).await
            }
        };
        println!("{}: {findings}", database.name());
    }
}

pub(super) fn transactional(store: &AnyStore) -> Arc<dyn Store> {
    match store {
        AnyStore::Postgres(store) => Arc::new(PostgresTransactions::new(store.clone())),
        AnyStore::MySql(store) => Arc::new(MySqlTransactions::new(store.clone())),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn claims_that_are_dropped_or_forgotten_give_their_keys_back() {
    for database in Database::both().await {
        let (whole, name) = (database.store(2).await, database.name());
        let store = transactional(&whole);
        let meter = Meter::default();
        let call = Call { within: LONG, meter: &meter };
        let granted = async |key: &str, lease: Duration| {
            let mut request = request(key);
            request.lease_until = NOW.plus(lease);
            match store.claim(&request, call).await.unwrap() {
                ClaimAnswer::Granted(claim) => claim,
                ClaimAnswer::Refused(refusal) => panic!("{name}: {refusal:?}"),
            }
        };
        for _ in 0..5 {
            drop(granted("dropped", LONG).await);
        }
        whole.all_returned().await;

        // A process that stopped, as far as the server can see: its lease was a second.
        let begun = Instant::now();
        let forgotten = granted("forgotten", Duration::from_secs(1)).await;
        let patience = Instant::now() + LONG;
        let claim = loop {
            match store.claim(&request("forgotten"), call).await.unwrap() {
                ClaimAnswer::Granted(claim) => break claim,
                ClaimAnswer::Refused(_) => assert!(Instant::now() < patience, "{name}: it is never given back"),
            }
        };
        // Far from ten times the lease, and from none.
        let kept = begun.elapsed();
        assert!((Duration::from_secs(1)..Duration::from_secs(8)).contains(&kept), "{name}: {kept:?}");
        let settled = store.settle(forgotten, &completed(), call).await;
        let Settled::Aborted { claim: aborted, failure } = settled else { panic!("{name}: {settled:?}") };
        // MariaDB closes the connection without a word.
        assert!(failure.why.contains("idle for") && failure.why.contains("leave .lease(…) out"), "{name}: {failure:?}");
        assert!(matches!(store.settle(claim, &completed(), call).await, Settled::Done), "{name}");
        let failed = claimant_core::protocol::Settlement {
            ending: claimant_core::protocol::Ending::Failed { error: "late".into() },
            ..completed()
        };
        assert!(matches!(store.settle(aborted, &failed, call).await, Settled::Lost), "{name}");
        whole.all_returned().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn connections_cut_at_every_piece_of_traffic_leave_one_effect() {
    for database in Database::both().await {
        let name = database.name();
        drop(database.store(2).await);
        table(&database).await;
        let (mut cuts, mut unanswered) = (0, 0);
        for arrives in [true, false] {
            for piece in 1.. {
                let cut = Cut::start(&database.url(), piece, arrives).await;
                let (key, text) = (format!("{piece}{arrives}"), format!("{piece}{arrives} ok"));
                let first = World::on(&database.store_at(&cut.url, 2).await).deliver(&text, 1).await;
                let came_to_it = cut.happened();
                drop(cut);
                let again = World::on(&database.store_at(&database.url(), 2).await);
                let mut last = first.clone();
                for number in 2..20 {
                    // A server notices after a moment that the other end is gone.
                    if last == "completed" || last == "duplicate" {
                        break;
                    }
                    last = again.deliver(&text, number).await;
                }
                let count = database.party().await.count(&format!("effects WHERE id = '{key}'")).await;
                assert_eq!(count, 1, "{name}: cut at piece {piece}, which arrives: {arrives}; {first}, {last}");
                assert_eq!(
                    again.status(&key).await,
                    Some(Status::Completed),
                    "{name}: {piece} {arrives} {first} {last}"
                );
                if !came_to_it {
                    break;
                }
                cuts += 1;
                unanswered += usize::from(first != "completed");
            }
        }
        println!("{name}: {cuts} cuts, {unanswered} of them seen by the message");
        assert!(cuts > 20, "{name}: {cuts}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn transactions_come_to_every_outcome_that_others_do() {
    for database in Database::both().await {
        let store = database.store(10).await;
        // A claim that is dropped leaves nothing behind, so there are no orphans; nor can anybody rob an open transaction.
        let applies = |case: &outcomes::Case| {
            // A fault in front of the store takes the transaction with it, unless that was over.
            let orphans = |fault: &(Faulty, Fault)| match fault {
                (Faulty::Claim, fault) => matches!(fault, Fault::AnswerLost | Fault::Applied(_)),
                (Faulty::Settle, fault) => !matches!(fault, Fault::Applied(_)),
                (Faulty::Renew, _) => false,
            };
            let robs = case.deliveries.iter().flat_map(|delivery| delivery.batch).any(|text| text.contains("robbed"));
            !robs && !case.faults.iter().any(orphans)
        };
        let cases = outcomes::check_where(transactional(&store), INVOCATION, applies).await;
        println!("{}: {cases} cases", database.name());
        store.all_returned().await;
    }
}
