//! The last receive of a message, and its last attempt: it is not hidden for a backoff, since it is dead-lettered or rejected at the next one.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::limits::VISIBILITY_MAX_S;
use claimant_core::{
    Breaker, Consumer, Context, Engine, HandlerError, InvocationTime, MemoryStore, Message, NoQueue, Router, Routes,
    StoreErrorKind,
};
use claimant_testkit::logs::Logs;
use claimant_testkit::outcomes::World;
use claimant_testkit::queue::DeadLetterQueue;
use claimant_testkit::{Call, Fault, FaultyStore};

use super::routes::{Letters, Lines};
use super::support::process;
use super::{TIMEOUT, words};

const HOURS: Duration = Duration::from_secs(36_000);

const DAYS: Duration = Duration::from_secs(259_200);

async fn run(payload: String, cx: Context) -> Result<(), HandlerError> {
    match payload.as_str() {
        "asks" => Err(HandlerError::retry("later").after(Duration::from_secs(3_600))),
        "away" => Err(HandlerError::retry("it is away").downstream("mail")),
        "away for hours" => Err(HandlerError::retry("it is away").downstream("mail").after(HOURS)),
        "away for days" => Err(HandlerError::retry("it is away").downstream("mail").after(DAYS)),
        "days" => Err(HandlerError::retry("later").after(DAYS)),
        "never" => Err(HandlerError::terminal("never").after(DAYS)),
        "uncertain" => Err(HandlerError::uncertain("who knows").after(DAYS)),
        "hangs" => std::future::pending().await,
        _ => Err(HandlerError::retry(format!("attempt {}", cx.attempt()))),
    }
}

/// After how many seconds a message is shown again that fails on this receive, where the function was told this `maxReceiveCount`.
async fn shown_after(payload: &str, receive_count: u32, told: Option<u32>) -> (&'static str, u64) {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    if payload == "loses its claim" {
        store.fail_next(Call::Settle, Fault::Refuses);
    }
    let mut consumer = Consumer::new("c", store, run);
    if payload == "uncertain" {
        consumer = consumer.key_of(String::clone).at_most_once();
    }
    let mut engine = Engine::with_defaults(consumer).unwrap();
    if let Some(receives) = told {
        engine = engine.receives_max(receives);
    }
    let message = Message::new("m", format!("{payload:?}")).unwrap().with_receive_count(receive_count);
    let now = engine.now();
    let time = InvocationTime::new(now, now.plus(TIMEOUT), Duration::from_millis(500));
    let report = engine.process(&[message], time, &NoQueue).await;
    let entry = &report.entries()[0];
    (entry.outcome.word(), entry.visible_after.unwrap().as_secs())
}

#[tokio::test(start_paused = true)]
async fn what_fails_on_its_last_receive_is_shown_at_once() {
    let cases = [("fails", "retry"), ("asks", "retry"), ("hangs", "cancelled"), ("loses its claim", "lease_lost")];
    for (payload, outcome) in cases {
        assert_eq!(shown_after(payload, 4, Some(4)).await, (outcome, 0), "{payload}");
        // Before it there are other tries, and beyond it the queue does not do what the function was told.
        for (receive_count, told) in [(3, Some(4)), (5, Some(4)), (5, None), (1, None)] {
            let (word, after) = shown_after(payload, receive_count, told).await;
            assert_eq!(word, outcome);
            assert!(after >= 1, "{payload} at {receive_count} of {told:?}: {after} s");
        }
    }
    assert_eq!(shown_after("asks", 3, Some(4)).await.1, 3_600);
    // Without a dead-letter queue of the function's own.
    for (receive_count, after) in [(3, 2), (4, 0), (5, 8)] {
        assert_eq!(shown_after("never", receive_count, Some(4)).await, ("rejected", after));
    }
}

