//! Breakers: while what the handler calls is away, nothing is run but a probe now and then, in any process; and then everything.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::breaker::{Health, WorkerBreaker};
use claimant_core::limit::WorkerLimit;
use claimant_core::protocol::{Act, ClaimRequest, OperateDecision, Operation, operate};
use claimant_core::{
    BoxFuture, Breaker, Call, ClaimAnswer, Consumer, ConsumerName, Context, Engine, HandlerError, Key, Limit,
    MemoryStore, Message, Meter, OwnerToken, RecordId, Records, Replaced, Store, StoreError, StoreErrorKind,
};
use claimant_testkit::logs::Logs;
use claimant_testkit::{Fault, FaultyStore, MovableClock};
use tokio::time::{Instant, sleep, timeout};

use super::support::{Denies, MARGIN, batch, count, deliver};
use super::words;

/// A system that handlers call, the store that they share, and when they were run, by their process.
#[derive(Clone)]
struct World {
    store: FaultyStore,
    clock: MovableClock,
    start: Instant,
    away: Arc<AtomicBool>,
    runs: Arc<Mutex<Vec<(usize, Duration)>>>,
}

impl World {
    fn new(away: bool) -> Self {
        Self {
            store: FaultyStore::new(Arc::new(MemoryStore::new())),
            clock: MovableClock::start(),
            start: Instant::now(),
            away: Arc::new(AtomicBool::new(away)),
            runs: Arc::default(),
        }
    }

    /// A process whose handlers take 100 ms, one at a time.
    fn process(&self, number: usize) -> Engine {
        self.process_with(number, |consumer| consumer.breaker(Breaker::new("mail")))
    }

