//! What messages and invocations in one process have to do with each other: nothing but their keys.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant::payloads::{FetchError, PayloadSource, Pointer, Room};
use claimant::store::StoreErrorKind;
use claimant::{BoxFuture, Clock, Consumer, Context, Message, Rejection, SystemClock, Timestamp};
use claimant_core::Confirmation;
use claimant_local::sqs::NewMessage;
use claimant_testkit::logs::Logs;
use claimant_testkit::{Call, Fault};
use claimant_tests::wire::Loss;

use super::world::{QUEUE, Work, World, body, failures, invoke, work};

/// One process, several invocations (fault 20): one of them holds `shared` while the others come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invocations_side_by_side_share_no_claim() {
    let world = World::start(&[]).await;
    let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel::<()>();
    let (open, gate) = tokio::sync::watch::channel(false);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&runs);
    let run = move |work: Work, _: Context| {
        let (started, mut gate, log) = (started.clone(), gate.clone(), Arc::clone(&log));
        async move {
            log.lock().unwrap().push(work.id.clone());
            if work.id == "shared" {
                started.send(())?;
                gate.wait_for(|open| *open).await?;
            }
            Ok(())
        }
    };
    let consumer = Consumer::new("c", world.store.clone(), run).key(|w| &w.id);
    let service = Arc::new(world.service_of(&[], consumer));
    let mut events = Vec::new();
    for n in 0..8 {
        let bodies = [body("shared", "ok"), body(&format!("own{n}"), "ok")];
        let batch = world.batch(QUEUE, bodies.map(NewMessage::new).to_vec()).await;
        events.push((world.event(QUEUE, &batch), batch));
    }
    let start = |event| {
        let service = Arc::clone(&service);
        tokio::spawn(async move { invoke(&service, event).await.unwrap() })
    };
    let mut events = events.into_iter();
    let first = start(events.next().unwrap().0);
    has_started.recv().await.unwrap();
    let others: Vec<_> = events.map(|(event, batch)| (start(event), batch)).collect();
    for (other, batch) in others {
        assert_eq!(failures(&other.await.unwrap()), [batch[0].message_id.as_str()]);
    }
    open.send(true).unwrap();
    assert!(failures(&first.await.unwrap()).is_empty());
    let mut runs = runs.lock().unwrap().clone();
    runs.sort();
    assert_eq!(runs, ["own0", "own1", "own2", "own3", "own4", "own5", "own6", "own7", "shared"]);
    let busy: u64 = world.metrics.lock().unwrap().iter().filter_map(|record| record["busy"].as_u64()).sum();
    assert_eq!(busy, 7);
}

#[tokio::test]
async fn a_store_that_does_not_answer_fails_its_messages_alone() {
    let world = World::start(&[]).await;
    let service = world.service(&[]);
    let bodies = [body("a", "ok"), body("b", "ok")];
    let batch = world.batch(QUEUE, bodies.map(NewMessage::new).to_vec()).await;
    world.store.fail_next(Call::Settle, Fault::Applied(StoreErrorKind::Corrupt));
    let response = invoke(&service, world.event(QUEUE, &batch)).await.unwrap();
    assert_eq!(failures(&response).len(), 1);
    let record = world.metrics.lock().unwrap().pop().unwrap();
    assert_eq!((&record["completed"], &record["settle_unknown"]), (&1.into(), &1.into()));
}

/// A role without a permission is no outage: it is found among the errors.
#[tokio::test]
async fn a_store_that_refuses_claims_is_an_error_and_one_that_is_away_or_puts_them_off_a_warning() {
    let unreachable =
        ["the store gave no answer to claims: they are tried again", "the store gave no answer to a claim"];
    let put_off = ["the store put off claims: they are tried again", "the store put off a claim"];
    for (kind, level, texts) in [
        (StoreErrorKind::Denied, "ERROR", &["the store refused a claim"][..]),
        (StoreErrorKind::Unreachable, "WARN", &unreachable),
        (StoreErrorKind::Throttled, "WARN", &put_off),
    ] {
        let world = World::start(&[]).await;
        let service = world.service(&[]);
        let batch = world.batch(QUEUE, vec![NewMessage::new(body("a", "ok"))]).await;
        world.store.away_for(Duration::from_secs(60), kind);
        let logs = Logs::record();
        let deadline = SystemClock.now().plus(Duration::from_secs(3)).as_millis();
        let _ = service.invoke(world.event(QUEUE, &batch), deadline, "").await.unwrap();
        let logs = logs.text();
        for text in texts {
            assert!(logs.lines().any(|line| line.contains(level) && line.contains(text)), "{text} is not in {logs}");
        }
    }
}

