//! Acts on keys and limits, as people call them, on a local cloud.

use crate::dead::World;

const TABLE: &str = "
  Locks:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: Locks
      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
";

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_told_before_the_others_are_acted_on() {
    let world = World::of(TABLE).await;
    let (code, out, err) = world.claimant(&["release", "order#1", "none", "--table", "Locks", "--yes"]).await;
    assert!(code == 2 && err.contains("none: the key has no consumer"), "{err}");
    assert_eq!(out, "");
    world.cloud.stop().await;
}
