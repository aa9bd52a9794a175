//! The built function, behind the Lambda runtime API, with the embedded DynamoDB.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::Duration;

use claimant_test::cloud::{Hold, Invocation, LOCK_TABLE, Stage, StageConfig};
use claimant_test::{TestMessage, event, event_from, message_ids};
use serde_json::{Value, json};

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

fn config() -> StageConfig {
    StageConfig::new(env!("CARGO_BIN_EXE_loyalty")).table("LOYALTY_TABLE", "points", "customer_id", Some("entry"))
}

fn change(id: &str, customer: &str, points: i64) -> Value {
    json!({ "change_id": id, "customer_id": customer, "points": points })
}

/// The customers' balances, as `ada 330`; that they are the sums of the booked changes is checked on the way.
fn balances(stage: &Stage) -> Vec<String> {
    let items = stage.dynamodb.items("points").unwrap();
    let (balances, changes): (Vec<_>, Vec<_>) = items.iter().partition(|item| item.text("entry") == Some("balance"));
    let shown = balances.into_iter().map(|item| {
        let (customer, points) = (item.text("customer_id").unwrap(), item.number("points").unwrap());
        let booked = changes.iter().filter(|change| change.text("customer_id") == Some(customer));
        assert_eq!(booked.map(|change| change.number("points").unwrap()).sum::<i64>(), points, "{customer}");
        format!("{customer} {points}")
    });
    let mut shown: Vec<_> = shown.collect();
    shown.sort();
    shown
}

