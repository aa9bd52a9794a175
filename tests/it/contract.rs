//! The store contract, on every store.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::MemoryStore;
use claimant_core::Store;
use claimant_sql::{MySqlStore, PostgresStore};
use claimant_testkit::{contract, outcomes};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::services::{MariaDb, Postgres};

/// How long an invocation may take in the outcomes on a real clock.
const INVOCATION: Duration = Duration::from_secs(3);

#[tokio::test]
async fn memory_keeps_the_contract() {
    contract::check(Arc::new(MemoryStore::new())).await;
}

async fn lock_table_keeps_the_contract(dynamodb: DynamoDb) {
    let table = dynamodb.lock_table("contract").await;
    let checks = contract::check(Arc::new(table.clone())).await;
    println!("{checks} checks");
    // Both ways of claiming, in real time: handlers that hang cost a few seconds.
    for batched in [true, false] {
        let cases = outcomes::check(Arc::new(table.clone().batched(batched)), INVOCATION).await;
        println!("{cases} cases, batched {batched}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_table_on_the_embedded_dynamodb() {
    lock_table_keeps_the_contract(DynamoDb::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn lock_table_on_dynamodb_local() {
    lock_table_keeps_the_contract(DynamoDb::local().await).await;
}

async fn keeps_the_contract(store: impl Store + Clone) {
    let checks = contract::check(Arc::new(store.clone())).await;
    println!("{checks} checks");
    let cases = outcomes::check(Arc::new(store), INVOCATION).await;
    println!("{cases} cases");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn postgres_keeps_the_contract() {
    let server = Postgres::start();
    let store = PostgresStore::connect(&server.url(), 10).await.unwrap();
    store.migrate().await.unwrap();
    keeps_the_contract(store).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs MariaDB: make test"]
async fn mysql_keeps_the_contract() {
    let server = MariaDb::start();
    let store = MySqlStore::connect(&server.url(), 10).await.unwrap();
    store.migrate().await.unwrap();
    keeps_the_contract(store).await;
}
