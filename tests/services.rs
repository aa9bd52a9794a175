//! Real servers for tests, which end with the test or with the process. Tests that change nothing of a server itself share one,
//! each with a database of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use claimant_servers::Server;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, PgConnection};

use crate::tap::Tap;

/// The number of the next database that tests of this process share a server for.
static NEXT: AtomicUsize = AtomicUsize::new(0);

fn started(server: std::io::Result<Server>) -> Server {
    server.unwrap_or_else(|e| panic!("{e}"))
}

/// Redis or Valkey, in memory.
pub struct Redis(pub Server);

impl Redis {
    /// Starts an empty one.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(None, &[])
    }

    /// Starts an empty one on this port, where an earlier one was, or with other options.
    #[must_use]
    pub fn start_with(port: Option<u16>, options: &[&str]) -> Self {
        Self(started(claimant_servers::redis(port, options)))
    }

    /// The slots of each of two nodes that share the keys.
    pub const HALVES: [[&str; 2]; 2] = [["0", "8191"], ["8192", "16383"]];

    /// Starts an empty cluster of two nodes, which share the keys.
    ///
    /// # Panics
    /// When it is not ready within a minute.
    pub async fn cluster() -> [Self; 2] {
        Self::cluster_with(Self::HALVES).await
    }

    /// Starts an empty cluster of two nodes with these keys, whose second one is reached through a tap.
    ///
    /// # Panics
    /// When it is not ready within a minute.
    pub async fn tapped_cluster(slots: [[&str; 2]; 2]) -> ([Self; 2], Tap) {
        let nodes = Self::cluster_with(slots).await;
        let tap = Tap::before(&nodes[1].0.address).await;
        let (_, port) = tap.address.rsplit_once(':').expect("it is an address");
        let mut connection = nodes[1].connection().await;
        let port = ["SET", "cluster-announce-port", port];
        redis::cmd("CONFIG").arg(&port).exec_async(&mut connection).await.expect("it announces another port");
        let mut connection = nodes[0].connection().await;
        until_ready(&mut connection, "SLOTS", &[port[2]]).await;
        (nodes, tap)
    }

    async fn cluster_with(slots: [[&str; 2]; 2]) -> [Self; 2] {
        let options = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
        let nodes = [Self::start_with(None, &options), Self::start_with(None, &options)];
        let mut connections = [nodes[0].connection().await, nodes[1].connection().await];
        for (connection, slots) in connections.iter_mut().zip(slots) {
            let added = redis::cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(&slots).exec_async(connection).await;
            added.expect("the slots are free");
        }
        let meet = ["MEET", "127.0.0.1", nodes[1].0.port()];
        redis::cmd("CLUSTER").arg(&meet).exec_async(&mut connections[0]).await.expect("it looks for the other");
        for connection in &mut connections {
            until_ready(connection, "INFO", &["cluster_state:ok", "cluster_slots_ok:16384"]).await;
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

/// Waits until what a node says of its cluster has all these words.
async fn until_ready(connection: &mut redis::aio::MultiplexedConnection, what: &str, words: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let told: redis::Value = redis::cmd("CLUSTER").arg(what).query_async(connection).await.expect("it answers");
        let told = format!("{told:?}");
        if words.iter().all(|word| told.contains(word)) {
            return;
        }
        assert!(Instant::now() < deadline, "the cluster was not ready within a minute");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Defines a database, without durability: the function that starts its server, its connections, and the scheme of its URL.
macro_rules! database {
    ($(#[$about:meta])* $name:ident, $start:path, $connection:ty, $scheme:literal) => {
        $(#[$about])*
        pub struct $name {
            server: Arc<Server>,
            database: String,
        }

        impl $name {
            /// Starts a server of the test's own.
            #[must_use]
            pub fn start() -> Self {
                Self { server: Arc::new(started($start())), database: "claimant".to_owned() }
            }

            /// Makes an empty database on the server that the tests of this process share.
            ///
            /// # Panics
            /// When there is none to be had.
            pub async fn shared() -> Self {
                static SERVER: OnceLock<Arc<Server>> = OnceLock::new();
                let server = SERVER.get_or_init(|| Self::start().server);
                let database = format!("claimant_{}", NEXT.fetch_add(1, Ordering::Relaxed));
                let first = Self { server: Arc::clone(server), database: "claimant".to_owned() };
                let mut connection = <$connection>::connect(&first.url()).await.expect("the server is up");
                let create = AssertSqlSafe(format!("CREATE DATABASE {database}"));
                connection.execute(sqlx::raw_sql(create)).await.expect("the name is new");
                Self { database, ..first }
            }

            /// Returns the server's address, `127.0.0.1:port`.
            #[must_use]
            pub fn address(&self) -> &str {
                &self.server.address
            }

            /// Returns the URL of the database, with a user of all rights and its password.
            #[must_use]
            pub fn url(&self) -> String {
                format!(concat!($scheme, "://claimant:claimant@{}/{}"), self.server.address, self.database)
            }
        }
    };
}

database!(
    /// A PostgreSQL database.
    Postgres,
    claimant_servers::postgres,
    PgConnection,
    "postgres"
);

database!(
    /// A MariaDB database.
    MariaDb,
    claimant_servers::mariadb,
    MySqlConnection,
    "mysql"
);
