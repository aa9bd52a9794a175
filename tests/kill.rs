//! Processes killed at every step: a proxy between a process and its store that kills it at a given piece of traffic.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Update};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The table of records that `kill-worker` uses.
pub const LOCKS: &str = "kill-locks";

/// The table of effects that it counts in.
pub const EFFECTS: &str = "kill-effects";

/// Counts an effect in PostgreSQL.
pub const COUNT_POSTGRES: &str = "INSERT INTO kill_effects (id, effects) VALUES ($1, 1) \
    ON CONFLICT (id) DO UPDATE SET effects = kill_effects.effects + 1";

/// Counts an effect in MySQL and MariaDB.
pub const COUNT_MYSQL: &str = "INSERT INTO kill_effects (id, effects) VALUES (?, 1) \
    ON DUPLICATE KEY UPDATE effects = effects + 1";

/// Makes the table of effects in either database.
pub const CREATE_EFFECTS: &str = "CREATE TABLE kill_effects (id varchar(200) PRIMARY KEY, effects int NOT NULL)";

/// How often a message is delivered after its first process was killed before the test gives up.
const DELIVERIES_MAX: u32 = 100;

/// Bytes that the proxy passes on at once: less than a request, so that some arrive in part.
const PIECE_MAX_BYTES: usize = 1_024;

/// How long a store may take to close the connections of a process that is gone.
const CLOSE_MAX: Duration = Duration::from_secs(10);

/// One more effect of this key, as a write of a transaction.
///
/// # Errors
/// Never: it is complete.
pub fn count_effect(key: &str) -> Result<Update, Box<dyn Error + Send + Sync>> {
    let update = Update::builder().table_name(EFFECTS).key("id", AttributeValue::S(key.to_owned()));
    let update = update.update_expression("ADD effects :one");
    Ok(update.expression_attribute_values(":one", AttributeValue::N("1".into())).build()?)
}

/// Where a process is killed.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// At which piece of traffic with its store, in either direction: 1 is the first.
    pub piece: usize,
    /// Whether that piece still arrives.
    pub arrives: bool,
}

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Run {
    /// The process was killed at its step.
    Killed,
    /// It came to its end before: this is what it printed.
    Ended(String),
}

/// A victim: the arguments of `kill-worker` beside the endpoint.
#[derive(Debug, Clone)]
pub struct Victim {
    /// The path of `kill-worker`.
    pub program: &'static str,
    /// Which store it works on.
    pub store: &'static str,
    /// Where that store listens.
    pub server: SocketAddr,
    /// What the endpoint is called in the process's arguments, with the address that it is to use.
    pub endpoint: fn(SocketAddr) -> String,
}

impl Victim {
    /// Delivers the message of this key to a process that is killed at `step`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub async fn run_until(&self, key: &str, step: Step) -> io::Result<Run> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut command = self.command(key, listener.local_addr()?, 1, 0);
        let child = Arc::new(Mutex::new(command.spawn()?));
        let gate = Gate { child: Arc::clone(&child), step, passed: Arc::default() };
        let (over, ended) = oneshot::channel();
        let proxy = tokio::spawn(serve(listener, self.server, gate.clone(), ended));
        let mut printed = String::new();
        let stdout = child.lock().await.stdout.take();
        if let Some(mut stdout) = stdout {
            stdout.read_to_string(&mut printed).await?;
        }
        // Its pipe is closed: it has ended, by itself or not.
        let status = child.lock().await.wait().await?;
        // What is on its way to the store arrives before this returns.
        drop(over);
        let _ = proxy.await;
        let killed = gate.passed.load(Ordering::SeqCst) >= step.piece;
        assert!(killed || status.success(), "{self:?} failed by itself: {status}");
        Ok(if killed { Run::Killed } else { Run::Ended(printed.trim().to_owned()) })
    }

    /// Delivers the message again and again, hours later, until its process says that it is done; how often it took.
    ///
    /// # Errors
    /// When a process cannot be started.
    ///
    /// # Panics
    /// When the message is not done after [`DELIVERIES_MAX`] deliveries.
    pub async fn run_until_done(&self, key: &str) -> io::Result<u32> {
        let mut last = String::new();
        for delivery in 1..=DELIVERIES_MAX {
            let output = self.command(key, self.server, delivery + 1, delivery).output().await?;
            last = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if output.status.success() && ["completed", "duplicate"].contains(&last.as_str()) {
                return Ok(delivery);
            }
            // A server may need a moment to see that its client is gone.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{key} is not done after {DELIVERIES_MAX} deliveries: {last}");
    }

    fn command(&self, key: &str, address: SocketAddr, receive_count: u32, hours: u32) -> Command {
        let mut command = Command::new(self.program);
        command.args([self.store, &(self.endpoint)(address), key, &receive_count.to_string(), &hours.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// Counts the pieces, and kills at one.
#[derive(Debug, Clone)]
struct Gate {
    child: Arc<Mutex<Child>>,
    step: Step,
    passed: Arc<AtomicUsize>,
}

impl Gate {
    /// Whether the next piece may pass.
    async fn passes(&self) -> bool {
        let number = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.step.piece {
            let mut child = self.child.lock().await;
            // SIGKILL, and it is gone before the piece arrives.
            let _ = child.kill().await;
        }
        number < self.step.piece || number == self.step.piece && self.step.arrives
    }
}

/// Passes connections on until `ended`, and those to their end.
async fn serve(listener: TcpListener, server: SocketAddr, gate: Gate, mut ended: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        let client = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = &mut ended => break,
        };
        let (Ok((client, _)), Ok(upstream)) = (client, TcpStream::connect(server).await) else { continue };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = upstream.into_split();
        connections.spawn(pass(from_client, to_server, gate.clone()));
        connections.spawn(pass(from_server, to_client, gate.clone()));
    }
    let _ = timeout(CLOSE_MAX, async { while connections.join_next().await.is_some() {} }).await;
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    gate: Gate,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_MAX_BYTES];
    loop {
        let length = from.read(&mut piece).await?;
        if length == 0 || !gate.passes().await {
            return to.shutdown().await;
        }
        to.write_all(&piece[..length]).await?;
    }
}
