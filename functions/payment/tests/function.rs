//! The built function in the local cloud, from the project's template: its queue, its lock table, a payment gateway.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::time::Duration;

use claimant_test::cloud::{Invocation, TestCloud, TestCloudConfig};
use claimant_test::{TestMessage, event_from};
use serde_json::{Value, json};

/// Variables for a gateway that knows no keys.
const LEGACY: [(&str, &str); 2] = [("GATEWAY_URL", "https://gateway.example/legacy"), ("GATEWAY_DEDUPLICATES", "no")];

/// The function of the project's template with these variables; its charges for slow orders take this long.
async fn set_up(variables: &[(&str, &str)], slow: Duration) -> TestCloud {
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml");
    let config = TestCloudConfig::new(template, env!("CARGO_BIN_EXE_payment")).slow_charge(slow);
    variables.iter().fold(config, |config, (name, value)| config.variable(*name, *value)).start().await
}

/// Each charge's reference and the requests that it answers, sorted.
fn charges(cloud: &TestCloud) -> Vec<(String, u32)> {
    let charges = cloud.cloud().gateway().charges();
    let mut charges: Vec<_> = charges.into_iter().map(|c| (c.order.reference, c.requests)).collect();
    charges.sort();
    charges
}

/// Where a key stands, after how many runs, and the charge that is kept with it.
fn record(cloud: &TestCloud, order: &str) -> (String, i64, Option<String>) {
    let record = cloud.record("payment", order).unwrap_or_else(|| panic!("no record of {order}"));
    let receipt = record.text("result").map(|json| serde_json::from_str::<Value>(json).unwrap());
    let charge_id = receipt.map(|receipt| receipt["charge_id"].as_str().unwrap().to_owned());
    (record.text("status").unwrap().to_owned(), record.number("attempts").unwrap(), charge_id)
}

/// Each dead letter's order and the reason that it carries, sorted. Takes them: asked for once.
async fn dead_letters(cloud: &TestCloud) -> Vec<(String, String)> {
    let letters = cloud.dead_letters().await.into_iter().map(|(body, reason)| {
        let body: Value = serde_json::from_str(&body).unwrap();
        (body["order_id"].as_str().unwrap().to_owned(), reason)
    });
    let mut letters: Vec<_> = letters.collect();
    letters.sort();
    letters
}

fn payment(order: &str, amount_cents: u32) -> TestMessage {
    TestMessage::json(&json!({ "order_id": order, "amount_cents": amount_cents, "currency": "EUR" }))
}

