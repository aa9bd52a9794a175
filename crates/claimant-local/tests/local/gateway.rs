//! The payment gateway on the wire.

use std::net::SocketAddr;
use std::time::Duration;

use claimant_local::gateway::Gateway;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::http;

const CHARGES: &str = "POST /charges";
const LEGACY: &str = "POST /legacy/charges";

async fn open(gateway: &Gateway) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(gateway.clone().serve(listener, std::future::pending()));
    address
}

async fn raw(gateway: SocketAddr, request: &str, key: Option<&str>, body: &str) -> String {
    let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
    http::asked(gateway, request, &key, body).await
}

/// The status and the body.
async fn ask(gateway: SocketAddr, request: &str, key: Option<&str>, body: &str) -> (u16, Value) {
    http::json(&raw(gateway, request, key, body).await)
}

fn order(reference: &str, amount_cents: u64) -> String {
    json!({ "amount_cents": amount_cents, "currency": "EUR", "reference": reference }).to_string()
}

#[tokio::test]
async fn a_key_is_charged_once_and_its_receipt_repeated() {
    let gateway = Gateway::new();
    let at = open(&gateway).await;
    let (status, receipt) = ask(at, CHARGES, Some("k1"), &order("ord-1", 1_250)).await;
    assert_eq!((status, &receipt["amount_cents"], &receipt["currency"]), (200, &json!(1_250), &json!("EUR")));
    assert_eq!(receipt["reference"], "ord-1");
    assert_eq!(ask(at, CHARGES, Some("k1"), &order("ord-1", 1_250)).await, (200, receipt.clone()));
    let (status, refused) = ask(at, CHARGES, Some("k1"), &order("ord-1", 1_251)).await;
    assert_eq!((status, &refused["error"]), (422, &json!("key_reused")));

    let [charge] = &gateway.charges()[..] else { panic!("one charge: {:?}", gateway.charges()) };
    assert_eq!(charge.charge_id, receipt["charge_id"]);
    assert_eq!((charge.key.as_deref(), charge.requests, gateway.requests()), (Some("k1"), 2, 3));
    let (_, list) = ask(at, "GET /_claimant/charges", None, "").await;
    assert_eq!((&list["charged"], &list["requests"]), (&json!(1), &json!(3)));
    assert_eq!(list["charges"][0]["reference"], "ord-1");
}

#[tokio::test]
async fn the_legacy_way_charges_each_time_whatever_the_key() {
    let gateway = Gateway::new();
    let at = open(&gateway).await;
    for _ in 0..2 {
        assert_eq!(ask(at, LEGACY, Some("k1"), &order("ord-1", 1)).await.0, 200);
    }
    let charges = gateway.charges();
    assert_eq!((charges.len(), charges[0].key.as_deref()), (2, None));
    assert_ne!(charges[0].charge_id, charges[1].charge_id);
}

#[tokio::test]
async fn a_lost_answer_is_a_charge_and_not_one_byte() {
    let gateway = Gateway::new();
    let at = open(&gateway).await;
    for (request_line, key) in [(CHARGES, Some("k1")), (LEGACY, None)] {
        let reference = format!("flaky-{request_line}");
        assert_eq!(raw(at, request_line, key, &order(&reference, 1)).await, "", "{request_line}");
        assert_eq!(ask(at, request_line, key, &order(&reference, 1)).await.0, 200, "{request_line}");
    }
    let charges: Vec<_> = gateway.charges().iter().map(|c| (c.key.is_some(), c.requests)).collect();
    assert_eq!(charges, [(true, 2), (false, 1), (false, 1)]);
}

#[tokio::test]
async fn a_slow_answer_whose_client_has_left_is_a_charge() {
    let gateway = Gateway::new().with_slow_delay(Duration::from_secs(3_600));
    let at = open(&gateway).await;
    let slow = order("slow-1", 1);
    let charged = async {
        while gateway.charges().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        answer = raw(at, CHARGES, Some("k1"), &slow) => panic!("answered before its time: {answer}"),
        done = tokio::time::timeout(Duration::from_secs(30), charged) => done.expect("it is charged at once"),
    }
    assert_eq!(ask(at, CHARGES, Some("k1"), &slow).await.0, 200);
    assert_eq!(gateway.charges().len(), 1);
}

#[tokio::test]
async fn refusals_say_why_and_charge_nothing() {
    let gateway = Gateway::new();
    let at = open(&gateway).await;
    let table = [
        (CHARGES, None, order("ord-1", 1), 400, "no_key"),
        (CHARGES, Some("k"), order("ord-1", 0), 400, "bad_request"),
        (CHARGES, Some("k"), order("", 1), 400, "bad_request"),
        (CHARGES, Some("k"), order("ord-1", 1).replace("EUR", "euros"), 400, "bad_request"),
        (CHARGES, Some("k"), "{".to_owned(), 400, "bad_request"),
        (CHARGES, Some("k"), " ".repeat(20_000), 400, "bad_request"),
        (CHARGES, Some("k"), order("declined-1", 1), 402, "declined"),
        (CHARGES, Some("k"), order("unavailable-1", 1), 503, "unavailable"),
        ("GET /charges", None, String::new(), 404, "not_found"),
    ];
    for (request_line, key, body, status, error) in table {
        let (seen, refusal) = ask(at, request_line, key, &body).await;
        assert_eq!((seen, refusal["error"].as_str()), (status, Some(error)), "{refusal}");
        assert!(!refusal["message"].as_str().unwrap().is_empty());
    }
    assert_eq!((gateway.charges(), gateway.requests()), (vec![], 2));
}
