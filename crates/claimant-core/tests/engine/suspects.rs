//! L4, for what did not kill its process: work that an earlier owner left has its run, in a batch that does not fit, too, whatever other
//! messages and consumers wait for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{
    Breaker, Clock, Consumer, Context, Engine, HandlerError, InvocationTime, Limit, MemoryStore, Message, NoQueue,
    Router, Routes, StoreErrorKind, Timestamp,
};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{Call, Fault, FaultyStore, MovableClock};
use tokio::time::{Instant, sleep, timeout};

use super::support::{MARGIN, count, deliver};

/// A store, and what handlers did.
#[derive(Clone)]
struct World {
    store: FaultyStore,
    clock: MovableClock,
    running: Arc<AtomicUsize>,
    /// Each run that ended: its key, and how many others ran when it began.
    runs: Arc<Mutex<Vec<(String, usize)>>>,
}

impl World {
    fn new() -> Self {
        Self {
            store: FaultyStore::new(Arc::new(MemoryStore::new())),
            clock: MovableClock::start(),
            running: Arc::default(),
            runs: Arc::default(),
        }
    }

    async fn run(self, work: Work) -> Result<(), HandlerError> {
        let beside = self.running.fetch_add(1, Ordering::SeqCst);
        match work.action.as_str() {
            "slow" => sleep(Duration::from_secs(2)).await,
            // About as long, so that they do not end all at once.
            "about" => {
                let n: u64 = work.id[1..].parse().unwrap();
                sleep(Duration::from_millis(1_500 + n * 37 % 11 * 100)).await;
            }
            "hang" => std::future::pending().await,
            _ => sleep(Duration::from_millis(10)).await,
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        self.runs.lock().unwrap().push((work.id, beside));
        match work.action.as_str() {
            "away" => Err(HandlerError::retry("it is away").downstream("mail")),
            _ => Ok(()),
        }
    }

    fn consumer(&self, name: &str) -> Consumer<Work> {
        let world = self.clone();
        let handler = move |work: Work, _: Context| world.clone().run(work);
        Consumer::new(name, self.store.clone(), handler).key(|work| &work.id).concurrency(10)
    }

    fn engine(&self, consumer: Consumer<Work>) -> Engine {
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(self.clock.clone()))
    }

    fn router(&self, b: Consumer<Work>) -> Router {
        self.routed(self.consumer("a"), b)
    }

    /// Messages go to the consumer of their key's first letter.
    fn routed(&self, a: Consumer<Work>, b: Consumer<Work>) -> Router {
        let by_key = |message: &Message| message.body().find(r#""id":"a"#).map_or("b", |_| "a").to_owned();
        let routes = Routes::by(move |message| Some(by_key(message))).on("a", a).on("b", b);
        Router::new(routes, 10).unwrap().clock(Arc::new(self.clock.clone()))
    }

    /// A process claims this work of the consumer of its key, and dies in the middle of it. Later its lease is over.
    async fn abandon(&self, text: &str) {
        let dies = self.engine(self.consumer(&text[..1]));
        let batch = [message(0, text, 1)];
        assert!(timeout(Duration::from_millis(5), deliver(&dies, &batch, 30)).await.is_err());
        self.running.store(0, Ordering::SeqCst);
        self.clock.advance(Duration::from_secs(3_600));
    }

    /// Such work of this consumer, eight times, as messages that take a while.
    async fn eight_left(&self, consumer: &str) -> Vec<Message> {
        let mut left = Vec::new();
        for n in 0..8 {
            let text = format!("{consumer}{n} slow");
            self.abandon(&text).await;
            left.push(message(n, &text, 2));
        }
        left
    }

    async fn route(&self, router: &Router, batch: &[Message]) -> Vec<&'static str> {
        let time = InvocationTime::new(router.now(), router.now().plus(Duration::from_secs(30)), MARGIN);
        let report = router.process(batch, time, &NoQueue).await;
        report.all().entries().iter().map(|entry| entry.outcome.word()).collect()
    }

