//! What panics in code that is not claimant's own costs its own message alone, or its own call.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    BatchTransactional, BatchedClaim, BoxFuture, Call, Claim, ClaimAnswer, Confirmation, Consumer, ConsumerName,
    Consumers, DeadLetter, Engine, HandlerError, HandlerThreads, HideAnswer, InvocationTime, Items, Lease, MemoryStore,
    Message, MessageSpan, Queue, RecordId, Renewed, Router, SendAgain, SendSpan, Settled, SpanIdentity, Spans, Step,
    StepSpan, Store, StoreError, TransactionGuard, report,
};
use claimant_testkit::MovableClock;
use claimant_testkit::logs::Logs;
use claimant_testkit::outcomes::{Work, message};

use super::support::process;
use super::{TIMEOUT, words};

/// What a panic is raised with: its drop panics, with another one, so many times.
struct Bomb(usize);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Bomb(self.0 - 1));
        }
    }
}

fn bomb<R>() -> R {
    panic_any(Bomb(5))
}

fn batch() -> [Message; 3] {
    [message(0, "a ok", 1), message(1, "bad ok", 1), message(2, "c ok", 1)]
}

async fn handle(work: Work) -> Result<(), HandlerError> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    if work.id == "bad" { bomb() } else { Ok(()) }
}

async fn handle_all(items: Items<Work>) -> Result<(), HandlerError> {
    tokio::time::sleep(Duration::from_millis(10)).await;
    if items.payloads().any(|work| work.id == "bad") { bomb() } else { Ok(()) }
}

fn key(work: &Work) -> &String {
    &work.id
}

fn key_unless_bad(work: &Work) -> &String {
    if work.id == "bad" { bomb() } else { &work.id }
}

fn fine(store: impl Store) -> Consumer<Work> {
    Consumer::new("c", store, |_: Work, _| async { Ok(()) })
}

/// What a runtime puts around a handler's task.
type Wrap = fn(BoxFuture<'static, ()>) -> BoxFuture<'static, ()>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_panic_is_raised_with_may_panic() {
    let store = MemoryStore::new;
    let same = |_: &Work| claimant_core::Fingerprint::of_bytes(b"x");
    let print = |work: &Work| if work.id == "bad" { bomb() } else { claimant_core::Fingerprint::of_bytes(b"x") };
    let cases: [(&str, Consumer<Work>, &str); 5] = [
        ("handler", Consumer::new("c", store(), |work: Work, _| handle(work)).key(key), "completed retry completed"),
        ("call", Consumer::batch("c", store(), handle_all).key(key), "retry retry retry"),
        ("key", fine(store()).key(key_unless_bad), "completed rejected completed"),
        ("fingerprint", fine(store()).key(key).fingerprint_of(1, print), "completed rejected completed"),
        (
            "hook",
            fine(store()).key(|_: &Work| "k").fingerprint_of(1, same).on_duplicate(|_| bomb()),
            "completed duplicate duplicate",
        ),
    ];
    for (what, consumer, wanted) in cases {
        let engine = Engine::with_defaults(consumer).unwrap();
        assert_eq!(words(&process(&engine, &batch()).await), wanted, "{what}");
    }
    // On threads of its own, too, and where what is around the task there panics.
    let cases: [(&str, Wrap, &str); 3] = [
        ("nowhere", |task| task, "completed retry completed"),
        ("before", |_| Box::pin(async { bomb() }), "not_started not_started not_started"),
        (
            "after",
            |task| {
                Box::pin(async {
                    task.await;
                    bomb()
                })
            },
            "retry retry retry",
        ),
    ];
    for (what, wrap, wanted) in cases {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
        let engine = Engine::with_defaults(Consumer::new("c", store(), |work: Work, _| handle(work)).key(key)).unwrap();
        let handle = runtime.handle().clone();
        let engine = engine.handlers_on(HandlerThreads::spawned_by(move |task| handle.spawn(wrap(task))));
        assert_eq!(words(&process(&engine, &batch()).await), wanted, "{what}");
        runtime.shutdown_background();
    }
}

/// A store that panics where this says, over what has the key `bad`.
struct Panics {
    inner: MemoryStore,
    at: &'static str,
}

impl Panics {
    /// Panics there, over one of these.
    fn at<'a>(&self, at: &str, mut ids: impl Iterator<Item = &'a RecordId>) {
        if self.at.split(' ').any(|one| one == at) && ids.any(|id| id.as_str().ends_with("#bad")) {
            bomb()
        }
    }
}