/// What it waits for is not its own failure: dead-lettered at once, it would be so while the other owner still works on it.
#[tokio::test(start_paused = true)]
async fn a_message_with_a_busy_event_stays_hidden_on_its_last_receive() {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let consumer = || Consumer::new("c", store.clone(), run).key_of(String::clone);
    let engine = Engine::with_defaults(consumer().envelope(Lines)).unwrap().receives_max(6);
    let routes = Routes::by_kind().envelope(Lines).on("a", consumer());
    let router = Router::new(routes, 10).unwrap().receives_max(6);
    let time = || InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
    // As if its owner had died: it keeps its claim.
    store.fail_next(Call::Claim, Fault::Applied(StoreErrorKind::Other));
    // Receive 6: a rejection would be hidden for 16 s, longer than what is busy.
    let deliver = |body| [Message::new("m", body).unwrap().with_receive_count(6)];
    assert_eq!(words(&engine.process(&deliver("a held"), time(), &NoQueue).await), "store_failed");
    for body in ["a held", "a held\na asks", "a asks\na held", "a never\na held", "z never\na held"] {
        let alone = engine.process(&deliver(body), time(), &NoQueue).await;
        let routed = router.process(&deliver(body), time(), &NoQueue).await;
        for report in [&alone, routed.all()] {
            let entry = &report.entries()[0];
            assert_eq!(entry.outcome.word(), "busy", "{body:?}");
            assert!(entry.visible_after > Some(Duration::from_secs(1)), "{body:?}: {:?}", entry.visible_after);
        }
    }
}

/// Whether of one event or of several, and whoever rejects it.
#[tokio::test(start_paused = true)]
async fn what_its_dead_letter_queue_refuses_is_shown_at_once_on_its_last_receive() {
    let consumer = || Consumer::new("c", MemoryStore::new(), run).key_of(String::clone);
    let router = Router::new(Routes::by_kind().envelope(Lines).on("a", consumer()), 10).unwrap().receives_max(4);
    let queue = Letters { refused: vec![0], ..Letters::default() };
    for body in ["z never", "a never", "z never\na never"] {
        for (receive_count, after) in [(3, 2), (4, 0)] {
            let message = Message::new("m", body).unwrap().with_receive_count(receive_count);
            let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
            let report = router.process(&[message], time, &queue).await;
            let entry = &report.all().entries()[0];
            let shown = (entry.outcome.word(), entry.visible_after.unwrap().as_secs());
            assert_eq!(shown, ("rejected", after), "{body:?} at {receive_count}");
        }
    }
}

/// What follows another message of its work fails with it, on a receive of its own.
#[tokio::test(start_paused = true)]
async fn each_copy_of_work_that_fails_goes_by_its_own_receives() {
    for receives in [[4, 1], [1, 4]] {
        let consumer = Consumer::new("c", MemoryStore::new(), run).key_of(String::clone);
        let engine = Engine::with_defaults(consumer).unwrap().receives_max(4);
        let batch = receives.map(|n| Message::new(format!("m{n}"), "\"fails\"").unwrap().with_receive_count(n));
        let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
        let report = engine.process(&batch, time, &NoQueue).await;
        assert_eq!(words(&report), "retry retry");
        let at_once: Vec<_> = report.entries().iter().map(|entry| entry.visible_after.unwrap().is_zero()).collect();
        assert_eq!(at_once, receives.map(|n| n == 4), "{receives:?}");
    }
}

/// At once after its first receive, and not earlier than another invocation after a later one, though it follows a copy at its first.
#[tokio::test(start_paused = true)]
async fn each_copy_for_which_there_was_no_time_waits_by_its_own_receives() {
    let engine =
        Engine::with_defaults(Consumer::new("c", MemoryStore::new(), run).key_of(String::clone).concurrency(1));
    let message = |id, body, n| Message::new(id, format!("{body:?}")).unwrap().with_receive_count(n);
    let batch = [message("m1", "hangs", 4), message("m2", "fails", 1), message("m3", "fails", 3)];
    let report = process(&engine.unwrap(), &batch).await;
    assert_eq!(words(&report), "cancelled not_started not_started");
    let waits: Vec<_> = report.entries()[1..].iter().map(|entry| entry.visible_after.unwrap()).collect();
    assert!(waits[0].is_zero() && waits[1] >= TIMEOUT / 2, "{waits:?}");
}

