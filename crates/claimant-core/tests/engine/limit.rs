//! Limits across processes: so many calls a second, or at once, whatever becomes of the processes; and none of them starves.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::protocol::{ClaimPolicy, ClaimRequest, Ending, Likely, Settlement};
use claimant_core::{
    Breaker, Call, ClaimAnswer, Consumer, ConsumerName, Context, Engine, Fingerprint, HandlerError, InvocationTime,
    Items, Key, Limit, MemoryStore, Message, MessageId, Meter, NoQueue, OwnerToken, Record, RecordId, Records,
    Replaced, Router, Routes, Settled, Status, Store, StoreErrorKind,
};
use claimant_testkit::logs::Logs;
use claimant_testkit::{FaultyStore, MovableClock};
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::support::{Denies, MARGIN, batch, count, deliver};
use super::words;

/// What handlers call, the store that they share, and when they were run, by their process.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) store: FaultyStore,
    /// What is in it.
    records: Arc<MemoryStore>,
    pub(crate) clock: MovableClock,
    start: Instant,
    takes: Duration,
    away: Arc<AtomicBool>,
    running: Arc<AtomicUsize>,
    pub(crate) at_once: Arc<AtomicUsize>,
    runs: Arc<Mutex<Vec<(usize, Duration)>>>,
}

impl World {
    pub(crate) fn new(takes: u64) -> Self {
        let records = Arc::new(MemoryStore::new());
        Self {
            store: FaultyStore::new(records.clone()),
            records,
            clock: MovableClock::start(),
            start: Instant::now(),
            takes: Duration::from_millis(takes),
            away: Arc::default(),
            running: Arc::default(),
            at_once: Arc::default(),
            runs: Arc::default(),
        }
    }

    pub(crate) async fn run(self, number: usize) -> Result<(), HandlerError> {
        self.runs.lock().unwrap().push((number, self.start.elapsed()));
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.at_once.fetch_max(running, Ordering::SeqCst);
        sleep(self.takes).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        match self.away.load(Ordering::SeqCst) {
            true => Err(HandlerError::retry("it is away").downstream("ses")),
            false => Ok(()),
        }
    }

    pub(crate) fn process(&self, number: usize, limit: Limit) -> Engine {
        self.process_with(number, |consumer| consumer.limit(limit).concurrency(50))
    }