/// Fault 22: a message that stays busy is warned of before the queue gives it up, and comes back when the lease is over.
#[tokio::test]
async fn a_message_that_stays_busy_is_warned_of() {
    let world = World::start(&[]).await;
    let service = world.service(&[]);
    world.store.fail_next(Call::Claim, Fault::Applied(StoreErrorKind::Other));
    let mut messages = world.batch(QUEUE, vec![NewMessage::new(body("a", "ok"))]).await;
    invoke(&service, world.event(QUEUE, &messages)).await.unwrap();
    let logs = Logs::record();
    for (receives, warned) in [("2", false), ("4", true)] {
        messages[0].attributes.insert("ApproximateReceiveCount".into(), receives.into());
        let response = invoke(&service, world.event(QUEUE, &messages)).await.unwrap();
        assert_eq!(failures(&response), [messages[0].message_id.as_str()]);
        assert_eq!(logs.text().contains("still busy elsewhere"), warned, "{receives} receives: {}", logs.text());
        assert!(world.visible(QUEUE).await.is_empty(), "it is hidden until the other's lease is over");
    }
}

/// L4: should the process die of a suspect, what was done before comes back no more; nor in a large batch, whose deletions would take too
/// long one after the other.
#[tokio::test]
async fn what_is_done_is_deleted_before_a_suspect_runs() {
    let world = World::start(&[]).await;
    let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel::<usize>();
    let (sqs, hangs) = (world.sqs.clone(), Arc::new(AtomicBool::new(true)));
    let dies = Arc::clone(&hangs);
    let run = move |_: Work, _: Context| {
        let (started, in_flight) = (started.clone(), sqs.depth(QUEUE).unwrap().in_flight);
        let hangs = dies.load(Ordering::SeqCst);
        async move {
            started.send(in_flight)?;
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    };
    let service = |ahead| {
        let consumer = Consumer::new("c", world.store.clone(), run.clone()).key(|w| &w.id);
        world.service_of(&[("CLAIMANT_VISIBILITY", "on")], consumer).clock(Arc::new(Ahead(ahead)))
    };
    let batch = (0..25).map(|n| NewMessage::new(body(&format!("k{n}"), "ok")));
    let batch = world.batch(QUEUE, batch.collect()).await;
    let first = service(Duration::ZERO);
    tokio::select! {
        _ = invoke(&first, world.event(QUEUE, &batch[..1])) => panic!("the process dies"),
        in_flight = has_started.recv() => assert_eq!(in_flight, Some(25)),
    }
    hangs.store(false, Ordering::SeqCst);
    let ahead = Ahead(Duration::from_secs(3_600));
    let deadline = ahead.now().plus(Duration::from_secs(60)).as_millis();
    let second = service(ahead.0);
    // None of the requests is answered before all are there.
    world.wire.script(&[Loss::Waits; 3]);
    let mut requests = Vec::new();
    let together = async {
        while requests.len() < 3 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            requests.extend(world.wire.take_requests());
        }
        (0..3).for_each(|_| world.wire.go_on());
    };
    let together = tokio::time::timeout(Duration::from_secs(20), together);
    let (response, at_once) = tokio::join!(second.invoke(world.event(QUEUE, &batch), deadline, ""), together);
    assert!(failures(&response.unwrap().0).is_empty());
    let mut in_flight = Vec::new();
    while let Ok(seen) = has_started.try_recv() {
        in_flight.push(seen);
    }
    let wanted = [vec![25; 24], vec![1]].concat();
    assert_eq!(in_flight, wanted, "the suspect runs last, and nothing else is in the queue");
    at_once.unwrap();
    assert_eq!(requests, ["DeleteMessageBatch"; 3]);
}

