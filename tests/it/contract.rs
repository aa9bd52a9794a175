//! The store contract, on every store.

use std::sync::Arc;

use claimant_core::MemoryStore;
use claimant_testkit::contract;
use claimant_tests::dynamodb::DynamoDb;

#[tokio::test]
async fn memory_keeps_the_contract() {
    contract::check(Arc::new(MemoryStore::new())).await;
}

async fn lock_table_keeps_the_contract(dynamodb: DynamoDb) {
    let table = dynamodb.lock_table("contract").await;
    let checks = contract::check(Arc::new(table)).await;
    println!("{checks} checks");
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