impl Store for Panics {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        self.at("claim", [&request.id].into_iter());
        Box::pin(async move {
            let claimed = self.inner.claim(request, call).await;
            self.at("claimed", [&request.id].into_iter());
            claimed
        })
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        self.at("renew", [&claim.id].into_iter());
        self.inner.renew(claim, renewal, call)
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        self.at("settle", [&claim.id].into_iter());
        Box::pin(async move {
            let id = claim.id.clone();
            let settled = self.inner.settle(claim, settlement, call).await;
            self.at("settled", [&id].into_iter());
            settled
        })
    }

    claimant_testkit::pass_on!(self => self.inner; get);
}

/// One that takes many at once.
struct PanicsOverMany(Panics);

impl Store for PanicsOverMany {
    claimant_testkit::pass_on!(self => self.0; claim, renew, settle, get);

    fn claim_all<'a>(
        &'a self,
        requests: &'a [ClaimRequest],
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Result<BatchedClaim, StoreError>>> {
        Box::pin(async move {
            let claimed = self.0.inner.claim_all(requests, call).await;
            self.0.at("claim_all", requests.iter().map(|request| &request.id));
            claimed
        })
    }

    fn settle_all<'a>(&'a self, settlements: Vec<(Claim, Settlement)>, call: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        self.0.at("settle_all", settlements.iter().map(|(claim, _)| &claim.id));
        self.0.inner.settle_all(settlements, call)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_over_a_key_fails_its_message_alone() {
    let many = |at| -> Arc<dyn Store> { Arc::new(PanicsOverMany(Panics { inner: MemoryStore::new(), at })) };
    let single = |at| -> Arc<dyn Store> { Arc::new(Panics { inner: MemoryStore::new(), at }) };
    let cases: [(Arc<dyn Store>, &str, &[&str]); 8] = [
        (single("claim"), "completed store_failed completed", &["a", "c"]),
        (single("claimed"), "completed store_failed completed", &["a", "c"]),
        (single("settle"), "completed settle_unknown completed", &["a", "bad", "c"]),
        (single("settled"), "completed settle_unknown completed", &["a", "bad", "c"]),
        (single("renew"), "completed lease_lost completed", &["a", "c"]),
        // Each is claimed by itself then, by the same owner.
        (many("claim_all"), "completed completed completed", &["a", "bad", "c"]),
        (many("claim_all claim"), "completed store_failed completed", &["a", "c"]),
        // The claims are gone with the call.
        (many("settle_all"), "settle_unknown settle_unknown settle_unknown", &["a", "bad", "c"]),
    ];
    for (n, (store, wanted, effects)) in cases.into_iter().enumerate() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let made = Arc::clone(&done);
        let handler = move |work: Work, _| {
            let made = Arc::clone(&made);
            async move {
                tokio::time::sleep(Duration::from_secs(4)).await;
                made.lock().unwrap().push(work.id);
                Ok(())
            }
        };
        let consumer = Consumer::new("c", store, handler).key(key);
        let engine = Engine::with_defaults(consumer.lease(Lease::Renewed(Duration::from_secs(3)))).unwrap();
        let engine = engine.clock(Arc::new(MovableClock::start()));
        let began = tokio::time::Instant::now();
        assert_eq!(words(&process(&engine, &batch()).await), wanted, "{n}");
        assert!(began.elapsed() < TIMEOUT / 2, "{n}: what panicked is not tried again");
        let mut done = std::mem::take(&mut *done.lock().unwrap());
        done.sort();
        assert_eq!(done, effects, "{n}");
    }
}

#[tokio::test]
async fn a_store_that_panicked_over_several_settlements_is_asked_for_each_by_itself() {
    let logs = Logs::record();
    let store = PanicsOverMany(Panics { inner: MemoryStore::new(), at: "settle_all" });
    let clock = MovableClock::start();
    let engine = Engine::with_defaults(fine(store).key(key)).unwrap().clock(Arc::new(clock.clone()));
    for wanted in ["settle_unknown settle_unknown settle_unknown", "completed settle_unknown completed"] {
        assert_eq!(words(&process(&engine, &batch()).await), wanted);
        clock.advance(Duration::from_secs(3_600));
    }
    assert_eq!(logs.text().matches("settles each by itself").count(), 1, "{}", logs.text());
}

