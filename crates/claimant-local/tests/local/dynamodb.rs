//! The embedded DynamoDB as the SDK sees it, and as it is after a restart.

use std::path::Path;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::error::ProvideErrorMetadata as _;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, ConditionCheck, ReturnValuesOnConditionCheckFailure, TimeToLiveStatus,
    TransactWriteItem,
};
use aws_sdk_dynamodb::{Client, Config};
use claimant_local::Error;
use claimant_local::dynamodb::{Creation, DynamoDb, FILE_NAME, Item};
use claimant_local::faults::{Act, FaultSpec, Faults, Target};
use claimant_local::journal::{Event, Journal, What};
use claimant_local::stack::{KeyKind, KeySpec, TableSpec};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::support::http;

fn key(name: &str, kind: KeyKind) -> KeySpec {
    KeySpec { name: name.into(), kind }
}

fn locks() -> TableSpec {
    TableSpec {
        logical_id: "LockTable".into(),
        name: "locks".into(),
        partition_key: key("id", KeyKind::S),
        sort_key: None,
        ttl_attribute: Some("expires_at".into()),
    }
}

async fn client(dynamodb: &DynamoDb) -> Client {
    served(dynamodb).await.0
}

/// A client, and the server that it asks.
async fn served(dynamodb: &DynamoDb) -> (Client, JoinHandle<Result<(), Error>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(dynamodb.clone().serve(listener, std::future::pending()));
    (client_of(&format!("http://{address}")), server)
}

fn client_of(url: &str) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "test"))
        .http_client(claimant_aws::http_client())
        .endpoint_url(url)
        .retry_config(RetryConfig::disabled())
        .build();
    Client::from_conf(config)
}

/// Claims `id` for `owner` if it has no owner; a refusal brings the record.
async fn claim(client: &Client, id: &str, owner: &str) -> Result<(), UpdateItemError> {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let claim = client
        .update_item()
        .table_name("locks")
        .key("id", text(id))
        .update_expression("SET #owner = :owner, fingerprint = :fingerprint ADD attempts :one")
        .condition_expression("attribute_not_exists(id)")
        .expression_attribute_names("#owner", "owner")
        .expression_attribute_values(":owner", text(owner))
        .expression_attribute_values(":fingerprint", AttributeValue::B(Blob::new([0; 32])))
        .expression_attribute_values(":one", AttributeValue::N("1".into()))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    claim.send().await.map(drop).map_err(|e| e.into_service_error())
}

#[tokio::test]
async fn a_refused_update_brings_the_record() {
    let dynamodb = DynamoDb::in_memory().unwrap();
    assert_eq!(dynamodb.create_table(&locks()).unwrap(), Creation::Created);
    let client = client(&dynamodb).await;
    claim(&client, "c#1", "first").await.unwrap();
    let refused = claim(&client, "c#1", "second").await.unwrap_err();
    let UpdateItemError::ConditionalCheckFailedException(refused) = refused else {
        panic!("{refused:?}");
    };
    let record = refused.item().expect("ALL_OLD brings the record");
    assert_eq!(record["owner"].as_s().unwrap(), "first");

    let items = dynamodb.items("locks").unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].text("owner"), items[0].number("attempts")), (Some("first"), Some(1)));
    assert_eq!((items[0].text("attempts"), items[0].number("nothing")), (None, None));
}

#[tokio::test]
async fn a_table_has_its_keys_and_time_to_live() {
    let dynamodb = DynamoDb::in_memory().unwrap();
    let spec = TableSpec { name: "events".into(), sort_key: Some(key("at", KeyKind::N)), ..locks() };
    dynamodb.create_table(&spec).unwrap();
    let client = client(&dynamodb).await;
    let table = client.describe_table().table_name("events").send().await.unwrap().table.unwrap();
    let keys: Vec<_> = table.key_schema().iter().map(|k| (k.attribute_name(), k.key_type().as_str())).collect();
    assert_eq!(keys, [("id", "HASH"), ("at", "RANGE")]);
    let answer = client.describe_time_to_live().table_name("events").send().await.unwrap();
    let description = answer.time_to_live_description.unwrap();
    assert_eq!(description.time_to_live_status, Some(TimeToLiveStatus::Enabled));
    assert_eq!(description.attribute_name.as_deref(), Some("expires_at"));
}