    fn process_with(&self, number: usize, set: fn(Consumer<String>) -> Consumer<String>) -> Engine {
        let world = self.clone();
        let handler = move |body: String, _: Context| {
            let world = world.clone();
            async move {
                world.runs.lock().unwrap().push((number, world.start.elapsed()));
                sleep(Duration::from_millis(100)).await;
                match (body.as_str(), world.away.load(Ordering::SeqCst)) {
                    ("hangs", true) => std::future::pending().await,
                    ("slow", true) => {
                        sleep(Duration::from_secs(20)).await;
                        Err(HandlerError::retry("it gave no answer in 20 s").downstream("mail"))
                    }
                    ("fine", true) => {
                        sleep(Duration::from_millis(70)).await;
                        Ok(())
                    }
                    ("other", true) => Err(HandlerError::retry("it is away").downstream("gateway")),
                    (_, true) => Err(HandlerError::retry("it is away").downstream("mail")),
                    ("long", false) => {
                        sleep(Duration::from_secs(8)).await;
                        Ok(())
                    }
                    ("refused", false) => {
                        sleep(Duration::from_secs(8)).await;
                        Err(HandlerError::terminal("it refuses this one"))
                    }
                    (_, false) => Ok(()),
                }
            }
        };
        let consumer = set(Consumer::new("confirmation", self.store.clone(), handler).concurrency(1));
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(self.clock.clone()))
    }

    fn runs(&self) -> usize {
        self.runs.lock().unwrap().len()
    }

    /// At which seconds handlers were run.
    fn seconds(&self) -> Vec<u64> {
        self.runs.lock().unwrap().iter().map(|(_, at)| at.as_secs()).collect()
    }

    fn back_after(&self, seconds: u64) {
        let away = Arc::clone(&self.away);
        tokio::spawn(async move {
            sleep(Duration::from_secs(seconds)).await;
            away.store(false, Ordering::SeqCst);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn closed_it_costs_no_request() {
    let mut usages = Vec::new();
    for set in
        [|consumer: Consumer<String>| consumer, |consumer: Consumer<String>| consumer.breaker(Breaker::new("mail"))]
    {
        let world = World::new(false);
        let process = world.process_with(1, set);
        let report = deliver(&process, &batch("m", 60), 30).await;
        assert_eq!(count(&report, "completed"), 60);
        usages.push((report.totals.usage.requests, world.store.calls()));
    }
    assert_eq!(usages[0], usages[1]);
}

#[tokio::test(start_paused = true)]
async fn what_an_open_breaker_holds_back_is_not_run_and_comes_back_in_minutes() {
    let world = World::new(true);
    let process = world.process(1);
    let report = deliver(&process, &batch("m", 40), 30).await;
    // Five failures open it; after 10 s and the skew one message probes, and then it is open for twice as long.
    assert_eq!(world.seconds(), [0, 0, 0, 0, 0, 11]);
    assert_eq!((count(&report, "retry"), count(&report, "breaker_open")), (6, 34));
    let held = report.entries().iter().filter(|entry| entry.outcome.word() == "breaker_open");
    for entry in held {
        assert!((225..=300).contains(&entry.visible_after.unwrap().as_secs()), "{entry:?}");
        assert_eq!(entry.details.attempt, None, "what is held back has no claim, and no attempt");
    }
    // The message of the probe, and the one that opened it, wait as long.
    let late = report.entries().iter().filter(|entry| entry.visible_after.unwrap() >= Duration::from_secs(225));
    assert_eq!(late.count(), 36);
}

/// What is held back waits for as long as its own receives say, and not for as long as those of a copy with it.
#[tokio::test(start_paused = true)]
async fn a_copy_that_was_received_more_often_is_held_back_for_longer() {
    let world = World::new(true);
    let process = world.process_with(1, |consumer| consumer.breaker(Breaker::new("mail")).key_of(String::clone));
    let message =
        |id: &str, key: &str, receives| Message::new(id, format!("{key:?}")).unwrap().with_receive_count(receives);
    let opens = ["o1", "o2", "o3", "o4", "o5"].map(|id| message(id, id, 1));
    deliver(&process, &opens, 4).await;
    let report = deliver(&process, &[message("m1", "k", 1), message("m2", "k", 4)], 4).await;
    assert_eq!(words(&report), "breaker_open breaker_open");
    let hidden: Vec<_> = report.entries().iter().map(|entry| entry.visible_after.unwrap().as_secs()).collect();
    assert!((225..=300).contains(&hidden[0]) && (1_800..=2_400).contains(&hidden[1]), "{hidden:?}");
}

/// So many messages of this body that nobody has received before.
fn with_body(body: &str, count: usize) -> Vec<Message> {
    let message = |n| Message::new(format!("m{n}"), format!("{body:?}")).unwrap().with_receive_count(1);
    (0..count).map(message).collect()
}

#[tokio::test(start_paused = true)]
async fn it_is_open_for_its_own_time_and_not_for_as_long_as_a_handler_may_take() {
    let world = World::new(true);
    let set = |consumer: Consumer<String>| consumer.expected(Duration::from_secs(120)).breaker(Breaker::new("mail"));
    deliver(&world.process_with(1, set), &batch("m", 40), 300).await;
    // Whoever probes has the record for a minute, and not for two.
    assert_eq!(world.seconds(), [0, 0, 0, 0, 0, 11, 72, 133]);

    let world = World::new(true);
    let (store, clock) = (Arc::new(world.store.clone()), Arc::new(world.clock.clone()));
    // The worker of an inbox, whose attempts may take 5 minutes.
    let worker = WorkerBreaker::new(&Breaker::new("mail"), "orders", store, clock, Duration::from_secs(300)).unwrap();
    let mut passage = worker.passage();
    for runs in [5, 1] {
        (0..runs).for_each(|_| passage.observe(Health::Away, Duration::ZERO));
        while passage.room(0) == 0 {
            passage.wait(1, 0, false);
            passage.next().await;
        }
        let probes_at = if runs == 5 { 11 } else { 72 };
        assert_eq!(world.start.elapsed().as_secs(), probes_at);
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_has_no_message_neither_waits_for_a_breaker_nor_keeps_its_probe() {
    for answers in [1, 0] {
        let world = World::new(true);
        let (store, clock) = (Arc::new(world.store.clone()), Arc::new(world.clock.clone()));
        let worker = WorkerBreaker::new(&Breaker::new("mail"), "orders", store, clock, Duration::ZERO).unwrap();
        let mut passage = worker.passage();
        (0..5).for_each(|_| passage.observe(Health::Away, Duration::ZERO));
        passage.next().await;
        assert!(passage.wait(1, 0, false) && passage.wait(0, 0, false));
        assert!(!passage.next().await, "it waits for nothing");
        while passage.room(0) == 0 {
            passage.wait(1, 0, false);
            passage.next().await;
        }
        (0..answers).for_each(|_| passage.observe(Health::Answered, Duration::ZERO));
        passage.rest();
        passage.next().await;
        assert_eq!(passage.room(0), if answers == 1 { usize::MAX } else { 0 });
    }
}

/// Its run may take five minutes, so its claim is being renewed for a next message when it ends.
#[tokio::test(start_paused = true)]
async fn a_worker_that_ends_or_rests_while_it_renews_its_probe_closes_the_breaker() {
    for ends in [true, false] {
        let world = World::new(true);
        let worker = || {
            let (store, clock) = (Arc::new(world.store.clone()), Arc::new(world.clock.clone()));
            WorkerBreaker::new(&Breaker::new("mail"), "orders", store, clock, Duration::from_secs(300)).unwrap()
        };
        let workers = [worker(), worker()];
        let [mut passage, mut other] = [0, 1].map(|n: usize| workers[n].passage());
        for passage in [&mut passage, &mut other] {
            (0..5).for_each(|_| passage.observe(Health::Away, Duration::ZERO));
            passage.next().await;
        }
        while passage.room(0) == 0 {
            passage.wait(1, 0, false);
            passage.next().await;
        }
        passage.observe(Health::Answered, Duration::ZERO);
        assert_eq!(passage.room(0), 0, "nothing begins before it is renewed");
        if ends {
            passage.end().await;
        } else {
            passage.rest();
            while passage.next().await {}
        }
        let closed = Instant::now();
        other.wait(1, 0, false);
        other.next().await;
        assert_eq!(other.room(0), usize::MAX, "it ends: {ends}");
        assert!(closed.elapsed() < Duration::from_secs(6), "{:?}", closed.elapsed());
    }
}

/// Its claim lasts for the wait for its turn, and for its run.
#[tokio::test(start_paused = true)]
async fn a_worker_that_probes_and_waits_for_its_turn_within_a_limit_is_still_the_only_one() {
    for (limit, next_at) in [(None, 22), (Some(Limit::new("mail").per(5, Duration::from_secs(60))), 25)] {
        let world = World::new(true);
        let (store, clock) = (Arc::new(world.store.clone()), Arc::new(world.clock.clone()));
        let limit = limit.map(|limit| WorkerLimit::new(&limit, "orders", store.clone(), clock.clone()).unwrap());
        let workers = [0, 1].map(|_| {
            let (breaker, longest) = (Breaker::new("mail"), Duration::from_secs(1));
            let worker = WorkerBreaker::new(&breaker, "orders", store.clone(), clock.clone(), longest).unwrap();
            limit.iter().fold(worker, WorkerBreaker::within)
        });
        let mut passages = [0, 1].map(|n: usize| workers[n].passage());
        for passage in &mut passages {
            (0..5).for_each(|_| passage.observe(Health::Away, Duration::ZERO));
            passage.next().await;
        }
        for (passage, probes_at) in passages.iter_mut().zip([11, next_at]) {
            while passage.room(0) == 0 {
                passage.wait(1, 0, false);
                passage.next().await;
            }
            assert_eq!(world.start.elapsed().as_secs(), probes_at);
        }
    }
}

/// The margin is for a process whose clock is a second ahead.
#[tokio::test(start_paused = true)]
async fn a_probe_is_renewed_that_would_last_only_by_the_margin_of_the_clocks() {
    let world = World::new(true);
    let (store, clock) = (Arc::new(world.store.clone()), Arc::new(world.clock.clone()));
    let breaker = Breaker::new("mail").open_for(Duration::from_secs(1));
    let worker = WorkerBreaker::new(&breaker, "orders", store, clock, Duration::from_millis(500)).unwrap();
    let mut passage = worker.passage();
    (0..5).for_each(|_| passage.observe(Health::Away, Duration::ZERO));
    while passage.room(0) == 0 {
        passage.wait(1, 0, false);
        passage.next().await;
    }
    for (run_ms, renews) in [(400, false), (200, true)] {
        sleep(Duration::from_millis(run_ms)).await;
        passage.observe(Health::Unknown, Duration::ZERO);
        assert_eq!(passage.room(0) == 0, renews, "after {run_ms} ms more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_runs_go_on_leaves_the_probe_to_others_and_hears_that_they_closed_the_breaker() {
    for has_others in [true, false] {
        let world = World::new(true);
        let (store, clock) = (Arc::new(world.store.clone()), Arc::new(world.clock.clone()));
        let [busy, idle] = ["orders", "mails"].map(|consumer| {
            let (store, clock) = (Arc::clone(&store), Arc::clone(&clock));
            WorkerBreaker::new(&Breaker::new("mail"), consumer, store, clock, Duration::from_secs(60)).unwrap()
        });
        let [mut busy, mut idle] = [&busy, &idle].map(WorkerBreaker::passage);
        for passage in [&mut busy, &mut idle] {
            (0..5).for_each(|_| passage.observe(Health::Away, Duration::ZERO));
            passage.next().await;
        }
        // It is half open after 11 s; one of its runs goes on for 31 s.
        let run_until = world.start + Duration::from_secs(31);
        let hears = async {
            while busy.room(0) == 0 {
                busy.wait(1, usize::from(Instant::now() < run_until), false);
                let _ = timeout(Duration::from_secs(1), busy.next()).await;
            }
            (busy.room(0), world.start.elapsed().as_secs())
        };
        let probes = async {
            sleep(Duration::from_secs(18)).await;
            while has_others && idle.room(0) == 0 {
                idle.wait(1, 0, false);
                idle.next().await;
            }
            let probed_at = world.start.elapsed().as_secs();
            for _ in 0..3 {
                idle.observe(Health::Answered, Duration::ZERO);
                idle.next().await;
            }
            probed_at
        };
        let ((room, at), probed_at) = tokio::join!(hears, probes);
        assert_eq!(probed_at, 18);
        if has_others {
            assert!(room == usize::MAX && (18..=23).contains(&at), "it hears of it in 5 s: {at}");
        } else {
            assert_eq!((room, at), (1, 31), "it probes when it can");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_calls_hung_invocations_wait_for_as_long_as_ever() {
    let world = World::new(true);
    let breaker = |consumer: Consumer<String>| {
        consumer.concurrency(10).breaker(Breaker::new("mail").open_for(Duration::from_secs(60)))
    };
    let process = world.process_with(1, breaker);
    assert_eq!(count(&deliver(&process, &with_body("slow", 10), 30).await, "retry"), 10);
    let at = Instant::now();
    assert_eq!(words(&deliver(&process, &batch("n", 3), 30).await), "breaker_open breaker_open breaker_open");
    assert!(at.elapsed() > Duration::from_secs(25), "{:?}", at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn where_calls_hung_a_probe_begins_only_where_it_can_end() {
    for (body, has_timeout) in [("slow", false), ("hangs", true)] {
        let world = World::new(true);
        let set = |consumer: Consumer<String>| consumer.concurrency(10).breaker(Breaker::new("mail"));
        let cut_off = |consumer: Consumer<String>| {
            consumer.concurrency(10).breaker(Breaker::new("mail")).timeout(Duration::from_secs(20))
        };
        let set = if has_timeout { cut_off } else { set };
        let (process, other) = (world.process_with(1, set), world.process_with(2, set));
        let messages = |name: &str| {
            let message = |n| Message::new(format!("{name}{n}"), format!("{body:?}")).unwrap().with_receive_count(1);
            (0..10).map(message).collect::<Vec<_>>()
        };
        let [first, beside] = ["a", "o"].map(messages);
        tokio::join!(deliver(&process, &first, 30), deliver(&other, &beside, 30));
        // It is half open after 11 s, and 18 s are not enough.
        let at = Instant::now();
        assert_eq!(count(&deliver(&process, &messages("b"), 30).await, "breaker_open"), 10);
        assert!(at.elapsed() > Duration::from_secs(25), "{:?}", at.elapsed());
        // The next one has the time.
        let third = deliver(&process, &messages("c"), 30).await;
        assert_eq!((count(&third, "breaker_open"), world.runs()), (9, 21));
        let failed = third.entries().iter().find(|entry| entry.outcome.word() != "breaker_open").unwrap();
        assert!(failed.visible_after >= Some(Duration::from_secs(225)), "{failed:?}");
        // Where another process closes it, that is seen without the time for a probe, and how long calls hung is forgotten.
        world.away.store(false, Ordering::SeqCst);
        let at = Instant::now();
        let waits = messages("d");
        let (seen, beside) = tokio::join!(deliver(&process, &waits, 30), async {
            sleep(Duration::from_secs(5)).await;
            deliver(&other, &messages("e"), 300).await
        });
        assert_eq!((count(&seen, "completed"), count(&beside, "completed")), (10, 10), "{seen:?}");
        assert!(at.elapsed() > Duration::from_secs(15), "{:?}", at.elapsed());
    }
}

/// In a process with several invocations.
#[tokio::test(start_paused = true)]
async fn an_invocation_without_the_time_for_a_probe_keeps_no_other_one_from_it() {
    let world = World::new(true);
    let set = |consumer: Consumer<String>| consumer.concurrency(10).breaker(Breaker::new("mail"));
    let process = world.process_with(1, set);
    let messages = |name: &str| {
        let message = |n| Message::new(format!("{name}{n}"), r#""slow""#).unwrap().with_receive_count(1);
        (0..10).map(message).collect::<Vec<_>>()
    };
    deliver(&process, &messages("a"), 30).await;
    world.away.store(false, Ordering::SeqCst);
    let late = async {
        sleep(Duration::from_secs(15)).await;
        deliver(&process, &messages("c"), 30).await
    };
    let early = messages("b");
    let (_, late) = tokio::join!(deliver(&process, &early, 30), late);
    assert!(count(&late, "completed") > 0, "{late:?}");
}

/// A brown-out: calls that began before the breaker opened are answered after.
#[tokio::test(start_paused = true)]
async fn an_answer_to_an_earlier_call_says_nothing_of_how_long_calls_hang() {
    let world = World::new(true);
    let set = |consumer: Consumer<String>| consumer.concurrency(6).breaker(Breaker::new("mail"));
    let process = world.process_with(1, set);
    let messages = |name: &'static str, body: &'static str, count: usize| {
        (0..count).map(move |n| Message::new(format!("{name}{n}"), format!("{body:?}")).unwrap().with_receive_count(1))
    };
    // Five slots hang for 20 s, the others answer until then and a moment longer.
    let first: Vec<_> = messages("a", "slow", 5).chain(messages("f", "fine", 250)).collect();
    deliver(&process, &first, 22).await;
    let runs = world.runs();
    let next: Vec<_> = messages("b", "slow", 10).collect();
    assert_eq!(count(&deliver(&process, &next, 30).await, "breaker_open"), 10);
    assert_eq!(world.runs(), runs, "where 19 s are left, no probe begins whose calls hang for 20 s");
}

/// The calls hang for longer than the breaker is open at first.
#[tokio::test(start_paused = true)]
async fn no_process_probes_beside_a_probe_that_hangs() {
    let world = World::new(true);
    world.back_after(150);
    let set = |consumer: Consumer<String>| consumer.concurrency(10).breaker(Breaker::new("mail"));
    let processes: Vec<_> = (0..3).map(|n| world.process_with(n, set)).collect();
    let messages = |name: &str, n: usize| {
        let message = |m| Message::new(format!("{name}{n}-{m}"), r#""slow""#).unwrap().with_receive_count(1);
        (0..10).map(message).collect::<Vec<_>>()
    };
    let all = |name: &'static str, seconds| {
        futures_util::future::join_all(
            processes
                .iter()
                .enumerate()
                .map(move |(n, process)| async move { deliver(process, &messages(name, n), seconds).await }),
        )
    };
    all("a", 30).await;
    all("b", 280).await;
    let probes: Vec<_> = world.seconds().into_iter().filter(|at| (1..150).contains(at)).collect();
    assert!(probes.len() >= 2 && probes.windows(2).all(|two| two[1] - two[0] > 30), "{probes:?}");
}

/// Three of its runs take longer than a claim on the record lasts; also where the system refuses the second message, which says nothing of it,
/// and where the first renewal has no answer.
#[tokio::test(start_paused = true)]
async fn no_process_probes_beside_one_whose_handlers_are_slow() {
    for (refused, has_fault) in [(false, false), (true, false), (false, true)] {
        let world = World::new(true);
        world.back_after(5);
        if has_fault {
            world.store.fail_next(claimant_testkit::Call::Renew, Fault::AnswerLost);
        }
        let set = |consumer: Consumer<String>| consumer.concurrency(10).breaker(Breaker::new("mail"));
        let message = |n: usize, m| {
            let body = if refused && m == 18 { r#""refused""# } else { r#""long""# };
            Message::new(format!("m{n}-{m}"), body).unwrap().with_receive_count(1)
        };
        let batch = |n| (0..20).map(|m| message(n, m)).collect::<Vec<_>>();
        let processes: Vec<_> = (0..4).map(|n| (world.process_with(n, set), batch(n))).collect();
        let reports = processes.iter().map(|(process, batch)| deliver(process, batch, 120));
        let reports = futures_util::future::join_all(reports).await;
        let done: Vec<_> = reports.iter().map(|report| count(report, "completed")).collect();
        assert_eq!(done, [6 - usize::from(refused); 4]);
        let runs = world.runs.lock().unwrap().split_off(80 - 24);
        let probes = 3 + usize::from(refused);
        assert!(runs[..probes].iter().all(|(process, _)| *process == runs[0].0), "{runs:?}");
        let after: Vec<_> = runs.iter().map(|(_, at)| (*at - runs[0].1).as_secs()).collect();
        let closed = if refused { 32 } else { 24 };
        assert_eq!((&after[..3], after[probes]), (&[0, 8, 16][..], closed), "{after:?}");
        assert!(after[23] < closed + 5, "{after:?}");
    }
}

/// With the third answer, 9 s are left, and the next one could take longer.
#[tokio::test(start_paused = true)]
async fn what_has_no_time_when_the_breaker_closes_is_not_started_and_not_held_back() {
    let world = World::new(true);
    world.back_after(5);
    let process = world.process_with(1, |consumer| consumer.concurrency(10).breaker(Breaker::new("mail")));
    let report = deliver(&process, &with_body("long", 20), 45).await;
    assert_eq!((count(&report, "completed"), count(&report, "breaker_open")), (3, 0), "{report:?}");
    assert_eq!(count(&report, "not_started"), 20 - world.runs());
}

/// The store is silent about it.
#[tokio::test(start_paused = true)]
async fn an_invocation_that_is_dropped_while_its_claim_is_renewed_leaves_the_probe_to_the_next_one() {
    let world = World::new(true);
    let process = world.process(1);
    deliver(&process, &batch("a", 5), 4).await;
    world.away.store(false, Ordering::SeqCst);
    world.store.fail_next(claimant_testkit::Call::Renew, Fault::Hangs);
    // It probes at 11 s, and its call takes 8 s.
    assert!(timeout(Duration::from_secs(20), deliver(&process, &with_body("long", 3), 60)).await.is_err());
    assert_eq!(words(&deliver(&process, &batch("b", 2), 30).await), "completed completed");
    assert_eq!(world.seconds()[5..], [11, 22, 22], "when the lease of the first one is over");
}

/// What is claimed beside it has its time to be given back.
#[tokio::test(start_paused = true)]
async fn a_renewal_of_a_probe_is_waited_for_no_longer_than_handlers_may_start() {
    let world = World::new(true);
    let process =
        world.process_with(1, |consumer| consumer.breaker(Breaker::new("mail")).expected(Duration::from_secs(2)));
    deliver(&process, &batch("a", 5), 4).await;
    world.away.store(false, Ordering::SeqCst);
    world.store.fail_next(claimant_testkit::Call::Renew, Fault::Hangs);
    // It probes at 11 s for 8 s, and its lease is over after 21 s.
    let report = deliver(&process, &with_body("long", 3), 24).await;
    assert_eq!((count(&report, "completed"), count(&report, "not_started")), (1, 2), "{:?}", report.counts());
    let took = world.start.elapsed();
    assert!((22_500..23_500).contains(&took.as_millis()), "{took:?}");
}

/// Three of its runs fit into the time, or two, or one.
#[tokio::test(start_paused = true)]
async fn what_finds_no_time_behind_answered_probes_is_not_hidden_for_minutes() {
    for (seconds, wanted) in [(42, 3), (35, 2), (27, 1)] {
        let world = World::new(true);
        let process = world.process(1);
        deliver(&process, &batch("a", 5), 4).await;
        world.away.store(false, Ordering::SeqCst);
        let report = deliver(&process, &with_body("long", 6), seconds).await;
        assert_eq!((count(&report, "completed"), count(&report, "not_started")), (wanted, 6 - wanted), "{seconds} s");
        // It is closed.
        let next = deliver(&process, &batch("n", 1), 4).await;
        assert_eq!(words(&next), "completed", "{seconds} s");
    }
}

/// A batch of one message has none for which its probe's claim would be renewed.
#[tokio::test(start_paused = true)]
async fn a_probe_without_a_next_message_is_not_renewed() {
    let world = World::new(true);
    let process = world.process(1);
    deliver(&process, &batch("a", 5), 4).await;
    world.away.store(false, Ordering::SeqCst);
    for n in 0..2 {
        let report = deliver(&process, &[Message::new(format!("m{n}"), r#""long""#).unwrap()], 30).await;
        assert_eq!(words(&report), "completed");
    }
    assert!(!world.store.calls().contains(&claimant_testkit::Call::Renew), "{:?}", world.store.calls());
}

#[tokio::test(start_paused = true)]
async fn what_its_timeout_cut_off_as_the_breaker_opened_waits_as_long_as_what_is_held_back() {
    let world = World::new(true);
    let set = |consumer: Consumer<String>| consumer.timeout(Duration::from_secs(1)).breaker(Breaker::new("mail"));
    let report = deliver(&world.process_with(1, set), &with_body("hangs", 40), 30).await;
    assert_eq!(world.seconds(), [0, 1, 2, 3, 4, 16]);
    let cut_off = report.entries().iter().filter(|entry| entry.outcome.word() == "cancelled");
    let mut hidden: Vec<_> = cut_off.map(|entry| entry.visible_after.unwrap().as_secs()).collect();
    hidden.sort_unstable();
    assert_eq!(hidden.len(), 6);
    // Before it opened; and what opened it, and the probe.
    assert!(hidden[..4].iter().all(|s| *s <= 2) && hidden[4..].iter().all(|s| (225..=300).contains(s)), "{hidden:?}");
}

#[tokio::test(start_paused = true)]
async fn probes_close_it_for_what_has_waited_in_any_process() {
    let world = World::new(true);
    world.back_after(20);
    let processes: Vec<_> = (0..4).map(|n| world.process(n)).collect();
    // All have failed, and one of them has opened it.
    let batches: Vec<_> = (0..4).map(|n| batch(&format!("p{n}-"), 30)).collect();
    let reports = tokio::join!(
        deliver(&processes[0], &batches[0], 120),
        deliver(&processes[1], &batches[1], 120),
        deliver(&processes[2], &batches[2], 120),
        deliver(&processes[3], &batches[3], 120),
    );
    let reports = [reports.0, reports.1, reports.2, reports.3];
    let runs = world.runs.lock().unwrap().clone();
    let of = |from: u64, to: u64| runs.iter().filter(move |(_, at)| (from..to).contains(&at.as_secs()));
    assert_eq!((of(0, 2).count(), of(2, 20).count()), (20, 1), "{runs:?}");
    let first = of(20, 120).next().unwrap();
    // One process has three runs by itself, and then all have theirs.
    assert!((30..34).contains(&first.1.as_secs()), "{first:?}");
    assert!(runs[21..24].iter().all(|(process, _)| *process == first.0), "{:?}", &runs[21..30]);
    let last = runs.last().unwrap().1 - first.1;
    assert!(last < Duration::from_secs(10), "{last:?}");
    for report in &reports {
        assert_eq!((count(report, "retry") + count(report, "completed"), count(report, "breaker_open")), (30, 0));
    }
}

/// A store that throttles the claims of what comes after the first messages, until then.
struct Throttles {
    store: MemoryStore,
    until: Instant,
}

impl Store for Throttles {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        if request.id.as_str().contains("late") && Instant::now() < self.until {
            return Box::pin(async { Err(StoreError::new(StoreErrorKind::Throttled, "too fast")) });
        }
        self.store.claim(request, call)
    }

    claimant_testkit::pass_on!(self => self.store; renew, settle, get);
}

/// Claims that were on their way when it opened can be answered while it is half open.
#[tokio::test(start_paused = true)]
async fn half_open_it_lets_one_message_run_however_many_are_claimed() {
    let mut world = World::new(true);
    let until = world.start + Duration::from_secs(13);
    world.store = FaultyStore::new(Arc::new(Throttles { store: MemoryStore::new(), until }));
    let process = world.process_with(1, |consumer| consumer.concurrency(10).breaker(Breaker::new("mail")));
    let report = deliver(&process, &[batch("soon", 20), batch("late", 10)].concat(), 30).await;
    let late: Vec<_> = world.seconds().into_iter().filter(|at| *at > 1).collect();
    assert_eq!(late, [13]);
    assert_eq!((count(&report, "retry"), count(&report, "breaker_open")), (world.runs(), 30 - world.runs()));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_knows_it_open_runs_nothing_of_its_next_batches() {
    let world = World::new(true);
    let process = world.process(1);
    let first = deliver(&process, &batch("a", 5), 4).await;
    assert_eq!(words(&first), "retry retry retry retry retry");
    for n in 0..2 {
        let next = deliver(&process, &batch(&format!("b{n}-"), 3), 4).await;
        assert_eq!(words(&next), "breaker_open breaker_open breaker_open");
    }
    assert_eq!(world.runs(), 5);
    // Long after, when it is back, messages go through as soon as the record was read.
    world.away.store(false, Ordering::SeqCst);
    world.clock.advance(Duration::from_secs(3_600));
    let at = Instant::now();
    let last = deliver(&process, &batch("c", 3), 4).await;
    assert_eq!(words(&last), "completed completed completed");
    assert!(at.elapsed() < Duration::from_secs(1), "{:?}", at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_while_it_probes_leaves_the_probe_to_another_one() {
    let world = World::new(true);
    let (first, second) = (world.process(1), world.process(2));
    let opened = batch("a", 20);
    // It dies in the middle of the probe.
    assert!(timeout(Duration::from_millis(11_550), deliver(&first, &opened, 60)).await.is_err());
    assert_eq!(world.seconds().last(), Some(&11));
    world.away.store(false, Ordering::SeqCst);
    drop(first);
    // A fresh process knows nothing, and runs what it gets: it does not fail.
    assert_eq!(count(&deliver(&world.process(3), &batch("c", 2), 4).await, "completed"), 2);
    // One that knows waits for the lease of the dead one.
    world.away.store(true, Ordering::SeqCst);
    let failed = deliver(&second, &batch("b", 5), 4).await;
    assert_eq!(count(&failed, "retry"), 5);
    world.away.store(false, Ordering::SeqCst);
    let before = world.start.elapsed();
    assert_eq!(count(&deliver(&second, &batch("d", 9), 60).await, "completed"), 9);
    let waited = world.seconds()[world.runs() - 9] - before.as_secs();
    assert!((5..=11).contains(&waited), "{waited} s");
}

#[tokio::test(start_paused = true)]
async fn what_was_received_least_probes_and_first_of_all_what_has_nothing_to_lose() {
    for (receives, wanted) in [([3, 1, 2], "m1"), ([2, 5, 1], "m1"), ([4, 3, 2], "m2")] {
        let world = World::new(true);
        let process = world.process(1);
        deliver(&process, &batch("a", 5), 4).await;
        let message = |(n, receives)| Message::new(format!("m{n}"), r#""x""#).unwrap().with_receive_count(receives);
        let batch: Vec<_> = receives.into_iter().enumerate().map(message).collect();
        let report = deliver(&process, &batch, 20).await;
        let probed: Vec<_> = report.entries().iter().filter(|entry| entry.outcome.word() == "retry").collect();
        assert_eq!(probed.len(), 1, "{report:?}");
        assert_eq!(probed[0].message_id.as_str(), wanted, "{receives:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_said_of_the_system_counts_and_the_timeout() {
    for (body, opens) in [("other", false), ("hangs", true), ("x", true)] {
        let world = World::new(true);
        let set = |consumer: Consumer<String>| consumer.timeout(Duration::from_secs(1)).breaker(Breaker::new("mail"));
        let process = world.process_with(1, set);
        deliver(&process, &with_body(body, 8), 10).await;
        assert_eq!(world.runs(), if opens { 5 } else { 8 }, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_store_it_is_open_for_its_process_and_an_operator_can_close_it() {
    let world = World::new(true);
    let process = world.process(1);
    let batch = batch("m", 5);
    let delivery = deliver(&process, &batch, 4);
    tokio::pin!(delivery);
    // The fifth run is under way.
    assert!(timeout(Duration::from_millis(450), &mut delivery).await.is_err());
    world.store.away_for(Duration::from_secs(2), StoreErrorKind::Unreachable);
    delivery.await;
    assert_eq!(words(&deliver(&process, &self::batch("n", 2), 4).await), "breaker_open breaker_open");
    assert_eq!(world.runs(), 5);
    // There is no record: the next read says that it is closed.
    world.away.store(false, Ordering::SeqCst);
    assert_eq!(words(&deliver(&process, &self::batch("o", 2), 20).await), "completed completed");
}

#[tokio::test(start_paused = true)]
async fn without_the_permission_each_process_has_a_breaker_of_its_own() {
    let mut world = World::new(true);
    world.store = FaultyStore::new(Arc::new(Denies::new("claimant-breaker#")));
    world.back_after(15);
    let logs = Logs::record();
    let report = deliver(&world.process(1), &batch("m", 20), 60).await;
    // Its probe fails after 10 s, and 10 s later it is back.
    assert_eq!(world.seconds()[..8], [0, 0, 0, 0, 0, 10, 20, 20]);
    assert_eq!((count(&report, "retry"), count(&report, "completed")), (6, 14));
    let warned = logs.with("for this process alone");
    assert!(
        warned.len() == 1
            && warned[0].contains("role or user has to be allowed keys that begin with claimant-breaker#"),
        "{warned:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_of_a_clock_that_is_far_off_leaves_each_process_its_own_and_is_warned_of_once() {
    let world = World::new(true);
    let ahead = MovableClock::start();
    ahead.advance(Duration::from_secs(1_800));
    deliver(&world.process(1).clock(Arc::new(ahead)), &batch("a", 5), 4).await;
    let logs = Logs::record();
    deliver(&world.process(2), &batch("b", 20), 60).await;
    assert!(world.runs() > 12, "it probes by itself: {:?}", world.seconds());
    let warned = logs.with("a clock is far off");
    assert!(warned.len() == 1 && warned[0].contains("lease_until"), "{warned:?}");
}

#[tokio::test(start_paused = true)]
async fn its_record_is_that_of_a_key() {
    let world = World::new(true);
    deliver(&world.process(1), &batch("m", 5), 4).await;
    let id = RecordId::new(&ConsumerName::new("claimant-breaker").unwrap(), &Key::new("mail").unwrap());
    assert_eq!(id.as_str(), "claimant-breaker#mail");
    let meter = Meter::default();
    let call = Call { within: MARGIN, meter: &meter };
    let record = Store::get(&world.store, &id, call).await.unwrap().unwrap();
    assert_eq!((record.status.as_str(), record.message_id.as_str()), ("IN_PROGRESS", "confirmation"));
}

#[tokio::test(start_paused = true)]
async fn an_operator_who_releases_it_closes_it_for_all_within_seconds() {
    let (mut world, memory) = (World::new(true), Arc::new(MemoryStore::new()));
    world.store = FaultyStore::new(memory.clone());
    let set = |consumer: Consumer<String>| consumer.breaker(Breaker::new("mail").open_for(Duration::from_secs(300)));
    let (process, beside) = (world.process_with(1, set), world.process_with(2, set));
    for (process, prefix) in [(&process, "a"), (&beside, "b")] {
        deliver(process, &batch(prefix, 5), 4).await;
        assert_eq!(words(&deliver(process, &batch("held", 1), 10).await), "breaker_open");
    }
    world.away.store(false, Ordering::SeqCst);
    let id = RecordId::new(&ConsumerName::new("claimant-breaker").unwrap(), &Key::new("mail").unwrap());
    let meter = Meter::default();
    let call = || Call { within: MARGIN, meter: &meter };
    let seen = memory.get(&id, call()).await.unwrap().unwrap();
    let operation = Operation {
        id: id.clone(),
        act: Act::Release,
        owner: OwnerToken::draw().unwrap(),
        now: process.now(),
        skew: Duration::from_secs(1),
        force: true,
        by: "ada".to_owned(),
        why: "the mail server is back".to_owned(),
    };
    let OperateDecision::Write(next) = operate(Some(&seen), &operation) else { panic!("{seen:?}") };
    assert_eq!(memory.replace(&id, &seen, &next, call()).await.unwrap(), Replaced::Done);
    for (process, prefix) in [(&process, "c"), (&beside, "d")] {
        let at = Instant::now();
        assert_eq!(words(&deliver(process, &batch(prefix, 2), 30).await), "completed completed");
        assert!(at.elapsed() < Duration::from_secs(6), "{:?}", at.elapsed());
    }
}

#[test]
fn what_is_out_of_bounds_is_said() {
    async fn run(_: u64, _: Context) -> Result<(), HandlerError> {
        Ok(())
    }
    let breaker = Breaker::new("mail server").opens_after(3, 2).open_for(Duration::from_millis(999));
    let error = Engine::with_defaults(Consumer::new("c", MemoryStore::new(), run).breaker(breaker)).unwrap_err();
    for wanted in ["3 faults", "\"mail server\"", "3 failures of 2 calls", "open for 999 ms; 1000 to 300000"] {
        assert!(error.to_string().contains(wanted), "{error}");
    }
    let fleeting = FaultyStore::new(Arc::new(MemoryStore::new())).fleeting();
    let error = Engine::with_defaults(Consumer::new("c", fleeting, run).breaker(Breaker::new("mail"))).unwrap_err();
    assert!(error.to_string().contains("claims outlive their owners"), "{error}");
    let error = Engine::with_defaults(Consumer::new("claimant-breaker", MemoryStore::new(), run)).unwrap_err();
    assert!(error.to_string().contains("choose another"), "{error}");
}
