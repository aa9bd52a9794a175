//! How attempts end, and what is left of their effects.

use std::sync::Arc;
use std::time::Duration;

use claimant::{Clock as _, HandlerError, TransactionGuard};
use claimant_inbox::{Inbox, InboxContext, Summary, Transaction};
use claimant_testkit::logs::Logs;
use serde::Deserialize;
use sqlx::{Executor as _, PgPool};
use tokio::sync::{Mutex, mpsc};

use super::world::{ATTEMPTS, CONSUMER, LATER, WITHIN, Work, World, affect, body, record, run};

/// What a message asks for, what is then said of it, after one attempt and in the end.
struct Case {
    kind: &'static str,
    first: &'static str,
    last: &'static str,
    attempts: u32,
    says: &'static str,
}

const CASES: &[Case] = &[
    Case { kind: "ok", first: "DONE", last: "DONE", attempts: 1, says: "" },
    Case { kind: "fail", first: "PENDING", last: "DEAD", attempts: ATTEMPTS, says: "no luck" },
    Case { kind: "reject", first: "DEAD", last: "DEAD", attempts: 1, says: "no use" },
    Case { kind: "panic", first: "PENDING", last: "DEAD", attempts: ATTEMPTS, says: "the handler panicked" },
    Case { kind: "hang", first: "PENDING", last: "DEAD", attempts: ATTEMPTS, says: ", at its own timeout" },
    Case { kind: "savepoint", first: "DONE", last: "DONE", attempts: 1, says: "" },
    Case {
        kind: "commit",
        first: "PENDING",
        last: "DEAD",
        attempts: ATTEMPTS,
        says: "the transaction is the worker's",
    },
    Case { kind: "ignore", first: "DONE", last: "DONE", attempts: 1, says: "" },
    Case {
        kind: "swallow",
        first: "PENDING",
        last: "DEAD",
        attempts: ATTEMPTS,
        says: "an earlier statement of the handler",
    },
    Case {
        kind: "unread",
        first: "PENDING",
        last: "DEAD",
        attempts: ATTEMPTS,
        says: "failed after it had stopped reading its rows",
    },
    Case {
        kind: "read-only",
        first: "PENDING",
        last: "DEAD",
        attempts: ATTEMPTS,
        says: "did the handler make its transaction read-only",
    },
    Case {
        kind: "elsewhere",
        first: "PENDING",
        last: "DEAD",
        attempts: ATTEMPTS,
        says: "did the handler set a search_path",
    },
    Case { kind: "cut", first: "PENDING", last: "DEAD", attempts: ATTEMPTS, says: "terminat" },
    Case {
        kind: "nobody-knows",
        first: "PENDING",
        last: "DEAD",
        attempts: ATTEMPTS,
        says: "no handler for the message's event type",
    },
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn every_attempt_ends_as_it_must() {
    let world = World::start(12).await;
    let worker = world.worker().timeout(Duration::from_millis(500)).concurrency(3);
    for case in CASES {
        world.put(&[case.kind]).await;
    }
    run(&worker).await;
    for case in CASES {
        let (status, attempts, _) = world.state(case.kind).await;
        assert_eq!((status.as_str(), attempts), (case.first, 1), "{}", case.kind);
    }
    // What failed is due only after its backoff.
    assert_eq!(run(&worker).await, Summary::default());
    for _ in 1..ATTEMPTS {
        world.clock.advance(LATER);
        run(&worker).await;
    }
    for case in CASES {
        let (status, attempts, error) = world.state(case.kind).await;
        assert_eq!((status.as_str(), attempts), (case.last, case.attempts), "{}: {error}", case.kind);
        assert!(error.contains(case.says), "{}: {error}", case.kind);
    }
    assert_eq!(world.effects().await, ["ignore", "ok", "savepoint"]);
    world.clock.advance(LATER);
    assert_eq!(run(&worker).await, Summary::default(), "the dead are left alone");
}

/// A transaction that outlives its handler is ended, and nothing of it is ever committed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_transaction_that_is_kept_is_not_committed() {
    let world = World::start(4).await;
    world.put(&["keep"]).await;
    for attempt in 1..=2 {
        assert_eq!(world.run().await, Summary { failed: 1, ..Summary::default() });
        let (status, attempts, error) = world.state("keep").await;
        assert_eq!((status.as_str(), attempts), ("PENDING", attempt), "{error}");
        assert!(error.contains("kept its transaction"), "{error}");
        world.clock.advance(LATER);
    }
    assert!(world.effects().await.is_empty());
}

