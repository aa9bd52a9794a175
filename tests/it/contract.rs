//! The store contract, on every store.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::MemoryStore;
use claimant_dynamodb::{LockTable, Tables};
use claimant_redis::RedisStore;
use claimant_sql::{MySqlStore, PostgresStore};
use claimant_testkit::{contract, outcomes};
use claimant_tests::dynamodb::{DynamoDb, client};
use claimant_tests::services::{MariaDb, Postgres, Redis};
use claimant_tests::stores::{self, About};

/// How long an invocation may take in the outcomes on a real clock.
const INVOCATION: Duration = Duration::from_secs(3);

/// Of URLs, which no error may show.
const PASSWORD: &str = "open-s3same";

const MEMORY: About = About {
    name: "memory",
    transactions: "no",
    cleanup: "never",
    failover: "everything: it is for tests, and no two processes share it",
};

const EMBEDDED: About = About {
    name: "DynamoDB (embedded, `make run`)",
    transactions: "yes",
    cleanup: "never",
    failover: "everything: it is in memory",
};

const DYNAMODB: About = About {
    name: "DynamoDB (measured on DynamoDB Local)",
    transactions: "yes",
    cleanup: "the table's TTL, within days",
    failover: "nothing within a Region, where a write that was answered is in two zones; in a global table, what had not reached the other Region",
};

const REDIS: About = About {
    name: "Redis",
    transactions: "no",
    cleanup: "Redis's own expiry, a minute after the window",
    failover: "the last writes before it, since replication is asynchronous; and everything where nothing is persisted",
};

const REDIS_CLUSTER: About = About { name: "Redis (a cluster of two nodes)", ..REDIS };

const POSTGRES: About = About {
    name: "PostgreSQL",
    transactions: "yes",
    cleanup: "`delete_expired`, called by a job of yours",
    failover: "nothing with a synchronous standby, in RDS Multi-AZ or in Aurora; else the last writes before it",
};

const MYSQL: About = About {
    name: "MySQL (measured on MariaDB)",
    failover: "nothing in RDS Multi-AZ and Aurora; with semi-synchronous replication (`AFTER_SYNC`) what was written since it fell back, which it does \
               after 10 s by default; else the last writes before it",
    ..POSTGRES
};

#[tokio::test(flavor = "multi_thread")]
async fn memory_keeps_the_contract() {
    let store = Arc::new(MemoryStore::new());
    stores::check(&MEMORY, [store.clone(), store]).await;
    contract::check_records(Arc::new(MemoryStore::new())).await;
}

/// Holds it to the outcomes, claimed in batches or not.
async fn outcomes_are_the_same(table: &LockTable, batched: bool) {
    // In real time: handlers that hang cost a few seconds. A request for each claim: which of them one call gets is then decided by when
    // their answers come.
    let apart: fn(&outcomes::Case) -> bool = |case| case.calls.is_none();
    let applies = if batched { |_: &outcomes::Case| true } else { apart };
    let cases = outcomes::check_where(Arc::new(table.clone().batched(batched)), INVOCATION, applies).await;
    println!("{cases} cases, batched {batched}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn lock_table_on_dynamodb_local() {
    let dynamodb = DynamoDb::local();
    let table = dynamodb.lock_table("contract").await;
    // First, while the table is short: each list reads all of it.
    contract::check_records(Arc::new(table.clone())).await;
    stores::check(&DYNAMODB, [table.clone(), dynamodb.opened("contract")].map(Arc::new)).await;
    outcomes_are_the_same(&table, true).await;
}

fn three_tables(of: &str) -> Tables {
    Tables::new((1..=3).map(|number| format!("{of}-{number}"))).unwrap()
}

/// The contract of three tables, with one before: records are looked for there, too, and there is none, so the answers are those of a
/// single table. That one is held to it on DynamoDB Local, which answers as this one does (`agreement`).
#[tokio::test(flavor = "multi_thread")]
async fn lock_table_on_the_embedded_dynamodb() {
    let dynamodb = DynamoDb::embedded().await;
    let single = dynamodb.lock_table("contract").await;
    contract::check_records(Arc::new(single.clone())).await;
    dynamodb.lock_table("old").await;
    let tables = three_tables("contract");
    let several = Arc::new(dynamodb.lock_table(tables.clone()).await.before("old"));
    let again = Arc::new(dynamodb.opened(tables.clone()).before("old"));
    println!("{}", contract::check_records(several.clone()).await);
    stores::check_forms(&EMBEDDED, [several, again], Arc::new(single.clone())).await;
    for table in tables.names() {
        let items = dynamodb.client().scan().table_name(table).send().await.unwrap().count();
        assert!(items > 100, "{items} records in {table}");
    }
    // In batches they are held to on DynamoDB Local.
    outcomes_are_the_same(&single, false).await;
}

/// Where no server listens, and where none answers.
#[tokio::test(start_paused = true)]
async fn lock_table_without_a_dynamodb() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let table = || Arc::new(LockTable::new(client(&format!("http://{address}")), "contract"));
    println!("no server answers: {}", contract::check_unreachable(table(), &[]).await);
    drop(listener);
    println!("no server listens: {}", contract::check_unreachable(table(), &[]).await);
}

