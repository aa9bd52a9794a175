//! Many messages: few requests, bounded claims, no deep recursion.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Likely, Settlement};
use claimant_core::{
    BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, Consumer, Engine, MemoryStore, Message, Report, Settled, Store,
    StoreError, StoreErrorKind,
};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{Call as Faulty, Fault};

use super::support::deliver;
use super::{words, world};

/// A store in memory that takes many keys in one request, as DynamoDB does, and counts requests and open claims.
#[derive(Default)]
pub(crate) struct Counting {
    inner: MemoryStore,
    requests: AtomicUsize,
    largest: AtomicUsize,
    pub(crate) open: AtomicUsize,
    pub(crate) most_open: AtomicUsize,
    /// The hints of all claims.
    likely: Mutex<Vec<Likely>>,
    /// Settlements are never answered.
    mute: bool,
    /// As many claims as there are connections.
    claims_max: Option<usize>,
}

impl Counting {
    fn request(&self, keys: usize) {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.largest.fetch_max(keys, Ordering::SeqCst);
    }
}

/// Answers as a network does: later, so that what could go together has come together.
async fn latency() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Counting>);

impl Shared {
    /// A store that can hold so many claims.
    pub(crate) fn of(claims_max: Option<usize>) -> Self {
        Self(Arc::new(Counting { claims_max, ..Counting::default() }))
    }
}

impl Shared {
    pub(crate) fn requests(&self) -> usize {
        self.0.requests.load(Ordering::SeqCst)
    }
}

impl Store for Shared {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            self.0.request(1);
            self.0.likely.lock().unwrap().push(request.likely);
            latency().await;
            let open = self.0.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.0.most_open.fetch_max(open, Ordering::SeqCst);
            self.0.inner.claim(request, call).await
        })
    }

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            self.0.request(requests.len());
            self.0.likely.lock().unwrap().extend(requests.iter().map(|request| request.likely));
            latency().await;
            let open = self.0.open.fetch_add(requests.len(), Ordering::SeqCst) + requests.len();
            self.0.most_open.fetch_max(open, Ordering::SeqCst);
            self.0.inner.claim_all(requests, call).await
        })
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        Box::pin(async move {
            self.0.request(settlements.len());
            latency().await;
            if self.0.mute {
                std::future::pending::<()>().await;
            }
            self.0.open.fetch_sub(settlements.len(), Ordering::SeqCst);
            self.0.inner.settle_all(settlements, call).await
        })
    }

    fn claims_max(&self) -> Option<usize> {
        self.0.claims_max
    }

    claimant_testkit::pass_on!(self => self.0.inner; renew, settle, get);
}

fn engine(store: &Shared, concurrency: usize, takes: Duration) -> Engine {
    let handler = move |_: Work, _| async move {
        tokio::time::sleep(takes).await;
        Ok(())
    };
    let consumer = Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id).concurrency(concurrency);
    Engine::with_defaults(consumer).unwrap()
}

fn batch(count: usize, key: impl Fn(usize) -> String) -> Vec<Message> {
    (0..count).map(|n| message(n, &format!("{} ok", key(n)), 1)).collect()
}

async fn process(engine: &Engine, count: usize, key: impl Fn(usize) -> String) -> Report {
    deliver(engine, &batch(count, key), 600).await
}

#[tokio::test(start_paused = true)]
async fn fresh_messages_take_two_requests_for_twenty_five() {
    for (count, concurrency, requests) in
        [(1, 10, 2), (10, 10, 2), (25, 10, 2), (100, 10, 8), (1_000, 10, 80), (1_000, 100, 80), (10_000, 100, 800)]
    {
        let store = Shared(Arc::default());
        let report = process(&engine(&store, concurrency, Duration::ZERO), count, |n| format!("k{n}")).await;
        assert_eq!(report.counts()["completed"], count);
        assert!(
            store.0.requests.load(Ordering::SeqCst) <= requests,
            "{count} at {concurrency}: {:?}",
            store.0.requests
        );
        assert!(store.0.largest.load(Ordering::SeqCst) <= 25);
    }
}

/// Handlers that take `20 + 7n mod 61` milliseconds.
fn spread(store: &Shared, concurrency: usize, change: impl Fn(Consumer<Work>) -> Consumer<Work>) -> Engine {
    let handler = |work: Work, _| async move {
        let number: u64 = work.id[1..].parse().unwrap();
        tokio::time::sleep(Duration::from_millis(20 + number * 7 % 61)).await;
        Ok(())
    };
    let consumer = Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id).concurrency(concurrency);
    Engine::with_defaults(change(consumer)).unwrap()
}