/// Also where the handlers have all connections of the pool.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_handler_that_is_cut_off_inside_a_statement_has_failed() {
    for (kind, says) in [("sleep", ", at its own timeout"), ("shrug", "its transaction did not commit")] {
        let world = World::start(1).await;
        world.put(&[kind]).await;
        let worker = world.worker().timeout(Duration::from_millis(500));
        assert_eq!(run(&worker).await, Summary { failed: 1, ..Summary::default() }, "{kind}");
        let (status, attempts, error) = world.state(kind).await;
        assert_eq!((status.as_str(), attempts), ("PENDING", 1), "{kind}");
        assert!(error.contains(says), "{kind}: {error}");
        // It is no suspect, beside which nothing else runs: it is due after its backoff.
        let times = world.entry(kind).await.times;
        assert!(times.next_attempt_at.since(times.received_at) <= Duration::from_secs(2), "{kind}: {times:?}");
    }
}

/// The next message on its connection has nothing of it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_connection_keeps_nothing_of_its_handlers() {
    let world = World::start(1).await;
    // What the URL sets stays.
    let url = format!("{}?options[app.tenant]=1", world.server.url());
    let world = World { inbox: Inbox::connect(&url, 1).await.unwrap(), ..world };
    let session = async || -> String {
        let session = "SELECT concat_ws(' ', pg_backend_pid(), current_setting('lock_timeout'), to_regclass('left_behind'), \
            current_setting('app.tenant'), (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() \
            AND locktype = 'advisory') + (SELECT count(*) FROM pg_cursors WHERE is_holdable) + (SELECT count(*) FROM pg_listening_channels()))";
        sqlx::query_scalar(session).fetch_one(world.inbox.pool()).await.unwrap()
    };
    let before = session().await;
    world.put(&["leave"]).await;
    assert_eq!(world.run().await, Summary { done: 1, ..Summary::default() });
    assert_eq!(session().await, before);
    let number = sqlx::query("SELECT lastval()").execute(world.inbox.pool()).await.unwrap_err();
    assert!(number.to_string().contains("not yet defined"), "{number}");
}

/// The server knows no other limit of a commit, and its row would be locked until then.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_commit_waits_a_second_for_locks() {
    let world = World::start(4).await;
    world
        .sql(
            "CREATE TABLE keys (key text PRIMARY KEY); INSERT INTO keys VALUES ('ok'); \
             ALTER TABLE effects ADD FOREIGN KEY (key) REFERENCES keys DEFERRABLE INITIALLY DEFERRED",
        )
        .await;
    world.put(&["ok"]).await;
    let mut other = world.party().await;
    other.execute("BEGIN; SELECT FROM keys FOR UPDATE").await.unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        other.execute("COMMIT").await.unwrap();
    };
    let (summary, ()) = tokio::join!(world.run(), release);
    let (status, attempts, error) = world.state("ok").await;
    assert_eq!(summary, Summary { failed: 1, ..Summary::default() }, "{error}");
    assert_eq!((status.as_str(), attempts), ("PENDING", 1));
    assert!(error.contains("did not commit"), "{error}");
    world.clock.advance(LATER);
    assert_eq!(world.run().await, Summary { done: 1, ..Summary::default() });
}

/// Claimant's table is not to blame for it.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn what_a_commit_checks_is_the_handlers() {
    let world = World::start(1).await;
    world
        .sql(
            "CREATE FUNCTION divide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM 1 / 0; RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER divide AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION divide()",
        )
        .await;
    world.put(&["ok"]).await;
    assert_eq!(world.run().await, Summary { failed: 1, ..Summary::default() });
    let error = world.state("ok").await.2;
    assert!(error.contains("code 22012") && error.contains("checked at the commit"), "{error}");
    assert!(!error.contains("claimant_inbox"), "{error}");
}

/// As in the transactions of a consumer.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_handler_waits_for_locks_as_the_server_says() {
    let world = World::start(4).await;
    world.sql("INSERT INTO effects (key) VALUES ('held')").await;
    world.put(&["wait"]).await;
    let mut other = world.party().await;
    other.execute("BEGIN; UPDATE effects SET key = key").await.unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        other.execute("COMMIT").await.unwrap();
    };
    let (summary, ()) = tokio::join!(world.run(), release);
    assert_eq!(summary, Summary { done: 1, ..Summary::default() }, "{:?}", world.state("wait").await);
    assert_eq!(world.effects().await, ["held", "wait"]);
    // Where the database has a setting of its own, that counts.
    world
        .sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = 200', current_database()); END $$")
        .await;
    let world = World { inbox: Inbox::connect(&world.server.url(), 4).await.unwrap(), ..world };
    world.deliver(vec![record("again", &body("again", "wait"))]).await;
    let mut other = world.party().await;
    other.execute("BEGIN; UPDATE effects SET key = key").await.unwrap();
    assert_eq!(world.run().await, Summary { failed: 1, ..Summary::default() });
    assert!(world.state("again").await.2.contains("lock timeout"));
}

