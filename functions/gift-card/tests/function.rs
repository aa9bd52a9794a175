//! The built function, behind the Lambda runtime API, with the embedded DynamoDB.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::Duration;

use claimant_test::cloud::{Hold, Invocation, LOCK_TABLE, Stage, StageConfig};
use claimant_test::{TestMessage, event, event_from, message_ids};
use serde_json::{Value, json};

/// How long anything may take that a test waits for; nothing is decided by how long it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// The timeout of a function that is to be killed: what the next delivery waits for, and by far enough to come to the commit.
const LEASE: Duration = Duration::from_secs(5);

fn config() -> StageConfig {
    StageConfig::new(env!("CARGO_BIN_EXE_gift-card")).table("GIFT_CARD_TABLE", "cards", "card_id", None).table(
        "GIFT_CARD_LEDGER_TABLE",
        "ledger",
        "order_id",
        None,
    )
}

fn purchase(order: &str, card: &str) -> Value {
    json!({ "order_id": order, "card_id": card, "recipient": "ada@example.com", "amount_cents": 2_500, "currency": "EUR" })
}

/// The cards there are and the orders they are of; that the ledger says the same is checked on the way.
fn issued(stage: &Stage) -> Vec<String> {
    let books = |table: &str| {
        let items = stage.dynamodb.items(table).unwrap();
        let mut cards: Vec<_> = items
            .iter()
            .map(|item| {
                let field = |name| item.text(name).unwrap();
                format!(
                    "{} {} {:?} {}",
                    field("card_id"),
                    field("order_id"),
                    item.number("amount_cents"),
                    field("currency")
                )
            })
            .collect();
        cards.sort();
        cards
    };
    assert_eq!(books("cards"), books("ledger"));
    let words = |line: String| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    books("cards").into_iter().map(words).collect()
}

/// The status of each order's record, in no order.
fn statuses(stage: &Stage) -> Vec<String> {
    let records = stage.dynamodb.items(LOCK_TABLE).unwrap();
    records.iter().map(|record| record.text("status").unwrap().to_owned()).collect()
}

