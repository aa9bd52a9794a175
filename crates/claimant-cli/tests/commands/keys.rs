//! Acts on keys and limits, as people call them, on a local cloud.

use serde_json::Value;

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

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_json_where_that_is_asked_for() {
    let world = World::of(TABLE).await;
    let limit = ["limit", "ses", "--rate", "20/s", "--table", "Locks", "--json"];
    for more in ["--dry-run", "--yes"] {
        let (code, out, err) = world.claimant(&[&limit[..], &[more]].concat()).await;
        let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{more}: {e}: {out}{err}"));
        assert_eq!((code, &shown["limit"]), (0, &Value::from("ses")), "{shown}");
        let of = if more == "--dry-run" { &shown["would_set"] } else { &shown["set"] };
        assert_eq!(of["calls"], 20, "{shown}");
    }
    world.cloud.stop().await;
}