    /// The first of these runs, by their ends.
    fn at(&self, key: &str) -> Option<usize> {
        self.runs.lock().unwrap().iter().position(|(run, _)| run == key)
    }

    /// How many others ran when this work began.
    fn beside(&self, key: &str) -> Option<usize> {
        self.runs.lock().unwrap().iter().find(|(run, _)| run == key).map(|(_, beside)| *beside)
    }
}

fn completed(words: &[&str]) -> usize {
    words.iter().filter(|word| **word == "completed").count()
}

#[tokio::test(start_paused = true)]
async fn in_a_batch_that_does_not_fit_a_suspect_has_the_time_that_is_kept_for_it() {
    for (action, expected_ms, concurrency, fresh) in
        [("slow", Some(2_000), 10, 200), ("slow", None, 10, 200), ("ok", None, 1, 4_000)]
    {
        let world = World::new();
        let text = format!("a0 {action}");
        world.abandon(&text).await;
        let consumer = world.consumer("a").concurrency(concurrency);
        let consumer = match expected_ms {
            Some(ms) => consumer.expected(Duration::from_millis(ms)),
            None => consumer,
        };
        let mut batch = vec![message(0, &text, 2)];
        batch.extend((1..=fresh).map(|n| message(n, &format!("a{n} {action}"), 1)));
        let report = deliver(&world.engine(consumer), &batch, 30).await;
        assert_eq!((world.beside("a0"), report.entries()[0].outcome.word()), (Some(0), "completed"), "{action}");
        assert!(count(&report, "not_started") > 0, "it does not fit: {:?}", report.counts());
        assert!(count(&report, "completed") > fresh / 2, "{:?}", report.counts());
    }
}

/// It has no run any more, so no turn: its claim is settled once.
#[tokio::test(start_paused = true)]
async fn a_suspect_without_an_attempt_left_is_rejected_at_once() {
    let world = World::new();
    world.abandon("a0 slow").await;
    let before = world.store.calls().len();
    let batch = [message(0, "a0 slow", 2), message(1, "a1 ok", 1)];
    let report = deliver(&world.engine(world.consumer("a").attempts_max(1)), &batch, 30).await;
    assert_eq!([0, 1].map(|at| report.entries()[at].outcome.word()), ["rejected", "completed"]);
    let calls = world.store.calls().split_off(before);
    assert_eq!([Call::Claim, Call::Settle].map(|of| calls.iter().filter(|call| **call == of).count()), [2, 2]);
}

