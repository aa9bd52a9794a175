//! What the lock table asks of DynamoDB, and what it makes of lost answers and bad tables.

use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Ending, Settlement};
use claimant_core::{
    Claim, ClaimAnswer, ConsumerName, Fingerprint, Key, MessageId, OwnerToken, RecordId, Settled, Store,
    StoreErrorKind, Timestamp,
};
use claimant_dynamodb::{AttributeNames, LockTable};
use claimant_testkit::clock::TEST_EPOCH;
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::wire::Loss::{self, Answer, Request, Silence};
use claimant_tests::wire::Wire;

const WITHIN: Duration = Duration::from_secs(20);

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(TEST_EPOCH.as_millis() + ms)
}

fn request(key: &str, now: u64) -> ClaimRequest {
    ClaimRequest {
        id: RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key).unwrap()),
        owner: OwnerToken::draw().unwrap(),
        message_id: MessageId::new("m").unwrap(),
        fingerprint: Fingerprint::of_bytes(b"p"),
        now: at(now),
        lease_until: at(now + 1_000),
        policy: ClaimPolicy { window: Duration::from_secs(60), ..ClaimPolicy::default() },
    }
}

fn ending(ending: Ending) -> Settlement {
    Settlement { ending, now: at(500), policy: request("k", 0).policy }
}

fn failed() -> Settlement {
    ending(Ending::Failed { error: "no luck".into() })
}

async fn granted(table: &LockTable, key: &str, now: u64) -> Claim {
    match table.claim(&request(key, now), WITHIN).await.unwrap() {
        ClaimAnswer::Granted(claim) => claim,
        ClaimAnswer::Refused(refusal) => panic!("{key} at {now}: {refusal:?}"),
    }
}

