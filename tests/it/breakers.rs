//! A breaker on each store: its record is opened, probed, left behind by a process that dies, and closed, for all processes; and a limit,
//! whose slots are held by one process at a time. All stores at once; times are skipped by a clock that is moved.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use claimant_core::{
    Breaker, Consumer, ConsumerName, Context, Engine, HandlerError, InvocationTime, Key, Limit, MemoryStore, Message,
    Meter, NoQueue, OwnerToken, Record, RecordId, Status, Store,
};
use claimant_redis::RedisStore;
use claimant_sql::{MySqlStore, PostgresStore};
use claimant_testkit::{Call, FaultyStore, MovableClock};
use claimant_tests::dynamodb::DynamoDb;
use claimant_tests::services::{MariaDb, Postgres, Redis};
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use crate::cloud::wait_for;

/// For so long it is open, each time: no machine is slow enough for that to be over by itself.
const OPEN: Duration = Duration::from_secs(300);

/// An invocation in which messages wait for nothing, and one that has time for all.
const SHORT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(60);

/// What the handlers meet.
const AWAY: u8 = 0;
const HANGS: u8 = 1;
const BACK: u8 = 2;

#[derive(Clone)]
struct World {
    store: FaultyStore,
    clock: MovableClock,
    /// Of its own on each store, and in each run.
    downstream: String,
    system: Arc<AtomicU8>,
    runs: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

impl World {
    fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store: FaultyStore::new(store),
            clock: MovableClock::start(),
            downstream: format!("mail-{}", OwnerToken::draw().unwrap().as_str()),
            system: Arc::default(),
            runs: Arc::default(),
            sent: Arc::default(),
        }
    }

    fn process(&self, has_breaker: bool) -> Arc<Engine> {
        let world = self.clone();
        let handler = move |_: String, _: Context| {
            let world = world.clone();
            async move {
                world.runs.fetch_add(1, Ordering::SeqCst);
                match world.system.load(Ordering::SeqCst) {
                    AWAY => Err(HandlerError::retry("it is away").downstream(world.downstream.clone())),
                    HANGS => std::future::pending().await,
                    _ => Ok(()),
                }
            }
        };
        let consumer = Consumer::new("confirmation", self.store.clone(), handler).concurrency(1);
        let breaker = Breaker::new(&*self.downstream).open_for(OPEN);
        let consumer = if has_breaker { consumer.breaker(breaker) } else { consumer };
        Arc::new(Engine::with_defaults(consumer).unwrap().clock(Arc::new(self.clock.clone())))
    }

    /// Delivers new messages; how many had each outcome.
    async fn deliver(&self, process: &Engine, count: usize, within: Duration) -> Vec<(&'static str, usize)> {
        let message = |_| {
            let n = self.sent.fetch_add(1, Ordering::SeqCst);
            Message::new(format!("{}-{n}", self.downstream), r#""x""#).unwrap().with_receive_count(1)
        };
        let batch: Vec<_> = (0..count).map(message).collect();
        let time = InvocationTime::new(process.now(), process.now().plus(within), within / 10);
        let report = process.process(&batch, time, &NoQueue).await;
        let counts = report.counts();
        ["completed", "retry", "breaker_open", "rate_limited"]
            .into_iter()
            .filter_map(|word| counts.get(word).map(|count| (word, *count)))
            .collect()
    }

    /// The breaker's record, and how often handlers were run so far.
    async fn seen(&self) -> (Status, u64, usize) {
        let id = RecordId::new(&ConsumerName::new("claimant-breaker").unwrap(), &Key::new(&*self.downstream).unwrap());
        let meter = Meter::default();
        let call = claimant_core::Call { within: LONG, meter: &meter };
        let record: Record = self.store.get(&id, call).await.unwrap().unwrap();
        (record.status, record.fence.get(), self.runs.load(Ordering::SeqCst))
    }
}

