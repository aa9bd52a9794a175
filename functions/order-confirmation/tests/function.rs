//! The built function, behind the Lambda runtime API, with the embedded DynamoDB and a mailbox.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_local::dynamodb::DynamoDb;
use claimant_local::lambda::{Function, FunctionConfig, Invocation};
use claimant_local::mailbox::Mailbox;
use claimant_local::stack::{KeyKind, KeySpec, TableSpec};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// The function and the world it works on.
struct Stage {
    function: Function,
    mailbox: Mailbox,
    dynamodb: DynamoDb,
    logs: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    /// A stage where these variables differ from the usual ones; an empty value removes one.
    async fn with(overrides: &[(&str, &str)]) -> Self {
        let (dynamodb, mailbox) = (DynamoDb::in_memory().unwrap(), Mailbox::new());
        let key = KeySpec { name: "id".into(), kind: KeyKind::S };
        let table = TableSpec {
            logical_id: "Locks".into(),
            name: "locks".into(),
            partition_key: key,
            sort_key: None,
            ttl_attribute: Some("expires_at".into()),
        };
        dynamodb.create_table(&table).unwrap();
        let (for_tables, for_mails) = (listen().await, listen().await);
        let mut environment = vec![
            ("CLAIMANT_TABLE", "locks".to_owned()),
            ("SENDER_ADDRESS", "orders@example.com".to_owned()),
            ("CLAIMANT_VISIBILITY", "off".to_owned()),
            ("AWS_ENDPOINT_URL_DYNAMODB", address(&for_tables)),
            ("AWS_ENDPOINT_URL_SESV2", address(&for_mails)),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "local".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
            ("AWS_LAMBDA_LOG_FORMAT", "JSON".to_owned()),
            ("AWS_LAMBDA_LOG_LEVEL", "TRACE".to_owned()),
        ];
        environment.extend(overrides.iter().map(|(name, value)| (*name, (*value).to_owned())));
        tokio::spawn(dynamodb.clone().serve(for_tables, std::future::pending::<()>()));
        tokio::spawn(mailbox.clone().serve(for_mails, std::future::pending::<()>()));
        let logs: Arc<Mutex<Vec<String>>> = Arc::default();
        let sink = Arc::clone(&logs);
        let function = Function::new(FunctionConfig {
            name: "order-confirmation".into(),
            executable: env!("CARGO_BIN_EXE_order-confirmation").into(),
            timeout: Duration::from_secs(30),
            memory_mb: 128,
            environment: environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            concurrency: 1,
            logs: Arc::new(move |_, line| sink.lock().unwrap().push(line.to_owned())),
        });
        Self { function: function.unwrap(), mailbox, dynamodb, logs }
    }

    /// The ids that the answer to an event reports failed.
    async fn failures(&self, event: &Value) -> Vec<String> {
        match self.function.invoke(event.to_string().into_bytes()).await {
            Invocation::Response(answer) => {
                let answer: Value = serde_json::from_slice(&answer).unwrap();
                let failures = answer["batchItemFailures"].as_array().unwrap();
                failures.iter().map(|f| f["itemIdentifier"].as_str().unwrap().to_owned()).collect()
            }
            other => panic!("no answer but {other:?}; logs: {:#?}", self.logs.lock().unwrap()),
        }
    }

    /// The mails so far, by the key in their header.
    fn mails(&self) -> Vec<String> {
        let mut keys: Vec<_> =
            self.mailbox.mails().iter().map(|m| m.header("X-Claimant-Key").unwrap().to_owned()).collect();
        keys.sort();
        keys
    }

