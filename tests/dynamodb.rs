//! DynamoDB endpoints for tests: the embedded one, and Amazon's DynamoDB Local.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use claimant_dynamodb::LockTable;

use crate::wire::Wire;

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
        let started = Command::new(&script).arg("0").stdout(Stdio::piped()).spawn();
        let mut process =
            started.unwrap_or_else(|e| panic!("{} did not start: {e}; run `make tools`", script.display()));
        let stdout = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(stdout).lines();
        let listening = lines.find_map(|line| Some(line.ok()?.strip_prefix("listening on ")?.to_owned()));
        let Some(address) = listening else {
            panic!("DynamoDB Local did not say where it listens; run `make tools` and try {} 0", script.display());
        };
        // Read on, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Self { endpoint: format!("http://{address}"), process: Some(process) }
    }

    /// Whether statements are answered with the capacity that they consumed.
    #[must_use]
    pub fn tells_capacity(&self) -> bool {
        self.process.is_none()
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