#[tokio::test]
async fn a_look_goes_through_all_pages() {
    let dynamodb = DynamoDb::in_memory().unwrap();
    dynamodb.create_table(&locks()).unwrap();
    let client = client(&dynamodb).await;
    // Four items of 390 kB make more than DynamoDB's page of 1 MB.
    for i in 0..4 {
        let put = client.put_item().table_name("locks").item("id", AttributeValue::S(format!("k{i}")));
        put.item("pad", AttributeValue::S("x".repeat(390_000))).send().await.unwrap();
    }
    let items = dynamodb.items("locks").unwrap();
    assert_eq!(items.len(), 4);
    let ids = ["c0", "c1"].map(str::to_owned);
    dynamodb.copy_items("locks", &items[0], "id", ids).unwrap();
    let mut pages = Vec::new();
    let mut take = |page: Vec<Item>| {
        pages.extend(
            page.into_iter().map(|item| (item.text("id").unwrap().to_owned(), item.text("pad").unwrap().len())),
        );
        Ok(())
    };
    dynamodb.pages("locks", &mut take).unwrap();
    pages.sort();
    assert_eq!(pages, ["c0", "c1", "k0", "k1", "k2", "k3"].map(|id| (id.to_owned(), 390_000)));
    assert!(dynamodb.items("nothing").unwrap_err().to_string().contains("table nothing"));
}

#[tokio::test]
async fn tables_outlive_the_process_that_made_them() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("made/here");
    {
        let dynamodb = DynamoDb::in_directory(&data).unwrap();
        assert_eq!(dynamodb.create_table(&locks()).unwrap(), Creation::Created);
        let (client, server) = served(&dynamodb).await;
        claim(&client, "c#1", "first").await.unwrap();
        server.abort();
        server.await.unwrap_err();
    }
    let dynamodb = DynamoDb::in_directory(&data).unwrap();
    assert_eq!(dynamodb.create_table(&locks()).unwrap(), Creation::Existing, "the table that is there is kept");
    assert_eq!(dynamodb.items("locks").unwrap()[0].text("id"), Some("c#1"));

    let other = TableSpec { partition_key: key("pk", KeyKind::S), ..locks() };
    let fault = dynamodb.create_table(&other).unwrap_err().to_string();
    assert!(fault.contains("a key that differs") && fault.contains("LockTable"), "{fault}");
}

#[test]
fn a_directory_that_cannot_be_is_named() {
    let fault = DynamoDb::in_directory(Path::new("/dev/null/data")).unwrap_err().to_string();
    assert!(fault.contains("/dev/null/data"), "{fault}");
}

/// Who follows the advice loses what is in the file.
#[test]
fn only_a_file_that_is_no_database_is_to_be_removed() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(FILE_NAME), "no database, and long enough to be read as one".repeat(100))
        .unwrap();
    let fault = DynamoDb::in_directory(directory.path()).unwrap_err().to_string();
    assert!(fault.contains("remove that file to start afresh"), "{fault}");
    // Longer than SQLite takes.
    let long = (0..3).fold(directory.path().to_owned(), |path, _| path.join("x".repeat(200)));
    let fault = DynamoDb::in_directory(&long).unwrap_err().to_string();
    assert!(!fault.contains("remove") && fault.contains("less than 500 bytes"), "{fault}");
    // Of a newer version: the file records its version behind the name of that.
    let newer = tempfile::tempdir().unwrap();
    drop(DynamoDb::in_directory(newer.path()).unwrap());
    let file = newer.path().join(FILE_NAME);
    let mut bytes = std::fs::read(&file).unwrap();
    let name = b"schema_version";
    for at in name.len()..bytes.len() {
        if bytes[..at].ends_with(name) {
            bytes[at..].iter_mut().take_while(|byte| byte.is_ascii_digit()).for_each(|byte| *byte = b'9');
        }
    }
    std::fs::write(&file, bytes).unwrap();
    let fault = DynamoDb::in_directory(newer.path()).unwrap_err();
    let (says, cause) = (fault.to_string(), std::error::Error::source(&fault).unwrap().to_string());
    assert!(says.ends_with(FILE_NAME) && cause.contains("newer version"), "{says}: {cause}");
}

/// The engine lets every page in a browser ask and read.
#[tokio::test]
async fn no_page_of_another_origin_reads_or_writes_a_table() {
    let dynamodb = DynamoDb::in_memory().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(dynamodb.serve(listener, std::future::pending()));
    let more = "origin: http://localhost:3000\r\nauthorization: AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
                SignedHeaders=host, Signature=00\r\n";
    for (method, headers) in [
        ("OPTIONS", "access-control-request-method: POST\r\naccess-control-request-headers: x-amz-target\r\n"),
        ("POST", "x-amz-target: DynamoDB_20120810.ListTables\r\ncontent-type: application/x-amz-json-1.0\r\n"),
    ] {
        let answer = http::asked(address, &format!("{method} /"), &format!("{headers}{more}"), "{}").await;
        assert!(answer.starts_with("HTTP/1.1 ") && !answer.to_lowercase().contains("access-control-"), "{answer}");
    }
}