/// Nothing waits longer than its handler takes, and the report no longer than for its slowest handler.
#[tokio::test(start_paused = true)]
async fn endings_wait_for_others_while_handlers_run() {
    // messages, concurrency, requests, how long: in whole milliseconds, with two requests of 5
    for (count, concurrency, requests, longest) in
        [(1, 10, 2, 30), (10, 10, 3, 93), (25, 25, 4, 94), (1_000, 10, 150, 5_300), (1_000, 100, 110, 640)]
    {
        let store = Shared(Arc::default());
        let engine = spread(&store, concurrency, |consumer| consumer);
        process(&engine, 10, |n| format!("w{n}")).await;
        let (before, start) = (store.requests(), tokio::time::Instant::now());
        let report = process(&engine, count, |n| format!("k{n}")).await;
        assert_eq!(report.counts()["completed"], count);
        let (made, took) = (store.requests() - before, start.elapsed());
        assert!(made <= requests, "{count} at {concurrency}: {made} requests");
        assert!(took <= Duration::from_millis(longest), "{count} at {concurrency}: {took:?}");
    }
}

/// Where something waits for an ending, it waits for no others: the next message of its group, or someone who would have to look.
#[tokio::test(start_paused = true)]
async fn an_ending_that_something_waits_for_does_not_wait() {
    let store = Shared(Arc::default());
    let engine = spread(&store, 10, |consumer| consumer);
    process(&engine, 10, |n| format!("w{n}")).await;
    // Of two groups, in turns: 20, 76, 20, 76 ms in the one, and 76, 20, 76, 20 ms in the other.
    let keys = [0, 69, 8, 61, 122, 130, 191, 183];
    let numbered = batch(8, |n| format!("k{}", keys[n])).into_iter().enumerate();
    let batch: Vec<_> = numbered.map(|(n, message)| message.with_ordered_group(format!("g{}", n % 2))).collect();
    let start = tokio::time::Instant::now();
    assert_eq!(deliver(&engine, &batch, 600).await.counts()["completed"], 8);
    // Four handlers, each with a claim, an ending, and a moment between; a timer is up to a millisecond late.
    let longest = Duration::from_millis(20 + 76 + 20 + 76 + 4 * (5 + 5 + 5) + 4 * 4);
    assert!(start.elapsed() <= longest, "{:?}", start.elapsed());

    let store = Shared(Arc::default());
    let engine = spread(&store, 10, |consumer| consumer.at_most_once());
    process(&engine, 10, |n| format!("w{n}")).await;
    let before = store.requests();
    process(&engine, 10, |n| format!("k{n}")).await;
    let made = store.requests() - before;
    assert!(made > 5, "one for claims, and each ending as its handler ends: {made}");
}

/// What a batched claim would be refused for is asked for by itself: ten claims, and one request for their endings.
#[tokio::test(start_paused = true)]
async fn redelivered_messages_have_a_claim_each() {
    let store = Shared(Arc::default());
    let engine = engine(&store, 10, Duration::ZERO);
    let batch: Vec<_> = (0..10).map(|n| message(n, &format!("k{n} ok"), 2)).collect();
    let report = deliver(&engine, &batch, 600).await;
    assert_eq!((report.counts()["completed"], store.0.requests.load(Ordering::SeqCst)), (10, 10 + 1));
}

