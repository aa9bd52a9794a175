//! What the examples have in place of AWS: batches delivered by hand, and endpoints on 127.0.0.1.

use std::error::Error;
use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::config::{Credentials, SharedCredentialsProvider};
use claimant::engine::{Engine, InvocationTime, Message, NoQueue};
use claimant_local::dynamodb::DynamoDb;
use claimant_local::s3::S3;
use claimant_local::scheduler::Scheduler;
use claimant_local::sqs::Sqs;
use claimant_local::stack::{KeyKind, KeySpec, TableSpec};
use tokio::net::TcpListener;

/// How long an invocation may last.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long before the deadline the function has returned.
const MARGIN: Duration = Duration::from_millis(500);

/// Hands the engine one batch, as Lambda does, and prints the outcome of each message. A message is its id and its body.
pub(crate) async fn deliver(engine: &Engine, messages: &[(&str, &str)]) -> crate::Result {
    let batch: Result<Vec<_>, _> = messages.iter().map(|(id, body)| Message::new(*id, *body)).collect();
    deliver_all(engine, &batch?).await
}

/// The same, of messages with more than an id and a body.
pub(crate) async fn deliver_all(engine: &Engine, batch: &[Message]) -> crate::Result {
    let now = engine.now();
    let report = engine.process(batch, InvocationTime::new(now, now.plus(TIMEOUT), MARGIN), &NoQueue).await;
    let outcomes = batch.iter().zip(report.entries());
    let outcomes: Vec<_> =
        outcomes.map(|(message, entry)| format!("{} {}", message.id().as_str(), entry.outcome.word())).collect();
    println!("{}", outcomes.join(", "));
    Ok(())
}

/// Listens on 127.0.0.1, and returns what a client needs to talk to the endpoint that is served there.
async fn endpoint() -> std::io::Result<(TcpListener, String, SdkConfig)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let credentials = Credentials::new("local", "local", None, None, "examples");
    let config = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(SharedCredentialsProvider::new(credentials))
        .http_client(claimant::aws::http_client())
        .endpoint_url(&url)
        .build();
    Ok((listener, url, config))
}

/// Starts an embedded DynamoDB, in memory, and returns it with a client of it.
pub(crate) async fn dynamodb() -> Result<(DynamoDb, aws_sdk_dynamodb::Client), Box<dyn Error>> {
    let (listener, _, config) = endpoint().await?;
    let dynamodb = DynamoDb::in_memory()?;
    tokio::spawn(dynamodb.clone().serve(listener, std::future::pending()));
    Ok((dynamodb, aws_sdk_dynamodb::Client::new(&config)))
}

/// Makes a table whose key is the string `id`.
pub(crate) fn create_table(dynamodb: &DynamoDb, name: &str) -> Result<(), Box<dyn Error>> {
    let partition_key = KeySpec { name: "id".to_owned(), kind: KeyKind::S };
    let (logical_id, name) = (name.to_owned(), name.to_owned());
    dynamodb.create_table(&TableSpec { logical_id, name, partition_key, sort_key: None, ttl_attribute: None })?;
    Ok(())
}

/// Starts a local SQS, and returns it with a client of it.
pub(crate) async fn sqs() -> Result<(Sqs, aws_sdk_sqs::Client), Box<dyn Error>> {
    let (listener, url, config) = endpoint().await?;
    let sqs = Sqs::new();
    sqs.set_endpoint(&url);
    tokio::spawn(sqs.clone().serve(listener, std::future::pending()));
    Ok((sqs, aws_sdk_sqs::Client::new(&config)))
}

/// Starts a local S3 with one bucket, and returns it with a client of it.
pub(crate) async fn s3(bucket: &str) -> Result<(S3, aws_sdk_s3::Client), Box<dyn Error>> {
    let (listener, _, config) = endpoint().await?;
    let s3 = S3::new();
    s3.create_bucket(bucket);
    tokio::spawn(s3.clone().serve(listener, std::future::pending()));
    Ok((s3, aws_sdk_s3::Client::new(&config)))
}

/// Starts a local EventBridge Scheduler that sends to these queues, and returns it with a client of it.
pub(crate) async fn scheduler(sqs: &Sqs) -> Result<(Scheduler, aws_sdk_scheduler::Client), Box<dyn Error>> {
    let (listener, _, config) = endpoint().await?;
    let scheduler = Scheduler::new(sqs.clone());
    tokio::spawn(scheduler.clone().serve(listener, std::future::pending()));
    Ok((scheduler, aws_sdk_scheduler::Client::new(&config)))
}

/// Returns an order's id that no earlier run of an example has left in its store.
pub(crate) fn new_order_id() -> String {
    uuid::Uuid::new_v4().to_string()
}
