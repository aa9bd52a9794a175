//! The store in Redis.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Budget, Call, Claim, ClaimAnswer, Error, Record, RecordId, Renewed, Settled, Store,
    StoreError, Variables,
};
use redis::cluster::ClusterClient;
use redis::io::tcp::TcpSettings;
use redis::{Client, IntoConnectionInfo as _};

use crate::attempts::{Claiming, Reading, Renewing, Settling};
use crate::link::{Link, NODE_MAX_MS, Server, choose_ring};
use crate::rounds::{run_all, run_one};
use crate::settings::Settings;

/// What a record's key begins with, unless set.
pub const PREFIX_DEFAULT: &str = "claimant";

/// The longest prefix, in bytes.
const PREFIX_MAX_BYTES: usize = 64;

/// How often a cluster's client follows a key that moves, or reconnects to a node, within one try.
const CLUSTER_RETRIES: u32 = 3;

/// The shortest that a cluster's client waits before it asks again, within one try, for a key that no node serves for now. The longest
/// follows from the retries: 80 ms. Unless set, it would be 1,280 ms, and the try would end before the node's answer is known.
const CLUSTER_RETRY_WAIT_MS: u64 = 20;

/// Records in Redis or Valkey. Read the [crate's documentation](crate) on what Redis can lose before you choose it.
///
/// A claim of a fresh key, a refused one, a renewal and a settlement are one round trip each, a claim of a failed or
/// abandoned key is two; many at once take no more. Cheap to clone; clones share one connection, opened at the first
/// call: if the server is down, calls fail, never the start.
///
/// ```
/// # mod claimant { pub use claimant_core::*; pub mod redis { pub use claimant_redis::*; } }
/// use claimant::redis::RedisStore;
///
/// let store = RedisStore::open("rediss://user:password@cache.example:6379/0")?.prefix("orders")?;
/// # Ok::<_, claimant::Error>(())
/// ```
#[derive(Clone)]
pub struct RedisStore {
    link: Arc<Link>,
    prefix: Arc<str>,
}

impl RedisStore {
    /// Opens the server with this URL: `redis://user:password@host:6379/0`, or `rediss://` for TLS. Connects at the
    /// first call.
    ///
    /// # Errors
    /// When it is not such a URL. The error does not show it.
    pub fn open(url: &str) -> Result<Self, Error> {
        let server = url.into_connection_info().map_err(|_| not_a_url())?.set_tcp_settings(without_delay());
        Client::open(server).map(Self::new).map_err(|_| not_a_url())
    }

    /// Opens the cluster that this node is part of, as [`open`](Self::open) does a server. Name the cluster's own endpoint, or
    /// several nodes, with a comma between their URLs: a node that is named alone is needed for every new connection.
    ///
    /// # Errors
    /// As for [`open`](Self::open); when a URL names a database, which clusters do not have; and when the URLs differ in user,
    /// password or TLS.
    pub fn open_cluster(urls: &str) -> Result<Self, Error> {
        let mut nodes = Vec::new();
        for url in each_url(urls) {
            let node = url.into_connection_info().map_err(|_| not_a_url())?;
            if node.redis_settings().db() != 0 {
                return Err(not_a_url());
            }
            choose_ring(node.addr());
            nodes.push(node);
        }
        let client = ClusterClient::builder(nodes).retries(CLUSTER_RETRIES).tcp_settings(without_delay());
        let client =
            client.min_retry_wait(CLUSTER_RETRY_WAIT_MS).connection_timeout(Duration::from_millis(NODE_MAX_MS));
        client.build().map(Self::new_cluster).map_err(|_| not_a_url())
    }

    /// Creates a store on this client, for what a URL cannot express, such as certificates.
    #[must_use]
    pub fn new(client: Client) -> Self {
        choose_ring(client.get_connection_info().addr());
        Self::from_server(Server::One(Box::new(client)))
    }

    /// Creates a store on this client of a cluster. Twice its `connection_timeout`, that of one node, should fit into two seconds:
    /// connecting to the cluster may take no more than two and a half. Its `min_retry_wait`, unless set, is more than a second:
    /// set 20 ms and a few `retries`, or a slot that is without a node for a moment costs a call seconds. With TLS, rustls needs a
    /// default provider: see `rustls::crypto::CryptoProvider::install_default`.
    #[must_use]
    pub fn new_cluster(client: ClusterClient) -> Self {
        Self::from_server(Server::Cluster(Box::new(client)))
    }