async fn check_all(dynamodb: DynamoDb) {
    requests_are_few(&dynamodb).await;
    lost_claims_are_recognised(&dynamodb).await;
    lost_settlements_are_resolved(&dynamodb).await;
    silence_ends_in_time(&dynamodb).await;
    other_attribute_names_work(&dynamodb).await;
    bad_tables_are_named(&dynamodb).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_dynamodb() {
    check_all(DynamoDb::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local: make test"]
async fn on_dynamodb_local() {
    check_all(DynamoDb::local().await).await;
}

async fn wired(dynamodb: &DynamoDb, name: &str) -> (LockTable, Wire) {
    dynamodb.lock_table(name).await;
    let wire = Wire::default();
    (LockTable::new(dynamodb.client_over(&wire), name), wire)
}

/// One request for each claim of the common kinds, and one for each settlement.
async fn requests_are_few(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "few").await;
    let asked = |wanted: &[&str], what: &str| assert_eq!(wire.take_requests(), wanted, "{what}");
    let claim = granted(&table, "k", 0).await;
    asked(&["UpdateItem"], "a fresh key");
    table.claim(&request("k", 1), WITHIN).await.unwrap();
    asked(&["UpdateItem"], "a busy key");
    assert!(matches!(table.settle(claim, &failed(), WITHIN).await, Settled::Done));
    asked(&["UpdateItem"], "a settlement");
    let _abandoned = granted(&table, "k", 10).await;
    asked(&["UpdateItem"], "a key that failed");
    let claim = granted(&table, "k", 10_000).await;
    assert!(claim.taken_over && claim.attempt == 3);
    asked(&["UpdateItem"], "a takeover");
    assert!(matches!(table.settle(claim, &ending(Ending::Completed), WITHIN).await, Settled::Done));
    asked(&["UpdateItem"], "its completion");
    table.claim(&request("k", 10_001), WITHIN).await.unwrap();
    asked(&["UpdateItem"], "a completed key");
    let _fresh = granted(&table, "k", 200_000).await;
    asked(&["UpdateItem", "UpdateItem"], "a key whose window is over");
}

/// Fault 7: the SDK's own retry meets the write whose answer was lost.
async fn lost_claims_are_recognised(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lost-claims").await;
    for (key, losses, fence) in [
        ("a", &[Answer][..], 1),
        ("b", &[Answer, Answer], 1),
        ("c", &[Request, Answer], 1),
        ("d", &[Request, Request], 1),
    ] {
        wire.script(losses);
        let claim = granted(&table, key, 0).await;
        assert_eq!(claim.fence.get(), fence, "{key}");
        assert!(matches!(table.settle(claim, &ending(Ending::Completed), WITHIN).await, Settled::Done), "{key}");
    }
    wire.script(&[Answer, Answer, Answer]);
    let error = table.claim(&request("e", 0), WITHIN).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    let answer = table.claim(&request("e", 1), WITHIN).await.unwrap();
    assert!(matches!(answer, ClaimAnswer::Refused(_)), "the orphan holds the key until its lease ends: {answer:?}");
}

/// Faults 8, 9 and 14.
async fn lost_settlements_are_resolved(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "lost-settlements").await;
    let rows: [(&str, &[Loss], &str, &str); 5] = [
        ("the SDK's retry sees its own write", &[Answer], "Done", "COMPLETED"),
        ("three lost answers: the record tells", &[Answer, Answer, Answer], "Done", "COMPLETED"),
        ("three lost requests: written anew", &[Request, Request, Request], "Done", "COMPLETED"),
        ("lost answers and a lost look", &[Answer, Answer, Answer, Request, Request, Request], "Done", "COMPLETED"),
        ("nothing arrives", &[Request; 64], "Unknown", "IN_PROGRESS"),
    ];
    for (name, losses, wanted, status) in rows {
        let claim = granted(&table, name, 0).await;
        let id = claim.id.clone();
        wire.script(losses);
        let settled = table.settle(claim, &ending(Ending::Completed), WITHIN).await;
        assert!(format!("{settled:?}").starts_with(wanted), "{name}: {settled:?}");
        let record = dynamodb_record(dynamodb, &id).await;
        assert_eq!(record, status, "{name}");
    }
}

async fn dynamodb_record(dynamodb: &DynamoDb, id: &RecordId) -> String {
    let table = LockTable::new(dynamodb.client(), "lost-settlements");
    table.look(id, WITHIN).await.unwrap().unwrap().status.to_string()
}

/// Fault 32: an endpoint that says nothing costs the time given, and no more.
async fn silence_ends_in_time(dynamodb: &DynamoDb) {
    let (table, wire) = wired(dynamodb, "silence").await;
    let claim = granted(&table, "k", 0).await;
    wire.script(&[Silence; 64]);
    let within = Duration::from_millis(200);
    let error = table.claim(&request("other", 0), within).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    assert!(matches!(table.settle(claim, &failed(), within).await, Settled::Unknown(_)));
}

async fn other_attribute_names_work(dynamodb: &DynamoDb) {
    // Reserved words of DynamoDB on purpose.
    let names = AttributeNames {
        id: "key".into(),
        status: "state".into(),
        owner: "user".into(),
        expires_at: "ttl".into(),
        error: "comment".into(),
        ..AttributeNames::default()
    };
    let table = LockTable::new(dynamodb.client(), "other-names").attribute_names(names);
    table.create().await.unwrap();
    table.create().await.expect("making it again does nothing");
    let claim = granted(&table, "k", 0).await;
    let id = claim.id.clone();
    assert!(matches!(table.settle(claim, &failed(), WITHIN).await, Settled::Done));
    assert_eq!(table.look(&id, WITHIN).await.unwrap().unwrap().error.as_deref(), Some("no luck"));
}

/// Bad set-up: an error that names the table and the mend.
async fn bad_tables_are_named(dynamodb: &DynamoDb) {
    let missing = LockTable::new(dynamodb.client(), "no-such-table");
    let error = missing.claim(&request("k", 0), WITHIN).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    for wanted in ["\"no-such-table\"", "ResourceNotFoundException", "CLAIMANT_TABLE"] {
        assert!(error.to_string().contains(wanted), "{wanted} in {error}");
    }
    for (name, key, kind) in
        [("other-key", "pk", ScalarAttributeType::S), ("numeric-key", "id", ScalarAttributeType::N)]
    {
        let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash).build().unwrap();
        let attribute = AttributeDefinition::builder().attribute_name(key).attribute_type(kind).build().unwrap();
        let create = dynamodb.client().create_table().table_name(name).key_schema(schema);
        create.attribute_definitions(attribute).billing_mode(BillingMode::PayPerRequest).send().await.unwrap();
        let error = LockTable::new(dynamodb.client(), name).claim(&request("k", 0), WITHIN).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
        assert!(error.to_string().contains("the string `id`"), "{error}");
    }
}