/// Suspects wait for them, and are put off where they do not end: the log says why.
#[tokio::test]
async fn deletions_that_do_not_end_in_time_are_logged() {
    let (logs, world) = (Logs::record(), World::start(&[]).await);
    let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel();
    let hangs = Arc::new(AtomicBool::new(true));
    let dies = Arc::clone(&hangs);
    let run = move |_: Work, _: Context| {
        let (started, hangs) = (started.clone(), dies.load(Ordering::SeqCst));
        async move {
            started.send(())?;
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok(())
        }
    };
    let service = |ahead| {
        let consumer = Consumer::new("c", world.store.clone(), run.clone()).key(|w| &w.id);
        world.service_of(&[], consumer).clock(Arc::new(Ahead(ahead)))
    };
    let batch = (0..5).map(|n| NewMessage::new(body(&format!("k{n}"), "ok")));
    let batch = world.batch(QUEUE, batch.collect()).await;
    let first = service(Duration::ZERO);
    tokio::select! {
        _ = invoke(&first, world.event(QUEUE, &batch[..1])) => panic!("the process dies"),
        _ = has_started.recv() => {}
    }
    hangs.store(false, Ordering::SeqCst);
    let ahead = Ahead(Duration::from_secs(3_600));
    let deadline = ahead.now().plus(Duration::from_secs(3)).as_millis();
    world.wire.all(Some(Loss::Silence));
    let response = service(ahead.0).invoke(world.event(QUEUE, &batch), deadline, "").await.unwrap();
    assert_eq!(failures(&response.0), [batch[0].message_id.as_str()], "the suspect was not started");
    let log = logs.text();
    assert!(log.contains("no time was left to delete all completed messages") && log.contains("messages=4"), "{log}");
}

/// Payloads, of which the names of those that are left are known.
#[derive(Clone)]
struct Shelf(Arc<Mutex<Vec<String>>>);

impl PayloadSource for Shelf {
    fn pointer(&self, message: &Message) -> Result<Option<Pointer>, Rejection> {
        Ok(Some(Pointer { container: "shelf".to_owned(), name: message.body().to_owned() }))
    }

    fn fetch<'a>(
        &'a self,
        pointer: &'a Pointer,
        _: &'a Room,
        _: Duration,
    ) -> BoxFuture<'a, Result<Vec<u8>, FetchError>> {
        Box::pin(std::future::ready(Ok(body(&pointer.name, "ok").into_bytes())))
    }

    fn room_bytes(&self) -> usize {
        usize::MAX
    }

    fn concurrency(&self) -> usize {
        8
    }

    fn removes(&self) -> bool {
        true
    }

    fn remove<'a>(&'a self, pointer: &'a Pointer, _: Duration) -> BoxFuture<'a, Confirmation> {
        self.0.lock().unwrap().retain(|name| *name != pointer.name);
        Box::pin(std::future::ready(Confirmation::Confirmed))
    }
}

/// What comes back needs its payload.
#[tokio::test]
async fn a_payload_stays_unless_sqs_confirms_that_its_message_is_gone() {
    let names: Vec<_> = (0..12).map(|n| format!("p{n}")).collect();
    let (on, off) = ("on", "off");
    for (name, visibility, receipt, loss, left) in [
        ("all are gone", on, None, Loss::None, 0..=0),
        ("visibility is left to the queue", off, None, Loss::None, 0..=0),
        ("one is refused", on, Some(Some("no receipt")), Loss::None, 1..=10),
        ("one has no receipt handle", on, Some(None), Loss::None, 1..=10),
        ("no request arrives", on, None, Loss::Request, 12..=12),
        ("the answers name no message", on, None, Loss::Instead(200, r#"{"Successful":[],"Failed":[]}"#), 12..=12),
    ] {
        let world = World::start(&[]).await;
        let shelf = Shelf(Arc::new(Mutex::new(names.clone())));
        let consumer = Consumer::new("c", world.store.clone(), work).key(|w| &w.id).large_payloads(shelf.clone());
        let service = world.service_of(&[("CLAIMANT_VISIBILITY", visibility)], consumer);
        let batch = world.batch(QUEUE, names.iter().map(NewMessage::new).collect()).await;
        let mut event = world.event(QUEUE, &batch);
        let spoilt = event.records[11].body.clone().unwrap();
        if let Some(receipt) = receipt {
            event.records[11].receipt_handle = receipt.map(str::to_owned);
        }
        world.wire.all(Some(loss));
        assert!(failures(&invoke(&service, event).await.unwrap()).is_empty(), "{name}");
        let kept = shelf.0.lock().unwrap().clone();
        assert!(left.contains(&kept.len()) && kept.contains(&spoilt) == (*left.end() > 0), "{name}: {kept:?}");
        assert_eq!(world.wire.take_requests(), ["DeleteMessageBatch"; 2], "{name}");
    }
}

/// The time of this machine, and so much more.
struct Ahead(Duration);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(self.0)
    }
}