async fn redis_keeps_the_contract(about: &About, open: impl Fn() -> RedisStore) {
    stores::check(about, [open(), open()].map(Arc::new)).await;
    let cases = outcomes::check(Arc::new(open()), INVOCATION).await;
    println!("{cases} cases");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn redis_store_on_one_server() {
    let redis = Redis::start();
    contract::check_records(Arc::new(RedisStore::open(&redis.url()).unwrap())).await;
    redis_keeps_the_contract(&REDIS, || RedisStore::open(&redis.url()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn redis_store_on_a_cluster() {
    let nodes = Redis::cluster().await;
    redis_keeps_the_contract(&REDIS_CLUSTER, || RedisStore::open_cluster(&nodes[0].url()).unwrap()).await;
}

/// Where no server listens, and where none answers.
#[tokio::test(start_paused = true)]
async fn redis_store_without_a_redis() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://claimant:{PASSWORD}@{}/", listener.local_addr().unwrap());
    let stores = || [RedisStore::open(&url).unwrap(), RedisStore::open_cluster(&url).unwrap()].map(Arc::new);
    for store in stores() {
        println!("no server answers: {}", contract::check_unreachable(store, &[PASSWORD]).await);
    }
    drop(listener);
    for store in stores() {
        println!("no server listens: {}", contract::check_unreachable(store, &[PASSWORD]).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn postgres_keeps_the_contract() {
    let server = Postgres::shared().await;
    let store = Arc::new(PostgresStore::connect(&server.url(), 10).await.unwrap());
    store.migrate().await.unwrap();
    let other = Arc::new(PostgresStore::connect(&server.url(), 10).await.unwrap());
    stores::check(&POSTGRES, [store.clone(), other]).await;
    contract::check_records(store.clone()).await;
    println!("{} cases", outcomes::check(store, INVOCATION).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn mysql_keeps_the_contract() {
    let server = MariaDb::shared().await;
    let store = Arc::new(MySqlStore::connect(&server.url(), 10).await.unwrap());
    store.migrate().await.unwrap();
    let other = Arc::new(MySqlStore::connect(&server.url(), 10).await.unwrap());
    stores::check(&MYSQL, [store.clone(), other]).await;
    contract::check_records(store.clone()).await;
    println!("{} cases", outcomes::check(store, INVOCATION).await);
}

/// Where no server listens, and where none answers.
#[tokio::test(start_paused = true)]
async fn sql_stores_without_a_server() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let postgres =
        async || Arc::new(PostgresStore::connect(&format!("postgres://u:{PASSWORD}@{address}/d"), 10).await.unwrap());
    let mysql = async || Arc::new(MySqlStore::connect(&format!("mysql://u:{PASSWORD}@{address}/d"), 10).await.unwrap());
    println!("no server answers: {}", contract::check_unreachable(postgres().await, &[PASSWORD]).await);
    println!("no server answers: {}", contract::check_unreachable(mysql().await, &[PASSWORD]).await);
    drop(listener);
    println!("no server listens: {}", contract::check_unreachable(postgres().await, &[PASSWORD]).await);
    println!("no server listens: {}", contract::check_unreachable(mysql().await, &[PASSWORD]).await);
}
