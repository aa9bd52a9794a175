//! The connection to the server: opened when it is needed, shared by all calls, dropped when it fails.
//!
//! The crate's own `ConnectionManager` keeps the error of a refused password for ever, and a connection that went silent
//! until the operating system notices, which takes minutes. A function that was frozen finds such connections often.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use claimant_core::limits::STORE_CALL_MAX_MS;
use claimant_core::{Budget, Meter};
use futures_util::future::join_all;
use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, Pipeline, RedisError, RedisResult, Value};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{ends_connection, is_cut_off};
use crate::eviction;

/// The longest that one try may take on its connection, and that connecting to a single server may take; Redis answers in less
/// than a millisecond, a first TLS handshake on a small function takes about a second.
const TRY_MAX_MS: u64 = 2_000;

/// The longest that the check of a new connection may take.
const CHECK_MAX_MS: u64 = 500;

/// The longest that a connection to one node of a cluster may take, unless the client is the user's.
pub(crate) const NODE_MAX_MS: u64 = 1_000;

/// The longest that connecting to a cluster may take: to the nodes that are named, then to those that they name, then the check.
/// Its client waits for each that is silent.
const CLUSTER_CONNECT_MAX_MS: u64 = 2 * NODE_MAX_MS + CHECK_MAX_MS;

/// The longest that one try may take in a cluster. Where another one asks for a key of a silent node, all wait while the client
/// looks for it, also twice.
const CLUSTER_TRY_MAX_MS: u64 = 2 * NODE_MAX_MS + 400;

/// The part of a call's time that a try on a connection in doubt may take: a third.
const IN_DOUBT_PART: u32 = 3;

// A call whose first try had no answer, on a connection that is silent, has time for another one.
const _: () = assert!(CLUSTER_TRY_MAX_MS + CLUSTER_CONNECT_MAX_MS < STORE_CALL_MAX_MS);

/// What the link connects to.
pub(crate) enum Server {
    One(Box<Client>),
    Cluster(Box<ClusterClient>),
}

/// Both kinds are cheap to clone; clones share a socket, on which dropped requests do not mix up the answers of others.
#[derive(Clone)]
enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// The connection in use.
#[derive(Default)]
struct Current {
    /// Its number. Connections are numbered in the order in which they were opened.
    number: u64,
    connection: Option<Connection>,
    /// When a request over it last had an answer.
    answered: Option<Instant>,
    /// Whether a request over it had none, while others had theirs.
    is_silent: bool,
    /// Whether a request over it met a node of a cluster that is cut off. It answers, so that a first try has all of its time.
    is_cut_off: bool,
    /// The last one that was opened beside it.
    beside: Option<Beside>,
}

/// A connection that calls share whose first try over the one in use failed. It takes its place when it has an answer that that has not.
struct Beside {
    number: u64,
    connection: Connection,
    opened: Instant,
}

pub(crate) struct Link {
    server: Server,
    current: Mutex<Current>,
    /// How many connections were opened.
    opened: AtomicU64,
    /// Held while connecting, so that many calls at once make one connection.
    connecting: tokio::sync::Mutex<()>,
    /// Whether it was logged that the server deletes records.
    warned: AtomicBool,
}