async fn is_shared(name: &'static str, store: Arc<dyn Store>) {
    let world = World::new(store);
    let (first, second) = (world.process(true), world.process(true));
    // Each process finds out by itself; one of them opens it.
    assert_eq!(world.deliver(&first, 5, LONG).await, [("retry", 5)], "{name}");
    assert_eq!(world.deliver(&second, 5, LONG).await, [("retry", 5)], "{name}");
    assert_eq!(world.seen().await, (Status::InProgress, 1, 10), "{name}");
    assert_eq!(world.deliver(&second, 2, SHORT).await, [("breaker_open", 2)], "{name}");
    // One message probes, and fails: it is open again.
    world.clock.advance(OPEN * 2);
    assert_eq!(world.deliver(&second, 3, SHORT).await, [("retry", 1), ("breaker_open", 2)], "{name}");
    assert_eq!(world.seen().await, (Status::InProgress, 2, 11), "{name}");
    // The next process dies of its probe: open until its lease is over.
    world.clock.advance(OPEN * 2);
    world.system.store(HANGS, Ordering::SeqCst);
    let dies = tokio::spawn({
        let (world, first) = (world.clone(), Arc::clone(&first));
        async move { world.deliver(&first, 3, LONG).await }
    });
    wait_for("the probe", || world.runs.load(Ordering::SeqCst) == 12).await;
    dies.abort();
    assert!(dies.await.is_err(), "{name}");
    world.system.store(BACK, Ordering::SeqCst);
    assert_eq!(world.deliver(&second, 2, SHORT).await, [("breaker_open", 2)], "{name}");
    assert_eq!(world.seen().await, (Status::InProgress, 3, 12), "{name}");
    // It is back: what has waited is run, and then it is closed for all.
    world.clock.advance(OPEN * 2);
    assert_eq!(world.deliver(&second, 6, LONG).await, [("completed", 6)], "{name}");
    assert_eq!(world.deliver(&first, 6, LONG).await, [("completed", 6)], "{name}");
    assert_eq!(world.seen().await, (Status::Failed, 4, 24), "{name}");
    // Closed it costs nothing: as many calls as without.
    let mut calls = Vec::new();
    for process in [world.process(false), world.process(true), second] {
        let before = world.store.calls().len();
        world.deliver(&process, 10, LONG).await;
        let calls_of = |call| world.store.calls()[before..].iter().filter(|made| **made == call).count();
        calls.push((calls_of(Call::Claim), calls_of(Call::Settle), world.store.calls().len() - before));
    }
    assert_eq!(calls, [(10, 10, 20); 3], "{name}");
}

/// Two messages may run at once, in three processes: the third waits for one of them.
async fn is_limited(name: &'static str, store: Arc<dyn Store>) {
    let world = World::new(store);
    let (running, go_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let process = || {
        let (running, go_on) = (Arc::clone(&running), Arc::clone(&go_on));
        let handler = move |_: String, _: Context| {
            let (running, go_on) = (Arc::clone(&running), Arc::clone(&go_on));
            async move {
                running.fetch_add(1, Ordering::SeqCst);
                go_on.acquire().await.map(|permit| permit.forget()).map_err(HandlerError::retry)
            }
        };
        let limit = Limit::new(&*world.downstream).at_once(2).slots(2);
        let consumer = Consumer::new("confirmation", world.store.clone(), handler).limit(limit);
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(world.clock.clone()))
    };
    let processes = [process(), process(), process()];
    let third = async {
        wait_for("the first two", || running.load(Ordering::SeqCst) == 2).await;
        assert_eq!(world.deliver(&processes[2], 1, SHORT).await, [("rate_limited", 1)], "{name}");
        assert_eq!(running.load(Ordering::SeqCst), 2, "{name}");
        go_on.add_permits(3);
    };
    let done = vec![("completed", 1)];
    let (first, second) = (world.deliver(&processes[0], 1, LONG), world.deliver(&processes[1], 1, LONG));
    let (first, second, ()) = tokio::join!(first, second, third);
    assert_eq!((&first, &second), (&done, &done), "{name}");
    // Whoever is not invoked any more holds its slot no longer than its lease.
    world.clock.advance(LONG);
    assert_eq!(world.deliver(&processes[2], 1, LONG).await, done, "{name}");
}

async fn all_at_once(stores: Vec<(&'static str, Arc<dyn Store>)>) {
    join_all(stores.into_iter().map(|(name, store)| async move {
        tokio::join!(is_shared(name, Arc::clone(&store)), is_limited(name, store))
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn breakers_and_limits_are_shared_through_memory_and_the_lock_table() {
    let table = DynamoDb::embedded().await.lock_table("breakers").await;
    all_at_once(vec![("memory", Arc::new(MemoryStore::new())), ("the lock table", Arc::new(table))]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs DynamoDB Local, Redis, PostgreSQL and MariaDB: make test"]
async fn breakers_and_limits_are_shared_through_every_store() {
    let (redis, nodes) = (Redis::start(), Redis::cluster().await);
    let (postgres, mariadb) = (Postgres::shared().await, MariaDb::shared().await);
    let on_postgres = PostgresStore::connect(&postgres.url(), 4).await.unwrap();
    let on_mariadb = MySqlStore::connect(&mariadb.url(), 4).await.unwrap();
    on_postgres.migrate().await.unwrap();
    on_mariadb.migrate().await.unwrap();
    all_at_once(vec![
        ("DynamoDB Local", Arc::new(DynamoDb::local().lock_table("breakers").await)),
        ("Redis", Arc::new(RedisStore::open(&redis.url()).unwrap())),
        ("a cluster of Redis", Arc::new(RedisStore::open_cluster(&nodes[0].url()).unwrap())),
        ("PostgreSQL", Arc::new(on_postgres)),
        ("MariaDB", Arc::new(on_mariadb)),
    ])
    .await;
}