/// What is rejected or parked does not come back earlier than its handler asked for.
#[tokio::test(start_paused = true)]
async fn a_delay_that_is_cut_is_logged_where_it_counts() {
    let logs = Logs::record();
    for (payload, receive_count, wanted, lines) in [
        ("days", 3, ("retry", VISIBILITY_MAX_S), 1),
        ("days", 4, ("retry", 0), 1),
        ("never", 1, ("rejected", 0), 0),
        ("uncertain", 1, ("parked", 0), 0),
    ] {
        let before = logs.with("It comes back earlier").len();
        assert_eq!(shown_after(payload, receive_count, Some(4)).await, wanted, "{payload}");
        assert_eq!(logs.with("It comes back earlier").len() - before, lines, "{payload} at {receive_count}");
    }
}

/// What is still to come is a rejection, as long as no breaker keeps it from being claimed.
#[tokio::test(start_paused = true)]
async fn what_fails_in_its_last_attempt_is_shown_at_once() {
    for (payload, outcome) in [("fails", "retry"), ("asks", "retry"), ("hangs", "cancelled")] {
        let consumer = Consumer::new("c", MemoryStore::new(), run).attempts_max(2);
        let engine = Engine::with_defaults(consumer).unwrap().receives_max(7);
        let mut shown = Vec::new();
        for receive_count in 1..=3 {
            let message = Message::new("m", format!("{payload:?}")).unwrap().with_receive_count(receive_count);
            let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
            let report = engine.process(&[message], time, &NoQueue).await;
            let entry = &report.entries()[0];
            shown.push((entry.outcome.word(), entry.visible_after.unwrap().as_secs()));
        }
        assert!(shown[0].0 == outcome && shown[0].1 >= 1, "{shown:?}");
        assert_eq!((shown[1], shown[2].0), ((outcome, 0), "rejected"));
    }
}

/// An open breaker holds back what comes: at once, it would lose a receive for each look.
#[tokio::test(start_paused = true)]
async fn what_fails_in_its_last_attempt_waits_for_its_breaker() {
    for payload in ["away", "away for hours", "away for days"] {
        let consumer = Consumer::new("c", MemoryStore::new(), run).concurrency(1).breaker(Breaker::new("mail"));
        let engine = Engine::with_defaults(consumer.attempts_max(1)).unwrap();
        let message = |n| Message::new(format!("m{n}"), format!("{payload:?}")).unwrap().with_receive_count(1);
        let batch: Vec<_> = (0..8).map(message).collect();
        let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
        let report = engine.process(&batch, time, &NoQueue).await;
        assert_eq!(words(&report), "retry retry retry retry retry breaker_open breaker_open breaker_open");
        let shown: Vec<_> = report.entries().iter().map(|entry| entry.visible_after.unwrap().as_secs()).collect();
        // The fifth failure opens it.
        assert!(shown[..4] == [0; 4] && shown[4..].iter().all(|s| (225..=300).contains(s)), "{payload}: {shown:?}");
    }
}

/// With a dead-letter queue of the function's own, a limit on attempts lets the rest of a FIFO group run before it is dead-lettered
/// with what fails in front of it.
#[tokio::test(start_paused = true)]
async fn a_limit_on_attempts_lets_a_group_go_on_before_its_last_receive() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, |c| c.attempts_max(3), DeadLetterQueue::Taken);
    let batch = ["x:a fail", "x:b ok", "x:c ok"];
    for number in 0..3 {
        assert_eq!(words(&world.deliver(&batch, number).await), "retry blocked blocked");
    }
    assert_eq!(words(&world.deliver(&batch, 3).await), "rejected completed completed");
}
