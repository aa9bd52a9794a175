//! Real servers for tests, each with its own data, stopped with the value that holds it; and by themselves when the test
//! process ends, however it ends.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that one of the scripts runs in the foreground.
pub struct Server {
    /// `127.0.0.1:port`.
    pub address: String,
    process: Child,
}

/// How often a server is started whose port was taken meanwhile.
const STARTS_MAX: usize = 3;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name)
}

impl Server {
    /// Runs `scripts/NAME` with these arguments until it says where it listens. Where any port will do (0), a start that
    /// lost its port to somebody else is made again.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start(name: &str, arguments: &[&str]) -> Self {
        let tries = if arguments.first() == Some(&"0") { STARTS_MAX } else { 1 };
        (0..tries).find_map(|_| Self::try_start(name, arguments)).unwrap_or_else(|| {
            panic!("{name} did not say where it listens; run `make tools` and try {} 0", script(name).display())
        })
    }

    fn try_start(name: &str, arguments: &[&str]) -> Option<Self> {
        let script = script(name);
        let started = Command::new(&script).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut process =
            started.unwrap_or_else(|e| panic!("{} did not start: {e}; run `make tools`", script.display()));
        let stdout = process.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(stdout).lines();
        let listening = lines.find_map(|line| Some(line.ok()?.strip_prefix("listening on ")?.to_owned()));
        let Some(address) = listening else {
            // It may have ended by itself.
            let _ = process.kill();
            let _ = process.wait();
            return None;
        };
        // Read on, so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { address, process })
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Redis or Valkey, in memory.
pub struct Redis(pub Server);

impl Redis {
    /// An empty one.
    #[must_use]
    pub fn start() -> Self {
        Self(Server::start("redis", &["0"]))
    }

    /// An empty one on this port, where an earlier one was, or with other options.
    #[must_use]
    pub fn start_with(port: &str, options: &[&str]) -> Self {
        Self(Server::start("redis", &[&[port], options].concat()))
    }

    /// An empty cluster of two nodes, which share the keys.
    ///
    /// # Panics
    /// When it is not ready within a minute.
    pub async fn cluster() -> [Self; 2] {
        let options = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
        let nodes = [Self::start_with("0", &options), Self::start_with("0", &options)];
        let mut connections = [nodes[0].connection().await, nodes[1].connection().await];
        for (connection, slots) in connections.iter_mut().zip([["0", "8191"], ["8192", "16383"]]) {
            let added = redis::cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(&slots).exec_async(connection).await;
            added.expect("the slots are free");
        }
        let meet = ["MEET", "127.0.0.1", nodes[1].0.port()];
        redis::cmd("CLUSTER").arg(&meet).exec_async(&mut connections[0]).await.expect("it looks for the other");
        for connection in &mut connections {
            let deadline = Instant::now() + Duration::from_secs(60);
            loop {
                let info = redis::cmd("CLUSTER").arg("INFO").query_async(connection).await;
                let info: String = info.expect("it answers");
                if info.contains("cluster_state:ok") && info.contains("cluster_slots_ok:16384") {
                    break;
                }
                assert!(Instant::now() < deadline, "the cluster was not ready within a minute");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        nodes
    }

    /// A connection of the test's own.
    ///
    /// # Panics
    /// When there is none to be had.
    pub async fn connection(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).expect("it is a URL");
        client.get_multiplexed_async_connection().await.expect("the server is up")
    }

    /// Its URL, with user and password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://claimant:claimant@{}/", self.0.address)
    }
}

/// PostgreSQL, without durability.
pub struct Postgres(pub Server);

impl Postgres {
    /// An empty one.
    #[must_use]
    pub fn start() -> Self {
        Self(Server::start("postgres", &["0"]))
    }

    /// The URL of its database `claimant`, with a superuser and its password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://claimant:claimant@{}/claimant", self.0.address)
    }
}

/// MariaDB, without durability.
pub struct MariaDb(pub Server);

impl MariaDb {
    /// An empty one.
    #[must_use]
    pub fn start() -> Self {
        Self(Server::start("mariadb", &["0"]))
    }

    /// The URL of its database `claimant`, with a user of all rights and its password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("mysql://claimant:claimant@{}/claimant", self.0.address)
    }
}