impl Link {
    pub(crate) fn new(server: Server) -> Self {
        Self {
            server,
            current: Mutex::default(),
            opened: AtomicU64::new(0),
            connecting: tokio::sync::Mutex::default(),
            warned: AtomicBool::new(false),
        }
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.server, Server::Cluster(_))
    }

    /// Sends commands together, and returns an answer for each: one request to a single server, and one for each command to a
    /// cluster, over whose nodes they spread. Tries once, within the budget, for a call whose first try failed at `failed_at`, if it did; a
    /// command without an answer may have been executed.
    pub(crate) async fn send(
        &self,
        commands: &[Cmd],
        budget: Budget<'_>,
        failed_at: Option<Instant>,
    ) -> Vec<RedisResult<Value>> {
        let within = |ms: u64| budget.until().min(Instant::now() + Duration::from_millis(ms));
        let failed = |error: &RedisError| commands.iter().map(|_| Err(error.clone())).collect();
        let (connect_max_ms, try_max_ms) = match self.server {
            Server::One(_) => (TRY_MAX_MS, TRY_MAX_MS),
            Server::Cluster(_) => (CLUSTER_CONNECT_MAX_MS, CLUSTER_TRY_MAX_MS),
        };
        let connected = in_time(within(connect_max_ms), self.connected(failed_at)).await;
        let (number, connection, is_silent) = match connected {
            Ok(connected) => connected,
            Err(error) => return failed(&error),
        };
        let begun = Instant::now();
        let mut until = within(try_max_ms);
        if is_silent {
            // However short the call is, it has time for a try on a new connection, without which the doubt might never end.
            until = until.min(begun + budget.left() / IN_DOUBT_PART);
        }
        let answers = connection.clone().exchange(commands, until, budget.meter()).await;
        let answers = answers.unwrap_or_else(|error| failed(&error));
        self.keep_or_drop(number, connection, begun, &answers);
        answers
    }

    /// Returns the connection in use, and whether it can be silent; where it is in doubt, and the call's first try failed, one that was opened
    /// beside it since then. Or else opens one. Cancel safe: another call that waits then opens it.
    async fn connected(&self, failed_at: Option<Instant>) -> RedisResult<(u64, Connection, bool)> {
        if let Some(connected) = self.in_use(failed_at) {
            return Ok(connected);
        }
        let _turn = self.connecting.lock().await;
        if let Some(connected) = self.in_use(failed_at) {
            return Ok(connected);
        }
        let connection = self.server.connect().await?;
        self.check_server(&connection).await?;
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let mut current = self.current();
        if current.connection.is_none() {
            *current = Current { number, connection: Some(connection.clone()), ..Current::default() };
        } else {
            current.beside = Some(Beside { number, connection: connection.clone(), opened: Instant::now() });
        }
        Ok((number, connection, false))
    }

    /// Decides which connection other calls use after these answers over this one.
    fn keep_or_drop(&self, number: u64, connection: Connection, begun: Instant, answers: &[RedisResult<Value>]) {
        let mut current = self.current();
        let errors = answers.iter().filter_map(|answer| answer.as_ref().err());
        let cut_off = errors.clone().any(is_cut_off);
        // A single server's name can lead to another one by now. In a cluster, the other nodes are well.
        let ends_here = |error: &&RedisError| ends_connection(error) || !self.is_cluster() && is_cut_off(error);
        let mut ends = errors.clone().filter(ends_here);
        let (ended, only_silent) = (ends.clone().next().is_some(), ends.all(RedisError::is_timeout));
        let looks_for_key = errors.clone().any(RedisError::is_cluster_error);
        if number > current.number && !ended && !cut_off && !looks_for_key {
            // It was opened beside the one in use, and answers what that did not.
            *current = Current { number, connection: Some(connection), ..Current::default() };
        }
        if number != current.number {
            if ended {
                current.beside.take_if(|beside| beside.number == number);
            }
            return;
        }
        if answers.iter().any(Result::is_ok) {
            current.answered = Some(Instant::now());
        }
        if ended && self.is_cluster() && only_silent && current.answered >= Some(begun) {
            // A node is silent, and a new connection to all would be without it: only one that has its answer is better.
            current.is_silent = true;
        } else if ended {
            current.connection = None;
        } else if cut_off {
            current.is_cut_off = true;
        }
    }

    /// Sends a short first command: a server that wants a password answers a long one with a protocol error and disconnects. Any
    /// other error is ignored here: a user without this permission can have all the others, and one silent node of a cluster
    /// does not mean that the cluster is down.
    async fn check_server(&self, connection: &Connection) -> RedisResult<()> {
        let info = match timeout(Duration::from_millis(CHECK_MAX_MS), connection.memory()).await {
            Ok(Ok(info)) => info,
            Ok(Err(error)) if error.code() == Some("NOAUTH") => return Err(error),
            Ok(Err(_)) | Err(_) => return Ok(()),
        };
        if let Some(policy) = eviction::policy(info)
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(
                policy,
                "Redis deletes records when its memory is full, and completed work then runs again: set maxmemory-policy to \
                 noeviction"
            );
        }
        Ok(())
    }

    fn in_use(&self, failed_at: Option<Instant>) -> Option<(u64, Connection, bool)> {
        let mut current = self.current();
        // The calls that it was opened for have ended.
        current.beside.take_if(|beside| beside.opened.elapsed() > Duration::from_millis(STORE_CALL_MAX_MS));
        if failed_at.is_some() && (current.is_silent || current.is_cut_off) {
            let beside = current.beside.as_ref().filter(|beside| Some(beside.opened) >= failed_at)?;
            return Some((beside.number, beside.connection.clone(), false));
        }
        Some((current.number, current.connection.clone()?, current.is_silent))
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        // A poisoned lock is fine to use: no section below it can stop halfway.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    async fn connect(&self) -> RedisResult<Connection> {
        match self {
            Self::One(client) => {
                // Each try has its own timeout.
                let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
                client.get_multiplexed_async_connection_with_config(&config).await.map(Connection::One)
            }
            // With the time limits that its client has.
            Self::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
        }
    }
}

impl Connection {
    /// Returns the `INFO memory` of the server, or of any one node.
    async fn memory(&self) -> RedisResult<Value> {
        let mut command = redis::cmd("INFO");
        command.arg("memory");
        match self.clone() {
            Self::One(mut connection) => command.query_async(&mut connection).await,
            Self::Cluster(mut connection) => {
                let any = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
                connection.route_command(command, any).await?.extract_error()
            }
        }
    }

    async fn exchange(self, commands: &[Cmd], until: Instant, meter: &Meter) -> RedisResult<Vec<RedisResult<Value>>> {
        match self {
            Self::One(mut connection) => {
                meter.request();
                let mut pipeline = Pipeline::with_capacity(commands.len());
                pipeline.ignore_errors();
                for command in commands {
                    pipeline.add_command(command.clone());
                }
                in_time(until, pipeline.query_async(&mut connection)).await
            }
            Self::Cluster(connection) => {
                let answers = commands.iter().map(|command| {
                    let mut connection = connection.clone();
                    meter.request();
                    // Each by itself: what other nodes answered stays an answer if one is silent.
                    async move { in_time(until, command.query_async(&mut connection)).await }
                });
                Ok(join_all(answers).await)
            }
        }
    }
}

/// Returns the result of a request, or that it had no answer in time.
async fn in_time<T>(until: Instant, request: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    timeout_at(until, request).await.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
}

/// Chooses the TLS implementation, if TLS is used: if another dependency of the function brings a second one, rustls would
/// panic, since it does not know which to use. A choice that the function has made stays.
pub(crate) fn choose_ring(address: &ConnectionAddr) {
    let tls = matches!(address, ConnectionAddr::TcpTls { .. });
    if tls && rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed one meanwhile, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
