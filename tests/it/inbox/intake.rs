//! Taking in: one row for each key, and a success only where it was seen committed.

use std::sync::Arc;
use std::time::Duration;

use claimant::engine::{Engine, InvocationTime, Message, NoQueue, Outcome};
use claimant::{Breaker, Clock, Conflicts, Limit, envelope};
use claimant_tests::services::Postgres;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};

use super::world::{CONSUMER, WITHIN, Work, World, body, nth, record};

/// What is delivered, one batch after the other; what of it is reported failed; and the keys that are in the inbox then.
struct Case {
    name: &'static str,
    batches: Vec<Vec<Value>>,
    failed: Vec<&'static str>,
    keys: Vec<&'static str>,
}

fn cases() -> Vec<Case> {
    let ok = |message_id: &str, key: &str| record(message_id, &body(key, "ok"));
    let long = "t".repeat(129);
    let case = |name, batches, failed: &[&'static str], keys: &[&'static str]| Case {
        name,
        batches,
        failed: failed.to_vec(),
        keys: keys.to_vec(),
    };
    vec![
        case("two messages", vec![vec![ok("m1", "a"), ok("m2", "b")]], &[], &["a", "b"]),
        case("a message again", vec![vec![ok("m1", "a")], vec![ok("m1", "a")]], &[], &["a"]),
        case("a second copy", vec![vec![ok("m1", "a")], vec![ok("m2", "a"), ok("m3", "b")]], &[], &["a", "b"]),
        case("both copies in one batch", vec![vec![ok("m1", "a"), ok("m2", "a")]], &[], &["a"]),
        case(
            "one key, two payloads",
            vec![vec![ok("m1", "a")], vec![record("m2", &body("a", "fail")), ok("m3", "b")]],
            &["m2"],
            &["a", "b"],
        ),
        case(
            "one key in two groups at once",
            vec![vec![nth("g", "ok", 1), {
                let mut other = nth("g", "ok", 1);
                other["messageId"] = "m2".into();
                other["attributes"]["MessageGroupId"] = "h".into();
                other
            }]],
            &[],
            &["g-1"],
        ),
        case(
            "bodies that are none",
            vec![vec![
                record("m1", "secret"),
                ok("m2", "a"),
                record("m3", r#"{"id":"b"}"#),
                record("m4", &body("", "ok")),
                record("m5", &body("c", "")),
                record("m6", &body("d", &long)),
                record("m7", ""),
            ]],
            &["m1", "m3", "m4", "m5", "m6", "m7"],
            &["a"],
        ),
        case(
            "nothing of a group after a failure",
            vec![vec![nth("g", "ok", 1), nth("g", "", 2), nth("g", "ok", 3), nth("h", "ok", 1)]],
            &["g-2", "g-3"],
            &["g-1", "h-1"],
        ),
    ]
}

async fn keys(world: &World) -> Vec<String> {
    let ids: Vec<Vec<u8>> = sqlx::query_scalar("SELECT record_id FROM claimant_inbox ORDER BY record_id")
        .fetch_all(&mut world.party().await)
        .await
        .unwrap();
    let key = |id: Vec<u8>| String::from_utf8(id).unwrap()[CONSUMER.len() + 1..].to_owned();
    ids.into_iter().map(key).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn each_key_is_stored_once() {
    let world = World::start(4).await;
    for case in cases() {
        world.sql("TRUNCATE claimant_inbox").await;
        let mut failed = Vec::new();
        for batch in case.batches {
            failed.extend(world.deliver(batch).await);
        }
        assert_eq!(failed, case.failed, "{}", case.name);
        assert_eq!(keys(&world).await, case.keys, "{}", case.name);
    }
}

/// Whichever comes first is kept, and the other one is a conflict.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn of_two_payloads_in_one_batch_one_is_stored() {
    let world = World::start(4).await;
    for _ in 0..10 {
        world.sql("TRUNCATE claimant_inbox").await;
        let failed = world.deliver(vec![nth("g", "ok", 1), record("m2", &body("g-1", "fail"))]).await;
        let kept = world.entry("g-1").await.message_id;
        assert!(failed.len() == 1 && failed[0] != kept, "{failed:?} failed, {kept} was kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_key_is_enough_where_the_consumer_says_so() {
    let world = World::start(2).await;
    world.put(&["ok"]).await;
    let ignoring = || world.intake().conflicts(Conflicts::Ignore);
    assert_eq!(world.deliver_to(ignoring(), vec![record("m2", &body("ok", "fail"))]).await, Vec::<String>::new());
    assert_eq!(world.deliver(vec![record("m2", &body("ok", "fail"))]).await, ["m2"]);
    // Keys that are hashed are others, and cannot be read.
    assert_eq!(world.deliver_to(world.intake().hashed_keys(), vec![record("m3", &body("ok", "ok"))]).await, [""; 0]);
    let keys = keys(&world).await;
    assert_eq!((keys.len(), keys[0].as_str(), keys[1].len()), (2, "ok", 64));
}

/// The worker has no envelopes: what it decodes is what was inside.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_is_stored_is_what_its_envelopes_hold() {
    let world = World::start(4).await;
    let sns = |key: &str| {
        let notification = json!({
            "Type": "Notification", "MessageId": "n1", "TopicArn": "arn:aws:sns:us-east-1:1:orders",
            "Message": body(key, "ok"), "Timestamp": "2026-11-25T00:00:00.000Z",
        });
        notification.to_string()
    };
    let enveloped = || world.intake().envelope(envelope::Sns);
    let batch = vec![record("m1", &sns("a")), record("m2", &sns("b")), record("m3", &body("c", "ok"))];
    assert_eq!(world.deliver_to(enveloped(), batch).await, ["m3"]);
    assert_eq!(world.deliver_to(enveloped(), vec![record("m4", &sns("a"))]).await, [""; 0]);
    world.run().await;
    assert_eq!(world.effects().await, ["a", "b"]);
}

/// A row that another program has changed says nothing of the other messages of its batch.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_is_stored_beside_a_row_that_cannot_be_read_is_a_success() {
    let world = World::start(2).await;
    world.put(&["ok"]).await;
    world.sql(r"UPDATE claimant_inbox SET fingerprint = '\x00'").await;
    let batch = ["ok", "a", "b"].map(|key| record(key, &body(key, "ok"))).to_vec();
    assert_eq!(world.deliver(batch).await, ["ok"]);
    assert_eq!(keys(&world).await, ["a", "b", "ok"]);
}

/// As where there is a constraint of another's: what it refuses says nothing of the other messages of its batch.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn what_is_stored_beside_a_message_that_is_refused_is_a_success() {
    let world = World::start(2).await;
    world.sql("ALTER TABLE claimant_inbox ADD CHECK (message_id <> 'm1')").await;
    let engine = Engine::with_defaults(world.intake()).unwrap().clock(Arc::new(world.clock.clone()));
    let (batch, now): (Vec<_>, _) = ((0..3).map(message).collect(), world.clock.now());
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(1)), Duration::from_millis(500));
    let report = engine.process(&batch, time, &NoQueue).await;
    let outcomes: Vec<_> = report.entries().iter().map(|entry| entry.outcome.clone()).collect();
    assert_eq!(outcomes, [Outcome::Completed, Outcome::SettleUnknown, Outcome::Completed]);
    assert_eq!(keys(&world).await, ["k0", "k2"]);
}