/// A queue that panics where this says.
struct PanickyQueue(&'static str);

impl PanickyQueue {
    fn at(&self, at: &str) {
        if self.0 == at {
            bomb()
        }
    }

    fn confirms(&self, at: &'static str, count: usize) -> BoxFuture<'_, Vec<Confirmation>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.at(at);
            vec![Confirmation::Confirmed; count]
        })
    }
}

impl Queue for PanickyQueue {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        self.at("hide");
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn has_dead_letters(&self) -> bool {
        self.at("has_dead_letters");
        true
    }

    fn dead_letters<'a>(&'a self, letters: &'a [DeadLetter], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        self.confirms("dead_letters", letters.len())
    }

    fn has_schedules(&self) -> bool {
        self.at("has_schedules");
        true
    }

    fn send_again<'a>(&'a self, messages: &'a [SendAgain], _: Duration) -> BoxFuture<'a, Vec<Confirmation>> {
        self.at("send_again");
        self.confirms("", messages.len())
    }
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_panics_confirms_nothing_and_ends_nothing_else() {
    let cases: [(&str, &str, &[&str]); 6] = [
        ("nowhere", "completed rejected scheduled", &[]),
        ("hide", "completed rejected scheduled", &[]),
        ("has_dead_letters", "completed rejected scheduled", &["m1"]),
        ("dead_letters", "completed rejected scheduled", &["m1"]),
        ("has_schedules", "completed rejected retry", &["m2"]),
        ("send_again", "completed rejected retry", &["m2"]),
    ];
    for (at, wanted, failed) in cases {
        let handler = |work: Work, _| async move {
            tokio::time::sleep(Duration::from_secs(4)).await;
            match work.id.as_str() {
                "bad" => Err(HandlerError::terminal("no use")),
                "c" => Err(HandlerError::retry("tomorrow").after(Duration::from_secs(86_400))),
                _ => Ok(()),
            }
        };
        let consumer = Consumer::new("c", MemoryStore::new(), handler).key(key);
        let engine = Engine::with_defaults(consumer.lease(Lease::Renewed(Duration::from_secs(3)))).unwrap();
        let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
        let report = engine.process(&batch(), time, &PanickyQueue(at)).await;
        let failures: Vec<_> = report.failures().iter().map(ToString::to_string).collect();
        assert_eq!(
            (words(&report).as_str(), failures),
            (wanted, failed.iter().map(ToString::to_string).collect()),
            "{at}"
        );
    }
}

/// A tracing system, and each of its spans, that panics where this says.
#[derive(Clone)]
struct Panicky(&'static str);

impl Panicky {
    fn at(&self, at: &str) {
        if self.0 == at {
            bomb()
        }
    }
}

/// A span of it; it panics when it is dropped, too.
struct Opened(Panicky, &'static str);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.at(self.1);
    }
}

impl Spans for Panicky {
    fn message(&self, _: &Message) -> Box<dyn MessageSpan> {
        self.at("message");
        Box::new(Opened(self.clone(), "message drop"))
    }

    fn call(&self, _: &ConsumerName, _: &[SpanIdentity]) -> Arc<dyn StepSpan> {
        self.at("call");
        Arc::new(Opened(self.clone(), "call drop"))
    }

    fn send(&self, _: &str, _: Option<&str>) -> Box<dyn SendSpan> {
        unreachable!("nothing is sent")
    }
}

impl MessageSpan for Opened {
    fn arrived(&self, _: &ConsumerName, _: &Message) {
        self.0.at("arrived");
    }

    fn step(&self, _: &ConsumerName, _: Step) -> Arc<dyn StepSpan> {
        self.0.at("step");
        Arc::new(Opened(self.0.clone(), "step drop"))
    }

    fn stop(&self) {
        self.0.at("stop");
    }

    fn end(&self, _: &report::Entry) {
        self.0.at("end");
    }
}

impl StepSpan for Opened {
    fn identity(&self) -> SpanIdentity {
        self.0.at("identity");
        SpanIdentity { trace_id: [1; 16], span_id: [1; 8], sampled: true }
    }

    fn within(&self, work: &mut dyn FnMut()) {
        self.0.at("within");
        work();
        self.0.at("within after");
    }

