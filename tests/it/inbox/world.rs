//! An inbox, what is put into it, and what its handlers leave behind.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant::lambda::Service;
use claimant::{Clock, Consumer, HandlerError, Timestamp, TransactionGuard};
use claimant_inbox::{Entry, Inbox, InboxContext, Limits, Summary, Transaction, Worker};
use claimant_testkit::clock::TEST_EPOCH;
use claimant_tests::services::Postgres;
use futures_util::TryStreamExt as _;
use serde::Deserialize;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _, PgConnection};
use tokio::time::timeout;

use crate::lambda::world::{event, failures, settings};

/// The consumer of every test.
pub(crate) const CONSUMER: &str = "orders";

/// Longer than any call here takes.
pub(crate) const WITHIN: Duration = Duration::from_secs(20);

/// How often a message is tried.
pub(crate) const ATTEMPTS: u32 = 4;

/// Longer than any backoff.
pub(crate) const LATER: Duration = Duration::from_secs(3_600);

/// What a message asks its handler to do.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Work {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) n: u64,
}

/// A clock that stands still until it is moved, however slow the machine is. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct StandingClock(Arc<AtomicU64>);

impl StandingClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Timestamp {
        TEST_EPOCH.plus(Duration::from_millis(self.0.load(Ordering::SeqCst)))
    }
}

pub(crate) struct World {
    pub(crate) server: Postgres,
    pub(crate) inbox: Inbox,
    pub(crate) clock: StandingClock,
}

impl World {
    /// An empty inbox, with a table of effects.
    pub(crate) async fn start(connections: u32) -> Self {
        Self::on(Postgres::shared().await, connections).await
    }

    /// The same in this database.
    pub(crate) async fn on(server: Postgres, connections: u32) -> Self {
        let inbox = Inbox::connect(&server.url(), connections).await.unwrap();
        inbox.migrate().await.unwrap();
        let world = Self { server, inbox, clock: StandingClock::default() };
        world.sql("CREATE TABLE effects (id bigserial PRIMARY KEY, key text NOT NULL)").await;
        world
    }

    pub(crate) async fn party(&self) -> PgConnection {
        PgConnection::connect(&self.server.url()).await.unwrap()
    }

    pub(crate) async fn sql(&self, sql: &'static str) {
        self.party().await.execute(sqlx::raw_sql(sql)).await.unwrap();
    }