/// The event of these changes, each as `(message id, body)` and in its customer's group.
fn event_of(changes: &[(&str, Value)], receive_count: u32) -> Value {
    let deliveries = changes.iter().map(|(id, body)| {
        TestMessage::json(body).id(*id).in_group(body["customer_id"].as_str().unwrap()).received(receive_count)
    });
    event(&deliveries.collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_change_counts_once_however_often_it_comes() {
    let stage = Stage::start(config()).await.unwrap();
    let sample = event_from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/loyalty.json"));
    assert_eq!(message_ids(&sample).len(), 4);
    for _ in 0..3 {
        assert!(stage.failures(&sample).await.unwrap().is_empty());
    }
    assert_eq!(balances(&stage), ["ada 330", "grace 120"]);

    // Redelivered, and copies with ids of their own, before, between and behind the first ones.
    let (first, second) = (change("c-1", "eve", 100), change("c-2", "eve", -60));
    let copies = [("a", first.clone()), ("b", first.clone()), ("c", second.clone()), ("d", first), ("e", second)];
    for count in 1..=3 {
        assert!(stage.failures(&event_of(&copies, count)).await.unwrap().is_empty());
    }
    assert_eq!(balances(&stage), ["ada 330", "eve 40", "grace 120"]);

    // Many of one customer: only in their order they never lack points.
    let bodies: Vec<_> = (0..40).map(|n| change(&format!("n-{n}"), "joan", if n % 2 == 0 { 5 } else { -5 })).collect();
    let names: Vec<_> = (0..40).map(|n| format!("m-{n}")).collect();
    let many: Vec<_> = names.iter().map(String::as_str).zip(bodies).collect();
    for count in 1..=2 {
        assert!(stage.failures(&event_of(&many, count)).await.unwrap().is_empty());
    }
    assert_eq!(balances(&stage), ["ada 330", "eve 40", "grace 120", "joan 0"]);
    let records = stage.dynamodb.items(LOCK_TABLE).unwrap();
    let done = records.iter().filter(|r| r.text("status") == Some("COMPLETED") && r.number("attempts") == Some(1));
    assert_eq!((done.count(), records.len()), (46, 46));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_nothing_of_the_customer_is_booked_and_all_of_it_comes_back() {
    let stage = Stage::start(config()).await.unwrap();
    let ada = [("a", change("c-1", "ada", 100)), ("b", change("c-2", "ada", -500)), ("c", change("c-3", "ada", 1_000))];
    let [first, middle, last] = ada.clone();
    let grace = ("d", change("c-4", "grace", 7));
    let all = [first, middle.clone(), last.clone(), grace];
    assert_eq!(stage.failures(&event_of(&all, 1)).await.unwrap(), ["b", "c"]);
    assert_eq!(balances(&stage), ["ada 100", "grace 7"], "the last one would have come before the middle one");
    // As the queue does: what failed comes back in its order, until the first of it has been received too often.
    assert_eq!(stage.failures(&event_of(&[middle, last.clone()], 2)).await.unwrap(), ["b", "c"]);
    assert_eq!(balances(&stage), ["ada 100", "grace 7"]);
    assert!(stage.failures(&event_of(&[last], 3)).await.unwrap().is_empty());
    assert_eq!(balances(&stage), ["ada 1100", "grace 7"]);
    let logged = stage.stop().await;
    assert!(logged.contains("not enough points"), "{logged}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_retry_mends_goes_to_the_dead_letter_queue_and_books_nothing() {
    let rows = [
        (change("c-2", "ada", -101), "not enough points"),
        (change("c-2", "eve", -1), "not enough points"),
        (change("c-2", "ada", 0), "it changes no points"),
        (change("c-2", "ada", 1_000_001), "more points than is allowed"),
        (change("c-2", "", 1), "customer's id is empty"),
        (change("c-1", "ada", 50), "another payload"),
        (json!({ "change_id": "c-2", "customer_id": "ada", "points": 1.5 }), "points"),
    ];
    for (body, wanted) in rows {
        let stage = Stage::start(config().dead_letters("dead.fifo")).await.unwrap();
        // The customer's next change does not wait for one that is in the dead-letter queue.
        let deliveries = [("a", change("c-1", "ada", 100)), ("b", body), ("c", change("c-3", "ada", 1))];
        let deliveries = deliveries.iter().map(|(id, body)| TestMessage::json(body).id(*id).in_group("ada"));
        let deliveries: Vec<_> = deliveries.collect();
        assert!(stage.failures(&event(&deliveries)).await.unwrap().is_empty(), "{wanted}");
        let letters = stage.dead_letters().await.unwrap();
        assert!(matches!(&letters[..], [(id, error)] if id == "b" && error.contains(wanted)), "{wanted}: {letters:?}");
        assert_eq!(balances(&stage), ["ada 101"], "{wanted}");
        assert_eq!(stage.dynamodb.items("points").unwrap().len(), 3, "{wanted}: the balance and two changes");
        // The entries know more than the lock table, whose records end.
        stage.forget_claims().unwrap();
        assert!(stage.failures(&event_of(&[("a", change("c-1", "ada", 100))], 1)).await.unwrap().is_empty());
        let letters = stage.dead_letters().await.unwrap();
        assert!(matches!(&letters[..], [(_, error)] if error.contains("booked already")), "{letters:?}");
        assert_eq!(balances(&stage), ["ada 101"], "{wanted}");
        stage.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_fails_the_message_and_says_how_to_mend_it() {
    let stage = Stage::start(config().variables(&[("LOYALTY_TABLE", "no-such-table")])).await.unwrap();
    let changes = [("a", change("c-1", "ada", 100)), ("b", change("c-2", "ada", -1))];
    assert_eq!(stage.failures(&event_of(&changes, 1)).await.unwrap(), ["a", "b"]);
    let records = stage.dynamodb.items(LOCK_TABLE).unwrap();
    assert_eq!(records.iter().map(|r| r.text("status")).collect::<Vec<_>>(), [Some("FAILED")]);
    let logged = stage.stop().await;
    for wanted in ["ResourceNotFoundException", "no-such-table", "may the function's role write to each of them?"] {
        assert!(logged.contains(wanted), "{wanted} in {logged}");
    }

    let stage = Stage::start(config().variables(&[("LOYALTY_TABLE", "")])).await.unwrap();
    let answer = stage.invoke(&event(&[])).await;
    assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
    let logged = stage.stop().await;
    assert!(logged.contains("LOYALTY_TABLE is set but empty"), "{logged}");
}

/// Why the transaction: wherever the process dies around its commit, the points count once.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_its_commit_has_booked_the_points_or_not() {
    for (what, booked_before) in [(Hold::Requests, "ada 100"), (Hold::Answers, "ada 70")] {
        let stage = Stage::start(config()).await.unwrap();
        let earned = event_of(&[("a", change("c-1", "ada", 100))], 1);
        assert!(stage.failures(&earned).await.unwrap().is_empty());
        let changes = [("b", change("c-2", "ada", -30)), ("c", change("c-3", "ada", 5))];
        stage.invoke_and_kill_at(what, "TransactWriteItems", &event_of(&changes, 1)).await.unwrap();
        assert_eq!(balances(&stage), [booked_before], "{what:?}");
        // At once: without a claim there is no lease to wait for.
        assert_eq!(stage.deliver_until_done(&event_of(&changes, 2), PATIENCE).await.unwrap(), 1, "{what:?}");
        assert_eq!(balances(&stage), ["ada 75"], "{what:?}");
        stage.stop().await;
    }
}
