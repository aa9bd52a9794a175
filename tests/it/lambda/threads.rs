//! Handlers that block their threads for ever: the process's later invocations are worked.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use claimant::{Consumer, Context};
use claimant_local::sqs::NewMessage;

use super::world::{QUEUE, Work, World, body, failures, invoke};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invocation_after_one_whose_handlers_block_every_thread_is_worked() {
    let world = World::start(&[]).await;
    let (release, blocked) = mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let run = move |work: Work, _: Context| {
        let blocked = Arc::clone(&blocked);
        async move {
            if work.action == "block" {
                // Until the test ends.
                let _ = blocked.lock().unwrap().recv();
            }
            Ok(())
        }
    };
    let consumer = Consumer::new("c", world.store.clone(), run).key(|w| &w.id);
    let consumer = consumer.concurrency(4).timeout(Duration::from_secs(2));
    let service = world.service_of(&[], consumer).handlers_on_own_threads();
    // More than there are threads: four have one, and none of the rest starts without.
    let bodies = (0..8).map(|n| NewMessage::new(body(&format!("bad{n}"), "block")));
    let batch = world.batch(QUEUE, bodies.collect()).await;
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert_eq!(failures(&response).len(), 8);
    let bodies = (0..8).map(|n| NewMessage::new(body(&format!("good{n}"), "ok")));
    let batch = world.batch(QUEUE, bodies.collect()).await;
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert!(failures(&response).is_empty());
    let records = world.metrics.lock().unwrap().clone();
    assert_eq!((&records[0]["stuck"], &records[1]["completed"]), (&8.into(), &8.into()));
    assert!(!service.are_threads_exhausted());
    drop(release);
}
