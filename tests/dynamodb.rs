//! DynamoDB endpoints for tests: the embedded one, and Amazon's DynamoDB Local.

use std::sync::OnceLock;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::{RetryConfig, RetryPartition};
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use claimant_dynamodb::{LockTable, Tables};
use claimant_servers::Server;

use crate::wire::Wire;

/// How long a try of a request to [`DynamoDb::lock_table`] may take.
const TRY_MAX: Duration = Duration::from_mins(1);

/// The DynamoDB Local that the tests of this process share: they use tables of different names.
static LOCAL: OnceLock<Server> = OnceLock::new();

/// A DynamoDB endpoint.
pub struct DynamoDb {
    /// `http://127.0.0.1:port`.
    pub endpoint: String,
    embedded: bool,
}

impl DynamoDb {
    /// The embedded DynamoDB, in memory.
    pub async fn embedded() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("a bound listener has an address"));
        let database = dynoxide::Database::memory().expect("SQLite in memory");
        tokio::spawn(dynoxide::server::serve_on(listener, database));
        Self { endpoint, embedded: true }
    }

    /// Amazon's DynamoDB Local, as `make tools` installed it.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn local() -> Self {
        let server = LOCAL.get_or_init(|| claimant_servers::dynamodb_local().unwrap_or_else(|e| panic!("{e}")));
        Self { endpoint: format!("http://{}", server.address), embedded: false }
    }

    /// Whether statements are answered with the capacity that they consumed.
    #[must_use]
    pub fn tells_capacity(&self) -> bool {
        self.embedded
    }

    /// A client with the SDK's standard behaviour.
    #[must_use]
    pub fn client(&self) -> Client {
        client(&self.endpoint)
    }

    /// A client whose requests go over this wire.
    #[must_use]
    pub fn client_over(&self, wire: &Wire) -> Client {
        self.over()(wire)
    }

    /// As [`client_over`](Self::client_over), for whoever does not hold the endpoint.
    pub fn over(&self) -> impl Fn(&Wire) -> Client + Send + Sync + use<> {
        let endpoint = self.endpoint.clone();
        move |wire| Client::from_conf(config(&endpoint).http_client(wire.clone()).build())
    }

    /// A lock table of this name, or these tables, by a client of its own. Its tries have as long as their call: DynamoDB Local takes one
    /// write at a time, and beside other tests it answers late.
    pub fn opened(&self, tables: impl Into<Tables>) -> LockTable {
        let patient = TimeoutConfig::builder().operation_attempt_timeout(TRY_MAX).build();
        let client = Client::from_conf(self.client().config().to_builder().timeout_config(patient).build());
        LockTable::new(client, tables)
    }

    /// As [`opened`](Self::opened), and fresh.
    pub async fn lock_table(&self, tables: impl Into<Tables>) -> LockTable {
        let table = self.opened(tables);
        table.create().await.expect("the table is made");
        table
    }
}

/// A client of this endpoint.
#[must_use]
pub fn client(endpoint: &str) -> Client {
    Client::from_conf(config(endpoint).http_client(claimant_aws::http_client()).build())
}

/// Three tries, as functions have, with next to no wait between them. The SDK's allowance for retries is each client's own: the
/// usual one is the process's, so what one test loses would leave another without retries.
fn config(endpoint: &str) -> aws_sdk_dynamodb::config::Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
        .retry_config(RetryConfig::standard().with_initial_backoff(Duration::from_millis(1)))
        .retry_partition(RetryPartition::custom("one client").build())
        .endpoint_url(endpoint)
}