/// They are for handlers, which the worker has.
#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn what_is_for_handlers_is_refused() {
    let world = World::start(1).await;
    for (consumer, wanted) in [
        (world.intake().at_most_once(), "at most once needs"),
        (world.intake().breaker(Breaker::new("warehouse")), "a breaker needs"),
        (world.intake().limit(Limit::new("warehouse").per_second(1)), "a limit needs"),
    ] {
        let error = Engine::with_defaults(consumer).err().unwrap().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

fn message(n: usize) -> Message {
    Message::new(format!("m{n}"), body(&format!("k{n}"), "ok")).unwrap()
}

/// The requests that the crate's documentation counts.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_batch_is_one_statement() {
    let world = World::start(4).await;
    let engine = Engine::with_defaults(world.intake()).unwrap().clock(Arc::new(world.clock.clone()));
    for (messages, requests) in [(1, 1), (10, 1), (25, 1), (100, 4)] {
        world.sql("TRUNCATE claimant_inbox").await;
        let batch: Vec<_> = (0..messages).map(message).collect();
        // A slow machine has not all of a batch ready in time to be stored together.
        let mut fewest = u64::MAX;
        for try_number in 0..50 {
            let now = world.clock.now();
            let time = InvocationTime::new(now, now.plus(WITHIN), Duration::from_millis(500));
            let report = engine.process(&batch, time, &NoQueue).await;
            let outcome = if try_number == 0 { Outcome::Completed } else { Outcome::Duplicate };
            assert!(report.entries().iter().all(|entry| entry.outcome == outcome), "{report:?}");
            fewest = fewest.min(report.totals.usage.requests);
            if fewest == requests {
                break;
            }
        }
        assert_eq!(fewest, requests, "{messages} messages");
    }
}

/// A connection that is cut while the statement waits for a lock; the next try goes through, and finds its own row or none.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL: make test"]
async fn a_cut_connection_is_made_up_for() {
    let world = World::start(4).await;
    let mut party = world.party().await;
    let mut locked = party.begin().await.unwrap();
    locked.execute("LOCK TABLE claimant_inbox").await.unwrap();
    let cut = async {
        let waiting = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                       WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let mut other = world.party().await;
        while other.execute(waiting).await.unwrap().rows_affected() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        locked.rollback().await.unwrap();
    };
    let batch = vec![record("m1", &body("a", "ok")), record("m2", &body("b", "ok"))];
    let (failed, ()) = tokio::join!(world.deliver(batch), cut);
    assert_eq!((failed, keys(&world).await), (vec![], vec!["a".to_owned(), "b".to_owned()]));
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test"]
async fn without_an_answer_nothing_is_a_success() {
    let World { server, inbox, clock } = World::on(Postgres::start(), 4).await;
    drop(server);
    let consumer = inbox.intake(CONSUMER, |work: &Work| &work.kind).key(|work| &work.id);
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone()));
    let time = InvocationTime::new(clock.now(), clock.now().plus(Duration::from_secs(2)), Duration::from_millis(500));
    let report = engine.process(&[message(1), message(2)], time, &NoQueue).await;
    assert_eq!(report.failures().len(), 2);
    let error = inbox.counts(CONSUMER, clock.now(), Duration::from_millis(500)).await.unwrap_err().to_string();
    assert!(error.contains("the connection failed") || error.contains("is the server up"), "{error}");
}
