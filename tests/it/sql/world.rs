//! A database, stores on it, and a second party that changes and locks what is in it.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Ending, Likely, Settlement};
use claimant_core::{
    Call, Claim, ClaimAnswer, ConsumerName, Fingerprint, Key, MessageId, Meter, OwnerToken, RecordId, Records, Settled,
    Store, StoreError, Timestamp,
};
use claimant_sql::{MySqlStore, PostgresStore, SqlTransaction};
use claimant_testkit::contract::Effects;
use claimant_tests::services::{MariaDb, Postgres};
use sqlx::{AssertSqlSafe, Connection as _, Executor, IntoArguments, MySqlConnection, PgConnection};

/// A key that no error may show.
pub(crate) const KEY: &str = "ada@example.com";

/// When everything here happens.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// How long a lease lasts.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

pub(crate) enum Database {
    Postgres(Postgres),
    MariaDb(MariaDb),
}

pub(crate) enum AnyStore {
    Postgres(PostgresStore),
    MySql(MySqlStore),
}

/// A connection beside the store's.
pub(crate) enum Party {
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

/// What handlers write in the transactions of a database, in its table `effects`.
pub(crate) struct Rows(tokio::sync::Mutex<Party>);

impl Rows {
    pub(crate) async fn of(database: &Database) -> Self {
        Self(tokio::sync::Mutex::new(database.party().await))
    }
}

impl<D> Effects<SqlTransaction<D>> for Rows
where
    D: sqlx::Database<Arguments: IntoArguments<D>>,
    for<'c> &'c mut SqlTransaction<D>: Executor<'c, Database = D>,
{
    async fn write(&self, transaction: &mut SqlTransaction<D>, text: &str) {
        let sql = AssertSqlSafe(format!("INSERT INTO effects VALUES ('{text}')"));
        drop(transaction.execute(sqlx::query::<D>(sql)).await.unwrap());
    }

    async fn count(&self, text: &str) -> usize {
        let count = self.0.lock().await.count(&format!("effects WHERE id = '{text}'")).await;
        usize::try_from(count).unwrap()
    }
}

impl Database {
    /// One of each, on the servers that the tests share.
    pub(crate) async fn both() -> [Self; 2] {
        [Self::Postgres(Postgres::shared().await), Self::MariaDb(MariaDb::shared().await)]
    }

    /// One of each, on servers of the test's own.
    pub(crate) fn alone() -> [Self; 2] {
        [Self::Postgres(Postgres::start()), Self::MariaDb(MariaDb::start())]
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "PostgreSQL",
            Self::MariaDb(_) => "MariaDB",
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Postgres(server) => server.url(),
            Self::MariaDb(server) => server.url(),
        }
    }

    /// The server's `127.0.0.1:port`, as its URL has it.
    pub(crate) fn address(&self) -> &str {
        match self {
            Self::Postgres(server) => server.address(),
            Self::MariaDb(server) => server.address(),
        }
    }

    pub(crate) async fn store_at(&self, url: &str, connections: u32) -> AnyStore {
        match self {
            Self::Postgres(_) => AnyStore::Postgres(PostgresStore::connect(url, connections).await.unwrap()),
            Self::MariaDb(_) => AnyStore::MySql(MySqlStore::connect(url, connections).await.unwrap()),
        }
    }

    /// A store with its table, empty.
    pub(crate) async fn store(&self, connections: u32) -> AnyStore {
        self.party().await.run("DROP TABLE IF EXISTS claimant_records, claimant_migrations").await;
        let store = self.store_at(&self.url(), connections).await;
        store.migrate().await.unwrap();
        store
    }

    /// What of the server's own tables has a row for each connection to this database that waits for another transaction's lock of a table or,
    /// in PostgreSQL, of a row.
    pub(crate) const fn waits(&self) -> &'static str {
        match self {
            Self::Postgres(_) => "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            Self::MariaDb(_) => {
                "information_schema.processlist WHERE db = database() AND state = 'Waiting for table metadata lock'"
            }
        }
    }

    pub(crate) async fn party(&self) -> Party {
        match self {
            Self::Postgres(server) => Party::Postgres(PgConnection::connect(&server.url()).await.unwrap()),
            Self::MariaDb(server) => {
                let mut party = Party::MariaDb(MySqlConnection::connect(&server.url()).await.unwrap());
                // It locks the records that it touches, not all places where one could be.
                party.run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await;
                party
            }
        }
    }

    /// A statement that makes a record of this key, in the words of the database.
    pub(crate) fn insert(&self, key: &str) -> String {
        self.insert_id(id(key).as_str())
    }

    pub(crate) fn insert_id(&self, id: &str) -> String {
        self.insert_ids([id], 1)
    }

    /// A statement that makes a record of each id, whose window ends then.
    pub(crate) fn insert_ids(&self, ids: impl IntoIterator<Item = impl AsRef<[u8]>>, expires_at_s: u64) -> String {
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let literal = |bytes: &[u8]| match self {
            Self::Postgres(_) => format!("decode('{}', 'hex')", hex(bytes)),
            Self::MariaDb(_) => format!("X'{}'", hex(bytes)),
        };
        let fingerprint = literal(&[0; 32]);
        let row =
            |id: &[u8]| format!("({}, 'FAILED', 'o', 1, 0, 1, 'm', {fingerprint}, 0, 0, {expires_at_s})", literal(id));
        let rows: Vec<_> = ids.into_iter().map(|id| row(id.as_ref())).collect();
        format!(
            "INSERT INTO claimant_records (id, status, owner, fence, lease_until, attempts, message_id, fingerprint, \
             created_at, updated_at, expires_at_s) VALUES {}",
            rows.join(", ")
        )
    }
}