    fn from_server(server: Server) -> Self {
        Self { link: Arc::new(Link::new(server)), prefix: PREFIX_DEFAULT.into() }
    }

    /// Opens the server or cluster that the environment names, see [`Settings`]. Connects at the first call.
    ///
    /// # Errors
    /// When `CLAIMANT_REDIS_URL` is not set or is no URL of Redis, or a setting is malformed or its name misspelt: one error with
    /// every fault.
    pub fn from_env() -> Result<Self, Error> {
        Self::from_variables(Variables::from_env())
    }

    /// Opens the server or cluster as [`from_env`](Self::from_env) does, from these variables.
    ///
    /// # Errors
    /// As for [`from_env`](Self::from_env): one error, which includes the faults of variables that were read before.
    pub fn from_variables(variables: Variables) -> Result<Self, Error> {
        let Settings { url, cluster } = Settings::required(variables)?;
        if cluster { Self::open_cluster(url.expose()) } else { Self::open(url.expose()) }
    }

    /// Sets the prefix of the keys in Redis (default `claimant`): `prefix:record id`. Stores with different prefixes share no
    /// records: another one makes every message new.
    ///
    /// # Errors
    /// When it is not 1 to 64 letters, digits, `-`, `_`, `.`, `/` or `:`.
    pub fn prefix(mut self, prefix: &str) -> Result<Self, Error> {
        // Neither `#` nor `~`: the first of them in a key ends the consumer's name, and that has no `:`, so the last `:`
        // before it ends the prefix.
        let fits = (1..=PREFIX_MAX_BYTES).contains(&prefix.len());
        if !fits || !prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:".contains(&b)) {
            return Err(Error::invalid(format!(
                "the prefix {prefix:?} is not 1 to {PREFIX_MAX_BYTES} letters, digits, '-', '_', '.', '/' or ':'"
            )));
        }
        self.prefix = prefix.into();
        Ok(self)
    }

    pub(crate) fn key(&self, id: &RecordId) -> Vec<u8> {
        format!("{}{}", self.key_prefix(), id.as_str()).into_bytes()
    }

    pub(crate) fn key_prefix(&self) -> String {
        format!("{}:", self.prefix)
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    fn claiming<'a>(&self, request: &'a ClaimRequest) -> Claiming<'a> {
        Claiming::new(self.key(&request.id), request)
    }
}

/// Returns the URLs of a text that has a comma between each two. A comma in a password is part of it.
fn each_url(text: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for part in text.split(',') {
        match urls.last_mut() {
            Some(url) if !part.contains("://") => url.extend([",", part]),
            _ => urls.push(part.trim().to_owned()),
        }
    }
    urls
}

/// Returns TCP settings by which no request waits until an earlier one is acknowledged.
fn without_delay() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

fn not_a_url() -> Error {
    Error::invalid(
        "the URL of Redis is not valid: redis://user:password@host:6379/0 is needed, or rediss:// for TLS; special characters \
         in the password have to be percent-encoded; a cluster has no database number, and its nodes, with a comma between their \
         URLs, have one user and password",
    )
}

// The client has the password.
impl fmt::Debug for RedisStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStore").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Store for RedisStore {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(run_one(&self.link, self.claiming(request), Budget::of(call)))
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            let claims = requests.iter().map(|request| self.claiming(request)).collect();
            let answers = run_all(&self.link, claims, Budget::of(call)).await;
            answers.into_iter().map(|answer| answer.map(BatchedClaim::Answered)).collect()
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(async move {
            let renewing = Renewing::new(self.key(&claim.id), claim, renewal);
            let (renewed, lease_until) = run_one(&self.link, renewing, Budget::of(call)).await?;
            claim.lease_until = lease_until;
            Ok(renewed)
        })
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            let settling = Settling::new(self.key(&claim.id), &claim, settlement);
            let settled = run_one(&self.link, settling, Budget::of(call)).await;
            settled.unwrap_or_else(|error| Settled::unknown(claim, error))
        })
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            let endings = settlements.iter();
            let endings = endings.map(|(claim, settlement)| Settling::new(self.key(&claim.id), claim, settlement));
            let settled = run_all(&self.link, endings.collect(), Budget::of(call)).await.into_iter().zip(settlements);
            settled
                .map(|(settled, (claim, _))| settled.unwrap_or_else(|error| Settled::unknown(claim, error)))
                .collect()
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(run_one(&self.link, Reading::new(self.key(id)), Budget::of(call)))
    }
}
