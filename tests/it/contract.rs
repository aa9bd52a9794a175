//! The store contract, on every store.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::MemoryStore;
use claimant_redis::RedisStore;
use claimant_testkit::{contract, outcomes};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::services::Redis;

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

async fn redis_keeps_the_contract(store: RedisStore) {
    let checks = contract::check(Arc::new(store.clone())).await;
    let cases = outcomes::check(Arc::new(store), INVOCATION).await;
    println!("{checks} checks, {cases} cases");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn redis_store_on_one_server() {
    let redis = Redis::start();
    redis_keeps_the_contract(RedisStore::open(&redis.url()).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis or Valkey: make test"]
async fn redis_store_on_a_cluster() {
    let nodes = Redis::cluster().await;
    redis_keeps_the_contract(RedisStore::open_cluster(&nodes[0].url()).unwrap()).await;
}
