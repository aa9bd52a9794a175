//! The contract on the memory store.

use std::sync::Arc;

use claimant_core::MemoryStore;
use claimant_testkit::contract;

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_store_keeps_the_contract() {
    let findings = contract::survey(Arc::new(MemoryStore::new())).await;
    println!("{findings}");
    assert!(findings.broken().is_empty());
}