/// Where a death leaves no trace, all of the time is kept at the last two receives.
#[tokio::test(start_paused = true)]
async fn what_waits_while_a_suspect_has_all_of_the_time_runs_after_it() {
    let mut world = World::new();
    world.store = world.store.fleeting();
    let engine = world.engine(world.consumer("a").expected(Duration::from_secs(15)));
    for receives in [4, 5] {
        let batch = [message(0, &format!("a{receives} ok"), receives), message(1, &format!("b{receives} ok"), 1)];
        let report = deliver(&engine, &batch, 30).await;
        assert_eq!(count(&report, "completed"), 2, "{receives}: {report:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspect_has_its_turn_while_another_consumer_waits_for_its_breaker() {
    let world = World::new();
    world.abandon("a0 slow").await;
    let breaker = Breaker::new("mail").open_for(Duration::from_secs(300));
    let router = world.router(world.consumer("b").concurrency(1).breaker(breaker));
    let opens: Vec<_> = (1..=5).map(|n| message(n, &format!("b{n} away"), 1)).collect();
    assert_eq!(world.route(&router, &opens).await, ["retry"; 5]);
    let batch = [message(0, "a0 slow", 2), message(9, "b9 ok", 1)];
    assert_eq!(world.route(&router, &batch).await, ["completed", "breaker_open"]);
}

/// One call at once, and another process has it.
#[tokio::test(start_paused = true)]
async fn a_suspect_has_its_turn_while_another_consumer_waits_for_its_limit() {
    let world = World::new();
    world.abandon("a0 slow").await;
    let limited = || world.consumer("b").limit(Limit::new("mail").at_once(1));
    let other = world.engine(limited());
    let hangs = tokio::spawn(async move { deliver(&other, &[message(8, "b8 hang", 1)], 300).await });
    sleep(Duration::from_secs(5)).await;
    let router = world.router(limited());
    let batch = [message(0, "a0 slow", 2), message(1, "b1 ok", 1)];
    assert_eq!(world.route(&router, &batch).await, ["completed", "rate_limited"]);
    hangs.abort();
}

/// It would wait for the other consumer to have nothing left, and that one for the slot in which it waits.
#[tokio::test(start_paused = true)]
async fn a_suspect_keeps_no_slot_of_a_limit_from_another_consumer() {
    let world = World::new();
    world.abandon("a0 slow").await;
    let limited = |name| world.consumer(name).limit(Limit::new("mail").per_second(2).slots(1));
    let router = world.routed(limited("a"), limited("b"));
    let batch = [message(0, "a0 slow", 2), message(1, "b1 ok", 1), message(2, "b2 ok", 1)];
    assert_eq!(world.route(&router, &batch).await, ["completed"; 3]);
    assert_eq!(["b1", "b2", "a0"].map(|key| world.at(key)), [Some(0), Some(1), Some(2)]);
}

/// And not the one that is looked at first each time, or claims earlier.
#[tokio::test(start_paused = true)]
async fn consumers_that_share_a_limit_have_their_calls_in_turn() {
    for once in [[false, false], [true, false], [false, true], [true, true]] {
        let world = World::new();
        let limited = |name, once| {
            let consumer = world.consumer(name).limit(Limit::new("mail").per(30, Duration::from_secs(60)).slots(1));
            if once { consumer.at_most_once() } else { consumer }
        };
        let router = world.routed(limited("a", once[0]), limited("b", once[1]));
        let mut batch: Vec<_> = (0..20).map(|n| message(n, &format!("a{n} ok"), 1)).collect();
        batch.extend((20..23).map(|n| message(n, &format!("b{n} ok"), 1)));
        let words = world.route(&router, &batch).await;
        assert_eq!(words[20..], ["completed"; 3], "{once:?}: {words:?}");
        assert!(words.contains(&"rate_limited"), "{once:?}: {words:?}");
        assert_eq!(["b20", "b21", "b22"].map(|key| world.at(key).unwrap() < 7), [true; 3], "{once:?}");
        assert!(completed(&words) >= 13, "{once:?}: {words:?}");
    }
}

/// Ten of its handlers hang, and another one is claimed, or none where it is known that its handlers are slow.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_waits_for_its_own_handlers_delays_no_other_one_within_a_limit() {
    for known in [false, true] {
        let world = World::new();
        let limited = |name| world.consumer(name).limit(Limit::new("mail").at_once(11).slots(1));
        let router = world.routed(limited("a"), limited("b"));
        if known {
            assert_eq!(world.route(&router, &[message(300, "a300 slow", 1)]).await, ["completed"]);
        }
        let mut batch: Vec<_> = (0..35).map(|n| message(n, &format!("a{n} hang"), 1)).collect();
        batch.extend((35..235).map(|n| message(n, &format!("b{n} ok"), 1)));
        let start = Instant::now();
        let of_b = || world.runs.lock().unwrap().iter().filter(|(key, _)| key.starts_with('b')).count();
        let ends = async {
            while of_b() < 200 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            () = ends => {}
            words = world.route(&router, &batch) => panic!("{} of b: {words:?}", of_b()),
        }
        // One at a time, for 10 ms each.
        assert!(start.elapsed() < Duration::from_millis(2_500), "{known}: {:?}", start.elapsed());
    }
}

/// A clock that counts how often it is looked at: each pass of a batch with a limit does.
struct Counting(MovableClock, AtomicUsize);

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.now()
    }
}