fn send(cloud: &TestCloud, orders: &[&str]) {
    orders.iter().for_each(|order| cloud.send(&[payment(order, 1_250)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_charged_once_whatever_gets_lost() {
    let cloud = set_up(&[], Duration::from_millis(300)).await;
    send(&cloud, &["ord-1", "flaky-1", "unavailable-1", "slow-1", "ord-1", "flaky-1", "slow-1"]);
    cloud.drained().await;
    let once = [("flaky-1", 2), ("ord-1", 1), ("slow-1", 1), ("unavailable-1", 1)];
    assert_eq!(charges(&cloud), once.map(|(order, requests)| (order.to_owned(), requests)));
    let charged = cloud.cloud().gateway().charges();
    for (order, runs) in [("ord-1", 1), ("flaky-1", 2), ("unavailable-1", 2), ("slow-1", 1)] {
        let charge = charged.iter().find(|charge| charge.order.reference == order).unwrap();
        assert_eq!(record(&cloud, order), ("COMPLETED".into(), runs, Some(charge.charge_id.clone())), "{order}");
        assert_eq!((charge.key.as_deref(), charge.order.amount_cents), (Some(order), 1_250));
    }
    assert_eq!(dead_letters(&cloud).await, []);
    // A later copy is told the receipt.
    send(&cloud, &["ord-1"]);
    cloud.drained().await;
    let receipt = record(&cloud, "ord-1").2.unwrap();
    cloud.until("the duplicate is shown", || cloud.logged().contains(&receipt)).await;
    assert_eq!(cloud.cloud().gateway().requests(), 6, "four orders, two of them asked for again");
    // The gateway refuses it; the record of a key that is too long to be in the clear is found by the key all the same.
    let long = "o".repeat(500);
    send(&cloud, &[&long]);
    cloud.drained().await;
    assert_eq!(record(&cloud, &long).0, "REJECTED");
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_charged_is_dead_lettered_with_its_reason() {
    let cloud = set_up(&[], Duration::ZERO).await;
    send(&cloud, &["declined-1", "örd-1"]);
    cloud.send(&[payment("ord-1", 0)]);
    cloud.drained().await;
    let letters = dead_letters(&cloud).await;
    assert_eq!(letters.len(), 3);
    for ((order, reason), (expected, why)) in
        letters.iter().zip([("declined-1", "declined"), ("ord-1", "amount is 0"), ("örd-1", "Idempotency-Key")])
    {
        assert!(order == expected && reason.contains(why), "{letters:?}");
    }
    assert_eq!((charges(&cloud), cloud.cloud().gateway().requests()), (vec![], 1));
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_key_helps_a_lost_answer_is_parked_and_not_charged_again() {
    let cloud = set_up(&LEGACY, Duration::ZERO).await;
    send(&cloud, &["ord-1", "flaky-1", "unavailable-1", "ord-1", "flaky-1"]);
    cloud.drained().await;
    // A second copy with an id of its own changes nothing.
    send(&cloud, &["flaky-1", "ord-1"]);
    cloud.drained().await;
    assert_eq!(charges(&cloud), [("flaky-1".to_owned(), 1), ("ord-1".to_owned(), 1)]);
    let places = ["ord-1", "flaky-1", "unavailable-1"].map(|order| record(&cloud, order));
    assert_eq!(
        places.each_ref().map(|(status, runs, _)| (status.as_str(), *runs)),
        [("COMPLETED", 1), ("PARKED", 1), ("PARKED", 1)]
    );
    let letters = dead_letters(&cloud).await;
    assert_eq!(letters.len(), 4, "three copies of one order, and another one: {letters:?}");
    let reasons: String = letters.iter().map(|(_, reason)| reason.as_str()).collect();
    assert!(reasons.contains("its answer was lost") && reasons.contains("503"), "{letters:?}");
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_key_helps_what_was_cut_off_is_parked_too() {
    let cloud = set_up(&LEGACY, Duration::from_secs(60)).await;
    // One whose process dies after the charge, and one that is still waiting when its time is over.
    send(&cloud, &["slow-1"]);
    cloud.until("the charge", || charges(&cloud).len() == 1).await;
    let function = cloud.function();
    let pids = function.pids();
    let killed = std::process::Command::new("kill").args(["-KILL", &pids[0].to_string()]).status().unwrap();
    assert!(killed.success() && pids.len() == 1, "{pids:?}");
    send(&cloud, &["slow-2"]);
    cloud.drained().await;
    assert_eq!(charges(&cloud), [("slow-1".to_owned(), 1), ("slow-2".to_owned(), 1)]);
    for order in ["slow-1", "slow-2"] {
        assert_eq!(record(&cloud, order), ("PARKED".into(), 1, None), "{order}");
    }
    let orders: Vec<_> = dead_letters(&cloud).await.into_iter().map(|(order, _)| order).collect();
    assert_eq!(orders, ["slow-1", "slow-2"]);
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_cannot_be_reached_was_not_asked() {
    // No server listens on port 1 of this host.
    let nowhere = [("GATEWAY_URL", "http://127.0.0.1:1"), ("GATEWAY_DEDUPLICATES", "no")];
    let cloud = set_up(&nowhere, Duration::ZERO).await;
    send(&cloud, &["ord-1"]);
    let failed_twice = || {
        let items = cloud.cloud().dynamodb().items("LockTable").unwrap();
        items.iter().any(|item| item.text("status") == Some("FAILED") && item.number("attempts") == Some(2))
    };
    cloud.until("a second try", failed_twice).await;
    assert!(cloud.logged().contains("cannot be reached") && dead_letters(&cloud).await.is_empty());
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_event_is_charged_and_nothing_of_it_logged() {
    let cloud = set_up(&[], Duration::ZERO).await;
    let event = event_from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/events/payment.json")).to_string();
    for _ in 0..2 {
        let answer = cloud.function().invoke(event.clone().into_bytes()).await;
        let Invocation::Response(answer) = answer else { panic!("{answer:?}: {}", cloud.logged()) };
        assert_eq!(answer, br#"{"batchItemFailures":[]}"#);
    }
    assert_eq!(charges(&cloud), [("ord-1001".to_owned(), 1)]);
    let logged = cloud.logged();
    assert!(logged.contains("batch done"), "{logged}");
    for secret in ["ord-1001", "3390", "EUR", "AQEB", "Idempotency-Key"] {
        assert!(!logged.contains(secret), "{secret} in {logged}");
    }
    cloud.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_set_up_says_how_to_mend_it() {
    for (url, deduplicates, wanted) in [
        ("gateway", "yes", "GATEWAY_URL is not a URL"),
        ("https://gateway.example", "perhaps", "`yes` or `no` is needed"),
    ] {
        let cloud = set_up(&[("GATEWAY_URL", url), ("GATEWAY_DEDUPLICATES", deduplicates)], Duration::ZERO).await;
        let answer = cloud.function().invoke(b"{}".to_vec()).await;
        assert!(matches!(answer, Invocation::FunctionError { .. }), "{answer:?}");
        cloud.until(wanted, || cloud.logged().contains(wanted)).await;
        cloud.stop().await;
    }
}
