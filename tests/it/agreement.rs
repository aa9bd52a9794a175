//! The lock table's two ways of asking, and the two DynamoDBs that tests have, give the same answers.

use claimant_testkit::contract::{Side, agree};
use claimant_tests::dynamodb::DynamoDb;

/// Many keys in one request, as against each key in one of its own.
#[tokio::test(flavor = "multi_thread")]
async fn claims_in_company_are_as_single_ones() {
    let dynamodb = DynamoDb::embedded().await;
    let (batched, single) = (dynamodb.lock_table("batched").await, dynamodb.lock_table("single").await.batched(false));
    agree(Side { store: &batched, together: true }, Side { store: &single, together: false }).await;
}

/// The embedded DynamoDB as against Amazon's own, with the same calls.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn the_embedded_dynamodb_is_as_dynamodb_local() {
    let (embedded, local) = (DynamoDb::embedded().await, DynamoDb::local());
    for together in [true, false] {
        let tables =
            [embedded.lock_table(&format!("t-{together}")).await, local.lock_table(&format!("t-{together}")).await];
        let [embedded, local] = tables.each_ref().map(|table| Side { store: table, together });
        agree(embedded, local).await;
    }
}
