//! Everything that can happen to a message, played on the consumer, with a gateway that is asked over HTTP.

use claimant::memory::MemoryStore;
use claimant_test::cloud::Gateway as LocalGateway;
use claimant_test::{Scenario, TestMessage, TestQueue};
use serde_json::json;
use tokio::net::TcpListener;

use crate::consumer;
use crate::gateway::Gateway;

/// A gateway of its own, and its URL.
async fn gateway() -> (LocalGateway, String) {
    let (gateway, listener) = (LocalGateway::new(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(gateway.clone().serve(listener, std::future::pending()));
    (gateway, url)
}

fn payment(order: &str) -> TestMessage {
    TestMessage::json(&json!({ "order_id": order, "amount_cents": 1_250, "currency": "EUR" }))
}

#[tokio::test]
async fn an_order_is_charged_once_whatever_happens() {
    for scenario in Scenario::all() {
        let (gateway, url) = gateway().await;
        let queue = TestQueue::new(consumer(MemoryStore::new(), Gateway::at(&url).unwrap(), true));
        queue.play(&scenario, &[payment("ord-1")]).await.assert_done();
        let charges: Vec<_> = gateway.charges().into_iter().map(|charge| charge.order.reference).collect();
        assert_eq!(charges, ["ord-1"], "{scenario}");
    }
}

#[tokio::test]
async fn where_no_key_helps_the_gateway_is_asked_once_whatever_happens() {
    for scenario in Scenario::all() {
        let (gateway, url) = gateway().await;
        let legacy = Gateway::at(&format!("{url}/legacy")).unwrap();
        let queue = TestQueue::new(consumer(MemoryStore::new(), legacy, false));
        let parked = !queue.play(&scenario, &[payment("ord-1")]).await.dead_letters().is_empty();
        let requests = gateway.requests();
        assert!(requests == 1 || requests == 0 && parked, "{scenario}: {requests} requests");
    }
}
