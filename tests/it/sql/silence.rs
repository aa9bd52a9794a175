//! A line that falls silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claimant_core::{Call, ClaimAnswer, Meter, Settled, Store, StoreErrorKind};
use claimant_servers::relay::{Direction, Fate, Relay, Rule};
use claimant_sql::{MySqlStore, MySqlTransactions, PostgresStore, PostgresTransactions};
use claimant_tests::tap::{Loss, Tap};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::world::{AnyStore, Database, Party, claim, completed, granted, request};

const LONG: Duration = Duration::from_secs(20);

/// A pool tests what returns to it by a query. Here its answer never comes, as when a function was frozen before it did.
#[tokio::test]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_connection_that_falls_silent_on_its_way_back_does_not_keep_its_place() {
    for database in Database::both().await {
        let name = database.name();
        drop(database.store(1).await);
        let server = database.address();
        let tap = Tap::before(server).await;
        let store = database.store_at(&database.url().replace(server, &tap.address), 1).await;
        drop(granted(&store, "before").await);
        // On this runtime of one thread, the connection's way back is a task that has not begun yet.
        tap.lose(Loss::Silence);
        while !tap.lost() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let answer = claim(&store, "after", LONG).await;
        assert!(matches!(answer, Ok(ClaimAnswer::Granted(_))), "{name}: {answer:?}");
    }
}

/// As a load balancer does in a failover: it takes the connection, has no server for it, and closes.
#[tokio::test]
async fn what_closes_before_the_login_is_asked_about() {
    let balancer = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = format!("user:secret@{}/claimant", balancer.local_addr().unwrap());
    let closing = tokio::spawn(async move { while balancer.accept().await.is_ok() {} });
    let postgres = PostgresStore::connect(&format!("postgres://{at}"), 1).await.unwrap();
    let mysql = MySqlStore::connect(&format!("mysql://{at}"), 1).await.unwrap();
    for store in [AnyStore::Postgres(postgres), AnyStore::MySql(mysql)] {
        let error = claim(&store, "k", Duration::from_secs(2)).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains("a proxy whose server is down?"), "{error}");
    }
    closing.abort();
}

/// Nothing arrives any more from when this is set.
#[derive(Default)]
struct Silent(AtomicBool);

impl Rule for Silent {
    async fn fate(&self, _: Direction) -> Fate {
        if self.0.load(Ordering::SeqCst) { Fate::Silence } else { Fate::Pass }
    }
}

/// After a try that failed, the next connection is tested first: not for longer than the call has.
#[tokio::test]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_call_ends_in_its_time_while_it_tests_a_connection() {
    // One statement, and less than a test may take.
    const CALL: Duration = Duration::from_millis(2_200);
    for database in Database::both().await {
        let name = database.name();
        drop(database.store(1).await);
        let (server, silent) = (database.address(), Arc::new(Silent::default()));
        let relay = Relay::start(server, Arc::clone(&silent)).await.unwrap();
        let store = database.store_at(&database.url().replace(server, &relay.address.to_string()), 2).await;
        drop((store.hold().await, store.hold().await));
        store.all_returned().await;
        silent.0.store(true, Ordering::SeqCst);
        // From here on there is nothing to wait for but the clock, which then goes on by itself.
        tokio::time::pause();
        let begun = Instant::now();
        let answer = claim(&store, "silent", CALL).await;
        let took = begun.elapsed();
        tokio::time::resume();
        assert!(answer.is_err() && took <= CALL + Duration::from_millis(5), "{name}: {took:?}, {answer:?}");
    }
}

/// No request arrives any more from when a key is locked by a claim that is not committed.
struct OnceLocked {
    party: Mutex<Party>,
    locked: &'static str,
    silent: AtomicBool,
}

impl Rule for OnceLocked {
    async fn fate(&self, direction: Direction) -> Fate {
        if direction == Direction::Answer {
            return Fate::Pass;
        }
        if self.party.lock().await.count(self.locked).await > 0 {
            self.silent.store(true, Ordering::SeqCst);
        }
        if self.silent.load(Ordering::SeqCst) { Fate::Silence } else { Fate::Pass }
    }
}

fn transactions(store: AnyStore) -> Box<dyn Store> {
    match store {
        AnyStore::Postgres(store) => Box::new(PostgresTransactions::new(store)),
        AnyStore::MySql(store) => Box::new(MySqlTransactions::new(store)),
    }
}

/// The server has rolled it back: nothing more is sent, and counted, for it.
#[tokio::test]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_transaction_whose_connection_is_gone_takes_no_rollback() {
    for database in Database::both().await {
        let (name, meter) = (database.name(), Meter::default());
        let (store, call) = (transactions(database.store(2).await), Call { within: LONG, meter: &meter });
        let Ok(ClaimAnswer::Granted(claim)) = store.claim(&request("gone"), call).await else {
            panic!("{name}: fresh")
        };
        database.party().await.end_all_others().await;
        let before = meter.usage().requests;
        let settled = store.settle(claim, &completed(), call).await;
        assert!(matches!(settled, Settled::Aborted { .. }), "{name}: {settled:?}");
        assert_eq!(meter.usage().requests - before, 1, "{name}: the completion");
    }
}

/// As a proxy does whose idle limit is shorter than the handler works.
#[tokio::test]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_transaction_whose_connection_was_closed_between_asks_for_a_proxy() {
    for database in Database::both().await {
        let (name, meter) = (database.name(), Meter::default());
        drop(database.store(1).await);
        let server = database.address();
        let tap = Tap::before(server).await;
        let store = transactions(database.store_at(&database.url().replace(server, &tap.address), 1).await);
        let call = Call { within: LONG, meter: &meter };
        let Ok(ClaimAnswer::Granted(claim)) = store.claim(&request("idle"), call).await else {
            panic!("{name}: fresh")
        };
        tap.shut(true);
        let settled = store.settle(claim, &completed(), call).await;
        let Settled::Aborted { failure, .. } = settled else { panic!("{name}: {settled:?}") };
        assert!(failure.why.contains("proxy or load balancer"), "{name}: {failure:?}");
    }
}

/// A process is gone, without a word to the server, after its claim is written and before its handler has the transaction.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL and MariaDB: make test"]
async fn a_transaction_that_is_left_before_its_handler_has_it_is_rolled_back_by_the_server() {
    for database in Database::both().await {
        let name = database.name();
        let (direct, mut party) = (transactions(database.store(2).await), database.party().await);
        let locked = match &database {
            Database::Postgres(_) => {
                "pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction' \
                 AND backend_xid IS NOT NULL"
            }
            Database::MariaDb(_) => {
                party.run("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED").await;
                "claimant_records"
            }
        };
        let (server, party) = (database.address(), Mutex::new(party));
        let rule = Arc::new(OnceLocked { party, locked, silent: AtomicBool::default() });
        let relay = Relay::start(server, Arc::clone(&rule)).await.unwrap();
        let over = database.store_at(&database.url().replace(server, &relay.address.to_string()), 1).await;
        let meter = Meter::default();
        let call = Call { within: Duration::from_secs(1), meter: &meter };
        // Long enough for its connection to be made, behind a look at the database for each of its messages.
        let longer = Call { within: Duration::from_secs(4), meter: &meter };
        let left = transactions(over).claim(&request("left"), longer).await;
        assert!(left.is_err() && rule.silent.load(Ordering::SeqCst), "{name}: {left:?}");
        let begun = Instant::now();
        while !matches!(direct.claim(&request("left"), call).await, Ok(ClaimAnswer::Granted(_))) {
            assert!(begun.elapsed() < Duration::from_secs(15), "{name}: its key stays locked");
        }
    }
}