/// Ends its transaction, and changes its row.
async fn change(mut tx: TransactionGuard<Transaction>, pool: PgPool, change: &'static str) -> Result<(), HandlerError> {
    assert!(tx.execute("SELECT pg_terminate_backend(pg_backend_pid())").await.is_err());
    sqlx::query(change).execute(&pool).await?;
    Ok(())
}

/// As if the answer to its commit were lost.
const DONE: &str = "UPDATE claimant_inbox SET status = 'DONE', open = false";

/// As if the attempt came to its end so late that another worker has taken the message.
const TAKEN: &str = "UPDATE claimant_inbox SET fence = fence + 1, cut_off = true";

/// An alarm on that line would have an operator look for a dead message that is none.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_that_is_done_after_all_is_not_called_dead() {
    let (world, logs) = (World::start(2).await, Logs::record());
    let pool = world.inbox.pool().clone();
    let worker = world.worker().on("done", move |_: Work, tx, _: InboxContext| change(tx, pool.clone(), DONE));
    world.put(&["done"]).await;
    assert_eq!(run(&worker.clone().attempts_max(1)).await, Summary { unknown: 1, ..Summary::default() });
    assert_eq!(world.state("done").await.0, "DONE");
    let text = logs.text();
    assert!(text.contains("could not be marked dead") && !text.contains("message is dead"), "{text}");
    // Nor is it one that failed, where it has attempts left.
    world.deliver(vec![record("again", &body("again", "done"))]).await;
    assert_eq!(run(&worker).await, Summary { unknown: 1, ..Summary::default() });
    let text = logs.text();
    assert!(text.contains("the attempt's failure was not recorded") && !text.contains("attempt failed"), "{text}");
    world.put(&["reject"]).await;
    assert_eq!(world.run().await.dead, 1);
    assert!(logs.text().contains("message is dead"));
    // Nor where that is not known, as in a failover.
    world.sql("ALTER TABLE claimant_inbox ADD CHECK (error IS NULL) NOT VALID").await;
    world.put(&["fail"]).await;
    assert_eq!(world.run().await, Summary { unknown: 1, ..Summary::default() });
    let text = logs.text();
    assert!(text.contains("the attempt's failure could not be recorded") && !text.contains("attempt failed"), "{text}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn an_attempt_that_ends_when_its_message_is_taken_again_writes_nothing() {
    for attempts_max in [1, 2] {
        let world = World::start(2).await;
        let pool = world.inbox.pool().clone();
        let worker = world.worker().on("taken", move |_: Work, tx, _: InboxContext| change(tx, pool.clone(), TAKEN));
        world.put(&["taken"]).await;
        let summary = run(&worker.attempts_max(attempts_max)).await;
        assert_eq!(summary, Summary { unknown: 1, ..Summary::default() }, "of {attempts_max}");
        assert_eq!(world.state("taken").await, ("PENDING".to_owned(), 1, String::new()), "of {attempts_max}");
    }
}

type Guard = TransactionGuard<Transaction>;

/// Nothing else can give a handler another transaction than the one that has its message locked.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_transaction_that_a_handler_has_exchanged_ends_no_other_message() {
    let world = World::start(4).await;
    let ((lend, lent), (give_back, given_back)) = (mpsc::channel::<Guard>(1), mpsc::channel::<Guard>(1));
    let (lent, given_back) = (Arc::new(Mutex::new(lent)), Arc::new(Mutex::new(given_back)));
    let pool = world.inbox.pool().clone();
    let lends = move |work: Work, mut tx: Guard, _: InboxContext| {
        let (lend, given_back, pool) = (lend.clone(), Arc::clone(&given_back), pool.clone());
        async move {
            affect(&work.id, &mut tx).await?;
            lend.send(tx).await.unwrap();
            let _other = given_back.lock().await.recv().await;
            // Its own is then over.
            let free = "SELECT 1 FROM claimant_inbox WHERE event_type = 'lends' FOR UPDATE SKIP LOCKED";
            while sqlx::query(free).fetch_optional(&pool).await?.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        }
    };
    let exchanges = move |work: Work, mut tx: Guard, _: InboxContext| {
        let (lent, give_back) = (Arc::clone(&lent), give_back.clone());
        async move {
            affect(&work.id, &mut tx).await?;
            let mut other = lent.lock().await.recv().await.unwrap();
            std::mem::swap(&mut *tx, &mut *other);
            give_back.send(other).await.unwrap();
            Err(HandlerError::retry("no luck"))
        }
    };
    world.put(&["lends", "exchanges"]).await;
    let worker = world.bare_worker().timeout(WITHIN).on("lends", lends).on("exchanges", exchanges);
    run(&worker).await;
    assert_eq!(world.effects().await, [""; 0]);
    assert_eq!(world.state("lends").await.0, "PENDING");
}

