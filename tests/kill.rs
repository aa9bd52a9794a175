//! Processes killed at every step: a relay between a process and its store that kills it at a given piece of traffic.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, Update};
use claimant_servers::relay::{Direction, Fate, Rule, Unconnected};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

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
        let relay = Unconnected::listen().await?;
        let child = Arc::new(Mutex::new(self.command(key, relay.address, 1, 0).spawn()?));
        let gate = Arc::new(Gate { child: Arc::clone(&child), step, passed: AtomicUsize::new(0) });
        let relay = relay.connect(self.server.to_string(), Arc::clone(&gate));
        let mut printed = String::new();
        let stdout = child.lock().await.stdout.take();
        if let Some(mut stdout) = stdout {
            stdout.read_to_string(&mut printed).await?;
        }
        // Its pipe is closed: it has ended, by itself or not.
        let status = child.lock().await.wait().await?;
        // What is on its way to the store arrives before this returns.
        relay.finish().await;
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
#[derive(Debug)]
struct Gate {
    child: Arc<Mutex<Child>>,
    step: Step,
    passed: AtomicUsize,
}

impl Rule for Gate {
    /// Less than a request, so that some arrive in part.
    const PIECE_MAX_BYTES: usize = 1_024;

    async fn fate(&self, _: Direction) -> Fate {
        let number = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if number == self.step.piece {
            // SIGKILL, and it is gone before the piece arrives. OK because a process that has ended is gone as well.
            let _ = self.child.lock().await.kill().await;
        }
        let passes = number < self.step.piece || number == self.step.piece && self.step.arrives;
        if passes { Fate::Pass } else { Fate::Cut }
    }
}
