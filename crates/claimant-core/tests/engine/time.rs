//! Time: nothing is started that cannot end, everything is back before the deadline.

use std::time::Duration;

use claimant_core::limits::{LEASE_MARGIN_MS, MARGIN_DEFAULT_MS, SKEW_DEFAULT_MS};
use claimant_core::{Conflicts, InvocationTime, Lease, Message, NoQueue, Status, StoreErrorKind};
use claimant_testkit::Call::{Claim, Renew, Settle};
use claimant_testkit::Fault::{self, Applied, Hangs};
use claimant_testkit::outcomes::{Setting, message};

use super::{TIMEOUT, words, world};

/// The call applies, and whoever made it is gone.
const KILLED: Fault = Applied(StoreErrorKind::Other);

fn messages(bodies: impl IntoIterator<Item = (&'static str, String)>) -> Vec<Message> {
    let texts = bodies.into_iter().map(|(action, key)| format!("{key} {action}")).enumerate();
    texts.map(|(place, text)| message(place, &text, 1)).collect()
}

#[tokio::test(start_paused = true)]
async fn without_time_nothing_is_started() {
    let world = world(|consumer| consumer);
    let (now, margin) = (world.engine.now(), Duration::from_millis(MARGIN_DEFAULT_MS));
    for deadline in [now, now.minus(Duration::from_secs(9)), now.plus(margin)] {
        let time = InvocationTime::new(now, deadline, margin);
        let batch = messages([("ok", "a".into()), ("ok", "b".into())]);
        let report = world.engine.process(&batch, time, &NoQueue).await;
        assert_eq!(words(&report), "not_started not_started");
        // A function that never has time must not be a hot loop to the dead-letter queue.
        assert!(report.entries().iter().all(|e| e.visible_after.is_none()));
    }
    assert!(world.store.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_into_the_time_is_not_started() {
    let world = world(|consumer| consumer);
    // 10 at once and 5 s each, of 8.5 s until handlers are cancelled: one round ends, and by then it is known that a
    // second one would not. Claims taken ahead are given back without counting as an attempt.
    let batch = messages((0..40).map(|n| ("long", format!("k{n}"))));
    let report = world.process(&batch).await;
    let counts = report.counts();
    assert_eq!((counts["completed"], counts["not_started"]), (10, 30));
    assert!(report.entries()[10..].iter().all(|e| e.visible_after == Some(Duration::ZERO)));
    assert_eq!(world.record("k10").await.map(|r| (r.status, r.attempts)), Some((Status::Failed, 0)));
    assert_eq!(world.record("k39").await, None, "no lease runs while its message waits");
    let again = world.process(&batch[10..20]).await;
    assert_eq!(again.counts()["completed"], 10);
    assert!(world.runs().split(' ').all(|run| run.ends_with("/1")), "{}", world.runs());
}

#[tokio::test(start_paused = true)]
async fn slow_handlers_have_no_claims_ahead() {
    let world = world(|consumer| consumer.concurrency(2));
    world.process(&messages([("long", "a".into())])).await;
    let calls = world.store.calls().len();
    world.process(&messages((0..40).map(|n| ("long", format!("k{n}"))))).await;
    let claims = world.store.calls()[calls..].iter().filter(|call| **call == Claim).count();
    assert_eq!(claims, 2, "as many as slots");
}

/// F5: a claim is what a crash parks, so at-most-once work is claimed only as it starts.
#[tokio::test(start_paused = true)]
async fn a_crash_parks_only_what_had_started() {
    for quick_ones_before in [0, 50] {
        let world = world(|c| c.at_most_once().concurrency(4).conflicts(Conflicts::Ignore));
        world.process(&messages((0..quick_ones_before).map(|n| ("ok", format!("q{n}"))))).await;
        let batch = messages((0..40).map(|n| ("hang", format!("k{n}"))));
        let crash = tokio::time::timeout(Duration::from_secs(1), world.process(&batch)).await;
        assert!(crash.is_err(), "the process dies in mid-handler");
        world.clock.advance(TIMEOUT * 2);
        let report = world.process(&messages((0..40).map(|n| ("ok", format!("k{n}"))))).await;
        let counts = report.counts();
        assert_eq!((counts["parked"], counts["completed"]), (4, 36), "after {quick_ones_before} quick ones");
    }
}

/// A grant that came late, and a store that then does not renew its lease: nothing ran, so there is nothing to decide for a person.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_before_the_handler_starts_parks_nothing() {
    let world = world(|consumer| consumer.at_most_once().lease(Lease::Renewed(Duration::from_secs(3))));
    world.store.fail_next(Claim, Fault::Late(Duration::from_millis(2_500)));
    world.store.fail_next(Renew, Fault::NotApplied(StoreErrorKind::Unreachable));
    let report = world.deliver(&["a ok", "b ok"], 0).await;
    assert_eq!((words(&report).as_str(), world.runs().as_str()), ("lease_lost completed", "b/1"));
    assert_eq!(words(&world.deliver(&["a ok"], 0).await), "completed");
    assert_eq!(world.runs(), "a/1 b/1", "an attempt is a run");
}

#[tokio::test(start_paused = true)]
async fn failures_come_back_when_a_retry_can_help() {
    let world = world(|consumer| consumer);
    let report = world.deliver(&["a fail", "b later", "c reject", "d ok", "d ok"], 0).await;
    let after: Vec<_> = report.entries().iter().map(|e| e.visible_after.map(|d| d.as_millis())).collect();
    assert!((1_000..=2_000).contains(&after[0].unwrap()), "a first backoff: {after:?}");
    assert_eq!(after[1..], [Some(77_000), Some(0), None, None]);
    // Busy elsewhere: not before the other's lease is over, with its margins.
    world.store.fail_next(Claim, KILLED);
    let failed = world.deliver(&["e ok"], 0).await;
    assert_eq!(failed.entries()[0].visible_after, None, "an outage must not use up receives");
    let busy = world.deliver(&["e ok"], 0).await;
    let after = busy.entries()[0].visible_after.unwrap();
    let lease = TIMEOUT + Duration::from_millis(LEASE_MARGIN_MS + SKEW_DEFAULT_MS);
    assert!(after >= lease && after <= lease + Duration::from_secs(1), "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn copies_of_work_under_a_renewed_lease_come_back_when_no_renewal_can_help_it() {
    const LEASE: Duration = Duration::from_secs(3);
    let world = world(|consumer| consumer.lease(Lease::Renewed(LEASE)));
    let near = |after: Duration, wanted: Duration| after >= wanted && after <= wanted + Duration::from_secs(1);
    world.store.fail_next(Claim, KILLED);
    assert_eq!(words(&world.deliver(&["a ok @m1"], 0).await), "store_failed");
    // Its own message takes over as soon as the lease can be over.
    let own = world.deliver(&["a ok @m1"], 0).await.entries()[0].visible_after.unwrap();
    assert!(near(own, LEASE + Duration::from_millis(SKEW_DEFAULT_MS)), "{own:?}");
    // L5: a copy would use up its receives. How much of this invocation is over does not count: the other may have begun just now.
    let time = InvocationTime::new(world.engine.now(), world.engine.now().plus(TIMEOUT), Duration::from_millis(500));
    tokio::time::advance(Duration::from_secs(1)).await;
    let copy = world.engine.process(&[message(0, "a ok @m2", 1)], time, &NoQueue).await;
    assert_eq!(words(&copy), "busy");
    let copy = copy.entries()[0].visible_after.unwrap();
    assert!(near(copy, TIMEOUT + Duration::from_millis(LEASE_MARGIN_MS)), "{copy:?}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_before_the_claim_gives_no_dead_lease() {
    // S11: each claim's lease is counted from the time of the claim, not from that of the schedule.
    let world = world(|consumer| consumer);
    let time = || InvocationTime::new(world.engine.now(), world.engine.now().plus(TIMEOUT), Duration::from_millis(500));
    let (first, second) = (time(), time());
    world.clock.advance(Duration::from_secs(3_600));
    let (a, b) = (messages([("long", "a".into())]), messages([("long", "a".into())]));
    let (a, b) = tokio::join!(world.engine.process(&a, first, &NoQueue), world.engine.process(&b, second, &NoQueue));
    let mut seen = [words(&a), words(&b)];
    seen.sort();
    assert_eq!(seen, ["busy", "completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_handlers_own_time_out_ends_it_sooner_than_the_deadline_and_never_later() {
    let settings: [(Setting, _, _); 2] = [
        (|c| c.timeout(Duration::from_secs(2)), Duration::from_secs(2)..Duration::from_secs(3), "its own timeout"),
        (|c| c.timeout(TIMEOUT * 2), TIMEOUT / 2..TIMEOUT, "when its invocation had no more time"),
    ];
    for (setting, ends, which) in settings {
        let world = world(setting);
        let start = tokio::time::Instant::now();
        assert_eq!(words(&world.deliver(&["a hang"], 0).await), "cancelled");
        assert!(ends.contains(&start.elapsed()), "{:?} is not in {ends:?}", start.elapsed());
        let why = world.record("a").await.and_then(|record| record.error).unwrap();
        let ran_ms =
            why.strip_prefix("the handler was cancelled after ").and_then(|why| why.split(' ').next()?.parse().ok());
        assert!(ends.contains(&Duration::from_millis(ran_ms.unwrap())) && why.ends_with(which), "{why}");
    }
}

/// What renews its lease before it, or hides its message after it, is none of its time.
#[tokio::test(start_paused = true)]
async fn how_long_a_cancelled_handler_ran_is_its_own_time() {
    let world = world(|c| c.timeout(Duration::from_secs(2)).lease(Lease::Renewed(Duration::from_secs(3))));
    world.store.fail_next(Claim, Fault::Late(Duration::from_millis(2_500)));
    world.store.fail_next(Renew, Fault::Late(Duration::from_millis(400)));
    assert_eq!(words(&world.deliver(&["a hang"], 0).await), "cancelled");
    let why = world.record("a").await.and_then(|record| record.error).unwrap();
    assert_eq!(why, "the handler was cancelled after 2000 ms, at its own timeout");
}

#[tokio::test(start_paused = true)]
async fn one_completion_that_hangs_holds_up_no_other_one() {
    // Here and not among the cases for all stores: which handler ends first is certain on one thread only.
    let world = world(|consumer| consumer);
    world.store.fail_next(Settle, Hangs);
    let report = world.deliver(&["a ok", "b ok", "c ok"], 0).await;
    assert_eq!(words(&report), "settle_unknown completed completed");
}

#[tokio::test(start_paused = true)]
async fn dropping_a_batch_cancels_its_handlers() {
    let world = world(|consumer| consumer);
    let cut = tokio::time::timeout(Duration::from_secs(1), world.deliver(&["a hang"], 0)).await;
    assert!(cut.is_err());
    // The claim ends with its lease; nothing else is left behind.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.status("a").await, Some(Status::InProgress));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

/// A store can have applied a claim whose answer is late. It would be parked, though nothing of its work has started.
#[tokio::test(start_paused = true)]
async fn a_claim_that_is_answered_after_the_time_for_handlers_is_given_back_where_it_would_be_parked() {
    let late = |ms| Fault::Late(Duration::from_millis(ms));
    for (fault, wanted, record) in
        [(late(120), "completed not_started", Some((Status::Failed, 0))), (Hangs, "completed store_failed", None)]
    {
        let world = world(|consumer| consumer.at_most_once().concurrency(1).expected(Duration::from_millis(1)));
        [late(0), fault].into_iter().for_each(|fault| world.store.fail_next(Claim, fault));
        // When the first is done, handlers have 110 ms left; a second more is kept for settling.
        let (usable, margin) = (TIMEOUT / 2 + Duration::from_millis(1_110), Duration::from_millis(MARGIN_DEFAULT_MS));
        let start = tokio::time::Instant::now();
        let time = InvocationTime::new(world.engine.now(), world.engine.now().plus(usable + margin), margin);
        let batch = messages([("long", "a".into()), ("ok", "b".into())]);
        let report = world.engine.process(&batch, time, &NoQueue).await;
        assert_eq!(words(&report), wanted);
        assert!(start.elapsed() < usable, "{:?}", start.elapsed());
        assert_eq!(world.record("b").await.map(|record| (record.status, record.attempts)), record);
    }
}