/// The claim of one batch hangs, and has the only slot.
#[tokio::test(start_paused = true)]
async fn a_batch_within_a_limit_sleeps_while_another_one_of_its_consumer_has_the_slots() {
    let world = World::new();
    let other = World { store: FaultyStore::new(Arc::new(MemoryStore::new())), ..world.clone() };
    other.store.fail_next(Call::Claim, Fault::Hangs);
    let limited = |world: &World, name| world.consumer(name).limit(Limit::new("mail").at_once(5).slots(1));
    let router = world.routed(limited(&world, "a"), limited(&other, "b").at_most_once().concurrency(1));
    let clock = Arc::new(Counting(world.clock.clone(), AtomicUsize::new(0)));
    let router = router.clock(clock.clone());
    let batches = ["b1 ok", "b2 ok"].map(|text| [message(0, text, 1)]);
    let start = Instant::now();
    let (first, second) = tokio::join!(world.route(&router, &batches[0]), world.route(&router, &batches[1]));
    assert_eq!([first, second].concat(), ["completed"; 2]);
    assert!(start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    let looked = clock.1.load(Ordering::SeqCst);
    assert!(looked < 500, "{looked} times in {:?}", start.elapsed());
}

/// Its claims hang, or its settlements fail: what it has claimed has no turn soon.
#[tokio::test(start_paused = true)]
async fn a_consumer_whose_store_is_silent_stops_no_other_one_of_its_limit() {
    for (call, fault) in [(Call::Claim, Fault::Hangs), (Call::Settle, Fault::NotApplied(StoreErrorKind::Unreachable))] {
        let world = World::new();
        let other = World { store: FaultyStore::new(Arc::new(MemoryStore::new())), ..world.clone() };
        (0..5_000).for_each(|_| other.store.fail_next(call, fault));
        let limited = |world: &World, name| world.consumer(name).limit(Limit::new("mail").at_once(10).slots(1));
        let router = world.routed(limited(&world, "a"), limited(&other, "b"));
        let mut batch: Vec<_> = (0..40).map(|n| message(n, &format!("b{n} slow"), 1)).collect();
        batch.extend((40..80).map(|n| message(n, &format!("a{n} slow"), 1)));
        let words = world.route(&router, &batch).await;
        assert_eq!(words[40..], ["completed"; 40], "{call:?}");
        assert_eq!(completed(&words), 40, "{call:?}: {words:?}");
    }
}

/// A crash parks what was claimed.
#[tokio::test(start_paused = true)]
async fn consumers_that_share_a_limit_claim_no_more_than_can_start() {
    let world = World::new();
    let limited = |name| world.consumer(name).at_most_once().limit(Limit::new("mail").per(6, Duration::from_secs(60)));
    let router = || world.routed(limited("a"), limited("b"));
    let batch = ["a1", "a2", "b3", "b4"].map(|key| message(key.as_bytes()[1].into(), &format!("{key} ok"), 1));
    assert!(timeout(Duration::from_secs(15), world.route(&router(), &batch)).await.is_err());
    assert_eq!(world.runs.lock().unwrap().len(), 1);
    world.clock.advance(Duration::from_secs(3_600));
    let words = world.route(&router(), &batch).await;
    assert!(words.contains(&"completed") && !words.contains(&"parked"), "{words:?}");
}

/// As if there were one consumer: it runs alone, and what the others have left runs before and after.
#[tokio::test(start_paused = true)]
async fn a_suspect_has_its_turn_alone_while_another_consumer_has_more_than_fits() {
    for receives in [2, 4] {
        let world = World::new();
        world.abandon("a0 slow").await;
        let router = world.router(world.consumer("b"));
        let mut batch = vec![message(0, "a0 slow", receives)];
        batch.extend((1..=300).map(|n| message(n, &format!("b{n} slow"), 1)));
        let words = world.route(&router, &batch).await;
        assert_eq!((world.beside("a0"), words[0]), (Some(0), "completed"), "{receives}");
        let completed = words.iter().filter(|word| **word == "completed").count();
        assert!((100..150).contains(&completed), "{completed}");
        let at = world.at("a0").unwrap();
        assert!((20..completed - 10).contains(&at), "after others, and before others: {at} of {completed}");
        let beside = world.runs.lock().unwrap().iter().filter(|(_, beside)| *beside == 0).count();
        assert!(beside >= 2, "what began after it began with nothing beside it");
    }
}

/// The others know of its time before its own messages have ended: then it would be too late.
#[tokio::test(start_paused = true)]
async fn a_suspect_has_its_turn_where_its_own_consumer_and_another_one_have_more_than_fits() {
    for receives in [2, 4] {
        let world = World::new();
        world.abandon("a0 slow").await;
        let router = world.router(world.consumer("b"));
        let mut batch = vec![message(0, "a0 slow", receives)];
        batch.extend((1..=200).map(|n| message(n, &format!("a{n} about"), 1)));
        batch.extend((201..=500).map(|n| message(n, &format!("b{n} slow"), 1)));
        let words = world.route(&router, &batch).await;
        assert_eq!((world.beside("a0"), words[0]), (Some(0), "completed"), "{receives}");
        let completed = words.iter().filter(|word| **word == "completed").count();
        assert!(completed > 200, "{completed}");
    }
}

#[tokio::test(start_paused = true)]
async fn between_two_suspects_that_wait_for_their_limit_other_consumers_go_on() {
    let world = World::new();
    let left = ["b1 ok", "b2 ok", "b3 ok", "a0 slow"];
    for text in left {
        world.abandon(text).await;
    }
    let limit = Limit::new("mail").per(6, Duration::from_secs(60));
    let router = world.router(world.consumer("b").limit(limit));
    let mut batch: Vec<_> = left.iter().enumerate().map(|(n, text)| message(n, text, 2)).collect();
    batch.extend((10..310).map(|n| message(n, &format!("a{n} slow"), 1)));
    let words = world.route(&router, &batch).await;
    assert_eq!(
        (words[3], world.beside("a0")),
        ("completed", Some(0)),
        "the limit's own are less suspicious: {:?}",
        &words[..4]
    );
    let [first, second] = ["b1", "b2"].map(|key| world.at(key).unwrap());
    assert!(second - first > 20, "{first} {second}");
}

#[tokio::test(start_paused = true)]
async fn a_suspect_has_its_turn_behind_those_of_another_consumer_whose_breaker_opens() {
    let world = World::new();
    let left = ["b1 away", "b2 away", "b3 away", "b4 away", "b5 away", "b6 away", "a0 slow"];
    for text in left {
        world.abandon(text).await;
    }
    let breaker = Breaker::new("mail").open_for(Duration::from_secs(300));
    let router = world.router(world.consumer("b").breaker(breaker));
    let batch: Vec<_> = left.iter().enumerate().map(|(n, text)| message(n, text, 2)).collect();
    let words = world.route(&router, &batch).await;
    assert_eq!(words, ["retry", "retry", "retry", "retry", "retry", "breaker_open", "completed"]);
}

/// Something of the other one hangs: the suspect has no turn, and once it cannot start any more, what is left of the time is not its own.
#[tokio::test(start_paused = true)]
async fn what_was_held_up_goes_on_when_a_suspect_that_waits_can_no_longer_start() {
    let world = World::new();
    world.abandon("a0 ok").await;
    let router = world.routed(world.consumer("a").expected(Duration::from_secs(10)), world.consumer("b"));
    let mut batch = vec![message(0, "a0 ok", 2), message(1, "b1 hang", 1)];
    batch.extend((2..=201).map(|n| message(n, &format!("b{n} slow"), 1)));
    let words = world.route(&router, &batch).await;
    assert_eq!(words[0], "not_started");
    let completed = completed(&words);
    assert!(completed > 80, "{completed}");
}

/// A message of their own consumer hangs: they have no turn, and the others go on once it should have ended.
#[tokio::test(start_paused = true)]
async fn suspects_behind_a_message_of_theirs_that_hangs_hold_up_no_other_consumer() {
    let world = World::new();
    let mut batch = world.eight_left("a").await;
    let router = world.routed(world.consumer("a").expected(Duration::from_secs(2)), world.consumer("b"));
    batch.push(message(8, "a8 hang", 1));
    batch.extend((9..=208).map(|n| message(n, &format!("b{n} slow"), 1)));
    let words = world.route(&router, &batch).await;
    let completed = completed(&words);
    assert!(completed > 100, "{completed}");
}

/// Their breaker opens while others of their consumer hang: they can only wait for it, and hold up no other consumer.
#[tokio::test(start_paused = true)]
async fn suspects_behind_a_breaker_that_opened_hold_up_no_other_consumer() {
    let world = World::new();
    let mut batch = world.eight_left("b").await;
    let b = world.consumer("b").expected(Duration::from_secs(2)).breaker(Breaker::new("mail"));
    let router = world.routed(world.consumer("a"), b);
    batch.extend((8..13).map(|n| message(n, &format!("b{n} away"), 1)));
    batch.push(message(13, "b13 hang", 1));
    batch.extend((14..=213).map(|n| message(n, &format!("a{n} slow"), 1)));
    let words = world.route(&router, &batch).await;
    let completed = completed(&words);
    assert!(completed > 100, "{completed}");
}

#[tokio::test(start_paused = true)]
async fn who_is_held_up_by_suspects_leaves_the_probe_to_another_process() {
    let world = World::new();
    let left: Vec<_> = (0..7).map(|n| format!("a{n} slow")).collect();
    for text in &left {
        world.abandon(text).await;
    }
    let shut = || world.consumer("b").concurrency(1).breaker(Breaker::new("mail"));
    let (router, other) = (world.router(shut()), world.engine(shut()));
    let opens: Vec<_> = (1..=5).map(|n| message(n, &format!("b{n} away"), 1)).collect();
    assert_eq!(world.route(&router, &opens).await, ["retry"; 5]);
    // It knows of it, too.
    let opens: Vec<_> = (1..=5).map(|n| message(n, &format!("b{n} away"), 2)).collect();
    assert_eq!(count(&deliver(&other, &opens, 30).await, "retry"), 5);
    // Half open after 10 s; the suspects take 14 s.
    let probes = tokio::spawn(async move {
        sleep(Duration::from_secs(12)).await;
        let start = Instant::now();
        deliver(&other, &[message(8, "b8 ok", 1)], 30).await;
        start.elapsed()
    });
    let mut batch: Vec<_> = left.iter().enumerate().map(|(n, text)| message(n, text, 2)).collect();
    batch.push(message(9, "b9 ok", 1));
    assert_eq!(world.route(&router, &batch).await, ["completed"; 8]);
    let took = probes.await.unwrap();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

/// Another process has claimed it since it was set aside, and died of it: after a wait for the end of that lease it would run beside others.
#[tokio::test(start_paused = true)]
async fn a_suspect_that_is_busy_at_its_turn_does_not_wait_to_run_beside_others() {
    let world = World::new();
    world.abandon("a0 slow").await;
    let waits = world.consumer("a").wait_while_busy(Duration::from_secs(8));
    let (router, dies) = (world.routed(waits, world.consumer("b")), world.engine(world.consumer("a")));
    let mut batch = vec![message(0, "a0 slow", 2)];
    batch.extend((1..=200).map(|n| message(n, &format!("b{n} slow"), 1)));
    let (words, ()) = tokio::join!(world.route(&router, &batch), async {
        // Its turn is after half of the time, and the lease is over some seconds later.
        sleep(Duration::from_secs(10)).await;
        let copy = [message(0, "a0 slow", 3)];
        assert!(timeout(Duration::from_millis(5), deliver(&dies, &copy, 7)).await.is_err());
        world.running.fetch_sub(1, Ordering::SeqCst);
    });
    assert_eq!((world.beside("a0"), words[0]), (None, "busy"));
    let completed = completed(&words);
    assert!(completed > 100, "{completed}");
}