/// Delivers this, and looks for it in the dead-letter queue.
async fn assert_rejected(stage: &Stage, body: &Value, why: &str) {
    assert!(stage.failures(&event(&[TestMessage::json(body).id("bad")])).await.unwrap().is_empty(), "{why}");
    let letters = stage.dead_letters().await.unwrap();
    assert!(matches!(&letters[..], [(id, error)] if id == "bad" && error.contains(why)), "{why}: {letters:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_order_gets_one_card_however_often_it_comes() {
    let stage = Stage::start(config()).await.unwrap();
    let sample = event_from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/gift-card.json"));
    assert_eq!(message_ids(&sample).len(), 1);
    for _ in 0..2 {
        assert!(stage.failures(&sample).await.unwrap().is_empty());
    }
    assert_eq!(issued(&stage), ["card-9001 ord-1001"]);

    // Forty orders, each twice under different message ids, and all of that three times.
    let bodies: Vec<_> = (0..40).map(|n| purchase(&format!("ord-{n}"), &format!("card-{n}"))).collect();
    let copies: Vec<_> = (0..80).map(|n| format!("m-{n}")).collect();
    for count in 1..=3 {
        let deliveries = copies.iter().zip(bodies.iter().cycle());
        let deliveries: Vec<_> = deliveries.map(|(id, body)| TestMessage::json(body).id(id).received(count)).collect();
        assert!(stage.failures(&event(&deliveries)).await.unwrap().is_empty());
    }
    assert_eq!(issued(&stage).len(), 41);
    assert_eq!(statuses(&stage), vec!["COMPLETED"; 41]);
    let logged = stage.stop().await;
    for wanted in ["this order's card was issued before", "\"card_id\":\"card-9001\"", "\"amount_cents\":5000"] {
        assert!(logged.contains(wanted), "{wanted} in {logged}");
    }
    assert!(!logged.contains("example.com"), "a recipient was logged");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_retry_mends_goes_to_the_dead_letter_queue_and_issues_nothing() {
    let with = |field: &str, value: Value| {
        let mut body = purchase("ord-2", "card-2");
        body[field] = value;
        body
    };
    let rows = [
        (with("amount_cents", json!(0)), "the amount is 0"),
        (with("amount_cents", json!(-1)), "amount_cents"),
        (with("amount_cents", json!(100_001)), "more than a card may hold"),
        (with("currency", json!("XXX")), "no cards are issued in this currency"),
        (with("recipient", json!("")), "the recipient is empty"),
        (with("card_id", json!("card-1")), "there is a card of this number already"),
        (with("order_id", json!("ord-1")), "another payload"),
    ];
    let (first, another) = (purchase("ord-1", "card-1"), purchase("ord-1", "card-3"));
    for (body, wanted) in rows {
        let stage = Stage::start(config().dead_letters("dead")).await.unwrap();
        assert!(stage.failures(&event(&[TestMessage::json(&first).id("good")])).await.unwrap().is_empty());
        assert_rejected(&stage, &body, wanted).await;
        assert_eq!(issued(&stage), ["card-1 ord-1"], "{wanted}");
        // The books know more than the lock table, whose records end.
        stage.forget_claims().unwrap();
        assert_rejected(&stage, &first, "there is a card of this number already").await;
        stage.forget_claims().unwrap();
        assert_rejected(&stage, &another, "the ledger has a card of this order already").await;
        assert_eq!(issued(&stage), ["card-1 ord-1"], "{wanted}");
        assert!(!stage.stop().await.contains("example.com"), "{wanted}: a recipient was logged");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_fails_the_message_and_leaves_nothing_half_done() {
    for variable in ["GIFT_CARD_TABLE", "GIFT_CARD_LEDGER_TABLE"] {
        let stage = Stage::start(config().variables(&[(variable, "no-such-table")])).await.unwrap();
        let body = purchase("ord-1", "card-1");
        assert_eq!(stage.failures(&event(&[TestMessage::json(&body).id("m")])).await.unwrap(), ["m"]);
        assert!(issued(&stage).is_empty());
        assert_eq!(statuses(&stage), ["FAILED"]);
        let logged = stage.stop().await;
        for wanted in ["ResourceNotFoundException", "no-such-table", "may the function's role write to each of them?"] {
            assert!(logged.contains(wanted), "{wanted} in {logged}");
        }
    }

    let stage = Stage::start(config().variables(&[("GIFT_CARD_TABLE", ""), ("GIFT_CARD_LEDGER_TABLE", "")])).await;
    let stage = stage.unwrap();
    let answer = stage.invoke(&event(&[])).await;
    assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
    let logged = stage.stop().await;
    for wanted in ["2 faults", "GIFT_CARD_TABLE is set but empty", "GIFT_CARD_LEDGER_TABLE is set but empty"] {
        assert!(logged.contains(wanted), "{wanted} in {logged}");
    }
}

/// Why the transaction: wherever the process dies around its commit, the retry neither issues a second card nor takes the
/// first one for another order's.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_at_its_commit_has_issued_the_card_or_not() {
    // The first one's claim is honoured until its lease is over; the second one's order is done.
    for (what, issued_before, deliveries_min) in [(Hold::Requests, 0, 2), (Hold::Answers, 1, 1)] {
        let stage = Stage::start(config().timeout(LEASE)).await.unwrap();
        let body = purchase("ord-1", "card-1");
        let message = TestMessage::json(&body).id("m");
        stage.invoke_and_kill_at(what, "TransactWriteItems", &event(std::slice::from_ref(&message))).await.unwrap();
        assert_eq!(issued(&stage).len(), issued_before, "{what:?}");
        let again = event(&[message.received(2)]);
        let deliveries = stage.deliver_until_done(&again, PATIENCE).await.unwrap();
        assert!(deliveries >= deliveries_min && (deliveries == 1 || what == Hold::Requests), "{deliveries}");
        assert_eq!(issued(&stage), ["card-1 ord-1"], "{what:?}");
        let record = stage.dynamodb.items(LOCK_TABLE).unwrap().pop().unwrap();
        let runs = 2 - issued_before as i64;
        assert_eq!((record.text("status"), record.number("attempts")), (Some("COMPLETED"), Some(runs)), "{what:?}");
        stage.stop().await;
    }
}

/// As a state machine asks for a card, or `sam remote invoke`.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_queue_the_response_is_the_card_and_a_failure_an_error() {
    let stage = Stage::start(config().dead_letters("dead")).await.unwrap();
    let mut cards = Vec::new();
    for _ in 0..2 {
        let Invocation::Response(answer) = stage.invoke(&purchase("ord-1", "card-1")).await else {
            panic!("{}", stage.stop().await);
        };
        cards.push(serde_json::from_slice::<Value>(&answer).unwrap());
    }
    assert_eq!(cards[0], cards[1], "a duplicate gets what was returned");
    assert!(cards[0].to_string().contains("card-1"), "{cards:?}");
    assert_eq!(issued(&stage), ["card-1 ord-1"]);
    let mut other = purchase("ord-1", "card-2");
    other["amount_cents"] = json!(1);
    for (event, wanted) in [(other, "claimant::conflict"), (json!({ "order_id": 7 }), "claimant::rejected")] {
        match stage.invoke(&event).await {
            Invocation::FunctionError { kind, message } => {
                assert_eq!(kind, wanted, "{message}");
                assert!(!message.contains("ord-1") && !message.contains("card-2"), "{message}");
            }
            other => panic!("{wanted}: {other:?}"),
        }
    }
    // Its queue goes on as before.
    let sold = event(&[TestMessage::json(&purchase("ord-2", "card-2")).id("m-1")]);
    assert!(stage.failures(&sold).await.unwrap().is_empty());
    assert!(stage.dead_letters().await.unwrap().is_empty(), "the caller has the error");
    assert_eq!(issued(&stage), ["card-1 ord-1", "card-2 ord-2"]);
}