/// Backoff, and a delay that the handler asks for.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_failed_waits() {
    let world = World::start(4).await;
    world.put(&["fail", "soon"]).await;
    let tried = |summary: Summary| summary.failed + summary.dead;
    assert_eq!(tried(world.run().await), 2);
    // The first backoff is one to two seconds, the next five to ten.
    assert_eq!(tried(world.run().await), 0);
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(tried(world.run().await), 1);
    assert_eq!((world.state("fail").await.1, world.state("soon").await.1), (2, 1));
    world.clock.advance(Duration::from_secs(5));
    world.run().await;
    assert_eq!(world.state("soon").await.1, 2);
    let due = world.entry("fail").await.times.next_attempt_at;
    let wait = due.since(world.entry("fail").await.times.received_at);
    assert!((Duration::from_secs(7)..=Duration::from_secs(12)).contains(&wait), "{wait:?}");
}

/// A message is not due while its attempt can last, or another worker could take it before its failure is written. One whose worker is killed
/// is due soon after.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_message_in_flight_is_not_due() {
    let world = World::start(4).await;
    world.put(&["hang"]).await;
    let worker = world.worker().timeout(Duration::from_secs(20));
    let running = tokio::spawn(async move { run(&worker).await });
    while world.entry("hang").await.attempts == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let due = async || world.inbox.counts(CONSUMER, world.clock.now(), WITHIN).await.unwrap().due;
    for (later, wanted) in [(20_000, 0), (14_000, 0), (100, 1)] {
        world.clock.advance(Duration::from_millis(later));
        assert_eq!(due().await, wanted, "{later} ms later");
    }
    running.abort();
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "only its shape matters")]
struct Other {
    amount: u32,
}

async fn never(_: Other, _: TransactionGuard<Transaction>, _: InboxContext) -> Result<(), HandlerError> {
    panic!("no body of these tests is one")
}

/// A body that is of another shape than its handler's is dead at once, and its error says where it is wrong.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn a_body_of_another_shape_is_dead_at_once() {
    let world = World::start(2).await;
    world.deliver(vec![record("m1", &body("ada@example.com", "other"))]).await;
    let summary = run(&world.bare_worker().on("other", never)).await;
    assert_eq!(summary, Summary { dead: 1, ..Summary::default() });
    let (status, _, error) = world.state("ada@example.com").await;
    assert_eq!(status, "DEAD");
    assert!(error.contains("field `amount` is missing"), "{error}");
}

async fn shown(_: serde_json::Value, _: TransactionGuard<Transaction>, cx: InboxContext) -> Result<(), HandlerError> {
    let trace = cx.trace().unwrap_or("none");
    assert!(cx.remaining() <= Duration::from_secs(5) && !cx.remaining().is_zero());
    let shown = format!(
        "{} {} {} {} {:?} {} {} {trace}",
        cx.consumer(),
        cx.key(),
        cx.message_id(),
        cx.event_type(),
        cx.group(),
        cx.attempt(),
        cx.fence()
    );
    Err(HandlerError::retry(shown))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_handler_sees_its_context() {
    let world = World::start(2).await;
    world.deliver(vec![super::world::nth("g", "shown", 1)]).await;
    let worker = world.bare_worker().on("shown", shown);
    run(&worker).await;
    assert_eq!(world.state("g-1").await.2, "orders g-1 g-1 shown Some(\"g\") 1 1 none");
    world.clock.advance(LATER);
    run(&worker).await;
    assert_eq!(world.state("g-1").await.2, "orders g-1 g-1 shown Some(\"g\") 2 2 none");
}