    fn logged(&self) -> String {
        self.logs.lock().unwrap().join("\n")
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn address(listener: &TcpListener) -> String {
    format!("http://{}", listener.local_addr().unwrap())
}

fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/events").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn ids(event: &Value) -> Vec<String> {
    let records = event["Records"].as_array().unwrap();
    records.iter().map(|r| r["messageId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_order_gets_one_mail_however_often_it_comes() {
    let stage = Stage::with(&[]).await;
    for _ in 0..3 {
        assert!(stage.failures(&sample("order.json")).await.is_empty());
        assert!(stage.failures(&sample("batch.json")).await.is_empty());
    }
    assert_eq!(stage.mails(), ["ord-1001", "ord-2001", "ord-2002", "ord-2003", "ord-2004"]);
    assert_eq!(stage.mailbox.attempts(), 5);
    let records = stage.dynamodb.items("locks").unwrap();
    let done = records.iter().filter(|r| r.text("status") == Some("COMPLETED") && r.number("attempts") == Some(1));
    assert_eq!(done.count(), 5);
    stage.function.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_broken_body_is_rejected_alone_and_never_logged() {
    let stage = Stage::with(&[]).await;
    let mut event = sample("broken.json");
    let wanted = ids(&event);
    // One good order among them, and the largest body that SQS takes.
    let records = event["Records"].as_array_mut().unwrap();
    records.push(sample("order.json")["Records"][0].clone());
    let mut largest = records[0].clone();
    largest["messageId"] = json!("largest");
    largest["body"] = json!(format!("{{\"order_id\":\"{}", "secret ".repeat(149_790)));
    records.push(largest);
    let failures = stage.failures(&event).await;
    assert_eq!(failures, [&wanted[..], &["largest".to_owned()]].concat());
    assert_eq!(stage.mails(), ["ord-1001"]);
    let logged = stage.logged();
    for id in failures {
        assert!(logged.contains(&id), "the log names {id}");
    }
    assert!(
        logged.contains("\"consumer\":\"order-confirmation\"") && logged.contains("JSON path items[0].quantity"),
        "{logged}"
    );
    for secret in ["example.com", "secret", "TEA-GREEN", "AQEB"] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
    stage.function.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_message_id_fails_the_invocation() {
    let stage = Stage::with(&[]).await;
    let event = sample("missing-message-id.json");
    let answer = stage.function.invoke(event.to_string().into_bytes()).await;
    let Invocation::FunctionError { message, .. } = answer else { panic!("{answer:?}") };
    assert!(message.contains("no usable messageId"), "{message}");
    assert!(stage.mails().is_empty(), "nothing of a batch that fails as a whole is worked on");
    stage.function.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_in_a_fifo_group_blocks_the_rest_of_it() {
    let stage = Stage::with(&[]).await;
    let event = sample("fifo.json");
    let ids = ids(&event);
    assert_eq!(stage.failures(&event).await, [ids[1].clone(), ids[2].clone()]);
    assert_eq!(stage.mails(), ["ord-5001", "ord-5003"]);
    stage.function.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_mailer_refuses_is_retried_or_rejected() {
    let stage = Stage::with(&[]).await;
    let mut event = sample("order.json");
    let order = |id: &str, address: &str| {
        let items = json!([{ "sku": "tea", "quantity": 1, "unit_price_cents": 100 }]);
        json!({ "order_id": id, "customer_email": address, "items": items, "currency": "EUR" }).to_string()
    };
    let record = event["Records"][0].clone();
    let of = |id: &str, address: &str| {
        let mut record = record.clone();
        record["messageId"] = json!(id);
        record["body"] = json!(order(id, address));
        record
    };
    event["Records"] = json!([
        of("a", "flaky@example.com"),
        of("b", "reject@example.com"),
        of("c", "nobody"),
        of("d", "ada@example.com")
    ]);
    assert_eq!(stage.failures(&event).await, ["a", "b", "c"]);
    assert_eq!(stage.failures(&event).await, ["b", "c"]);
    assert_eq!(stage.mails(), ["a", "d"]);
    assert_eq!(stage.mailbox.attempts(), 5, "two each for a and b, one for d, none for c");
    assert!(!stage.logged().contains("example.com"), "{}", stage.logged());
    stage.function.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_set_up_loses_nothing_and_says_how_to_mend_it() {
    let stage = Stage::with(&[("CLAIMANT_TABLE", "no-such-table")]).await;
    let event = sample("order.json");
    assert_eq!(stage.failures(&event).await, ids(&event));
    assert!(stage.mails().is_empty());
    for wanted in ["no-such-table", "ResourceNotFoundException", "CLAIMANT_TABLE"] {
        assert!(stage.logged().contains(wanted), "{wanted} in {}", stage.logged());
    }
    stage.function.stop().await;

    let stage = Stage::with(&[("CLAIMANT_TABLE", ""), ("SENDER_ADDRESS", " "), ("CLAIMANT_MARGIN_MS", "x")]).await;
    let answer = stage.function.invoke(event.to_string().into_bytes()).await;
    assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
    for wanted in
        ["3 faults", "CLAIMANT_TABLE is set but empty", "SENDER_ADDRESS is set but empty", "CLAIMANT_MARGIN_MS"]
    {
        assert!(stage.logged().contains(wanted), "{wanted} in {}", stage.logged());
    }
    stage.function.stop().await;
}
