use claimant_core::breaker::Health;
use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BoxFuture, Breaker, Call, Claim, ClaimAnswer, Clock, HandlerError, Limit, MemoryStore, Record, RecordId, Renewed,
    Settled, Store, Timestamp, TransactionGuard,
};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio::time::sleep;

use super::*;
use crate::connections::Connections;
use crate::context::InboxContext;
use crate::transaction::Transaction;

/// A store that gives no answer.
struct Silent;

impl Store for Silent {
    fn claim<'a>(&'a self, _: &'a ClaimRequest, _: Call<'a>) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(pending())
    }

    fn renew<'a>(&'a self, _: &'a mut Claim, _: Renewal, _: Call<'a>) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(pending())
    }

    fn settle<'a>(&'a self, _: Claim, _: &'a Settlement, _: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(pending())
    }

    fn get<'a>(&'a self, _: &'a RecordId, _: Call<'a>) -> BoxFuture<'a, Result<Option<Record>, StoreError>> {
        Box::pin(pending())
    }
}

async fn handler(_: u64, _: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
    Ok(())
}

/// A worker whose database cannot be reached.
fn worker() -> Worker {
    let pool = PgPool::connect_lazy_with(PgConnectOptions::new().host("127.0.0.1").port(1));
    let connections = Arc::new(Connections::of(&pool));
    Worker::new(pool, connections, "orders".to_owned()).on("ok", handler)
}

#[tokio::test(start_paused = true)]
async fn a_run_returns_in_its_time_where_the_store_of_its_limit_is_silent() {
    let worker = worker().limit(Limit::new("mail").per_second(1), Silent).checked().expect("it can run");
    let (shared, begun) = (Arc::clone(&worker.shared), Instant::now());
    let deadlines = Deadlines { begin_by: begun, return_by: begun + Duration::from_secs(1) };
    let mut run = WorkerLoop::new(worker, &shared, u64::MAX, Some(deadlines));
    // It has asked for a slot.
    run.way.found(1);
    run.way.go_on(Some(1));
    assert_eq!(run.work(pending()).await.expect("nothing failed"), Summary::default());
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

/// The time of a paused test.
struct PausedClock(Instant);

impl Clock for PausedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_000_000).plus(self.0.elapsed())
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_begin_a_probe_leaves_it_to_others() {
    // It is half open after 11 s.
    for (waiting, run_s, stops_after, probes) in
        [(1, 0, 20, true), (0, 0, 20, false), (1, 25, 20, false), (1, 25, 5, false)]
    {
        let clock = Arc::new(PausedClock(Instant::now()));
        let worker = worker().concurrency(1).clock(clock).breaker(Breaker::new("mail"), MemoryStore::new());
        let worker = worker.checked().expect("it can run");
        let shared = Arc::clone(&worker.shared);
        let mut run = WorkerLoop::new(worker, &shared, u64::MAX, None);
        // It takes none before.
        run.next_take += Duration::from_secs(3_600);
        if run_s > 0 {
            run.in_flight.spawn(async move {
                let took = Duration::from_secs(run_s);
                sleep(took).await;
                Attempt { outcome: AttemptOutcome::Done, health: Health::Unknown, took }
            });
        }
        (0..5).for_each(|_| run.way.observe(Health::Away, Duration::ZERO));
        run.way.next().await;
        run.way.found(waiting);
        run.work(sleep(Duration::from_secs(stops_after))).await.expect("nothing failed");
        let (mut other, ended) = (shared.downstream.way(), Instant::now());
        other.found(1);
        while other.soon() == 0 {
            other.wait(0, false);
            other.next().await;
        }
        assert_eq!(
            ended.elapsed() > Duration::from_secs(1),
            probes,
            "{waiting} waiting, a run of {run_s} s, stopped after {stops_after} s"
        );
    }
}

/// Its body was slow to come.
#[tokio::test(start_paused = true)]
async fn a_row_that_was_taken_before_a_breaker_opened_does_not_begin_but_for_a_probe() {
    let clock = Arc::new(PausedClock(Instant::now()));
    let worker = worker().clock(clock).breaker(Breaker::new("mail"), MemoryStore::new()).checked().expect("it can run");
    let downstream = &worker.shared.downstream;
    let (mut way, mut other) = (downstream.way(), downstream.way());
    let mut turn = way.turn();
    assert!(downstream.may_begin(&mut turn).await);
    (0..5).for_each(|_| way.observe(Health::Away, Duration::ZERO));
    way.next().await;
    assert!(!downstream.may_begin(&mut turn).await, "it is open");
    other.found(1);
    while other.soon() == 0 {
        other.wait(0, false);
        other.next().await;
    }
    assert!(!downstream.may_begin(&mut turn).await, "another run of the worker probes");
    assert!(downstream.may_begin(&mut other.turn()).await);
}
