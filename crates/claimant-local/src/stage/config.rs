//! What a stage is made of.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::Error;
use crate::arn::REGION;
use crate::stack::{KeyKind, KeySpec, TableSpec};

/// The name of every stage's lock table, which `CLAIMANT_TABLE` says unless the test says otherwise.
pub const LOCK_TABLE: &str = "locks";

/// The default timeout: no test comes near it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An endpoint, on the listener it is given.
pub(super) type Serve = Box<dyn FnOnce(TcpListener) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> + Send>;

/// The URL of a server that is reached through the stage's gate, from the gate's address.
pub(super) type GatedUrl = Box<dyn FnOnce(SocketAddr) -> String + Send>;

/// A function's binary, and what it needs beside a lock table.
///
/// Set for every function: `CLAIMANT_TABLE`, the region, credentials, the endpoints of DynamoDB and SQS, JSON logs at
/// `TRACE`, so that a test sees all that could be logged, and `CLAIMANT_VISIBILITY=off`, since no queue knows the deliveries.
pub struct StageConfig {
    pub(super) executable: PathBuf,
    pub(super) timeout: Duration,
    pub(super) tables: Vec<TableSpec>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) endpoints: Vec<(String, Serve)>,
    pub(super) gated: Vec<(String, SocketAddr, GatedUrl)>,
    pub(super) dead_letters: Option<String>,
}

impl StageConfig {
    /// A stage for this binary, such as `env!("CARGO_BIN_EXE_order-confirmation")`; its file name is the function's.
    pub fn new(executable: impl Into<PathBuf>) -> Self {
        Self {
            executable: executable.into(),
            timeout: TIMEOUT,
            tables: vec![lock_table()],
            variables: Vec::new(),
            endpoints: Vec::new(),
            gated: Vec::new(),
            dead_letters: None,
        }
    }

    /// The function's timeout instead of 30 s: how long a claim is honoured whose owner died.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// A table of the function's own, with a string for its partition key and one for its sort key, if it has one, and the
    /// variable that tells its name.
    #[must_use]
    pub fn table(mut self, variable: &str, name: &str, partition_key: &str, sort_key: Option<&str>) -> Self {
        self.tables.push(table(name, partition_key, sort_key));
        self.variables(&[(variable, name)])
    }

    /// Variables of the process. A later value of a variable counts, also over the usual ones.
    #[must_use]
    pub fn variables(mut self, variables: &[(&str, &str)]) -> Self {
        self.variables.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self
    }

    /// One more endpoint, on a free port of 127.0.0.1, and the variable that tells its URL, such as
    /// `AWS_ENDPOINT_URL_SESV2`. It is dropped with the stage.
    #[must_use]
    pub fn endpoint<F>(mut self, variable: &str, serve: impl FnOnce(TcpListener) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        self.endpoints.push((variable.to_owned(), Box::new(|listener| Box::pin(serve(listener)))));
        self
    }

    /// A server that is there already, such as a database, behind the stage's [gate](super::Gate) and the variable that tells
    /// its URL, made from the gate's address. What the gate holds of it are its requests that contain a text, such as
    /// `"COMMIT\0"`.
    #[must_use]
    pub fn gated(
        mut self,
        variable: &str,
        server: SocketAddr,
        url: impl FnOnce(SocketAddr) -> String + Send + 'static,
    ) -> Self {
        self.gated.push((variable.to_owned(), server, Box::new(url)));
        self
    }

    /// A dead-letter queue of this name, which the function sends rejected messages to. Without one they are reported failed.
    #[must_use]
    pub fn dead_letters(mut self, queue: &str) -> Self {
        self.dead_letters = Some(queue.to_owned());
        self
    }
}

impl std::fmt::Debug for StageConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageConfig").field("executable", &self.executable).finish_non_exhaustive()
    }
}

/// The variables of every function; the endpoints' addresses come later.
pub(super) fn usual_variables() -> Vec<(String, String)> {
    let usual = [
        ("CLAIMANT_TABLE", LOCK_TABLE),
        ("CLAIMANT_VISIBILITY", "off"),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "local"),
        ("AWS_SECRET_ACCESS_KEY", "local"),
        ("AWS_LAMBDA_LOG_FORMAT", "JSON"),
        ("AWS_LAMBDA_LOG_LEVEL", "TRACE"),
    ];
    usual.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The lock table as in `template.yaml`.
pub(super) fn lock_table() -> TableSpec {
    TableSpec { ttl_attribute: Some("expires_at".to_owned()), ..table(LOCK_TABLE, "id", None) }
}

fn table(name: &str, partition_key: &str, sort_key: Option<&str>) -> TableSpec {
    let key = |name: &str| KeySpec { name: name.to_owned(), kind: KeyKind::S };
    TableSpec {
        logical_id: name.to_owned(),
        name: name.to_owned(),
        partition_key: key(partition_key),
        sort_key: sort_key.map(key),
        ttl_attribute: None,
    }
}