impl AnyStore {
    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        self.records()
    }

    pub(crate) fn records(&self) -> Arc<dyn Records> {
        match self {
            Self::Postgres(store) => Arc::new(store.clone()),
            Self::MySql(store) => Arc::new(store.clone()),
        }
    }

    pub(crate) async fn migrate(&self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(store) => store.migrate().await,
            Self::MySql(store) => store.migrate().await,
        }
    }

    pub(crate) async fn delete_expired(&self, now: Timestamp, portion: u32) -> Result<u64, StoreError> {
        let within = Duration::from_secs(20);
        match self {
            Self::Postgres(store) => store.delete_expired(now, portion, within).await,
            Self::MySql(store) => store.delete_expired(now, portion, within).await,
        }
    }

    /// Takes a connection of the pool.
    pub(crate) async fn hold(&self) -> Box<dyn std::any::Any + Send> {
        match self {
            Self::Postgres(store) => Box::new(store.pool().acquire().await.unwrap()),
            Self::MySql(store) => Box::new(store.pool().acquire().await.unwrap()),
        }
    }

    /// The server's number of a connection of the pool.
    pub(crate) async fn connection(&self) -> i64 {
        match self {
            Self::Postgres(store) => {
                sqlx::query_scalar("SELECT pg_backend_pid()::bigint").fetch_one(store.pool()).await.unwrap()
            }
            Self::MySql(store) => {
                sqlx::query_scalar("SELECT CAST(CONNECTION_ID() AS SIGNED)").fetch_one(store.pool()).await.unwrap()
            }
        }
    }

    /// Connections that are in use.
    pub(crate) fn in_use(&self) -> usize {
        let (size, idle) = match self {
            Self::Postgres(store) => (store.pool().size(), store.pool().num_idle()),
            Self::MySql(store) => (store.pool().size(), store.pool().num_idle()),
        };
        size as usize - idle.min(size as usize)
    }

    /// Waits until every connection is back.
    pub(crate) async fn all_returned(&self) {
        let all_back = async {
            while self.in_use() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), all_back).await.expect("the connections come back");
    }
}

impl Party {
    pub(crate) async fn run(&mut self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Postgres(connection) => drop(connection.execute(sqlx::raw_sql(sql)).await.unwrap()),
            Self::MariaDb(connection) => drop(connection.execute(sqlx::raw_sql(sql)).await.unwrap()),
        }
    }

    /// How many rows there are.
    pub(crate) async fn count(&mut self, rows: &str) -> i64 {
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {rows}"));
        match self {
            Self::Postgres(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
            Self::MariaDb(connection) => sqlx::query_scalar(sql).fetch_one(connection).await.unwrap(),
        }
    }

    /// The texts in a column of bytes.
    pub(crate) async fn texts(&mut self, sql: &'static str) -> Vec<String> {
        let texts: Vec<Vec<u8>> = match self {
            Self::Postgres(connection) => sqlx::query_scalar(sql).fetch_all(connection).await.unwrap(),
            Self::MariaDb(connection) => sqlx::query_scalar(sql).fetch_all(connection).await.unwrap(),
        };
        texts.into_iter().map(|text| String::from_utf8(text).unwrap()).collect()
    }

    /// Lets the server close every other connection to this database.
    pub(crate) async fn end_all_others(&mut self) {
        match self {
            Self::Postgres(_) => {
                let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                              WHERE pid <> pg_backend_pid() AND datname = current_database()";
                self.run(others).await;
            }
            Self::MariaDb(connection) => {
                let others = "SELECT CAST(id AS SIGNED) FROM information_schema.processlist \
                              WHERE db = database() AND id <> connection_id()";
                let others: Vec<i64> = sqlx::query_scalar(others).fetch_all(connection).await.unwrap();
                for id in others {
                    self.run(&format!("KILL CONNECTION {id}")).await;
                }
            }
        }
    }
}

pub(crate) fn id(key: &str) -> RecordId {
    RecordId::new(&ConsumerName::new("sql").unwrap(), &Key::new(key).unwrap())
}

pub(crate) fn request(key: &str) -> ClaimRequest {
    ClaimRequest {
        id: id(key),
        owner: OwnerToken::draw().unwrap(),
        message_id: MessageId::new("m").unwrap(),
        fingerprint: Fingerprint::of_bytes(b"p"),
        now: NOW,
        lease_until: NOW.plus(LEASE),
        policy: ClaimPolicy::default(),
        likely: Likely::New,
    }
}

pub(crate) fn completed() -> Settlement {
    Settlement { ending: Ending::Completed { result: None }, now: NOW, policy: ClaimPolicy::default() }
}

/// A claim of a key, within this time.
pub(crate) async fn claim(store: &AnyStore, key: &str, within: Duration) -> Result<ClaimAnswer, StoreError> {
    store.shared().claim(&request(key), Call { within, meter: &Meter::default() }).await
}

/// A claim that is granted.
pub(crate) async fn granted(store: &AnyStore, key: &str) -> Claim {
    match claim(store, key, Duration::from_secs(20)).await.unwrap() {
        ClaimAnswer::Granted(claim) => claim,
        ClaimAnswer::Refused(refusal) => panic!("{key} was refused: {refusal:?}"),
    }
}

pub(crate) async fn settle(store: &AnyStore, claim: Claim, within: Duration) -> Settled {
    store.shared().settle(claim, &completed(), Call { within, meter: &Meter::default() }).await
}
