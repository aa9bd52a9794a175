//! What people do with an inbox, and what it says of a database that is not as it should be.

use std::time::Duration;

use claimant::Clock;
use claimant::inbox::FinishedCounts;
use claimant::store::StoreErrorKind;
use claimant_core::error::Chain;
use claimant_inbox::{AfterDeath, Counts, EntryStatus, Inbox, Limits, StateChange, Summary};

use super::world::{CONSUMER, LATER, WITHIN, World, nth, run};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn people_see_and_decide() {
    let world = World::start(4).await;
    world.put(&["ok", "fail", "reject"]).await;
    let before = world.clock.now();
    assert_eq!(world.inbox.counts(CONSUMER, before, WITHIN).await.unwrap().due, 3);
    world.run().await;
    let counts = world.inbox.counts(CONSUMER, before, WITHIN).await.unwrap();
    assert_eq!((counts.pending, counts.due, counts.dead), (1, 0, 1));
    assert_eq!(counts.oldest, Some(before));
    let dead = world.inbox.dead(CONSUMER, 0, 10, WITHIN).await.unwrap();
    assert_eq!((dead.len(), dead[0].event_type.as_str(), dead[0].error.as_deref()), (1, "reject", Some("no use")));
    assert!(world.inbox.dead(CONSUMER, dead[0].id, 10, WITHIN).await.unwrap().is_empty());
    assert_eq!(world.inbox.retry(dead[0].id, before, WITHIN).await.unwrap(), StateChange::Applied);
    let retried = world.entry("reject").await;
    assert_eq!((retried.status, retried.attempts), (EntryStatus::Pending, 0));
    assert_eq!(world.run().await.dead, 1);
    assert_eq!(world.inbox.discard(dead[0].id, before, WITHIN).await.unwrap(), StateChange::Applied);
    assert_eq!(world.inbox.discard(dead[0].id, before, WITHIN).await.unwrap(), StateChange::WrongState);
    assert_eq!(world.entry("reject").await.status, EntryStatus::Discarded);
    let finished: FinishedCounts = world.inbox.counts_finished(CONSUMER, WITHIN).await.unwrap();
    assert_eq!((finished.done, finished.discarded), (1, 1));
    assert_eq!(world.inbox.get(-1, WITHIN).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn finished_messages_are_deleted_in_portions() {
    let world = World::start(4).await;
    world.put(&["ok", "slow", "fail", "reject"]).await;
    for n in 0..5 {
        world.deliver(vec![super::world::record("m", &super::world::body(&format!("k{n}"), "ok"))]).await;
    }
    run(&world.worker().after_death(AfterDeath::GroupGoesOn)).await;
    let now = world.clock.now();
    assert_eq!(world.inbox.delete_finished(now, 100, WITHIN).await.unwrap(), 0, "not before their time");
    let later = now.plus(LATER);
    let mut portions = Vec::new();
    while portions.last() != Some(&0) {
        portions.push(world.inbox.delete_finished(later, 3, WITHIN).await.unwrap());
    }
    assert_eq!(portions, [3, 3, 1, 0]);
    let counts = world.inbox.counts(CONSUMER, later, WITHIN).await.unwrap();
    assert_eq!((counts.pending, counts.dead), (1, 1));
    assert_eq!(world.inbox.counts_finished(CONSUMER, WITHIN).await.unwrap(), FinishedCounts::default());
}

/// Waits until this holds.
async fn until(holds: impl AsyncFn() -> bool) {
    let held = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WITHIN, held).await.unwrap();
}

/// The time that an operator gives is the statement's own.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn deleting_may_take_as_long_as_it_is_given() {
    let world = World::start(4).await;
    world.put(&["ok"]).await;
    world.run().await;
    world.sql("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(6); RETURN OLD; END $$; \
               CREATE TRIGGER slow BEFORE DELETE ON claimant_inbox FOR EACH ROW EXECUTE FUNCTION slow()").await;
    let later = world.clock.now().plus(LATER);
    assert_eq!(world.inbox.delete_finished(later, 10, WITHIN).await.unwrap(), 1);
}

