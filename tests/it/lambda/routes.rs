//! Several consumers behind one queue: one response, and numbers and dead letters of each.

use std::sync::{Arc, Mutex};

use claimant::{Consumer, Context, HandlerError, Routes};
use claimant_local::sqs::NewMessage;
use serde_json::Value;

use super::world::{QUEUE, Work, World, body, failures, invoke, work};

fn routes(world: &World) -> Routes {
    let consumer = |name| Consumer::new(name, world.store.clone(), work).key(|work: &Work| &work.id);
    let routes = Routes::by_field("do").on(["ok", "fail"], consumer("first"));
    routes.on("second*", consumer("second")).acknowledge_unknown()
}

#[tokio::test]
async fn each_consumer_has_its_own_numbers_and_dead_letters_name_theirs() {
    let world = World::start(&["dead"]).await;
    let url = world.sqs.queue_url("dead");
    let service = world.service_of(&[("CLAIMANT_DEAD_LETTER_QUEUE_URL", &url)], routes(&world));
    let bodies = [body("a", "ok"), body("a", "second no"), body("b", "third"), "{}".to_owned(), body("c", "fail")];
    let batch = world.batch(QUEUE, bodies.into_iter().map(NewMessage::new).collect()).await;
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert_eq!(failures(&response), [batch[4].message_id.as_str()]);

    let metrics = std::mem::take(&mut *world.metrics.lock().unwrap());
    let shown = |record: &Value| {
        let counts = ["received", "completed", "retry", "rejected", "ignored", "dead_lettered"];
        let counts = counts.map(|name| record[name].as_u64().unwrap_or_default().to_string()).join(" ");
        format!("{}: {counts}", record["consumer"].as_str().unwrap())
    };
    let shown: Vec<_> = metrics.iter().map(shown).collect();
    assert_eq!(shown, ["first: 2 1 1 0 0 0", "second: 1 0 0 1 0 1", "unrouted: 2 0 0 1 1 1"]);

    let mut letters: Vec<_> = world.visible("dead").await.iter().map(|letter| letter.body.clone()).collect();
    letters.sort();
    assert_eq!(letters, [body("a", "second no"), "{}".to_owned()]);
}

#[tokio::test]
async fn a_fifo_group_keeps_its_order_across_consumers() {
    const FIFO: &str = "orders.fifo";
    let world = World::start(&[FIFO]).await;
    let ran = Arc::new(Mutex::new(Vec::new()));
    let consumer = |name: &'static str| {
        let ran = Arc::clone(&ran);
        let handler = move |order: Work, _: Context| {
            let ran = Arc::clone(&ran);
            async move {
                ran.lock().unwrap().push(format!("{name} {}", order.id));
                if order.id == "stop" { Err(HandlerError::retry("no luck")) } else { Ok(()) }
            }
        };
        Consumer::new(name, world.store.clone(), handler).key(|work: &Work| &work.id)
    };
    let routes = Routes::by_field("do").on("a", consumer("for-a")).on("b", consumer("for-b"));
    let service = world.service_of(&[], routes);
    let of_group = |(number, (group, id, kind)): (usize, &(&str, &str, &str))| NewMessage {
        group_id: Some((*group).to_owned()),
        deduplication_id: Some(number.to_string()),
        ..NewMessage::new(body(id, kind))
    };
    let orders =
        [("g", "1", "a"), ("g", "2", "b"), ("g", "3", "a"), ("g", "stop", "b"), ("h", "4", "b"), ("g", "5", "a")];
    let batch = world.batch(FIFO, orders.iter().enumerate().map(of_group).collect()).await;
    let response = invoke(&service, world.event(FIFO, &batch)).await.unwrap();
    let failed: Vec<_> = failures(&response).iter().map(|id| batch.iter().position(|m| m.message_id == *id)).collect();
    assert_eq!(failed.len(), 2, "what failed, and what is behind it: {failed:?}");
    let ran = ran.lock().unwrap();
    let of_g: Vec<_> = ran.iter().filter(|run| !run.ends_with('4')).collect();
    assert_eq!(of_g, ["for-a 1", "for-b 2", "for-a 3", "for-b stop"]);
    assert_eq!(ran.len(), 5);
}