    /// Waits until a statement waits for the advisory lock 7.
    pub(crate) async fn held_up(&self) {
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND NOT granted \
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while sqlx::query_scalar::<_, i64>(held).fetch_one(&mut self.party().await).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn intake(&self) -> Consumer<Work> {
        self.inbox.intake(CONSUMER, |work: &Work| &work.kind).key(|work| &work.id)
    }

    /// Delivers these records to the function that takes in; gives the ids that it reports failed.
    pub(crate) async fn deliver(&self, records: Vec<Value>) -> Vec<String> {
        self.deliver_to(self.intake(), records).await
    }

    pub(crate) async fn deliver_to(&self, consumer: Consumer<Work>, records: Vec<Value>) -> Vec<String> {
        let service = Service::with_aws(&settings(&[("CLAIMANT_METRICS", "off")]), consumer, None).unwrap();
        let service = service.clock(Arc::new(self.clock.clone()));
        let deadline = self.clock.now().plus(WITHIN).as_millis();
        let response = service.invoke(event(records), deadline, "").await.unwrap();
        failures(&response.0).into_iter().map(str::to_owned).collect()
    }

    /// Takes in messages of these kinds, with their kind as their key.
    pub(crate) async fn put(&self, kinds: &[&str]) {
        let records = kinds.iter().map(|kind| record(kind, &body(kind, kind))).collect();
        assert_eq!(self.deliver(records).await, Vec::<String>::new());
    }

    pub(crate) fn worker(&self) -> Worker {
        let worker = KINDS.iter().fold(self.bare_worker(), |worker, kind| worker.on(*kind, act));
        worker.on("slow", slow)
    }

    /// A worker without handlers.
    pub(crate) fn bare_worker(&self) -> Worker {
        let worker = self.inbox.worker(CONSUMER).attempts_max(ATTEMPTS).timeout(Duration::from_secs(5));
        worker.poll(Duration::from_millis(20)).clock(Arc::new(self.clock.clone()))
    }

    pub(crate) async fn run(&self) -> Summary {
        run(&self.worker()).await
    }

    /// Keys of the effects, sorted.
    pub(crate) async fn effects(&self) -> Vec<String> {
        let effects = sqlx::query_scalar("SELECT key FROM effects ORDER BY key");
        effects.fetch_all(&mut self.party().await).await.unwrap()
    }

    /// The message with this key.
    pub(crate) async fn entry(&self, key: &str) -> Entry {
        let id = sqlx::query_scalar("SELECT id FROM claimant_inbox WHERE record_id = $1");
        let id = id.bind(format!("{CONSUMER}#{key}").into_bytes()).fetch_one(&mut self.party().await).await.unwrap();
        self.inbox.get(id, WITHIN).await.unwrap().unwrap()
    }

    /// Status, attempts and error of the message with this key.
    pub(crate) async fn state(&self, key: &str) -> (String, u32, String) {
        let entry = self.entry(key).await;
        (entry.status.to_string(), entry.attempts, entry.error.unwrap_or_default())
    }
}

pub(crate) async fn run(worker: &Worker) -> Summary {
    worker.run_once(Limits::within(Duration::from_secs(60))).await.unwrap()
}

/// What [`act`] can do.
pub(crate) const KINDS: [&str; 19] = [
    "ok",
    "fail",
    "soon",
    "reject",
    "panic",
    "hang",
    "commit",
    "ignore",
    "savepoint",
    "swallow",
    "unread",
    "read-only",
    "elsewhere",
    "keep",
    "leave",
    "cut",
    "sleep",
    "shrug",
    "wait",
];

/// Has an effect first, whatever comes then.
pub(crate) async fn act(
    work: Work,
    mut tx: TransactionGuard<Transaction>,
    _: InboxContext,
) -> Result<(), HandlerError> {
    affect(&work.id, &mut tx).await?;
    match work.kind.as_str() {
        "ok" => {}
        "fail" => return Err(HandlerError::retry("no luck")),
        "soon" => return Err(HandlerError::retry("no luck").after(Duration::from_secs(7))),
        "reject" => return Err(HandlerError::terminal("no use")),
        "panic" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        "commit" => _ = tx.execute("COMMIT").await?,
        "ignore" => _ = tx.execute("ROLLBACK").await,
        "savepoint" => {
            tx.execute("SAVEPOINT a").await?;
            assert!(tx.execute("SELECT nonsense").await.is_err());
            tx.execute("ROLLBACK TO SAVEPOINT a").await?;
        }
        "swallow" => assert!(tx.execute("SELECT nonsense").await.is_err()),
        "unread" => {
            let first = tx.fetch("SELECT 1 / (200 - g) FROM generate_series(1, 300) g").try_next().await?;
            assert!(first.is_some());
        }
        "read-only" => _ = tx.execute("SET TRANSACTION READ ONLY").await?,
        "elsewhere" => _ = tx.execute("SET LOCAL search_path = pg_catalog").await?,
        "keep" => KEPT.lock().unwrap().push(tx),
        "leave" => {
            for session in [
                "SET app.tenant = '7'",
                "SET lock_timeout = '7s'",
                "LISTEN left_behind",
                "SELECT pg_advisory_lock(7)",
                "CREATE TEMPORARY TABLE left_behind ()",
                "DECLARE left_behind CURSOR WITH HOLD FOR SELECT 1",
            ] {
                tx.execute(session).await?;
            }
        }
        "sleep" => _ = tx.execute("SELECT pg_sleep(20)").await?,
        "shrug" => _ = timeout(Duration::from_millis(50), tx.execute("SELECT pg_sleep(20)")).await,
        "wait" => _ = tx.execute("UPDATE effects SET key = key WHERE key = 'held'").await?,
        "cut" => _ = tx.execute("SELECT pg_terminate_backend(pg_backend_pid())").await?,
        kind => panic!("{kind} is none of {KINDS:?}"),
    }
    Ok(())
}

/// Transactions that a handler kept.
static KEPT: Mutex<Vec<TransactionGuard<Transaction>>> = Mutex::new(Vec::new());

pub(crate) async fn slow(
    work: Work,
    mut tx: TransactionGuard<Transaction>,
    _: InboxContext,
) -> Result<(), HandlerError> {
    affect(&work.id, &mut tx).await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    Ok(())
}

/// The effect of a key.
pub(crate) async fn affect(key: &str, tx: &mut TransactionGuard<Transaction>) -> Result<(), HandlerError> {
    sqlx::query("INSERT INTO effects (key) VALUES ($1)").bind(key).execute(&mut **tx).await?;
    Ok(())
}

pub(crate) fn body(id: &str, kind: &str) -> String {
    json!({ "id": id, "type": kind }).to_string()
}

/// A record of a standard queue.
pub(crate) fn record(message_id: &str, body: &str) -> Value {
    json!({
        "messageId": message_id, "receiptHandle": "r", "body": body, "eventSourceARN": "arn:aws:sqs:us-east-1:1:orders"
    })
}

/// The `n`th record of a group of a FIFO queue.
pub(crate) fn nth(group: &str, kind: &str, n: u64) -> Value {
    let id = format!("{group}-{n}");
    json!({
        "messageId": id, "receiptHandle": "r", "body": json!({ "id": id, "type": kind, "n": n }).to_string(),
        "attributes": { "MessageGroupId": group }, "eventSourceARN": "arn:aws:sqs:us-east-1:1:orders.fifo"
    })
}
