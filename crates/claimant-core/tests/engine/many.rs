//! Many messages: few requests, bounded claims, no deep recursion.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Settlement};
use claimant_core::{
    BatchedClaim, Call, Claim, ClaimAnswer, Consumer, Engine, MemoryStore, Message, NoQueue, Report, Schedule, Settled,
    Store, StoreError, StoreErrorKind, StoreFuture,
};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{Call as Faulty, Fault};

use super::{TIMEOUT, words, world};

/// A store in memory that takes many keys in one request, as DynamoDB does, and counts requests and open claims.
#[derive(Default)]
pub(crate) struct Counting {
    inner: MemoryStore,
    requests: AtomicUsize,
    largest: AtomicUsize,
    pub(crate) open: AtomicUsize,
    pub(crate) most_open: AtomicUsize,
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
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            self.0.request(1);
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
    ) -> StoreFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            self.0.request(requests.len());
            latency().await;
            let open = self.0.open.fetch_add(requests.len(), Ordering::SeqCst) + requests.len();
            self.0.most_open.fetch_max(open, Ordering::SeqCst);
            self.0.inner.claim_all(requests, call).await
        })
    }

    fn settle_all<'a>(
        &'a self,
        settlements: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> StoreFuture<'a, Vec<Settled>> {
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
    deliver(engine, &batch(count, key)).await
}

async fn deliver(engine: &Engine, batch: &[Message]) -> Report {
    let schedule = Schedule::new(engine.now(), engine.now().plus(TIMEOUT * 60), Duration::from_millis(500));
    engine.process(batch, schedule, &NoQueue).await
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

/// What a batched claim would be refused for is asked for by itself: ten claims, and one request for their endings.
#[tokio::test(start_paused = true)]
async fn redelivered_messages_have_a_claim_each() {
    let store = Shared(Arc::default());
    let engine = engine(&store, 10, Duration::ZERO);
    let batch: Vec<_> = (0..10).map(|n| message(n, &format!("k{n} ok"), 2)).collect();
    let report = deliver(&engine, &batch).await;
    assert_eq!((report.counts()["completed"], store.0.requests.load(Ordering::SeqCst)), (10, 10 + 1));
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
    let schedule = Schedule::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
    let counts = engine.process(&batch, schedule, &NoQueue).await.counts();
    assert!(counts["settle_unknown"] < 1_000, "as many as may wait, each time the store's time is over: {counts:?}");
    assert_eq!(counts["settle_unknown"] + counts["not_started"], 5_000);
}

/// What became of the first of two messages with the same work is said of the second, too: a success only where it is done (F17).
#[tokio::test(start_paused = true)]
async fn the_later_message_of_the_same_work_is_done_only_where_the_first_is() {
    use StoreErrorKind::{Denied, Other};
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
        ("ok", Some((Faulty::Settle, Fault::NotApplied(Denied))), "settle_unknown settle_unknown"),
        ("ok", Some((Faulty::Settle, Fault::Applied(Other))), "settle_unknown settle_unknown"),
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
