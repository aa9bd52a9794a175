//! What the engine asks of the queue: dead letters, hidden messages; and what duplicates are shown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::SKEW_DEFAULT_MS;
use claimant_core::{
    BoxFuture, Breaker, Call, Confirmation, Consumer, ConsumerName, DeadLetter, Engine, HideAnswer, InvocationTime,
    Key, Lease, MemoryStore, Meter, NoQueue, Queue, RecordId, Status, Store as _,
};
use claimant_testkit::Call::{Claim, Renew, Settle};
use claimant_testkit::Fault::{AnswerLost, Hangs, Late, NotApplied};
use claimant_testkit::outcomes::{self, Work, World, message};
use claimant_testkit::queue::DeadLetterQueue;
use futures_util::FutureExt as _;

use super::{TIMEOUT, words};

#[tokio::test(start_paused = true)]
async fn dead_letters_say_why_and_are_successes_only_when_taken() {
    for (letters, failed) in [(DeadLetterQueue::Taken, 0), (DeadLetterQueue::Refused, 4), (DeadLetterQueue::Without, 4)]
    {
        let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, |c| c.attempts_max(1), letters);
        let report = world.deliver(&["a reject", "nonsense", "a reject", "b ok", "y:nonsense"], 0).await;
        assert_eq!(words(&report), "rejected rejected rejected completed rejected");
        assert_eq!(report.failures().len(), failed, "{letters:?}");
        // What stays in its queue comes back for another try at once, the first time.
        let back = (letters != DeadLetterQueue::Taken).then_some(Duration::ZERO);
        assert_eq!(report.entries()[0].visible_after, back, "{letters:?}");
        if letters == DeadLetterQueue::Without {
            assert!(world.queue.dead_letters_sent().is_empty());
            continue;
        }
        let mut sent: Vec<_> =
            world.queue.dead_letters_sent().into_iter().map(|l| (l.index, l.error, l.attempt)).collect();
        sent.sort();
        assert_eq!(sent.len(), 4);
        assert_eq!(sent[0], (0, "no use".to_owned(), Some(1)));
        assert!(sent[1].1.contains("not valid JSON") && sent[1].2.is_none(), "{sent:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn more_dead_letters_than_slots_are_all_sent() {
    let setting = |c: Consumer<Work>| c.concurrency(3);
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, setting, DeadLetterQueue::Taken);
    let report = world.deliver(&["nonsense"; 50], 0).await;
    assert_eq!((report.counts()["rejected"], report.failures().len()), (50, 0));
    assert_eq!(world.queue.dead_letters_sent().len(), 50);
    assert_eq!(world.queue.requests(), [10; 5], "as many in a request as it takes");
}

/// A dead-letter queue that takes its time.
struct Slow(Duration, Mutex<Vec<tokio::time::Instant>>);

impl Queue for Slow {
    fn hide(&self, _place: usize, _period: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn has_dead_letters(&self) -> bool {
        true
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _within: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        self.1.lock().unwrap().push(tokio::time::Instant::now());
        Box::pin(async move {
            tokio::time::sleep(self.0).await;
            vec![Confirmation::Confirmed; letters.len()]
        })
    }
}

#[tokio::test(start_paused = true)]
async fn no_dead_letter_is_begun_without_time_for_it() {
    let setting = |c: Consumer<Work>| c.concurrency(1);
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, setting, DeadLetterQueue::Taken);
    // Three requests of ten letters, one after the other, of which the third has no time left.
    let batch: Vec<_> = (0..30).map(|place| message(place, "nonsense", 1)).collect();
    let (queue, margin) = (Slow(TIMEOUT / 2, Mutex::default()), Duration::from_millis(500));
    let now = tokio::time::Instant::now();
    let time = InvocationTime::new(world.engine.now(), world.engine.now().plus(TIMEOUT), margin);
    let report = world.engine.process(&batch, time, &queue).await;
    assert_eq!(report.failures().len(), 20, "the copies of ten are confirmed, ten are not, and ten are not sent");
    let begun = queue.1.into_inner().unwrap();
    assert_eq!(begun.len(), 2);
    assert!(begun.iter().all(|at| *at < now + TIMEOUT - margin), "{begun:?}");
}

