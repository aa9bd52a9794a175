//! When messages come back, and messages hidden longer while their handlers run.

use std::time::Duration;

use claimant::{Consumer, Context, Lease};
use claimant_local::sqs::{Deletion, NewMessage};
use claimant_testkit::Call;
use claimant_testkit::logs::Logs;
use claimant_tests::wire::Loss;

use super::world::{QUEUE, Work, World, body, failures, invoke};

#[tokio::test]
async fn failed_messages_come_back_when_they_are_to() {
    let on = ("CLAIMANT_VISIBILITY", "on");
    let off = ("CLAIMANT_VISIBILITY", "off");
    for (name, variables, losses, visible, requests) in [
        ("asked for", on, vec![], 12, 2),
        ("switched off", off, vec![], 0, 0),
        ("one request is lost", on, vec![Loss::Request], 2, 2),
        ("no answer", on, vec![Loss::Answer, Loss::Answer], 12, 2),
    ] {
        let world = World::start(&[]).await;
        let service = world.service(&[variables, ("CLAIMANT_CONCURRENCY", "50")]);
        let at_once = (0..12).map(|n| NewMessage::new(body(&format!("k{n}"), "at-once")));
        let others = [body("x", "fail"), body("y", "panic"), body("z", "ok")].map(NewMessage::new);
        let batch = world.batch(QUEUE, at_once.chain(others).collect()).await;
        world.wire.script(&losses);
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        let ids: Vec<_> = batch.iter().map(|message| message.message_id.as_str()).collect();
        assert_eq!(failures(&response), ids[..14], "{name}");
        assert_eq!(world.wire.take_requests(), vec!["ChangeMessageVisibilityBatch"; requests], "{name}");
        let depth = world.sqs.depth(QUEUE).unwrap();
        // The others' backoff takes a second at least.
        if losses == [Loss::Request] {
            assert!([2, 10].contains(&depth.visible), "{name}: {depth:?}");
        } else {
            assert_eq!((depth.visible, depth.in_flight), (visible, 15 - visible), "{name}");
        }
    }
}

#[tokio::test]
async fn a_change_that_is_refused_is_logged_with_its_cause() {
    let world = World::start(&[]).await;
    let service = world.service(&[]);
    let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "fail"))]).await;
    assert_eq!(world.sqs.delete(QUEUE, &batch[0].receipt_handle).unwrap(), Deletion::Deleted);
    let logs = Logs::record();
    invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    let text = logs.text();
    let line = text.lines().find(|line| line.contains("visibility of failed messages was not changed")).unwrap();
    assert!(line.contains("failed=1") && line.contains("code=\"Invalid"), "{line}");
    assert!(!line.contains("role"), "it has the permission: {line}");
}

/// A consumer with the shortest renewed lease, whose handler goes on until `stop` says so.
fn endless(world: &World, stop: impl Fn() -> bool + Clone + Send + Sync + 'static) -> Consumer<Work> {
    let run = move |_: Work, _: Context| {
        let stop = stop.clone();
        async move {
            while !stop() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            Ok(())
        }
    };
    let lease = Lease::Renewed(Duration::from_millis(claimant::limits::LEASE_MIN_MS));
    Consumer::new("c", world.store.clone(), run).key(|w| &w.id).lease(lease)
}

/// Fault 33. The handler runs until its lease is renewed a second time.
#[tokio::test]
async fn a_renewed_lease_hides_its_message_as_long() {
    for (name, loss, variables, wanted) in [
        ("hidden", Loss::None, vec![], 1),
        // Trouble on the way is no loss of the message.
        ("no answer", Loss::Request, vec![], 1),
        ("not asked for", Loss::None, vec![("CLAIMANT_VISIBILITY", "off")], 0),
    ] {
        let world = World::start(&[]).await;
        world.wire.script(&[loss]);
        let store = world.store.clone();
        let renewals = move || store.calls().iter().filter(|call| **call == Call::Renew).count();
        let service = world.service_of(&variables, endless(&world, move || renewals() > 1));
        let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "ok"))]).await;
        let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
        assert!(failures(&response).is_empty(), "{name}");
        let requests = world.wire.take_requests();
        assert!(
            requests.len() >= wanted && requests.iter().all(|r| r == "ChangeMessageVisibility"),
            "{name}: {requests:?}"
        );
        assert_eq!(requests.is_empty(), wanted == 0, "{name}");
    }
}

/// SQS tells of a message that is visible again on a FIFO queue only: on a standard one it accepts the change, and changes nothing.
#[tokio::test]
async fn a_message_that_is_lost_cancels_its_handler() {
    let world = World::start(&["in.fifo"]).await;
    let service = world.service_of(&[], endless(&world, || false));
    for (gone, queue) in [("deleted", QUEUE), ("visible", "in.fifo")] {
        let message = NewMessage {
            group_id: Some("g".to_owned()),
            deduplication_id: queue.ends_with(".fifo").then(|| gone.to_owned()),
            ..NewMessage::new(body(gone, "ok"))
        };
        let batch = world.batch(queue, vec![message]).await;
        let receipt = batch[0].receipt_handle.clone();
        match gone {
            "deleted" => assert_eq!(world.sqs.delete(queue, &receipt).unwrap(), Deletion::Deleted),
            _ => {
                let client = aws_sdk_sqs::Client::new(&world.config);
                let change = client.change_message_visibility().queue_url(world.sqs.queue_url(queue));
                change.receipt_handle(receipt).visibility_timeout(0).send().await.unwrap();
            }
        }
        let response = invoke(&service, world.event(queue, &batch)).await.unwrap();
        assert_eq!(failures(&response).len(), 1, "{gone}");
        let record = world.metrics.lock().unwrap().pop().unwrap();
        assert_eq!(record["lease_lost"], 1, "{gone}");
    }
}
