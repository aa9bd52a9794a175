//! A store that is away for a while: nothing that was done is done again, and the report is back in time (F2).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::MARGIN_DEFAULT_MS;
use claimant_core::protocol::Settlement;
use claimant_core::{
    BoxFuture, Call, Claim, Consumer, Engine, HandlerError, InvocationTime, MemoryStore, Message, NoQueue, RecordId,
    Report, Settled, Store, StoreError, StoreErrorKind,
};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{FaultyStore, MovableClock};
use tokio::time::Instant;

use super::words;

/// The invocation's timeout.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What can be waited for.
const KINDS: [StoreErrorKind; 2] = [StoreErrorKind::Unreachable, StoreErrorKind::Throttled];

/// What a settlement waits for: an error of no known meaning, too.
const MAY_PASS: [StoreErrorKind; 3] = [StoreErrorKind::Unreachable, StoreErrorKind::Throttled, StoreErrorKind::Other];

/// How long the store is away.
const AWAY_S: [u64; 3] = [3, 20, 28];

/// How long a mail takes, where that counts.
const WORK: Duration = Duration::from_millis(100);

/// A shop that sends a mail for each message, on a store that goes away at its last mail.
struct Shop {
    store: FaultyStore,
    clock: MovableClock,
    mails: Arc<Mutex<Vec<String>>>,
    engine: Engine,
}

fn shop(count: usize, away: Duration, kind: StoreErrorKind, setting: fn(Consumer<Work>) -> Consumer<Work>) -> Shop {
    let (store, clock) = (FaultyStore::new(Arc::new(MemoryStore::new())), MovableClock::start());
    let mails: Arc<Mutex<Vec<String>>> = Arc::default();
    let (sent, failing) = (Arc::clone(&mails), store.clone());
    let handler = move |work: Work, _cx| {
        let (sent, failing) = (Arc::clone(&sent), failing.clone());
        async move {
            let mut sent = sent.lock().unwrap();
            sent.push(work.id);
            if sent.len() == count {
                failing.away_for(away, kind);
            }
            if work.action == "fail" { Err(HandlerError::retry("the mail server is away")) } else { Ok(()) }
        }
    };
    let consumer = Consumer::new("mails", store.clone(), handler).key(|w: &Work| &w.id);
    let engine = Engine::with_defaults(setting(consumer)).unwrap().clock(Arc::new(clock.clone()));
    Shop { store, clock, mails, engine }
}

impl Shop {
    /// One invocation, which must be back in time.
    async fn deliver(&self, batch: &[Message]) -> Report {
        let (start, margin) = (Instant::now(), Duration::from_millis(MARGIN_DEFAULT_MS));
        let time = InvocationTime::new(self.engine.now(), self.engine.now().plus(TIMEOUT), margin);
        let report = self.engine.process(batch, time, &NoQueue).await;
        assert!(start.elapsed() <= TIMEOUT - margin, "{:?}", start.elapsed());
        report
    }

    fn mails(&self) -> String {
        let mut mails = self.mails.lock().unwrap().clone();
        mails.sort();
        mails.join(" ")
    }
}

fn batch(receive_count: u32) -> Vec<Message> {
    batch_of(5, "ok", receive_count)
}

fn batch_of(count: usize, action: &str, receive_count: u32) -> Vec<Message> {
    (0..count).map(|n| message(n, &format!("k{n} {action}"), receive_count)).collect()
}

