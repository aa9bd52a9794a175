//! Connections that are cut, and workers that are killed: the effect is there once, and everything comes to its end.

use std::sync::Arc;
use std::time::Duration;

use claimant::{HandlerError, TransactionGuard};
use claimant_inbox::{Inbox, InboxContext, Limits, Summary, Transaction, Worker};
use sqlx::Executor as _;
use tokio::sync::Notify;

use super::world::{ATTEMPTS, LATER, Work, World, affect, run};

/// Cuts the connection at the statement or commit whose turn it is: `cut_at` counts down, outside all transactions.
const CUT: &str = "CREATE SEQUENCE steps; CREATE TABLE cut_at (step bigint NOT NULL);
    CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('steps') = (SELECT step FROM cut_at) THEN
            PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(10);
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER cut_update BEFORE UPDATE ON claimant_inbox FOR EACH ROW EXECUTE FUNCTION cut();
    CREATE TRIGGER cut_effect AFTER INSERT ON effects FOR EACH ROW EXECUTE FUNCTION cut();
    CREATE CONSTRAINT TRIGGER cut_commit AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        EXECUTE FUNCTION cut();
    CREATE CONSTRAINT TRIGGER cut_commit AFTER UPDATE ON claimant_inbox DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        EXECUTE FUNCTION cut();";

async fn run_until_done(world: &World, worker: &Worker) -> u32 {
    for round in 0..100 {
        // An error is one of the cut connection.
        let idle = worker.run_once(Limits::within(Duration::from_secs(60))).await;
        if idle.is_ok_and(|summary| summary == Summary::default()) {
            let open = "SELECT count(*) FROM claimant_inbox WHERE status = 'PENDING'";
            let open: i64 = sqlx::query_scalar(open).fetch_one(&mut world.party().await).await.unwrap();
            if open == 0 {
                return round;
            }
            // The server may not have ended the connection that was cut, which still holds the row.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        world.clock.advance(LATER);
    }
    panic!("it is not done after 100 rounds");
}

/// As when its beginning was cut off: sqlx knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_is_stored_though_a_connection_came_back_with_an_open_transaction() {
    let world = World::start(1).await;
    let mut own = world.inbox.pool().acquire().await.unwrap();
    own.execute("BEGIN").await.unwrap();
    drop(own);
    world.put(&["ok"]).await;
    assert_eq!(world.state("ok").await.0, "PENDING");
}

/// Taking, its commit, the effect, the end of the row, and the commit of both.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn an_effect_is_there_once_wherever_the_connection_is_cut() {
    let world = World::start(4).await;
    world.sql(CUT).await;
    let worker = world.worker();
    let mut uncut = 0;
    for step in 1..=12_i64 {
        world.sql("TRUNCATE claimant_inbox, effects, cut_at; ALTER SEQUENCE steps RESTART").await;
        world.put(&["ok"]).await;
        sqlx::query("INSERT INTO cut_at VALUES ($1)").bind(step).execute(&mut world.party().await).await.unwrap();
        run_until_done(&world, &worker).await;
        let (status, attempts, _) = world.state("ok").await;
        assert_eq!((status.as_str(), world.effects().await.len()), ("DONE", 1), "cut at step {step}");
        assert!(attempts <= 2, "cut at step {step}: {attempts} attempts");
        let steps: i64 =
            sqlx::query_scalar("SELECT last_value FROM steps").fetch_one(&mut world.party().await).await.unwrap();
        uncut += usize::from(steps < step);
    }
    // Every step had its turn.
    assert!(uncut > 0);
}

async fn kill(
    _: Work,
    mut tx: TransactionGuard<Transaction>,
    cx: InboxContext,
    killed: Arc<Notify>,
) -> Result<(), HandlerError> {
    affect(cx.key(), &mut tx).await?;
    killed.notify_one();
    std::future::pending().await
}

/// Runs a worker in a runtime of its own, which is gone when a handler says so, and all of its connections with it; or until
/// nothing is due.
fn run_and_kill(world: &World) {
    let url = world.server.url();
    let clock = Arc::new(world.clock.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let killed = Arc::new(Notify::new());
            let on_kill = Arc::clone(&killed);
            let inbox = Inbox::connect(&url, 8).await.unwrap();
            let worker = inbox.worker(super::world::CONSUMER).attempts_max(ATTEMPTS).clock(clock);
            let worker = worker
                .on("slow", super::world::slow)
                .on("kill", move |work, tx, cx| kill(work, tx, cx, Arc::clone(&on_kill)));
            tokio::select! {
                () = killed.notified() => {}
                summary = worker.run_once(Limits::within(Duration::from_secs(60))) => drop(summary.unwrap()),
            }
        });
        runtime.shutdown_background();
    });
    thread.join().unwrap();
}

/// A message that kills its worker each time comes to its end, and takes no others with it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_that_kills_its_worker_is_dead_in_the_end() {
    let world = World::start(8).await;
    let mut records = vec![super::world::record("m0", &super::world::body("poison", "kill"))];
    records
        .extend((1..=5).map(|n| super::world::record(&format!("m{n}"), &super::world::body(&format!("k{n}"), "slow"))));
    assert_eq!(world.deliver(records).await, [""; 0]);
    for _ in 0..ATTEMPTS + 8 {
        let world = &world;
        tokio::task::block_in_place(|| run_and_kill(world));
        world.clock.advance(LATER);
    }
    let (status, attempts, error) = world.state("poison").await;
    assert_eq!((status.as_str(), attempts), ("DEAD", ATTEMPTS), "{error}");
    assert!(error.contains("the worker was killed"), "{error}");
    assert_eq!(world.effects().await, ["k1", "k2", "k3", "k4", "k5"]);
    for n in 1..=5 {
        let (status, attempts, _) = world.state(&format!("k{n}")).await;
        assert!(status == "DONE" && attempts <= 3, "k{n}: {status} after {attempts}");
    }
    assert_eq!(run(&world.worker()).await, Summary::default());
}