    fn end(&self, _: &'static str, _: bool) {
        self.0.at("step end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tracing_system_that_panics_loses_its_spans_and_nothing_else() {
    let logs = Logs::record();
    let places = [
        "nowhere",
        "message",
        "message drop",
        "call",
        "call drop",
        "arrived",
        "step",
        "step drop",
        "stop",
        "end",
        "identity",
        "within",
        "within after",
        "step end",
    ];
    for at in places {
        let runs = Arc::new(AtomicUsize::new(0));
        let (one, all) = (Arc::clone(&runs), Arc::clone(&runs));
        let run = move |work: Work, _| {
            one.fetch_add(1, Ordering::SeqCst);
            handle(work)
        };
        let run_all = move |items: Items<Work>| {
            all.fetch_add(items.payloads().count(), Ordering::SeqCst);
            handle_all(items)
        };
        let single = Consumer::new("c", MemoryStore::new(), run).key(key);
        let calls = Consumer::batch("c", MemoryStore::new(), run_all).key(key);
        for (consumer, wanted) in [(single, "completed retry completed"), (calls, "retry retry retry")] {
            let router = Router::new(Consumers::from(consumer).spans(Panicky(at)), 10).unwrap();
            let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
            let report = router.process(&batch(), time, &claimant_core::NoQueue).await;
            assert_eq!(words(report.all()), wanted, "{at}");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 6, "{at}");
    }
    assert_eq!(logs.text().matches("the tracing system panicked").count(), 1, "{}", logs.text());
}

/// A store whose transactions panic where this says.
struct PanickyTransactions {
    inner: MemoryStore,
    at: &'static str,
}

impl PanickyTransactions {
    fn at(&self, at: &str) {
        if self.at == at {
            bomb()
        }
    }
}

impl Store for PanickyTransactions {
    claimant_testkit::pass_on!(self => self.inner; claim, renew, settle, get);
}

impl BatchTransactional for PanickyTransactions {
    /// Dropping one panics, if it has a bomb.
    type Transaction = Bomb;

    fn begin<'a>(&'a self, _: Duration, _: Call<'a>) -> BoxFuture<'a, Result<Bomb, StoreError>> {
        self.at("begin");
        let transaction = Bomb(usize::from(self.at == "drop") * 5);
        Box::pin(std::future::ready(Ok(transaction)))
    }

    fn commit<'a>(
        &'a self,
        _: Bomb,
        completions: Vec<(Claim, Settlement)>,
        call: Call<'a>,
    ) -> BoxFuture<'a, Vec<Settled>> {
        self.at("commit");
        match self.at {
            "resolve" => Box::pin(async {
                let unknown = |(claim, _)| Settled::unknown(claim, StoreError::no_answer(Duration::ZERO));
                completions.into_iter().map(unknown).collect()
            }),
            _ => self.settle_all(completions, call),
        }
    }

    fn resolve<'a>(&'a self, _: Vec<(Claim, Settlement)>, _: Call<'a>) -> BoxFuture<'a, Vec<Settled>> {
        bomb()
    }

    fn roll_back<'a>(&'a self, transaction: Bomb, _: Call<'a>) -> BoxFuture<'a, ()> {
        self.at("roll_back");
        drop(transaction);
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test(start_paused = true)]
async fn transactions_that_panic_cost_their_call_alone() {
    // What the calls of good items come to, and that of one with a bad item.
    let rows = [
        ("nowhere", "completed completed", "retry"),
        ("begin", "store_failed store_failed", "store_failed"),
        ("commit", "settle_unknown settle_unknown", "retry"),
        ("resolve", "settle_unknown settle_unknown", "retry"),
        ("roll_back", "completed completed", "retry"),
        ("drop", "settle_unknown settle_unknown", "retry"),
    ];
    for (at, good, bad) in rows {
        let handler = |items: Items<Work>, _tx: TransactionGuard<Bomb>| handle_all(items);
        let store = PanickyTransactions { inner: MemoryStore::new(), at };
        let consumer = Consumer::batch_transactional("c", store, handler).key(key);
        let engine = Engine::with_defaults(consumer).unwrap();
        let [a, b, c] = batch();
        assert_eq!(words(&process(&engine, &[a, c]).await), good, "{at}");
        assert_eq!(words(&process(&engine, &[b]).await), bad, "{at}");
    }
}
