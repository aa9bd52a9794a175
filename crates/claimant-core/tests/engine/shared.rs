//! Several invocations in one process, as on Lambda Managed Instances: what is bounded is bounded for all of them together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant_core::{Consumer, Engine, InvocationTime, NoQueue, Report};
use claimant_testkit::outcomes::{Work, message};
use futures_util::future::join_all;

use super::many::Shared;
use super::{TIMEOUT, words};

/// How many handlers run, and the most that did.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

fn engine(store: &Shared, concurrency: usize, takes: Duration, running: &Arc<Running>) -> Engine {
    let running = Arc::clone(running);
    let handler = move |work: Work, _| {
        let running = Arc::clone(&running);
        async move {
            running.most.fetch_max(running.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let takes = if work.action == "long" { TIMEOUT * 2 } else { takes };
            tokio::time::sleep(takes).await;
            running.now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    };
    let consumer = Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id).concurrency(concurrency);
    Engine::with_defaults(consumer).unwrap()
}

async fn deliver(engine: &Engine, number: usize, count: usize, action: &str, within: Duration) -> Report {
    let batch: Vec<_> = (0..count).map(|n| message(n, &format!("k{number}-{n} {action} @m{number}-{n}"), 1)).collect();
    let time = InvocationTime::new(engine.now(), engine.now().plus(within), Duration::from_millis(500));
    engine.process(&batch, time, &NoQueue).await
}

#[tokio::test(start_paused = true)]
async fn ten_invocations_share_the_concurrency_and_the_claims() {
    for (takes, claims_max, most_claims) in [
        (Duration::from_millis(200), None, 10 * 35),
        (Duration::from_millis(200), Some(3), 3),
        (Duration::ZERO, None, 10 * 200),
        (Duration::ZERO, Some(4), 4),
        (Duration::ZERO, Some(40), 40),
    ] {
        let row = (takes, claims_max);
        let store = Shared::of(claims_max);
        let running = Arc::default();
        let engine = engine(&store, 4, takes, &running);
        for round in 0..2 {
            let batches = (0..10).map(|number| deliver(&engine, round * 10 + number, 20, "ok", TIMEOUT * 60));
            for report in join_all(batches).await {
                assert_eq!(report.counts().get("completed"), Some(&20), "{row:?} {}", words(&report));
            }
        }
        let most = running.most.load(Ordering::SeqCst);
        assert!(most <= 4.min(claims_max.unwrap_or(4)), "{row:?}: {most} handlers at once");
        let claims = store.0.most_open.load(Ordering::SeqCst);
        assert!(claims <= most_claims, "{row:?}: {claims} claims at once");
        assert_eq!(store.0.open.load(Ordering::SeqCst), 0, "{row:?}");
    }
}

/// Quick handlers are claimed ahead, for all invocations together as far as for one: no lease runs while hundreds of others go first.
#[tokio::test(start_paused = true)]
async fn claims_ahead_are_bounded_for_the_process_and_none_starves() {
    let (store, running) = (Shared::of(None), Arc::default());
    let engine = engine(&store, 4, Duration::from_micros(10), &running);
    // One after the other at first, so that it is known how quick they are.
    assert!(deliver(&engine, 0, 50, "ok", TIMEOUT * 60).await.failures().is_empty());
    for invocations in [2, 16, 64] {
        store.0.most_open.store(0, Ordering::SeqCst);
        let batches =
            (0..invocations).map(|number| deliver(&engine, invocations * 100 + number, 300, "ok", TIMEOUT * 60));
        let reports = join_all(batches).await;
        assert!(reports.iter().all(|report| report.counts().get("completed") == Some(&300)), "{invocations}");
        let most = store.0.most_open.load(Ordering::SeqCst);
        // Not started; running; and on their way to be settled, for some milliseconds and in whole requests, each invocation its own.
        let bound = (4 + 125) + 4 + invocations * 25 + 150;
        assert!(most <= bound, "{invocations} invocations: {most} claims at once");
    }
    assert_eq!((store.0.open.load(Ordering::SeqCst), running.now.load(Ordering::SeqCst)), (0, 0));
}

/// Where handlers are slow, a claim waits for no other invocation: it is not taken before there is a slot.
#[tokio::test(start_paused = true)]
async fn slow_handlers_of_one_invocation_leave_no_claims_of_another_waiting() {
    let (store, running) = (Shared::of(None), Arc::default());
    let engine = engine(&store, 4, Duration::from_secs(1), &running);
    let batches = (0..10).map(|number| deliver(&engine, number, 4, "ok", TIMEOUT * 60));
    assert!(join_all(batches).await.iter().all(|report| report.failures().is_empty()));
    // In slots, claimed for a slot that became free, and on their way to be settled; not all forty.
    assert!(store.0.most_open.load(Ordering::SeqCst) <= 3 * 4, "{:?}", store.0.most_open);
}

#[tokio::test(start_paused = true)]
async fn who_gets_no_slot_is_back_in_time() {
    for claims_max in [None, Some(2)] {
        let store = Shared::of(claims_max);
        let running = Arc::default();
        let engine = engine(&store, 2, Duration::from_secs(1), &running);
        let start = tokio::time::Instant::now();
        let hog = deliver(&engine, 0, 2, "long", TIMEOUT * 3);
        let other = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let report = deliver(&engine, 1, 3, "ok", TIMEOUT).await;
            assert!(start.elapsed() < TIMEOUT, "{:?}", start.elapsed());
            report
        };
        let (hog, other) = tokio::join!(hog, other);
        assert_eq!(
            (words(&hog).as_str(), words(&other).as_str()),
            ("completed completed", "not_started not_started not_started")
        );
        // It has waited until its own time was over: there is nothing left to wait for.
        let soon = |after: Duration| after < Duration::from_secs(1);
        assert!(other.entries().iter().all(|entry| entry.visible_after.is_some_and(soon)));
        assert_eq!(
            words(&deliver(&engine, 2, 2, "ok", TIMEOUT).await),
            "completed completed",
            "the slots are free again"
        );
    }
}

/// Shown again at once, it would be received again and again while the other invocation has the slot.
#[tokio::test(start_paused = true)]
async fn what_got_no_slot_of_another_invocation_comes_back_when_there_may_be_one() {
    let handler = |_: Work, _| async {
        tokio::time::sleep(TIMEOUT * 2).await;
        Ok(())
    };
    let consumer = Consumer::new("c", Shared::of(None), handler).key(|w: &Work| &w.id).concurrency(1);
    let engine = Engine::with_defaults(consumer.expected(TIMEOUT * 2)).unwrap();
    let other = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        deliver(&engine, 1, 1, "ok", TIMEOUT * 3).await
    };
    let (first, other) = tokio::join!(deliver(&engine, 0, 1, "ok", TIMEOUT * 3), other);
    assert!(first.failures().is_empty(), "{}", words(&first));
    assert_eq!(words(&other), "not_started", "it had no slot");
    let back = other.entries()[0].visible_after.unwrap();
    assert!(back > TIMEOUT, "{back:?}");
}