/// The lag is there however many messages are finished.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn counting_does_not_read_what_is_finished() {
    let world = World::start(4).await;
    world.put(&["ok"]).await;
    world.run().await;
    world.sql(
        "INSERT INTO claimant_inbox (record_id, consumer, event_type, body, fingerprint, message_id, owner, next_attempt_at, \
         received_at, updated_at, status, open, finished_at) SELECT convert_to('orders#' || n, 'UTF8'), consumer, event_type, \
         body, fingerprint, message_id, owner, next_attempt_at, received_at, updated_at, status, open, finished_at \
         FROM claimant_inbox, generate_series(1, 20000) n",
    )
    .await;
    world.deliver(vec![nth("g", "reject", 1), nth("g", "ok", 2), nth("h", "ok", 1), nth("h", "ok", 2)]).await;
    world.sql("UPDATE claimant_inbox SET waiting = true WHERE record_id = 'orders#h-2'").await;
    world.sql("ANALYZE claimant_inbox").await;
    world.inbox.pool().close().await;
    let before = reads(&world).await;
    let inbox = Inbox::connect(&world.server.url(), 1).await.unwrap();
    let now = world.clock.now();
    let counts = inbox.counts(CONSUMER, now, WITHIN).await.unwrap();
    assert_eq!((counts.pending, counts.due, counts.dead, counts.oldest), (4, 4, 0, Some(now)));
    assert_eq!(inbox.counts("others", now, WITHIN).await.unwrap(), Counts::default());
    inbox.pool().close().await;
    assert_eq!(reads(&world).await.0, before.0, "the table was read through");
    let inbox = Inbox::connect(&world.server.url(), 1).await.unwrap();
    assert_eq!(inbox.counts_finished(CONSUMER, WITHIN).await.unwrap().done, 20_001);
}

/// How often the table was read through, and how many of its rows were fetched by indexes, once all other connections are gone: what
/// they read is counted by then.
async fn reads(world: &World) -> (u64, u64) {
    let mut own = world.party().await;
    let others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() \
                  AND backend_type = 'client backend'";
    while sqlx::query_scalar::<_, i64>(others).fetch_one(&mut own).await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let read = "SELECT pg_stat_clear_snapshot()::text || coalesce(seq_scan, 0) || ' ' || coalesce(idx_tup_fetch, 0) \
                FROM pg_stat_user_tables WHERE relname = 'claimant_inbox'";
    let text: String = sqlx::query_scalar(read).fetch_one(&mut own).await.unwrap();
    let figures: Vec<u64> = text.split(' ').map(|figure| figure.parse().unwrap()).collect();
    (figures[0], figures[1])
}

/// A later version's migration adds columns beside workers of this one, and an error of no known meaning may pass.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_runs_on_whatever_its_database_goes_through() {
    let world = World::start(6).await;
    let worker = world.worker();
    let running = tokio::spawn(async move { worker.run_until(std::future::pending()).await });
    let done = async |key: &str| {
        until(async || running.is_finished() || world.entry(key).await.status == EntryStatus::Done).await;
        assert_eq!(world.state(key).await.0, "DONE");
    };
    world.put(&["ok"]).await;
    done("ok").await;
    world.sql("ALTER TABLE claimant_inbox ADD COLUMN later bytea").await;
    world.put(&["slow"]).await;
    done("slow").await;
    world.sql("CREATE SEQUENCE bugs; CREATE FUNCTION bug() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('bugs'); \
               RAISE 'a bug' USING ERRCODE = 'XX000'; END $$; \
               CREATE TRIGGER bug BEFORE UPDATE ON claimant_inbox FOR EACH ROW EXECUTE FUNCTION bug()").await;
    world.deliver(vec![super::world::record("m", &super::world::body("third", "ok"))]).await;
    let met = "SELECT is_called FROM bugs";
    until(async || sqlx::query_scalar(met).fetch_one(&mut world.party().await).await.unwrap()).await;
    world.sql("DROP TRIGGER bug ON claimant_inbox").await;
    done("third").await;
    running.abort();
}

/// A worker that runs on takes what comes, and ends what it has begun before it stops.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_worker_runs_until_it_is_told_to_stop() {
    let world = World::start(6).await;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let worker = world.worker();
    let running = tokio::spawn(async move { worker.run_until(async { drop(stopped.await) }).await.unwrap() });
    world.put(&["ok", "slow"]).await;
    until(async || world.entry("ok").await.status == EntryStatus::Done && world.entry("slow").await.attempts > 0).await;
    stop.send(()).unwrap();
    let summary = tokio::time::timeout(WITHIN, running).await.unwrap().unwrap();
    assert_eq!(summary, Summary { done: 2, ..Summary::default() });
}

