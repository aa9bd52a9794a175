//! The store that all contestants use: the embedded DynamoDB behind a proxy that adds latency, and counts.
//!
//! Both run in the command's own process, and the contestants in theirs: what the store costs is not theirs.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use claimant_core::Error;
use claimant_local::dynamodb::DynamoDb;
use claimant_local::stack::{KeyKind, KeySpec, TableSpec};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, client, server};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::units::Units;

/// The longest body of a request: DynamoDB takes 16 MB.
const BODY_BYTES_MAX: usize = 17 * 1024 * 1024;

/// Tokio's timers wake up this much late, on average. The page tells what remains.
const TIMER_LAG: Duration = Duration::from_millis(1);

/// What has gone through the proxy so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Connections that were opened; with TLS, each would be a handshake.
    pub connections: u64,
    /// Requests.
    pub requests: u64,
    /// What they cost.
    pub units: Units,
    /// How long the proxy has held requests back, in all.
    pub held_back: Duration,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            requests: self.requests + other.requests,
            units: [self.units, other.units].into_iter().sum(),
            held_back: self.held_back + other.held_back,
        }
    }

    /// What came after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            connections: self.connections - earlier.connections,
            requests: self.requests - earlier.requests,
            units: Units {
                writes: self.units.writes - earlier.units.writes,
                read_halves: self.units.read_halves - earlier.units.read_halves,
            },
            held_back: self.held_back - earlier.held_back,
        }
    }
}

#[derive(Debug, Default)]
struct Gauge {
    latency_ms: AtomicU64,
    connections: AtomicU64,
    requests: AtomicU64,
    writes: AtomicU64,
    read_halves: AtomicU64,
    held_back_us: AtomicU64,
}

/// A running store.
#[derive(Debug)]
pub struct Store {
    address: SocketAddr,
    gauge: Arc<Gauge>,
}

impl Store {
    /// A fresh store with these tables (partition key `id`, a string). It ends with the process.
    ///
    /// # Errors
    /// When the database or its listeners cannot be started.
    pub async fn start(tables: &[&str]) -> Result<Self, Error> {
        Self::of(DynamoDb::in_memory().map_err(failed)?, tables).await
    }

    /// This database, with these tables.
    ///
    /// # Errors
    /// When a table or the listeners cannot be made.
    pub async fn of(database: DynamoDb, tables: &[&str]) -> Result<Self, Error> {
        for table in tables {
            database.create_table(&spec(table)).map_err(failed)?;
        }
        let behind = serve(database).map_err(failed)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let gauge = Arc::new(Gauge::default());
        tokio::spawn(accept(listener, behind, Arc::clone(&gauge)));
        Ok(Self { address, gauge })
    }

    /// Where it listens.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Holds every request back for this long from now on.
    pub fn set_latency(&self, latency_ms: u64) {
        self.gauge.latency_ms.store(latency_ms, Ordering::Relaxed);
    }

    /// What has gone through so far.
    pub fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            connections: read(&self.gauge.connections),
            requests: read(&self.gauge.requests),
            units: Units { writes: read(&self.gauge.writes), read_halves: read(&self.gauge.read_halves) },
            held_back: Duration::from_micros(read(&self.gauge.held_back_us)),
        }
    }
}

fn failed(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new("the store of the benchmark did not start").caused_by(cause)
}

fn spec(table: &str) -> TableSpec {
    TableSpec {
        logical_id: table.to_owned(),
        name: table.to_owned(),
        partition_key: KeySpec { name: "id".to_owned(), kind: KeyKind::S },
        sort_key: None,
        ttl_attribute: None,
    }
}

/// Serves the database from threads of its own: it works while it answers, which would hold up the proxy's timers.
fn serve(database: DynamoDb) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    std::thread::Builder::new().name("store".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let served = match TcpListener::from_std(listener) {
                Ok(listener) => database.serve(listener, std::future::pending()).await.map_err(|e| e.to_string()),
                Err(e) => Err(e.to_string()),
            };
            if let Err(e) = served {
                tracing::error!("the store ended: {e}");
            }
        });
    })?;
    Ok(address)
}

