//! A limit across processes: workers of an inbox share it with consumers of queues, and what has no turn stays in the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use claimant::{Consumer, Context, HandlerError, Limit, Message, TransactionGuard};
use claimant_core::{Engine, InvocationTime, NoQueue};
use claimant_inbox::{InboxContext, Limits, Summary, Transaction, Worker};
use claimant_sql::PostgresStore;
use tokio::time::sleep;

use super::world::{Work, World, body, record, run};

/// How many messages run, and the most that did.
#[derive(Clone, Default)]
struct Runs {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Runs {
    async fn run(self, takes: Duration) -> Result<(), HandlerError> {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        sleep(takes).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    }
}

/// A world with so many messages in its inbox, and the store of the limit.
async fn world(messages: usize) -> (World, PostgresStore) {
    let world = World::start(12).await;
    let store = PostgresStore::new(world.inbox.pool().clone());
    store.migrate().await.unwrap();
    let records = (0..messages).map(|n| record(&format!("m{n}"), &body(&format!("k{n}"), "mail"))).collect();
    assert_eq!(world.deliver(records).await, Vec::<String>::new());
    (world, store)
}

fn worker(world: &World, runs: &Runs, takes: u64) -> Worker {
    let runs = runs.clone();
    let handler = move |_: Work, _: TransactionGuard<Transaction>, _: InboxContext| {
        runs.clone().run(Duration::from_millis(takes))
    };
    world.bare_worker().on("mail", handler).concurrency(6)
}

/// Works on so many messages of a queue, whose consumer has the same limit, once the worker has begun: the clock stands still, so slots that
/// a consumer keeps between its batches would not be free again.
async fn consume_too(world: &World, store: &PostgresStore, runs: &Runs, work: (usize, u64, Limit)) {
    while runs.most.load(Ordering::SeqCst) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    consume(world, store, runs, work).await;
}

async fn consume(world: &World, store: &PostgresStore, runs: &Runs, (messages, takes, limit): (usize, u64, Limit)) {
    let runs = runs.clone();
    let handler = move |_: String, _: Context| runs.clone().run(Duration::from_millis(takes));
    let consumer = Consumer::new("confirmation", store.clone(), handler).limit(limit);
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(world.clock.clone()));
    let batch: Vec<_> = (0..messages).map(|n| Message::new(format!("q{n}"), r#""x""#).unwrap()).collect();
    let now = engine.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(60)), Duration::from_millis(500));
    let report = engine.process(&batch, time, &NoQueue).await;
    assert_eq!(report.counts().get("completed"), Some(&messages), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_and_a_queue_share_a_rate() {
    let (world, store) = world(40).await;
    let (limit, runs) = (Limit::new("ses").per_second(20).slots(2), Runs::default());
    let worker = worker(&world, &runs, 10).limit(limit.clone(), store.clone());
    let started = Instant::now();
    let (done, ()) = tokio::join!(run(&worker), consume_too(&world, &store, &runs, (20, 10, limit)));
    assert_eq!(done, Summary { done: 40, ..Summary::default() });
    // 60 = rate × (W + 20 ms) + slots: no sooner, however fast the machine is.
    assert!(started.elapsed() >= Duration::from_millis(58_000 / 20 - 20), "{:?}", started.elapsed());
    assert_eq!(held(&world).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_and_a_queue_run_no_more_at_once_than_the_limit() {
    let (world, store) = world(30).await;
    let (limit, runs) = (Limit::new("ses").at_once(3).slots(3), Runs::default());
    // It has two of the three slots.
    let worker = worker(&world, &runs, 30).concurrency(2).limit(limit.clone(), store.clone());
    let (done, ()) = tokio::join!(run(&worker), consume_too(&world, &store, &runs, (10, 30, limit)));
    assert_eq!(done.done, 30);
    assert!(runs.most.load(Ordering::SeqCst) <= 3, "{:?}", runs.most);
    assert_eq!(held(&world).await, 0);
}

/// Returns how many slots of the limit the worker holds.
async fn held(world: &World) -> i64 {
    let sql = "SELECT count(*) FROM claimant_records \
        WHERE convert_from(id, 'UTF8') LIKE 'claimant-rate#%' AND status = 'IN_PROGRESS' AND message_id = 'orders'";
    sqlx::query_scalar(sql).fetch_one(world.inbox.pool()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_has_no_turn_stays_in_the_table_and_loses_no_attempt() {
    let (world, store) = world(4).await;
    let (limit, runs) = (Limit::new("ses").at_once(1).slots(1), Runs::default());
    let worker = worker(&world, &runs, 1).limit(limit.clone(), store.clone());
    let busy = Runs::default();
    let other = consume(&world, &store, &busy, (1, 6_000, limit));
    let (summary, ()) = tokio::join!(
        async {
            // The other one has the only slot.
            while busy.now.load(Ordering::SeqCst) == 0 {
                sleep(Duration::from_millis(10)).await;
            }
            // A second, and what an attempt needs: its handler's five, two of its turn, and 14 around it.
            worker.run_once(Limits::within(Duration::from_secs(22))).await.unwrap()
        },
        other
    );
    assert_eq!(summary, Summary::default());
    for n in 0..4 {
        assert_eq!(world.state(&format!("k{n}")).await, ("PENDING".to_owned(), 0, String::new()));
    }
    assert_eq!(run(&worker).await.done, 4);
    assert_eq!(world.state("k0").await.1, 1);
}

/// It has its connection still, which the store of a limit may be left without.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "needs PostgreSQL: make test"]
async fn a_handler_that_does_not_stop_has_its_slot_until_it_does() {
    let (world, _) = world(2).await;
    let runs = Runs::default();
    let blocks = runs.clone();
    let handler = move |_: Work, _: TransactionGuard<Transaction>, _: InboxContext| {
        let runs = blocks.clone();
        async move {
            let is_first = runs.most.load(Ordering::SeqCst) == 0;
            runs.most.fetch_max(runs.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            if is_first {
                // Its thread alone, and not the one that drives timers.
                tokio::task::block_in_place(|| std::thread::sleep(Duration::from_secs(4)));
            }
            runs.now.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, HandlerError>(())
        }
    };
    let worker = world.bare_worker().on("mail", handler).concurrency(1).timeout(Duration::from_secs(1));
    assert_eq!(run(&worker).await, Summary { unknown: 1, ..Summary::default() });
    while runs.now.load(Ordering::SeqCst) > 0 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(run(&worker).await, Summary { done: 1, ..Summary::default() });
    assert_eq!(runs.most.load(Ordering::SeqCst), 1);
}