#[tokio::test]
async fn an_operation_that_it_lacks_is_named() {
    let client = client(&DynamoDb::in_memory().unwrap()).await;
    let error = client.describe_limits().send().await.unwrap_err();
    assert_eq!(error.code(), Some("UnknownOperationException"));
    assert_eq!(error.message(), Some("the local DynamoDB has no DescribeLimits"));
}

/// A hundred items of 390 kB: more than is held here of a request.
#[tokio::test]
async fn an_answer_that_is_large_comes_whole_also_where_it_refuses() {
    let dynamodb = DynamoDb::in_memory().unwrap();
    dynamodb.create_table(&locks()).unwrap();
    let client = client(&dynamodb).await;
    let put = client.put_item().table_name("locks").item("id", AttributeValue::S("k".to_owned()));
    put.item("pad", AttributeValue::S("x".repeat(390_000))).send().await.unwrap();
    let ids = (1..100).map(|i| format!("k{i}"));
    dynamodb.copy_items("locks", &dynamodb.items("locks").unwrap()[0], "id", ids.clone()).unwrap();
    let checks = ids.map(|id| {
        let check = ConditionCheck::builder().table_name("locks").key("id", AttributeValue::S(id));
        let check = check.condition_expression("attribute_not_exists(id)");
        let check = check.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        TransactWriteItem::builder().condition_check(check.build().unwrap()).build()
    });
    let refused = client.transact_write_items().set_transact_items(Some(checks.collect())).send().await.unwrap_err();
    let refused = refused.into_service_error();
    let TransactWriteItemsError::TransactionCanceledException(refused) = refused else { panic!("{refused}") };
    let of = |reason: &CancellationReason| reason.item().map_or(0, |item| item["pad"].as_s().unwrap().len());
    assert_eq!(refused.cancellation_reasons().iter().map(of).sum::<usize>(), 99 * 390_000);
}

#[tokio::test]
async fn faults_meet_the_requests_of_functions_and_claims_are_tied_to_messages() {
    const MESSAGE: &str = "059f36b4-87a3-44ab-83d2-661975830a7d";
    let (journal, faults) = (Journal::new(), Faults::default());
    journal.write(|| Event::new(1, What::Deleted).message(MESSAGE));
    let dynamodb = DynamoDb::in_memory().unwrap();
    dynamodb.create_table(&locks()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client_of(&format!("http://{}", listener.local_addr().unwrap()));
    tokio::spawn(dynamodb.clone().serve_observed(listener, (journal.clone(), faults.clone()), std::future::pending()));

    // A message's id for the owner, beside the fingerprint, makes it a claim.
    for (act, arrives) in [(Act::Cut, false), (Act::Throttle, false), (Act::Lose, true)] {
        let spec = |of| FaultSpec { of: Some(of), times: Some(1), ..FaultSpec::new(act) };
        faults.begin(spec(Target::Reads)).unwrap();
        faults.begin(spec(Target::Claims)).unwrap();
        let id = format!("orders#{act:?}");
        let answer = claim(&client, &id, MESSAGE).await;
        assert!(answer.is_err(), "{act:?}");
        assert_eq!(answer.unwrap_err().is_provisioned_throughput_exceeded_exception(), act == Act::Throttle);
        let there = dynamodb.items("locks").unwrap().iter().any(|item| item.text("id") == Some(&id));
        assert_eq!(there, arrives, "{act:?}");
        assert_eq!(journal.messages_of(&id, 9), (vec![MESSAGE.into()], 1));
        assert_eq!(claim(&client, &id, MESSAGE).await.is_err(), arrives, "{act:?} met it once");
        faults.end_all();
    }
    // Of a record that many asked for, it is told of the latest.
    for id in (0..300).map(|n| format!("m{n}")) {
        journal.write(|| Event::new(1, What::Deleted).message(&id));
        journal.tie(&id, "orders#1");
    }
    faults.begin(FaultSpec { of: Some(Target::Settlements), ..FaultSpec::new(Act::Cut) }).unwrap();
    assert!(claim(&client, "orders#1", "0123").await.is_err());
    assert_eq!(journal.of_message("m299").last().map(|fault| fault.messages().count()), Some(100));
}