async fn accept(listener: TcpListener, behind: SocketAddr, gauge: Arc<Gauge>) {
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        gauge.connections.fetch_add(1, Ordering::Relaxed);
        let gauge = Arc::clone(&gauge);
        tokio::spawn(async move {
            if let Err(e) = pass_on(client, behind, &gauge).await {
                tracing::debug!("a connection to the store broke: {e}");
            }
        });
    }
}

/// One connection of a contestant has one of its own to the store, so that none waits for another.
async fn pass_on(contestant: TcpStream, behind: SocketAddr, gauge: &Gauge) -> io::Result<()> {
    let store = TcpStream::connect(behind).await?;
    contestant.set_nodelay(true)?;
    store.set_nodelay(true)?;
    let (store, connection) = client::conn::http1::handshake(TokioIo::new(store)).await.map_err(io::Error::other)?;
    let store = &Mutex::new(store);
    let service = service_fn(|request: Request<Incoming>| async move {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(io::Error::other)?.to_bytes();
        gauge.count(&head.headers, &body);
        gauge.hold_back().await;
        let mut store = store.lock().await;
        store.ready().await.map_err(io::Error::other)?;
        store.send_request(Request::from_parts(head, Full::<Bytes>::new(body))).await.map_err(io::Error::other)
    });
    let ended = tokio::select! {
        ended = server::conn::http1::Builder::new().serve_connection(TokioIo::new(contestant), service) => ended,
        ended = connection => ended,
    };
    ended.map_err(io::Error::other)
}

impl Gauge {
    fn count(&self, headers: &HeaderMap, body: &[u8]) {
        let target = headers.get("x-amz-target").and_then(|target| target.to_str().ok());
        let units = Units::of(target.unwrap_or_default(), body);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(units.writes, Ordering::Relaxed);
        self.read_halves.fetch_add(units.read_halves, Ordering::Relaxed);
    }

    async fn hold_back(&self) {
        let latency = Duration::from_millis(self.latency_ms.load(Ordering::Relaxed));
        if !latency.is_zero() {
            let since = Instant::now();
            sleep(latency.saturating_sub(TIMER_LAG)).await;
            // OK because it is a few milliseconds.
            self.held_back_us.fetch_add(since.elapsed().as_micros() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The database wants a signature, and does not check it.
    const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
        SignedHeaders=host;x-amz-date, Signature=0";

    #[tokio::test(flavor = "multi_thread")]
    async fn requests_are_passed_on_counted_and_held_back() {
        let store = Store::start(&["orders"]).await.unwrap();
        store.set_latency(3);
        let stream = TcpStream::connect(store.address).await.unwrap();
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for id in ["1", "2"] {
            let request = Request::post("/")
                .header("host", "localhost")
                .header("authorization", SIGNED)
                .header("x-amz-date", "20260101T000000Z");
            let request = request.header("content-type", "application/x-amz-json-1.0");
            let request = request.header("x-amz-target", "DynamoDB_20120810.PutItem");
            let body = format!(r#"{{"TableName": "orders", "Item": {{"id": {{"S": "{id}"}}}}}}"#);
            sender.ready().await.unwrap();
            let response = sender.send_request(request.body(Full::<Bytes>::from(body)).unwrap()).await.unwrap();
            let (head, body) = response.into_parts();
            assert_eq!((head.status.as_u16(), &body.collect().await.unwrap().to_bytes()[..]), (200, &b"{}"[..]));
        }
        let counts = store.counts();
        assert_eq!((counts.requests, counts.units), (2, Units { writes: 2, read_halves: 0 }));
        assert!(counts.held_back >= 2 * (Duration::from_millis(3) - TIMER_LAG), "{counts:?}");
    }
}