    fn process_with(&self, number: usize, set: impl FnOnce(Consumer<String>) -> Consumer<String>) -> Engine {
        let world = self.clone();
        let handler = move |_: String, _: Context| world.clone().run(number);
        let consumer = set(Consumer::new("confirmation", self.store.clone(), handler));
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(self.clock.clone()))
    }

    pub(crate) fn runs(&self) -> Vec<(usize, Duration)> {
        self.runs.lock().unwrap().clone()
    }

    /// How many runs began between these seconds.
    pub(crate) fn between(&self, from: u64, to: u64) -> usize {
        self.runs().iter().filter(|(_, at)| (from..to).contains(&at.as_secs())).count()
    }

    /// Checks the bound that the book has: in any time W, rate × (W + 20 ms) + slots.
    pub(crate) fn check(&self, rate: f64, slots: usize) {
        let runs = self.runs();
        for (first, (_, from)) in runs.iter().enumerate() {
            for (more, (_, to)) in runs[first..].iter().enumerate() {
                let most = rate * ((*to - *from).as_secs_f64() + 0.02) + slots as f64;
                assert!((more + 1) as f64 <= most + 1e-6, "{} from {from:?} to {to:?}", more + 1);
            }
        }
    }

    /// One batch after the other, of as many new messages, for so long.
    pub(crate) async fn work(&self, process: Engine, prefix: String, (size, timeout, seconds): (usize, u64, u64)) {
        let end = Instant::now() + Duration::from_secs(seconds);
        for n in 0_u64.. {
            if Instant::now() >= end {
                return;
            }
            deliver(&process, &batch(&format!("{prefix}-{n}-"), size), timeout).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn so_many_are_started_each_second_by_all_processes_together_and_nearly_as_many() {
    let world = World::new(30);
    let processes = (0..4).map(|n| world.process(n, Limit::new("ses").per_second(20)));
    join_all(processes.enumerate().map(|(n, process)| world.work(process, format!("p{n}"), (25, 30, 120)))).await;
    world.check(20.0, 10);
    let runs = world.between(5, 120);
    println!("{runs} of {} in 115 s", 20 * 115);
    assert!((20 * 115 * 95 / 100..=20 * 115 + 20).contains(&runs), "{runs}");
    for process in 0..4 {
        let of = world.runs().iter().filter(|(number, _)| *number == process).count();
        assert!(of > 20 * 115 / 4 / 4, "{process}: {of}");
    }
}

/// While a function is deployed anew, or where two set the limit otherwise: the plan of one of them holds, and no rate of both.
#[tokio::test(start_paused = true)]
async fn the_rate_holds_while_two_versions_set_it_otherwise_and_while_one_is_changed() {
    let versions = [
        [Limit::new("ses").per_second(20).slots(4), Limit::new("ses").per_second(20)],
        [Limit::new("ses").per_second(20), Limit::new("ses").per_second(10).at_once(2)],
    ];
    for [first, second] in versions {
        let world = World::new(10);
        let (old, new) = (first.clone(), second.clone());
        let processes = (0..4).map(|n| world.process(n, if n % 2 == 0 { old.clone() } else { new.clone() }));
        let work = join_all(processes.enumerate().map(|(n, process)| {
            // The first version ends before the second one does.
            let seconds = if n % 2 == 0 { 100 } else { 200 };
            world.work(process, format!("p{n}"), (25, 30, seconds))
        }));
        let changed = async {
            sleep(Duration::from_secs(40)).await;
            set(&world, r#"{"per_ms":1000,"at_once":2}"#).await;
        };
        let logs = Logs::record();
        tokio::join!(work, changed);
        // Once by each process of the version whose plan does not hold at first, and of the first one when that has ended.
        assert!((2..=4).contains(&logs.with("sets the limit otherwise").len()));
        world.check(20.0, 10);
        let runs = world.between(0, 200);
        println!("{runs} in 200 s");
        assert!(runs > 10 * 200 * 90 / 100, "{runs}");
    }
}

/// What an operator does not name stays as the version set it whose plan holds.
#[tokio::test(start_paused = true)]
async fn an_operator_that_lowers_one_thing_raises_no_other_while_two_versions_run() {
    let world = World::new(10);
    // The version that comes first is the last to look.
    let rates = [100, 100, 100, 10];
    let work = join_all(rates.into_iter().enumerate().map(|(n, rate)| {
        let (world, process) = (world.clone(), world.process(n, Limit::new("ses").per_second(rate)));
        async move {
            sleep(Duration::from_secs(3 - n as u64)).await;
            world.work(process, format!("p{n}"), (25, 30, 120)).await;
        }
    }));
    let changed = async {
        sleep(Duration::from_secs(40)).await;
        set(&world, r#"{"per_ms":1000,"at_once":5}"#).await;
    };
    tokio::join!(work, changed);
    world.check(10.0, 10);
    assert!(world.between(80, 110) > 10 * 30 * 80 / 100, "{}", world.between(80, 110));
}

#[tokio::test]
async fn what_cannot_hold_is_refused_when_it_starts() {
    let world = World::new(10);
    let fault = |limit: Limit| {
        let consumer =
            Consumer::new("c", MemoryStore::new(), |_: String, _: Context| async { Ok::<_, HandlerError>(()) });
        Engine::with_defaults(consumer.limit(limit)).unwrap_err().to_string()
    };
    for (limit, wanted) in [
        (Limit::new("ses"), "the limit allows everything"),
        (Limit::new("s e s").per_second(1), "the limit's name \"s e s\""),
        (Limit::new("ses").per_second(0), "the limit allows 0 calls"),
        (Limit::new("ses").per(1, Duration::from_secs(61)), "the rate is for 61000 ms"),
        (Limit::new("ses").at_once(1).slots(101), "the limit has 101 slots; 1 to 100"),
    ] {
        assert!(fault(limit.clone()).contains(wanted), "{limit:?}");
    }
    let consumer =
        Consumer::new("claimant-rate", world.store, |_: String, _: Context| async { Ok::<_, HandlerError>(()) });
    assert!(Engine::with_defaults(consumer).unwrap_err().to_string().contains("choose another one"));
}

#[tokio::test(start_paused = true)]
async fn it_costs_by_slot_and_time_and_nothing_where_none_is_set() {
    let mut requests = Vec::new();
    for limit in [None, Some(Limit::new("ses").per_second(20))] {
        let world = World::new(30);
        let process = world.process_with(1, |consumer| match limit {
            Some(limit) => consumer.limit(limit),
            None => consumer,
        });
        let mut all = 0;
        for n in 0..20 {
            let report = deliver(&process, &batch(&format!("b{n}-"), 100), 30).await;
            assert_eq!(count(&report, "completed"), 100);
            all += report.totals.usage.requests;
        }
        requests.push((all, world.start.elapsed()));
    }
    let [(without, _), (with, took)] = requests[..] else { panic!() };
    // 2,000 messages in 100 s, in ten slots: each claimed, and renewed each 7.5 s; the plan is read, with what an operator has set, and
    // renewed each 15 s; and it is looked each 5 s whether another process has no slot.
    assert!((95..110).contains(&took.as_secs()), "{took:?}");
    println!("{} requests more in {took:?}", with - without);
    let most = 10 + 10 * 100 * 10 / 75 + 3 * 100 / 15 + 100 / 5 + 5;
    assert!(with > without && with - without < most, "{without}, {with}");
}

#[tokio::test(start_paused = true)]
async fn so_many_run_at_once_in_all_processes_together() {
    let world = World::new(700);
    let processes = (0..3).map(|n| world.process(n, Limit::new("ses").at_once(7).slots(4)));
    join_all(processes.enumerate().map(|(n, process)| world.work(process, format!("p{n}"), (20, 20, 60)))).await;
    assert_eq!(world.at_once.load(Ordering::SeqCst), 7);
    // Nearly all the time.
    let runs = world.between(5, 60);
    assert!(runs > 55 * 10 * 9 / 10, "{runs}");
}

#[tokio::test(start_paused = true)]
async fn the_slots_of_a_process_that_dies_come_back_with_their_leases() {
    let world = World::new(10);
    let limit = || Limit::new("ses").per_second(10).slots(2);
    let (first, second) = (world.process(1, limit()), world.process(2, limit()));
    let batch = batch("m", 200);
    assert!(timeout(Duration::from_secs(5), deliver(&first, &batch, 60)).await.is_err());
    assert!(world.between(1, 5) >= 38, "it has both slots");
    let others = self::batch("n", 60);
    let report = deliver(&second, &others, 60).await;
    assert_eq!(count(&report, "completed"), 60);
    let first_of = world.runs().iter().find(|(number, _)| *number == 2).unwrap().1;
    // The lease, and the skew.
    assert!((16..20).contains(&first_of.as_secs()), "{first_of:?}");
    world.check(10.0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_begins_nothing_in_slots_that_it_does_not_have_any_more() {
    let world = World::new(10);
    let limit = || Limit::new("ses").per_second(1).slots(1);
    let (first, second) = (world.process(1, limit()), world.process(2, limit()));
    let (mine, others) = (batch("m", 9), batch("n", 9));
    let delivery = deliver(&first, &mine, 120);
    tokio::pin!(delivery);
    assert!(timeout(Duration::from_millis(3_500), &mut delivery).await.is_err());
    let before = world.runs().len();
    // Not polled, as in a frozen environment, while another process works.
    world.clock.advance(Duration::from_secs(20));
    assert!(timeout(Duration::from_millis(6_500), deliver(&second, &others, 120)).await.is_err());
    let between = world.runs().len() - before;
    assert!((4..=6).contains(&between), "{between}");
    // What it was about to run waits: the other one has the slot.
    assert!(timeout(Duration::from_secs(3), &mut delivery).await.is_err());
    assert_eq!(world.runs().iter().filter(|(number, _)| *number == 1).count(), before);
    world.check(1.0, 1);
}

/// A crash parks what was claimed: nothing that waits for its call, also after a pause in which the slot was kept.
#[tokio::test(start_paused = true)]
async fn at_most_once_a_crash_after_a_pause_parks_nothing_that_never_started() {
    let world = World::new(10);
    let process = || {
        world.process_with(1, |consumer| {
            let consumer = consumer.key_of(String::clone).at_most_once().concurrency(10);
            consumer.limit(Limit::new("ses").per_second(2))
        })
    };
    let keys = |prefix: &str, count: usize| -> Vec<_> {
        let message = |n| Message::new(format!("{prefix}{n}"), format!("\"{prefix}{n}\"")).unwrap();
        (0..count).map(message).collect()
    };
    let dies = process();
    assert_eq!(count(&deliver(&dies, &keys("m", 3), 60).await, "completed"), 3);
    sleep(Duration::from_secs(7)).await;
    let batch = keys("n", 10);
    assert!(timeout(Duration::from_millis(500), deliver(&dies, &batch, 60)).await.is_err());
    let started = world.runs().len() - 3;
    assert!((1..=2).contains(&started), "it has kept its slots: {started}");
    world.clock.advance(Duration::from_secs(3_600));
    let report = deliver(&process(), &batch, 60).await;
    assert_eq!((count(&report, "parked"), count(&report, "completed")), (0, 10 - started), "{:?}", report.counts());
}

#[tokio::test(start_paused = true)]
async fn what_has_no_turn_is_not_claimed_and_comes_back_later() {
    let world = World::new(10);
    let process = world.process(1, Limit::new("ses").per_second(1));
    let mut batch = batch("m", 12);
    batch.push(Message::new("often", r#""x""#).unwrap().with_receive_count(4));
    let report = deliver(&process, &batch, 10).await;
    assert_eq!((count(&report, "completed"), count(&report, "rate_limited")), (8, 5));
    for entry in report.entries() {
        match entry.outcome.word() {
            "rate_limited" => {
                let after = entry.visible_after.unwrap().as_secs();
                assert!((4..=10).contains(&after) && entry.details.attempt.is_none(), "{entry:?}");
            }
            _ => assert!(entry.visible_after.is_none()),
        }
    }
    assert_eq!(report.entries()[12].outcome.word(), "completed", "what was received most comes first");
}

#[tokio::test(start_paused = true)]
async fn what_an_invocation_is_too_short_for_has_its_turn_in_the_next_one() {
    let world = World::new(10);
    let process = world.process(1, Limit::new("ses").per(20, Duration::from_secs(60)));
    let often = |id: &str, receives| Message::new(id, r#""x""#).unwrap().with_receive_count(receives);
    let (first, second) = (often("m-1", 4), often("m-2", 3));
    // One call each three seconds, and two in which to begin.
    let report = deliver(&process, &[first.clone(), second.clone()], 3).await;
    assert_eq!(count(&report, "rate_limited"), 2);
    let after: Vec<_> = report.entries().iter().map(|entry| entry.visible_after.unwrap().as_millis()).collect();
    assert!((500..=2_000).contains(&after[0]) && after[1] == after[0] + 3_000, "{after:?}");
    for (message, wait) in [(first, after[0]), (second, after[1] - after[0])] {
        sleep(Duration::from_millis(u64::try_from(wait).unwrap())).await;
        assert_eq!(count(&deliver(&process, &[message], 3).await, "completed"), 1);
    }
    world.check(1.0 / 3.0, 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_start_and_has_no_room_in_its_process_waits_for_that() {
    // Handlers take longer than the limit has them wait, and one runs at a time.
    let world = World::new(300);
    let process = world.process_with(1, |consumer| consumer.limit(Limit::new("ses").per_second(20)).concurrency(1));
    let report = timeout(Duration::from_secs(20), deliver(&process, &batch("m", 30), 30)).await.unwrap();
    assert_eq!(count(&report, "completed"), 30);
}

#[tokio::test(start_paused = true)]
async fn the_next_batch_goes_on_where_the_last_one_ended() {
    let world = World::new(10);
    let process = world.process(1, Limit::new("ses").per_second(50));
    for n in 0..20 {
        assert_eq!(count(&deliver(&process, &batch(&format!("b{n}-"), 50), 30).await, "completed"), 50);
    }
    // A second of the first batch is for the slots.
    let took = world.start.elapsed();
    assert!((19_500..22_000).contains(&took.as_millis()), "{took:?}");
    world.check(50.0, 10);
}

#[tokio::test(start_paused = true)]
async fn with_more_processes_than_slots_each_of_them_has_its_turn() {
    let world = World::new(10);
    let processes = (0..6).map(|n| world.process(n, Limit::new("ses").per_second(10).slots(2)));
    join_all(processes.enumerate().map(|(n, process)| world.work(process, format!("p{n}"), (10, 15, 900)))).await;
    world.check(10.0, 2);
    for process in 0..6 {
        let of = world.runs().iter().filter(|(number, _)| *number == process).count();
        assert!(of > 200, "{process}: {of}");
    }
    let runs = world.between(10, 900);
    println!("{runs} of 8900 by six processes in two slots");
    assert!(runs > 890 * 10 * 90 / 100, "{runs}");
}

/// It is let go with each invocation and claimed again by the next one, some milliseconds later.
#[tokio::test(start_paused = true)]
async fn the_only_slot_of_all_is_for_each_process_in_turn() {
    let world = World::new(10_000);
    let processes = (0..2).map(|n| world.process(n, Limit::new("db").at_once(1)));
    join_all(processes.enumerate().map(|(n, process)| world.work(process, format!("p{n}"), (1, 60, 900)))).await;
    let by: Vec<_> = (0..2).map(|n| world.runs().iter().filter(|(number, _)| *number == n).count()).collect();
    println!("{by:?} of 90");
    assert!(
        by.iter().all(|runs| *runs > 20) && by.iter().sum::<usize>() > 75 && world.at_once.load(Ordering::SeqCst) == 1
    );
}

#[tokio::test(start_paused = true)]
async fn a_process_that_begins_beside_one_that_has_all_slots_soon_has_one_and_the_rate_goes_on() {
    let world = World::new(20);
    let limit = || Limit::new("ses").per_second(50);
    let (first, second) = (world.process(0, limit()), world.process(1, limit()));
    let later = async {
        sleep(Duration::from_secs(60)).await;
        world.work(second, "b".into(), (50, 60, 30)).await;
    };
    tokio::join!(world.work(first, "a".into(), (50, 60, 90)), later);
    world.check(50.0, 10);
    let began = world.runs().iter().find(|(number, _)| *number == 1).unwrap().1;
    let (runs, after) = (world.between(60, 75), world.between(75, 90));
    println!("first after {began:?}; {runs} and {after} in 15 s each");
    // What was let go is idle until the mark is over.
    assert!(began < Duration::from_secs(60 + 8) && runs > 50 * 15 * 55 / 100 && after > 50 * 15 * 95 / 100);
}

/// It uses half of the rate, so nothing of it waits when its last invocation ends, and it looks each 5 s only while something does.
#[tokio::test(start_paused = true)]
async fn what_a_process_holds_that_is_not_invoked_any_more_is_for_one_that_has_asked_for_it() {
    for tenths in [95, 105, 114, 125, 140, 162] {
        let world = World::new(20);
        let limit = || Limit::new("ses").per_second(10);
        let (first, second) = (world.process(0, limit()), world.process(1, limit()));
        let ends = Duration::from_millis(tenths * 100);
        let ending = async {
            for n in 0.. {
                sleep_until(world.start + Duration::from_secs(n)).await;
                if world.start.elapsed() >= ends {
                    return;
                }
                deliver(&first, &batch(&format!("a{n}-"), 5), 15).await;
            }
        };
        let beginning = async {
            sleep_until(world.start + Duration::from_secs(8)).await;
            let report = deliver(&second, &batch("b", 5), 15).await;
            (count(&report, "completed"), world.start.elapsed())
        };
        let ((), (completed, at)) = tokio::join!(ending, beginning);
        assert!(
            completed == 5 && at < ends.max(Duration::from_secs(8)) + Duration::from_secs(6),
            "{tenths}: {completed} at {at:?}"
        );
        world.check(10.0, 10);
    }
}

/// Sets a limit as `claimant limit` does: by the result of a completed key.
async fn set(world: &World, limit: &str) {
    let id = RecordId::new(&ConsumerName::new("claimant-rate").unwrap(), &Key::new("ses").unwrap());
    let meter = Meter::default();
    let call = || Call { within: Duration::from_secs(1), meter: &meter };
    let now = claimant_core::Clock::now(&world.clock);
    let (owner, policy) = (OwnerToken::draw().unwrap(), ClaimPolicy::default());
    let request = ClaimRequest {
        id,
        owner,
        message_id: MessageId::new("ada").unwrap(),
        fingerprint: Fingerprint::of_bytes(&[]),
        now,
        lease_until: now.plus(Duration::from_secs(10)),
        policy,
        likely: Likely::New,
    };
    if let Some(seen) = world.records.get(&request.id, call()).await.unwrap() {
        let next = Record { result: Some(limit.to_owned()), fence: seen.fence.next(), ..seen.clone() };
        let replaced = world.records.replace(&request.id, &seen, &next, call()).await.unwrap();
        return assert_eq!(replaced, Replaced::Done);
    }
    let ClaimAnswer::Granted(claim) = world.store.claim(&request, call()).await.unwrap() else { panic!() };
    let ending = Ending::Completed { result: Some(limit.to_owned()) };
    let settled = world.store.settle(claim, &Settlement { ending, now, policy }, call()).await;
    assert!(matches!(settled, Settled::Done));
}

#[tokio::test(start_paused = true)]
async fn an_operator_changes_it_while_it_is_used() {
    let world = World::new(10);
    let process = world.process(1, Limit::new("ses").per_second(40));
    let (changed, work) = (world.clone(), world.work(process, "p".into(), (100, 30, 180)));
    let change = async move {
        sleep(Duration::from_secs(20)).await;
        set(&changed, r#"{"calls":4,"per_ms":1000}"#).await;
        sleep(Duration::from_secs(95)).await;
        set(&changed, r#"{"calls":8,"per_ms":1000}"#).await;
    };
    let logs = Logs::record();
    tokio::join!(work, change);
    assert!((8 * 30 * 90 / 100..=8 * 30 + 8).contains(&world.between(150, 180)), "{}", world.between(150, 180));
    assert!(logs.with("sets the limit otherwise").is_empty(), "each plan ended");
    assert!((40 * 15 * 95 / 100..=40 * 15 + 10).contains(&world.between(5, 20)), "{}", world.between(5, 20));
    // It is read each half minute.
    assert!((4 * 60 * 90 / 100..=4 * 60 + 4).contains(&world.between(50, 110)), "{}", world.between(50, 110));
}

#[tokio::test(start_paused = true)]
async fn without_the_permission_nothing_runs_and_without_the_store_nothing_for_a_while() {
    let mut world = World::new(10);
    world.store = FaultyStore::new(Arc::new(Denies::new("claimant-rate#")));
    let logs = Logs::record();
    let report = deliver(&world.process(1, Limit::new("ses").per_second(5)), &batch("m", 2), 20).await;
    assert_eq!((words(&report).as_str(), world.runs().len()), ("rate_limited rate_limited", 0));
    assert_eq!(logs.with("of their limit: the role or user has to be allowed keys that begin with").len(), 1);
    drop(logs);

    for (kind, said) in [(StoreErrorKind::Unreachable, 0), (StoreErrorKind::Other, 1)] {
        let (world, logs) = (World::new(10), Logs::record());
        world.store.away_for(Duration::from_secs(7), kind);
        let report = deliver(&world.process(1, Limit::new("ses").per_second(5)), &batch("m", 2), 20).await;
        assert_eq!(words(&report), "completed completed", "{kind:?}");
        assert!((7..10).contains(&world.runs()[0].1.as_secs()), "{kind:?}: {:?}", world.runs());
        assert_eq!(logs.with("since the records of their limit cannot be used").len(), said, "{kind:?}");
        assert!(logs.with("has to be allowed").is_empty(), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_a_batch_handler_have_as_many_items_as_the_limit_lets_run() {
    let world = World::new(10);
    let called = world.clone();
    let handler = move |items: Items<String>| {
        let world = called.clone();
        async move {
            for _ in items {
                world.runs.lock().unwrap().push((1, world.start.elapsed()));
            }
            Ok::<(), HandlerError>(())
        }
    };
    let consumer =
        Consumer::batch("confirmation", world.store.clone(), handler).limit(Limit::new("ses").per_second(10));
    let process = Engine::with_defaults(consumer).unwrap().clock(Arc::new(world.clock.clone()));
    let report = deliver(&process, &batch("m", 60), 30).await;
    assert_eq!(count(&report, "completed"), 60);
    world.check(10.0, 10);
}

#[tokio::test(start_paused = true)]
async fn the_calls_of_batch_handlers_that_share_a_limit_have_one_turn_each() {
    let sizes = Arc::<Mutex<Vec<usize>>>::default();
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let consumer = |name: &'static str| {
        let sizes = Arc::clone(&sizes);
        let handler = move |items: Items<String>| {
            sizes.lock().unwrap().push(items.len());
            async {
                sleep(Duration::from_millis(100)).await;
                Ok::<(), HandlerError>(())
            }
        };
        Consumer::batch(name, store.clone(), handler).limit(Limit::new("db").at_once(10).slots(1))
    };
    let names = ["a", "b", "c"];
    let of = |message: &Message| message.id().as_str().get(..1).map(str::to_owned);
    let routes = names.into_iter().fold(Routes::by(of), |routes, name| routes.on(name, consumer(name)));
    let router = Router::new(routes, 10).unwrap();
    let batch: Vec<_> = names.iter().flat_map(|name| batch(name, 100)).collect();
    let time = InvocationTime::new(router.now(), router.now().plus(Duration::from_secs(60)), MARGIN);
    let report = router.process(&batch, time, &NoQueue).await;
    assert_eq!(count(report.all(), "completed"), 300);
    let sizes = sizes.lock().unwrap();
    assert!(sizes.len() <= 300 / 5, "{sizes:?}");
}

#[tokio::test(start_paused = true)]
async fn after_an_outage_the_rate_holds_within_five_percent() {
    let world = World::new(20);
    world.away.store(true, Ordering::SeqCst);
    let away = Arc::clone(&world.away);
    tokio::spawn(async move {
        sleep(Duration::from_secs(120)).await;
        away.store(false, Ordering::SeqCst);
    });
    let process = |n| {
        world.process_with(n, |consumer| {
            consumer.concurrency(20).breaker(Breaker::new("ses")).limit(Limit::new("ses").per_second(50))
        })
    };
    let processes: Vec<_> = (0..5).map(process).collect();
    let all = processes.into_iter().enumerate();
    join_all(all.map(|(n, process)| world.work(process, format!("p{n}"), (50, 60, 400)))).await;
    world.check(50.0, 10);
    // From when all have what they need: the one that has probed takes all slots, and the others look at the breaker 5 s later.
    let back = world.runs().iter().find(|(_, at)| at.as_secs() >= 120).unwrap().1.as_secs() + 20;
    for from in (back..340).step_by(60) {
        let runs = world.between(from, from + 60);
        println!("{runs} in the minute from {from} s");
        assert!((2_850..=3_011).contains(&runs), "{runs} in the minute from {from} s");
    }
}

/// A call each twelve seconds, which is longer than the breaker is open at first.
#[tokio::test(start_paused = true)]
async fn a_probe_that_waits_for_its_turn_within_a_slow_limit_is_still_the_only_one() {
    for processes in [2, 5] {
        let world = World::new(1_000);
        world.away.store(true, Ordering::SeqCst);
        let process = |n| {
            world.process_with(n, |consumer| {
                let (breaker, limit) = (Breaker::new("ses"), Limit::new("ses").per(5, Duration::from_secs(60)));
                consumer.breaker(breaker.opens_after(1, 1)).limit(limit)
            })
        };
        let all = (0..processes).map(process).enumerate();
        let work = join_all(all.map(|(n, process)| world.work(process, format!("p{n}"), (20, 60, 900))));
        let closes = async {
            // None knows of it that has not failed.
            while (0..processes).any(|n| !world.runs().iter().any(|(process, _)| *process == n)) {
                sleep(Duration::from_secs(1)).await;
            }
            sleep(world.takes).await;
            let (back, before) = (Instant::now(), world.runs().len());
            world.away.store(false, Ordering::SeqCst);
            let id = RecordId::new(&ConsumerName::new("claimant-breaker").unwrap(), &Key::new("ses").unwrap());
            let meter = Meter::default();
            let call = || Call { within: Duration::from_secs(1), meter: &meter };
            while Store::get(&world.store, &id, call()).await.unwrap().unwrap().status == Status::InProgress {
                sleep(Duration::from_secs(1)).await;
            }
            (back.elapsed().as_secs(), world.runs().split_off(before))
        };
        let (took, runs) = tokio::select! {
            closed = closes => closed,
            _ = work => panic!("{processes} processes do not close it: {:?}", world.runs()),
        };
        // It is open for a minute at most, and three probes each have their turn.
        assert!(took < 60 + 3 * 12 + 5, "{processes} processes: {took} s, {runs:?}");
        assert!(runs.iter().all(|(process, _)| *process == runs[0].0), "{runs:?}");
    }
}

/// Another consumer has the only slot for long, and the claims on the probe end meanwhile.
#[tokio::test(start_paused = true)]
async fn a_process_whose_turn_comes_after_its_claim_on_the_probe_begins_nothing() {
    let world = World::new(1_000);
    world.away.store(true, Ordering::SeqCst);
    // Which consumer ran while which one had the record.
    let seen = Arc::<Mutex<Vec<(String, Option<String>)>>>::default();
    let process = |(number, name): (usize, &str)| {
        let (world, seen, own) = (world.clone(), Arc::clone(&seen), name.to_owned());
        let handler = {
            let world = world.clone();
            move |_: String, _: Context| {
                let (world, seen, own) = (world.clone(), Arc::clone(&seen), own.clone());
                async move {
                    let id = RecordId::new(&ConsumerName::new("claimant-breaker").unwrap(), &Key::new("ses").unwrap());
                    let (meter, within) = (Meter::default(), Duration::from_secs(1));
                    let record = Store::get(&world.store, &id, Call { within, meter: &meter }).await.unwrap();
                    seen.lock().unwrap().push((own, record.map(|record| record.message_id.as_str().to_owned())));
                    world.run(number).await
                }
            }
        };
        let consumer = Consumer::new(name, world.store.clone(), handler);
        let consumer = consumer.limit(Limit::new("ses").per(5, Duration::from_secs(60)));
        let breaker = Breaker::new("ses").opens_after(1, 1);
        let consumer = if name == "beside" { consumer } else { consumer.breaker(breaker) };
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(world.clock.clone()))
    };
    let all = ["one", "two", "beside"].into_iter().enumerate().map(process).enumerate();
    join_all(all.map(|(n, process)| world.work(process, format!("p{n}"), (20, 60, 5_400)))).await;
    let seen = seen.lock().unwrap();
    // With its first run each opens the breaker, or learns of it. Which of them has the slot when it is let go is chance.
    let probes: Vec<_> =
        ["one", "two"].iter().flat_map(|name| seen.iter().filter(move |(own, _)| own == name).skip(1)).collect();
    assert!(probes.len() > 2 && probes.iter().all(|(own, has)| has.as_ref() == Some(own)), "{seen:?}");
    let holders: HashSet<_> = seen.iter().filter_map(|(_, has)| has.as_deref()).collect();
    assert_eq!(holders.len(), 2, "the claim on the probe changes hands meanwhile");
}