#[tokio::test(start_paused = true)]
async fn completions_outlast_the_store_and_no_mail_is_sent_twice() {
    for kind in MAY_PASS {
        for away_s in AWAY_S {
            let shop = shop(5, Duration::from_secs(away_s), kind, |consumer| consumer);
            let start = Instant::now();
            let report = shop.deliver(&batch(1)).await;
            assert_eq!(words(&report), ["completed"; 5].join(" "), "{kind:?}, {away_s} s");
            let longest = report.totals.latencies.settle;
            assert!((Duration::from_secs(away_s)..=start.elapsed()).contains(&longest), "{away_s} s away, {longest:?}");
            let late = start.elapsed() - Duration::from_secs(away_s);
            assert!(late <= Duration::from_secs(1), "{away_s} s away, back {late:?} later");
            // Five settlements in one request, and few requests.
            assert!((5..=50).contains(&shop.store.calls_while_away()), "{}", shop.store.calls_while_away());
            shop.clock.advance(TIMEOUT * 2);
            assert_eq!(words(&shop.deliver(&batch(2)).await), ["duplicate"; 5].join(" "));
            assert_eq!(shop.mails(), "k0 k1 k2 k3 k4", "{kind:?}, {away_s} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn finished_work_that_runs_at_most_once_is_not_parked() {
    for away_s in AWAY_S {
        let shop = shop(5, Duration::from_secs(away_s), StoreErrorKind::Unreachable, |c| c.at_most_once());
        assert_eq!(words(&shop.deliver(&batch(1)).await), ["completed"; 5].join(" "), "{away_s} s");
        shop.clock.advance(TIMEOUT * 2);
        assert_eq!(words(&shop.deliver(&batch(2)).await), ["duplicate"; 5].join(" "));
    }
}

/// Beyond its time, an invocation says so: faults.md 9.
#[tokio::test(start_paused = true)]
async fn a_store_that_stays_away_is_asked_until_the_report_is_due() {
    let shop = shop(5, TIMEOUT * 2, StoreErrorKind::Unreachable, |consumer| consumer);
    let start = Instant::now();
    assert_eq!(words(&shop.deliver(&batch(1)).await), ["settle_unknown"; 5].join(" "));
    assert!(start.elapsed() >= TIMEOUT - Duration::from_secs(1), "{:?}", start.elapsed());
    let calls = shop.store.calls_while_away();
    tokio::time::sleep(TIMEOUT).await;
    assert_eq!(shop.store.calls_while_away(), calls, "nothing is written after the report (S9)");
}

/// What no other try can fix is said at once; what is not permitted, or not there, after ten seconds: a role that is being changed is
/// in order again within them.
#[tokio::test(start_paused = true)]
async fn a_refused_completion_is_tried_again_for_a_while() {
    use StoreErrorKind::{Corrupt, Denied, Misconfigured, TooLarge};
    for (kind, away_s, wanted, lasts_s) in [
        (Denied, 7, "completed", 7..=8),
        (Misconfigured, 7, "completed", 7..=8),
        (Denied, 30, "settle_unknown", 10..=11),
        (Misconfigured, 30, "settle_unknown", 10..=11),
        (TooLarge, 30, "settle_unknown", 0..=0),
        (Corrupt, 30, "settle_unknown", 0..=0),
    ] {
        let shop = shop(5, Duration::from_secs(away_s), kind, |consumer| consumer);
        let start = Instant::now();
        assert_eq!(words(&shop.deliver(&batch(1)).await), [wanted; 5].join(" "), "{kind:?}, {away_s} s");
        assert!(lasts_s.contains(&start.elapsed().as_secs()), "{kind:?}, {away_s} s: {:?}", start.elapsed());
        assert!(shop.store.calls_while_away() <= 20, "{kind:?}, {away_s} s: {}", shop.store.calls_while_away());
    }
}

/// What may not run again would be parked, though its handler said that nothing was done; what may, runs again all the same.
#[tokio::test(start_paused = true)]
async fn a_refused_failure_is_tried_again_where_it_would_be_parked() {
    let rerun: fn(Consumer<Work>) -> Consumer<Work> = |consumer| consumer;
    for (setting, wanted, lasts_s) in
        [(rerun, "settle_unknown", 0..=0), (|consumer: Consumer<Work>| consumer.at_most_once(), "retry", 7..=8)]
    {
        let shop = shop(5, Duration::from_secs(7), StoreErrorKind::Denied, setting);
        let (start, batch) = (Instant::now(), batch_of(5, "fail", 1));
        assert_eq!(words(&shop.deliver(&batch).await), [wanted; 5].join(" "));
        assert!(lasts_s.contains(&start.elapsed().as_secs()), "{wanted}: {:?}", start.elapsed());
    }
}

/// What waited behind the first refused completions has no ten seconds of its own.
#[tokio::test(start_paused = true)]
async fn a_batch_waits_once_for_a_store_that_refuses_its_completions() {
    let start = Instant::now();
    let (counts, mails) = sent_through(Stubborn(StoreErrorKind::Denied, |_| true), 100, WORK).await;
    assert_eq!((counts["settle_unknown"], mails), (100, 100), "{counts:?}");
    assert!((10..=15).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn claims_are_tried_again_while_a_handler_could_start() {
    for kind in KINDS {
        for (receive_count, away_s, wanted) in [
            (1, 3, "completed"),
            (2, 3, "completed"),
            (1, 20, "completed"),
            (2, 20, "completed"),
            (1, 60, "store_failed"),
        ] {
            let shop = shop(usize::MAX, Duration::ZERO, kind, |consumer| consumer);
            shop.store.away_for(Duration::from_secs(away_s), kind);
            let report = shop.deliver(&batch(receive_count)).await;
            assert_eq!(words(&report), [wanted; 5].join(" "), "{kind:?}, {away_s} s, receive {receive_count}");
            // The tries before the last, and the waits between them, are in what the claims took, also of a message that got none.
            let longest = report.totals.latencies.claim;
            let whole = Duration::from_secs(away_s.min(TIMEOUT.as_secs() - 2));
            assert!((whole..=TIMEOUT).contains(&longest), "{away_s} s away, {longest:?}");
            assert!(report.entries().iter().any(|entry| entry.details.claim == Some(longest)));
            // First deliveries are claimed together, others by themselves.
            let most = if receive_count == 1 { 60 } else { 5 * 50 };
            assert!(shop.store.calls_while_away() <= most, "{}", shop.store.calls_while_away());
            if wanted == "store_failed" {
                assert!(report.entries().iter().all(|e| e.visible_after.is_none()), "the queue's own time");
            }
        }
    }
    // Not where it would be cancelled: 25 s of work, and 15 s left of those for handlers.
    let shop = shop(usize::MAX, Duration::ZERO, StoreErrorKind::Unreachable, |c| c.expected(Duration::from_secs(25)));
    shop.store.away_for(Duration::from_secs(14), StoreErrorKind::Unreachable);
    let start = Instant::now();
    assert_eq!(words(&shop.deliver(&batch(1)).await), ["store_failed"; 5].join(" "));
    assert!(start.elapsed() < Duration::from_secs(6), "{:?}", start.elapsed());
    assert_eq!(shop.mails(), "");
}

/// One of a batch that the store does not take holds up neither its neighbours nor other lanes; its own lane waits.
#[tokio::test(start_paused = true)]
async fn a_lane_waits_for_its_heads_settlement_and_others_do_not() {
    let shop = shop(1, Duration::from_secs(20), StoreErrorKind::Throttled, |consumer| consumer);
    let texts = ["x:a ok", "x:b ok", "x:c ok"];
    let batch: Vec<_> = texts.iter().enumerate().map(|(n, text)| message(n, text, 1)).collect();
    let start = Instant::now();
    let batch_done = async {
        tokio::time::sleep(Duration::from_secs(10)).await;
        shop.mails()
    };
    let (report, mails) = tokio::join!(shop.deliver(&batch), batch_done);
    assert_eq!(mails, "a", "nothing of a group runs before what is ahead of it is completed (S8)");
    assert_eq!((words(&report).as_str(), shop.mails().as_str()), ("completed completed completed", "a b c"));
    assert!(start.elapsed() >= Duration::from_secs(20));
}

/// What cannot be settled is not run: its handlers would all run again.
#[tokio::test(start_paused = true)]
async fn while_nothing_can_be_settled_no_handler_is_started() {
    for batch_size in [100, 2_000] {
        for takes in [WORK, WORK * 10] {
            let (counts, mails) = sent_through(Stubborn(StoreErrorKind::Throttled, |_| true), batch_size, takes).await;
            // Those that ran when a settlement went unanswered for the first time, and those that had ended just before.
            assert!((10..=20).contains(&mails) && counts["settle_unknown"] >= mails, "{mails} mails, {counts:?}");
            assert!(!counts.contains_key("completed"), "{counts:?}");
        }
    }
}

/// What was held up goes on when the store is back.
#[tokio::test(start_paused = true)]
async fn what_waited_for_the_store_is_run_when_it_is_back() {
    let shop = shop(10, Duration::from_secs(20), StoreErrorKind::Unreachable, |consumer| consumer.concurrency(10));
    let batch: Vec<_> = (0..100).map(|n| message(n, &format!("k{n} ok"), 1)).collect();
    let counts = shop.deliver(&batch).await.counts();
    assert_eq!((counts["completed"], shop.mails.lock().unwrap().len()), (100, 100), "{counts:?}");
}

/// L4: one settlement that the store does not take, of a hot key for example, takes up one slot and no more.
#[tokio::test(start_paused = true)]
async fn one_settlement_that_is_not_taken_holds_up_no_other_message() {
    let (counts, mails) =
        sent_through(Stubborn(StoreErrorKind::Throttled, |id| id.as_str().ends_with("#k0")), 100, WORK).await;
    assert_eq!((counts["completed"], counts["settle_unknown"], mails), (99, 1, 100), "{counts:?}");
}

/// What ten at once send in one invocation, each in this time: the outcomes, and the number of mails.
async fn sent_through(store: Stubborn, messages: usize, takes: Duration) -> (BTreeMap<&'static str, usize>, usize) {
    let mails = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&mails);
    let handler = move |_: Work, _cx| {
        sent.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(takes).await;
            Ok(())
        }
    };
    let store = StubbornStore { records: MemoryStore::new(), refuses: store };
    let consumer = Consumer::new("mails", store, handler).key(|w: &Work| &w.id).concurrency(10);
    let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()));
    let batch: Vec<_> = (0..messages).map(|n| message(n, &format!("k{n} ok"), 1)).collect();
    let (now, margin) = (engine.now(), Duration::from_millis(MARGIN_DEFAULT_MS));
    let start = Instant::now();
    let report = engine.process(&batch, InvocationTime::new(now, now.plus(TIMEOUT), margin), &NoQueue).await;
    assert!(start.elapsed() <= TIMEOUT - margin, "{:?}", start.elapsed());
    (report.counts().into_iter().filter(|(_, count)| *count > 0).collect(), mails.load(Ordering::Relaxed))
}

/// Which keys' settlements a store does not take, and how it says so.
struct Stubborn(StoreErrorKind, fn(&RecordId) -> bool);

struct StubbornStore {
    records: MemoryStore,
    refuses: Stubborn,
}

impl Store for StubbornStore {
    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        if (self.refuses.1)(&claim.id) {
            let error = StoreError::new(self.refuses.0, "a hot key, or a missing permission");
            return Box::pin(std::future::ready(Settled::unknown(claim, error)));
        }
        self.records.settle(claim, settlement, call)
    }

    claimant_testkit::pass_on!(self => self.records; claim, renew, get);
}