#[tokio::test(start_paused = true)]
async fn parked_messages_say_why_too() {
    let setting = |c: Consumer<Work>| c.at_most_once().timeout(Duration::from_secs(1));
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, setting, DeadLetterQueue::Taken);
    let report = world.deliver(&["a doubt", "b hang"], 0).await;
    assert_eq!((words(&report).as_str(), report.failures().len()), ("parked parked", 0));
    world.deliver(&["a doubt @m9"], 0).await;
    let sent: Vec<_> = world.queue.dead_letters_sent().into_iter().map(|l| (l.error, l.attempt)).collect();
    assert_eq!(sent[0], ("no answer".to_owned(), Some(1)));
    assert!(sent[1].0.contains("cancelled") && sent[1].1 == Some(1), "{sent:?}");
    assert!(sent[2].0.contains("not run again") && sent[2].1.is_none(), "{sent:?}");
}

fn renewed(consumer: Consumer<Work>) -> Consumer<Work> {
    consumer.lease(Lease::Renewed(Duration::from_secs(3)))
}

#[tokio::test(start_paused = true)]
async fn a_renewed_lease_goes_on_with_its_message_and_ends_with_it() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
    // 5 s of work under a lease of 3 s, while another copy comes twice (fault 33).
    let rival = async {
        tokio::time::sleep(Duration::from_millis(3_500)).await;
        let first = words(&world.deliver(&["a long @other"], 0).await);
        tokio::time::sleep(Duration::from_millis(1_000)).await;
        format!("{first} {}", words(&world.deliver(&["a long @other"], 1).await))
    };
    let (report, rivals) = tokio::join!(world.deliver(&["a long"], 0), rival);
    assert_eq!((words(&report).as_str(), rivals.as_str()), ("completed", "busy busy"));
    let hidden = world.queue.hidden();
    assert!(hidden.len() >= 4, "every second, with the lease: {hidden:?}");
    // And the clock skew: before that, it could not be taken over.
    assert!(hidden[..4].iter().all(|h| *h == (0, Duration::from_secs(4))), "{hidden:?}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(world.queue.hidden(), hidden, "nothing is hidden after the end");
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_lease_is_lost_is_cancelled() {
    // The message is no longer this delivery's to hide.
    let mut world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
    world.queue.held = false;
    let start = tokio::time::Instant::now();
    assert_eq!(words(&world.deliver(&["a hang"], 0).await), "lease_lost");
    assert!(start.elapsed() < Duration::from_secs(2));
    // A renewal without an answer is tried again while the lease lasts; without any, the handler ends with the lease.
    for (faults, outcome) in [(1, "cancelled"), (9, "lease_lost")] {
        let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
        for fault in
            [AnswerLost, Hangs, NotApplied(claimant_core::StoreErrorKind::Throttled)].iter().cycle().take(faults)
        {
            world.store.fail_next(Renew, *fault);
        }
        let start = tokio::time::Instant::now();
        assert_eq!(words(&world.deliver(&["a hang"], 0).await), outcome, "{faults} faults");
        let lost_in_time = start.elapsed() <= Duration::from_secs(3);
        assert_eq!(lost_in_time, outcome == "lease_lost", "after {:?}", start.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_ends_where_no_further_try_would_come_before_its_lease_does() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
    let throttled = NotApplied(claimant_core::StoreErrorKind::Throttled);
    (0..2).for_each(|_| world.store.fail_next(Renew, throttled));
    let start = tokio::time::Instant::now();
    assert_eq!(words(&world.deliver(&["a hang"], 0).await), "lease_lost");
    // Of 3 s: after the first second there is another try, after the second one there is none.
    assert_eq!(start.elapsed().as_secs(), 2);
}

/// S11: a try to renew that begins just before the end of a lease is over with it, and the handler too.
#[tokio::test(start_paused = true)]
async fn no_handler_outlives_its_lease_while_its_renewal_has_no_answer() {
    const LEASE: Duration = Duration::from_secs(12);
    let long = |consumer: Consumer<Work>| consumer.lease(Lease::Renewed(LEASE));
    let rows: [(_, &[&str], _, _); 3] = [
        (None, &["a hang"], "lease_lost", "a/1 a/2"),
        (Some(10), &["a hang"], "lease_lost", "a/1 a/2"),
        // The lease of the first one of its call is renewed, and lasts.
        (Some(10), &["b hang", "a hang"], "cancelled lease_lost", "a/1 a/2 b/1"),
    ];
    for (calls, batch, outcomes, runs) in rows {
        let case = outcomes::Case { setting: long, calls, ..outcomes::Case::default() };
        let world = World::of(Arc::new(MemoryStore::new()), TIMEOUT * 3, &case);
        // So that the second try of 2 s begins 100 ms before the end.
        batch.iter().for_each(|_| world.store.fail_next(Claim, Late(Duration::from_millis(1_900))));
        for _ in 0..2 {
            batch[1..].iter().for_each(|_| world.store.fail_next(Renew, Late(Duration::ZERO)));
            world.store.fail_next(Renew, Hangs);
        }
        let start = tokio::time::Instant::now();
        let owner = async { (words(&world.deliver(batch, 0).await), start.elapsed()) };
        // Another one takes the key over as soon as it may, and runs.
        let rival = async {
            tokio::time::sleep(LEASE + Duration::from_millis(SKEW_DEFAULT_MS + 1)).await;
            words(&world.deliver(&["a hang"], 1).await)
        };
        let ((owner, ended), rival) = tokio::join!(owner, rival);
        assert_eq!((owner.as_str(), rival.as_str(), world.runs().as_str()), (outcomes, "cancelled", runs));
        assert!(ended <= LEASE, "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_grant_that_came_late_is_renewed_before_its_handler_runs() {
    // Of a lease of 3 s, two thirds have to be left.
    for (late_ms, renewal, outcome, calls) in [
        (1_000, None, "completed", vec![Claim, Settle]),
        (1_500, None, "completed", vec![Claim, Renew, Settle]),
        (1_500, Some(Hangs), "lease_lost", vec![Claim, Renew, Settle]),
    ] {
        let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
        world.store.fail_next(Claim, Late(Duration::from_millis(late_ms)));
        renewal.into_iter().for_each(|fault| world.store.fail_next(Renew, fault));
        assert_eq!(words(&world.deliver(&["a ok"], 0).await), outcome, "{late_ms} ms, {renewal:?}");
        assert_eq!(world.store.calls(), calls, "{late_ms} ms, {renewal:?}");
        assert_eq!(world.runs().is_empty(), outcome == "lease_lost");
    }
}

/// L3: with a long lease, a request that renews it may take longer than the invocation has.
#[tokio::test(start_paused = true)]
async fn a_late_grant_is_renewed_within_the_invocation() {
    let timeout = Duration::from_secs(12);
    for hangs in [1, 2] {
        let set = |consumer: Consumer<Work>| consumer.lease(Lease::Renewed(Duration::from_secs(20)));
        let world = World::new(Arc::new(MemoryStore::new()), timeout, set, DeadLetterQueue::Without);
        [AnswerLost].iter().chain(&[Hangs; 2][..hangs]).for_each(|fault| world.store.fail_next(Claim, *fault));
        world.store.fail_next(Renew, Hangs);
        let start = tokio::time::Instant::now();
        let words = words(&world.deliver(&["a ok"], 0).await);
        assert!(start.elapsed() < timeout, "{:?} {words}", start.elapsed());
        assert!(hangs < 2 || world.store.calls().contains(&Renew), "{:?}", world.store.calls());
    }
}

/// Before it is decided whether the handler starts, after a pause, and only while the lease lasts.
#[tokio::test(start_paused = true)]
async fn a_renewal_before_the_start_that_fails_at_once_is_tried_again() {
    let rows = [
        (1, "completed", vec![Claim, Renew, Renew, Settle]),
        (10, "lease_lost", vec![Claim, Renew, Renew, Renew, Settle]),
    ];
    for (failures, word, calls) in rows {
        let set = |consumer: Consumer<Work>| renewed(consumer).breaker(Breaker::new("mail"));
        let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, set, DeadLetterQueue::Without);
        world.store.fail_next(Claim, Late(Duration::from_millis(1_200)));
        let throttled = NotApplied(claimant_core::StoreErrorKind::Throttled);
        (0..failures).for_each(|_| world.store.fail_next(Renew, throttled));
        let start = tokio::time::Instant::now();
        assert_eq!(words(&world.deliver(&["a ok"], 0).await), word, "{failures}");
        assert_eq!(world.store.calls(), calls, "{failures}");
        assert!(start.elapsed() >= Duration::from_millis(1_700), "a third of the lease is left for two tries");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_before_the_start_is_tried_again_within_a_second_under_a_long_lease() {
    let set = |consumer: Consumer<Work>| {
        consumer.lease(Lease::Renewed(Duration::from_secs(12))).breaker(Breaker::new("mail"))
    };
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT * 3, set, DeadLetterQueue::Without);
    world.store.fail_next(Claim, Late(Duration::from_millis(4_500)));
    world.store.fail_next(Renew, NotApplied(claimant_core::StoreErrorKind::Throttled));
    let start = tokio::time::Instant::now();
    assert_eq!(words(&world.deliver(&["a ok"], 0).await), "completed");
    assert!((5_500..5_600).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn duplicates_are_shown_what_the_handler_returned() {
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&shown);
    let handler = |work: Work, _cx| async move { Ok((work.action == "value").then(|| vec![work.id])) };
    let consumer = Consumer::new("c", MemoryStore::new(), handler).key(|w: &Work| &w.id).on_duplicate(move |d| {
        sink.lock().unwrap().push(format!("{} {} {}", d.message_id(), d.key(), d.result_json().unwrap_or("nothing")));
        assert_ne!(d.key(), "panic", "on purpose");
    });
    let engine = Engine::with_defaults(consumer).unwrap();
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(100));
    let batch = ["a value @1", "a value @2", "panic none @3"].map(|text| message(0, text, 1));
    assert_eq!(words(&engine.process(&batch, time, &NoQueue).await), "completed duplicate completed");
    assert_eq!(words(&engine.process(&batch, time, &NoQueue).await), "duplicate duplicate duplicate");
    let mut shown = shown.lock().unwrap().clone();
    shown.sort();
    assert_eq!(shown, [r#"1 a ["a"]"#, r#"2 a ["a"]"#, r#"2 a ["a"]"#, "3 panic nothing"]);
}

/// A hook that blocked the thread earlier would take the completions of others with it, whose work would be done again.
#[tokio::test(start_paused = true)]
async fn duplicates_are_shown_when_all_else_is_settled() {
    let (store, shown) = (Arc::new(MemoryStore::new()), Arc::new(Mutex::new(Vec::new())));
    let (seen, sink) = (Arc::clone(&store), Arc::clone(&shown));
    let consumer = Consumer::new("c", store, |_: Work, _cx| async { Ok(()) }).key(|w: &Work| &w.id).on_duplicate(
        move |duplicate| {
            let of = |key| RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key).unwrap());
            let (meter, within) = (Meter::default(), TIMEOUT);
            let get = |key| seen.get(&of(key), Call { within, meter: &meter }).now_or_never().unwrap().unwrap();
            let status = |key| get(key).map(|record| record.status);
            sink.lock().unwrap().push((duplicate.key().to_owned(), ["b", "c"].map(status)));
        },
    );
    let engine = Engine::with_defaults(consumer).unwrap();
    let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(100));
    engine.process(&["a ok @1"].map(|text| message(0, text, 1)), time, &NoQueue).await;
    let batch = ["a ok @2", "b ok @3", "c ok @4"].map(|text| message(0, text, 1));
    assert_eq!(words(&engine.process(&batch, time, &NoQueue).await), "duplicate completed completed");
    assert_eq!(*shown.lock().unwrap(), [("a".to_owned(), [Some(Status::Completed); 2])]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_in_a_renewed_lease_outlives_its_owner_only_briefly() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
    let dying = tokio::time::timeout(Duration::from_millis(1_500), world.deliver(&["a hang"], 0)).await;
    assert!(dying.is_err());
    assert_eq!(world.status("a").await, Some(Status::InProgress));
    world.clock.advance(Duration::from_secs(5));
    let report = world.deliver(&["a hang"], 1).await;
    assert_eq!((words(&report).as_str(), report.totals.taken_over), ("cancelled", 1), "taken over, L1");
}

/// A message that is back earlier costs a receive, and waits once more.
#[tokio::test(start_paused = true)]
async fn the_message_of_a_dead_owner_is_back_when_it_can_be_taken_over() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
    let (renewed_at, answers_after) = (Duration::from_secs(1), Duration::from_millis(5));
    world.store.fail_next(Renew, Late(answers_after));
    let dying = tokio::time::timeout(renewed_at + answers_after * 2, world.deliver(&["a hang"], 0)).await;
    assert!(dying.is_err());
    let [(0, hidden)] = world.queue.hidden()[..] else { panic!("{:?}", world.queue.hidden()) };
    world.clock.advance(hidden - answers_after);
    let report = world.deliver(&["a hang"], 1).await;
    assert_eq!((words(&report).as_str(), report.totals.taken_over), ("cancelled", 1));
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_settlement_is_in_doubt_is_back_when_it_can_be_taken_over() {
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, |consumer| consumer, DeadLetterQueue::Without);
    world.store.fail_next(Settle, NotApplied(claimant_core::StoreErrorKind::Corrupt));
    let report = world.deliver(&["a ok"], 0).await;
    assert_eq!(words(&report), "settle_unknown");
    world.clock.advance(report.entries()[0].visible_after.unwrap());
    assert_eq!((words(&world.deliver(&["a ok"], 1).await).as_str(), world.runs().as_str()), ("completed", "a/1 a/2"));
}

/// A queue that answers nothing, in front of a store that answers renewals late.
struct Mute;

impl Queue for Mute {
    fn hide(&self, _place: usize, _period: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_under_way_holds_up_no_deadline() {
    let long = |consumer: Consumer<Work>| consumer.lease(Lease::Renewed(Duration::from_secs(18)));
    let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, long, DeadLetterQueue::Without);
    let batch = [message(0, "a hang", 1)];
    let start = tokio::time::Instant::now();
    let time = InvocationTime::new(world.engine.now(), world.engine.now().plus(TIMEOUT), Duration::from_millis(500));
    assert_eq!(words(&world.engine.process(&batch, time, &Mute).await), "cancelled");
    assert!(start.elapsed() <= TIMEOUT - Duration::from_millis(500), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_message_whose_handler_is_done_stays_hidden_until_its_batch_is() {
    let breaker = |consumer: Consumer<Work>| renewed(consumer).breaker(Breaker::new("mail"));
    // Renewed while it ran, or only before: then at its start, or before it was decided whether it starts.
    let rows: [(outcomes::Setting, _, _); 3] =
        [(renewed, "a long", 0), (renewed, "a ok", 1_500), (breaker, "a ok", 1_500)];
    for (setting, first, late_ms) in rows {
        let world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, setting, DeadLetterQueue::Without);
        world.store.fail_next(Claim, Late(Duration::from_millis(late_ms)));
        assert_eq!(words(&world.deliver(&[first, "b hang"], 0).await), "completed cancelled");
        let last = world.queue.hidden().into_iter().rfind(|(place, _)| *place == 0).unwrap();
        assert!(last.1 >= TIMEOUT / 2, "{first}, {late_ms} ms: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_message_is_lost_is_let_go() {
    let mut world = World::new(Arc::new(MemoryStore::new()), TIMEOUT, renewed, DeadLetterQueue::Without);
    world.queue.held = false;
    assert_eq!(words(&world.deliver(&["a hang"], 0).await), "lease_lost");
    assert_eq!(world.status("a").await, Some(Status::Failed));
}