/// What is done to the database or its URL, and what is said then.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_database_that_is_not_as_it_should_be_says_how_to_mend_it() {
    let world = World::start(2).await;
    world.sql("CREATE ROLE stranger LOGIN PASSWORD 'claimant'").await;
    let url = world.server.url();
    for (url, drop_table, kind, says) in [
        (url.replace(":claimant@", ":wrong@"), false, StoreErrorKind::Denied, "Are user and password right"),
        (url.replace("//claimant:", "//stranger:"), false, StoreErrorKind::Denied, "needs SELECT, INSERT and UPDATE"),
        (url.clone(), true, StoreErrorKind::Misconfigured, "apply the migrations"),
    ] {
        if drop_table {
            world.sql("DROP TABLE claimant_inbox").await;
        }
        let inbox = Inbox::connect(&url, 2).await.unwrap();
        let error = inbox.counts(CONSUMER, world.clock.now(), WITHIN).await.unwrap_err();
        assert!(error.kind() == kind && error.to_string().contains(says), "{error}");
        let worker = inbox.worker(CONSUMER).on("ok", super::world::act);
        // No retry mends it, so a worker that runs on ends too.
        let error = worker.run_until(std::future::pending()).await.unwrap_err();
        assert!(Chain(&error).to_string().contains(says), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn settings_that_are_not_usable_are_named() {
    let world = World::start(2).await;
    let worker = world.inbox.worker("a b").concurrency(0).attempts_max(0).poll(Duration::ZERO).timeout(Duration::ZERO);
    let error = worker.run_until(std::future::pending()).await.unwrap_err().to_string();
    for says in ["6 faults", "consumer name", "no handler", "concurrency", "attempts", "timeout", "poll interval"] {
        assert!(error.contains(says), "{says} in {error}");
    }
    let twice = world.worker().on("ok", super::world::act);
    let error = twice.run_once(Limits::within(Duration::from_secs(60))).await.unwrap_err().to_string();
    assert!(error.contains("has two handlers"), "{error}");
    let error = world.worker().run_once(Limits::within(Duration::from_secs(9))).await.unwrap_err().to_string();
    // Its handler has five seconds; ten to begin, a tenth to stop, and four to write its end.
    let says = error.contains("can take 19100 ms") && error.contains("give the function more time");
    assert!(says, "{error}");
    let worker = world.worker();
    let few = worker.run_once(Limits::within(Duration::from_secs(60)).messages(1));
    assert_eq!(few.await.unwrap(), Summary::default());
}

/// Any number of deployments may migrate at once.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn migrations_may_run_at_once() {
    let world = World::start(6).await;
    world.sql("DROP TABLE claimant_inbox, claimant_inbox_migrations").await;
    let migrated = tokio::join!(world.inbox.migrate(), world.inbox.migrate(), world.inbox.migrate());
    assert!(migrated.0.is_ok() && migrated.1.is_ok() && migrated.2.is_ok());
}

/// Of 100,000 messages, a look reads few; also where the server is set to make one plan for all parameters.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn taking_does_not_read_the_table() {
    let world = World::start(4).await;
    world.put(&["ok"]).await;
    world.sql(
        "INSERT INTO claimant_inbox (record_id, consumer, group_name, event_type, body, fingerprint, message_id, owner, \
         next_attempt_at, received_at, updated_at, status, open, finished_at) SELECT convert_to('orders#' || n, 'UTF8'), \
         consumer, CASE WHEN n % 2 = 0 THEN convert_to((n % 5000)::text, 'UTF8') END, event_type, \
         convert_to('{\"id\":\"' || n || '\",\"type\":\"ok\"}', 'UTF8'), fingerprint, message_id, owner, next_attempt_at, \
         received_at, updated_at, CASE WHEN n % 4 < 2 THEN 'DONE' ELSE 'PENDING' END, n % 4 >= 2, \
         CASE WHEN n % 4 < 2 THEN received_at END FROM claimant_inbox, generate_series(1, 100000) n",
    )
    .await;
    world.sql("ANALYZE claimant_inbox").await;
    world.inbox.pool().close().await;
    let before = reads(&world).await;
    let url = format!("{}?options[plan_cache_mode]=force_generic_plan", world.server.url());
    let inbox = Inbox::connect(&url, 4).await.unwrap();
    // PostgreSQL 15 has such a plan that reads few; 18 has none.
    let mode: String = sqlx::query_scalar("SHOW plan_cache_mode").fetch_one(inbox.pool()).await.unwrap();
    assert_eq!(mode, "auto");
    let worker = inbox.worker(CONSUMER).on("ok", super::world::act).clock(std::sync::Arc::new(world.clock.clone()));
    let summary = worker.run_once(Limits::within(Duration::from_secs(60)).messages(40)).await.unwrap();
    assert_eq!(summary.done, 40);
    inbox.pool().close().await;
    let after = reads(&world).await;
    assert_eq!(after.0, before.0, "the table was read through");
    println!("{} rows were fetched for 40", after.1 - before.1);
    assert!(after.1 - before.1 < 20_000, "{} rows were fetched for 40", after.1 - before.1);
}
