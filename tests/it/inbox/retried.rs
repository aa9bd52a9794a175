//! What happens to a message between when it is taken and when its attempt begins: a dead one before it in its group is retried, for which it
//! waits; or another worker takes it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant::Clock as _;
use claimant_inbox::{AfterDeath, EntryStatus, Inbox, Limits, StateChange, Summary, Worker};
use claimant_sql::PostgresStore;
use sqlx::Executor as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::Semaphore;

use super::world::{LATER, WITHIN, World, act, nth, run};

/// How often a connection is taken from a pool, and what the second one and all later ones wait for.
#[derive(Clone)]
struct Gate {
    taken: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { taken: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    async fn pass(&self) {
        if self.taken.fetch_add(1, Ordering::SeqCst) > 0 {
            drop(self.open.acquire().await);
        }
    }

    /// An inbox whose pool is behind it.
    async fn inbox(&self, url: &str) -> Inbox {
        let (idle, new) = (self.clone(), self.clone());
        let options = PostgresStore::pool_options().max_connections(4);
        let options = options.before_acquire(move |_: &mut PgConnection, _| {
            let gate = idle.clone();
            Box::pin(async move {
                gate.pass().await;
                Ok(true)
            })
        });
        let options = options.after_connect(move |_: &mut PgConnection, _| {
            let gate = new.clone();
            Box::pin(async move {
                gate.pass().await;
                Ok(())
            })
        });
        Inbox::new(options.connect_lazy_with(url.parse::<PgConnectOptions>().unwrap()))
    }
}

fn worker(world: &World, inbox: &Inbox) -> Worker {
    let worker = inbox.worker(super::world::CONSUMER).clock(Arc::new(world.clock.clone()));
    worker.after_death(AfterDeath::GroupGoesOn).on("ok", act).on("reject", act).on("fail", act)
}

async fn run_one(worker: &Worker) -> Summary {
    worker.run_once(Limits::within(Duration::from_secs(60)).messages(1)).await.unwrap()
}

/// A world whose first message is dead and would be done if it were retried; its number.
async fn world_with_a_dead_message() -> (World, i64) {
    let world = World::start(4).await;
    world.deliver(vec![nth("g", "reject", 1)]).await;
    assert_eq!(run(&worker(&world, &world.inbox)).await.dead, 1);
    world.sql("UPDATE claimant_inbox SET event_type = 'ok', body = replace(convert_from(body, 'UTF8'), 'reject', 'ok')::bytea").await;
    let dead = world.entry("g-1").await.id;
    (world, dead)
}

/// The keys of the effects in their order.
async fn order(world: &World) -> Vec<String> {
    sqlx::query_scalar("SELECT key FROM effects ORDER BY id").fetch_all(&mut world.party().await).await.unwrap()
}

/// What is left to do is done in order, and the attempt that did not begin does not count.
async fn ends_in_order(world: &World) {
    assert_eq!(order(world).await, [""; 0]);
    world.clock.advance(LATER);
    run(&worker(world, &world.inbox)).await;
    assert_eq!(order(world).await, ["g-1", "g-2"]);
    let later = world.entry("g-2").await;
    assert_eq!((later.status, later.attempts), (EntryStatus::Done, 1));
}

/// The later message is taken, and its transaction has no connection yet.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_is_taken_and_has_not_begun_waits_for_a_message_that_is_retried() {
    let (world, dead) = world_with_a_dead_message().await;
    world.deliver(vec![nth("g", "ok", 2)]).await;
    let gate = Gate::new();
    let late = worker(&world, &gate.inbox(&world.server.url()).await);
    let running = tokio::spawn(async move { run_one(&late).await });
    while world.entry("g-2").await.attempts == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(world.inbox.retry(dead, world.clock.now(), WITHIN).await.unwrap(), StateChange::Applied);
    gate.open.add_permits(1_000);
    assert_eq!(running.await.unwrap(), Summary { not_started: 1, ..Summary::default() });
    ends_in_order(&world).await;
}

/// The later message comes, and is taken, while the retry is about to commit.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_comes_while_a_message_is_retried_waits_for_it() {
    let (world, dead) = world_with_a_dead_message().await;
    world
        .sql(
            "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$ BEGIN
                PERFORM pg_advisory_xact_lock(7); RETURN NEW;
             END $$;
             CREATE TRIGGER hold BEFORE UPDATE ON claimant_inbox FOR EACH ROW WHEN (OLD.status = 'DEAD') EXECUTE FUNCTION hold()",
        )
        .await;
    let mut party = world.party().await;
    party.execute("SELECT pg_advisory_lock(7)").await.unwrap();
    let (inbox, now) = (world.inbox.clone(), world.clock.now());
    let retrying = tokio::spawn(async move { inbox.retry(dead, now, WITHIN).await });
    world.held_up().await;
    world.deliver(vec![nth("g", "ok", 2)]).await;
    // It waits for the retry, but not for ever.
    assert_eq!(run_one(&worker(&world, &world.inbox)).await, Summary { not_started: 1, ..Summary::default() });
    party.execute("SELECT pg_advisory_unlock(7)").await.unwrap();
    assert_eq!(retrying.await.unwrap().unwrap(), StateChange::Applied);
    ends_in_order(&world).await;
}

/// Its handler does not run, and it writes nothing over what the attempt of the other worker has written.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_is_taken_and_has_not_begun_is_left_to_the_worker_that_takes_it_again() {
    let world = World::start(4).await;
    world.put(&["fail"]).await;
    let gate = Gate::new();
    let late = worker(&world, &gate.inbox(&world.server.url()).await);
    let running = tokio::spawn(async move { run_one(&late).await });
    while world.entry("fail").await.attempts == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    world.clock.advance(LATER);
    assert_eq!(world.run().await, Summary { failed: 1, ..Summary::default() });
    let after = world.entry("fail").await;
    world.clock.advance(LATER);
    gate.open.add_permits(1_000);
    assert_eq!(running.await.unwrap(), Summary { not_started: 1, ..Summary::default() });
    assert_eq!((after.attempts, world.entry("fail").await), (2, after));
}