/// Once most of what is delivered was done before, a look comes first, for many in one request; and no longer once it was not. Where it is
/// not known how often it was delivered, it can have been before.
#[tokio::test(start_paused = true)]
async fn what_is_usually_done_is_looked_at_first() {
    for receives in [0, 1, 2] {
        let store = Shared(Arc::default());
        let engine = engine(&store, 25, Duration::ZERO);
        let batch =
            |from: usize| -> Vec<_> { (from..from + 25).map(|n| message(n, &format!("k{n} ok"), receives)).collect() };
        let asked = |store: &Shared| std::mem::take(&mut *store.0.likely.lock().unwrap());
        let not_yet = if receives == 1 { Likely::New } else { Likely::Known };
        for (from, word, likely) in [
            (0, "completed", not_yet),
            (0, "duplicate", not_yet),
            (0, "duplicate", Likely::Done),
            (25, "completed", Likely::Done),
            (50, "completed", not_yet),
        ] {
            let before = store.requests();
            assert_eq!(deliver(&engine, &batch(from), 600).await.counts()[word], 25);
            assert_eq!(asked(&store), [likely; 25], "{receives} receives, from {from}");
            let claims = if likely == Likely::Known { 25 } else { 1 };
            let endings = usize::from(word == "completed");
            assert_eq!(store.requests() - before, claims + endings, "{receives} receives, from {from}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn claims_are_bounded_by_slots_and_not_by_the_batch() {
    for (takes, most) in [(Duration::ZERO, 10 + 100 + 10 + 150), (Duration::from_millis(200), 25 + 10)] {
        let store = Shared(Arc::default());
        let report = process(&engine(&store, 10, takes), 2_000, |n| format!("k{n}")).await;
        assert_eq!(report.counts()["completed"], 2_000);
        let open = store.0.most_open.load(Ordering::SeqCst);
        assert!(open <= most, "{open} claims were open at once with handlers of {takes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_claims_are_scarce_none_waits_for_a_slot_or_for_its_end() {
    for (max, concurrency, most) in [(4, 10, 4), (40, 10, 10), (0, 10, 1)] {
        let store = Shared(Arc::new(Counting { claims_max: Some(max), ..Counting::default() }));
        // Not all at once: some end while others are claimed or settled.
        let handler = |work: Work, _| async move {
            let number: u64 = work.id[1..].parse().unwrap();
            tokio::time::sleep(Duration::from_millis(number % 7)).await;
            Ok(())
        };
        let consumer = Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id).concurrency(concurrency);
        let report = process(&Engine::with_defaults(consumer).unwrap(), 200, |n| format!("k{n}")).await;
        assert_eq!(report.counts()["completed"], 200);
        assert_eq!(store.0.most_open.load(Ordering::SeqCst), most, "{max} claims for {concurrency} slots");
    }
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_copies_of_one_message_are_one_run() {
    let store = Shared(Arc::default());
    let report = process(&engine(&store, 10, Duration::ZERO), 10_000, |_| "k".into()).await;
    assert_eq!((report.counts()["completed"], report.counts()["duplicate"]), (1, 9_999));
    assert_eq!(store.0.requests.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_settled_is_not_run() {
    let store = Shared(Arc::new(Counting { mute: true, ..Counting::default() }));
    let engine = engine(&store, 10, Duration::ZERO);
    let batch = batch(5_000, |n| format!("k{n}"));
    let counts = deliver(&engine, &batch, 10).await.counts();
    assert!(counts["settle_unknown"] < 1_000, "as many as may wait, each time the store's time is over: {counts:?}");
    assert_eq!(counts["settle_unknown"] + counts["not_started"], 5_000);
}

/// What became of the first of two messages with the same work is said of the second, too: a success only where it is done (F17).
#[tokio::test(start_paused = true)]
async fn the_later_message_of_the_same_work_is_done_only_where_the_first_is() {
    use StoreErrorKind::{Corrupt, Denied};
    let rows = [
        ("ok", None, "completed duplicate"),
        ("value", None, "completed duplicate"),
        ("reject", None, "rejected rejected"),
        ("fail", None, "retry retry"),
        ("later", None, "retry retry"),
        ("panic", None, "retry retry"),
        ("doubt", None, "retry retry"),
        ("hang", None, "cancelled cancelled"),
        ("robbed", None, "lease_lost lease_lost"),
        ("ok", Some((Faulty::Claim, Fault::NotApplied(Denied))), "store_failed store_failed"),
        ("ok", Some((Faulty::Settle, Fault::NotApplied(Denied))), "completed duplicate"),
        ("ok", Some((Faulty::Settle, Fault::NotApplied(Corrupt))), "settle_unknown settle_unknown"),
        ("ok", Some((Faulty::Settle, Fault::Applied(Corrupt))), "settle_unknown settle_unknown"),
        ("ok", Some((Faulty::Settle, Fault::Aborts)), "retry retry"),
        ("ok", Some((Faulty::Settle, Fault::Refuses)), "duplicate duplicate"),
    ];
    for (action, fault, wanted) in rows {
        let world = world(|consumer| consumer);
        fault.into_iter().for_each(|(call, fault)| world.store.fail_next(call, fault));
        let text = format!("a {action}");
        let report = world.deliver(&[&text, &text], 0).await;
        assert_eq!(words(&report), wanted, "{action}, {fault:?}");
        let successes = ["completed", "duplicate"].map(|word| report.counts().get(word).copied().unwrap_or_default());
        assert_eq!(report.failures().len(), 2 - successes.iter().sum::<usize>(), "{action}, {fault:?}");
    }
}
