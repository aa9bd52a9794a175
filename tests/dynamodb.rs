//! DynamoDB endpoints for tests: the embedded one, and Amazon's DynamoDB Local.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use claimant_dynamodb::LockTable;

use crate::wire::Wire;

/// Set to run the tests that need services; `make test` sets it.
pub const SERVICES_VARIABLE: &str = "CLAIMANT_TEST_SERVICES";

/// How often a starting DynamoDB Local is asked whether it is there; a JVM on a busy machine takes its time.
const STARTUP_LOOKS_MAX: u32 = 600;

/// A DynamoDB endpoint that stops with this value.
pub struct DynamoDb {
    /// `http://127.0.0.1:port`.
    pub endpoint: String,
    process: Option<Child>,
}

impl DynamoDb {
    /// The embedded DynamoDB, in memory.
    pub async fn embedded() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let database = dynoxide::Database::memory().expect("SQLite in memory");
        tokio::spawn(dynoxide::server::serve_on(listener, database));
        Self { endpoint, process: None }
    }

    /// Amazon's DynamoDB Local, as `make tools` installed it.
    pub async fn local() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/dynamodb-local");
        let port = free_port();
        let process = Command::new(&script)
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("{} did not start: {e}; run `make tools`", script.display()));
        let started = Self { endpoint: format!("http://127.0.0.1:{port}"), process: Some(process) };
        for _ in 0..STARTUP_LOOKS_MAX {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return started;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("DynamoDB Local did not open port {port}; run `make tools` and try {}", script.display());
    }

    /// A client with the SDK's standard behaviour.
    #[must_use]
    pub fn client(&self) -> Client {
        client(&self.endpoint)
    }

    /// A client whose requests go over this wire.
    #[must_use]
    pub fn client_over(&self, wire: &Wire) -> Client {
        Client::from_conf(config(&self.endpoint).http_client(wire.clone()).build())
    }

    /// A fresh lock table of this name.
    pub async fn lock_table(&self, name: &str) -> LockTable {
        let table = LockTable::new(self.client(), name);
        table.create().await.expect("the table is made");
        table
    }
}

impl Drop for DynamoDb {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // It may have ended by itself; either way it is gone afterwards.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A client of this endpoint.
#[must_use]
pub fn client(endpoint: &str) -> Client {
    Client::from_conf(config(endpoint).http_client(aws_smithy_http_client::Builder::new().build_http()).build())
}

/// Three tries, as functions have, with next to no wait between them.
fn config(endpoint: &str) -> aws_sdk_dynamodb::config::Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .endpoint_url(endpoint)
}

/// A port that was free a moment ago, for servers that cannot bind port 0 themselves.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound listener has an address").port()
}
