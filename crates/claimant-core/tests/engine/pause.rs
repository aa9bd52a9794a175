//! An open breaker pauses the intake: by one process, not before it has failed a probe, and until a planned time at most.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::intake::{Intake, is_early_enough};
use claimant_core::{
    BoxFuture, Breaker, Clock as _, Consumer, Context, Engine, Error, ErrorKind, HandlerError, HideAnswer,
    InvocationTime, MemoryStore, Message, NoQueue, Queue, Report, StoreErrorKind, Timestamp,
};
use claimant_testkit::{FaultyStore, MovableClock};
use tokio::time::{Instant, sleep, timeout};

/// How long each of its requests takes.
const TAKES: Duration = Duration::from_millis(200);

/// What the intake does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Refused,
    Silent,
    /// So many times: another change is under way.
    InUse(u32),
    AnswerLost,
    /// It is carried out, and the answer is an error that passes.
    Failed,
    Panics,
}

/// The intake of the processes' queue.
#[derive(Clone)]
struct Mapping {
    clock: MovableClock,
    on: Arc<AtomicBool>,
    returns: Arc<Mutex<Vec<Timestamp>>>,
    log: Arc<Mutex<Vec<String>>>,
    faults: Arc<Mutex<BTreeMap<&'static str, Fault>>>,
}

impl Mapping {
    /// Carries out what is due, and then this.
    async fn serve<T>(&self, name: &'static str, carry_out: impl FnOnce(&Self) -> T) -> Result<T, Error> {
        sleep(TAKES).await;
        let fault = self.faults.lock().unwrap().get(name).copied();
        self.log.lock().unwrap().push(name.to_owned());
        match fault {
            Some(Fault::Refused) => {
                return Err(Error::new("the role lacks a permission").of_kind(ErrorKind::Refused));
            }
            Some(Fault::Silent) => std::future::pending().await,
            Some(Fault::Panics) => panic!("on purpose"),
            Some(Fault::InUse(left @ 1..)) => {
                self.faults.lock().unwrap().insert(name, Fault::InUse(left - 1));
                return Err(Error::new("it is in use").of_kind(ErrorKind::Unavailable));
            }
            _ => {}
        }
        let answer = carry_out(self);
        assert!(self.is_letting_in() || self.has_way_back(), "off without a return to come");
        match fault {
            Some(Fault::AnswerLost) => Err(Error::new("no answer")),
            Some(Fault::Failed) => Err(Error::new("500").of_kind(ErrorKind::Unavailable)),
            _ => Ok(answer),
        }
    }

    fn is_letting_in(&self) -> bool {
        let now = self.clock.now();
        let mut returns = self.returns.lock().unwrap();
        if returns.iter().any(|back| *back <= now) {
            self.on.store(true, Ordering::SeqCst);
            returns.retain(|back| *back > now);
        }
        self.on.load(Ordering::SeqCst)
    }

    fn has_way_back(&self) -> bool {
        !self.returns.lock().unwrap().is_empty()
    }

    /// What it was asked for since the last look.
    fn log(&self) -> String {
        std::mem::take(&mut *self.log.lock().unwrap()).join(" ")
    }
}

impl Intake for Mapping {
    fn is_on(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(self.serve("is_on", Self::is_letting_in))
    }

    fn plan_return<'a>(&'a self, at: Timestamp, why: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        assert_eq!(why, "breaker mail of confirmation");
        Box::pin(self.serve("plan", move |mapping| mapping.returns.lock().unwrap().push(at)))
    }

    fn has_return(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(self.serve("has_return", Self::has_way_back))
    }

    fn switch_off(&self, before: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        assert!(is_early_enough(self.clock.now(), before));
        Box::pin(self.serve("off", |mapping| mapping.on.store(false, Ordering::SeqCst)))
    }

    fn switch_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.serve("on", |mapping| mapping.on.store(true, Ordering::SeqCst)))
    }
}

impl Queue for Mapping {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn intake(&self) -> Option<&dyn Intake> {
        let fault = self.faults.lock().unwrap().get("intake").copied();
        assert_ne!(fault, Some(Fault::Panics), "on purpose");
        Some(self)
    }
}

#[derive(Clone)]
struct World {
    store: FaultyStore,
    away: Arc<AtomicBool>,
    runs: Arc<Mutex<Vec<Duration>>>,
    mapping: Mapping,
    /// How long a call takes while the system is away.
    hangs: Duration,
}

impl World {
    fn new() -> Self {
        let mapping = Mapping {
            clock: MovableClock::start(),
            on: Arc::new(AtomicBool::new(true)),
            returns: Arc::default(),
            log: Arc::default(),
            faults: Arc::default(),
        };
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let hangs = Duration::from_millis(100);
        Self { store, away: Arc::new(AtomicBool::new(true)), runs: Arc::default(), mapping, hangs }
    }

    fn process(&self) -> Engine {
        self.process_of(1)
    }

    fn process_of(&self, concurrency: usize) -> Engine {
        let (world, start) = (self.clone(), Instant::now());
        let handler = move |_: String, cx: Context| {
            let (world, is_late) = (world.clone(), ["late7", "slow9"].contains(&cx.message_id()));
            async move {
                world.runs.lock().unwrap().push(start.elapsed());
                if is_late {
                    sleep(Duration::from_secs(15)).await;
                    return Ok(());
                }
                let hangs = world.away.load(Ordering::SeqCst) && world.hangs > Duration::from_secs(1);
                sleep(if hangs { world.hangs } else { Duration::from_millis(100) }).await;
                match hangs || world.away.load(Ordering::SeqCst) {
                    true => Err(HandlerError::retry("it is away").downstream("mail")),
                    false => Ok(()),
                }
            }
        };
        let consumer = Consumer::new("confirmation", self.store.clone(), handler).concurrency(concurrency);
        let engine = Engine::with_defaults(consumer.breaker(Breaker::new("mail"))).unwrap();
        engine.clock(Arc::new(self.mapping.clock.clone()))
    }

    async fn deliver(&self, process: &Engine, prefix: &str, receives: u32, seconds: u64) -> Report {
        let message = |n| Message::new(format!("{prefix}{n}"), r#""x""#).unwrap().with_receive_count(receives);
        let batch: Vec<_> = (0..10).map(message).collect();
        let now = process.now();
        let time = InvocationTime::new(now, now.plus(Duration::from_secs(seconds)), Duration::from_millis(500));
        process.process(&batch, time, &self.mapping).await
    }

    /// Lets the time of the wall clock and of timers pass.
    fn pass(&self, seconds: u64) {
        self.mapping.clock.advance(Duration::from_secs(seconds));
    }

    /// Fails until the breaker is open, and a probe has failed.
    async fn open(&self, process: &Engine) -> Report {
        self.deliver(process, "a", 1, 15).await
    }
}

fn hidden(report: &Report) -> Vec<u64> {
    let held = report.entries().iter().filter(|entry| entry.outcome.word() == "breaker_open");
    held.map(|entry| entry.visible_after.unwrap().as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_failed_probe_pauses_it_and_what_waits_is_hidden_until_it_comes_back() {
    let world = World::new();
    let process = world.process();
    // The first opening pauses nothing.
    let report = world.deliver(&process, "a", 1, 5).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("", 0));
    let report = world.deliver(&process, "b", 1, 15).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("is_on plan off", 1));
    assert!(!world.mapping.is_letting_in());
    let left = world.mapping.returns.lock().unwrap()[0].since(world.mapping.clock.now()).as_secs();
    assert!((345..=360).contains(&left), "{left} s");
    let hidden = hidden(&report);
    assert_eq!(hidden.len(), 9);
    assert!(hidden.iter().all(|s| (left..=left + 6).contains(s)), "{hidden:?} for {left} s");
    // A message that needs its last receives waits for longer.
    let late = self::hidden(&world.deliver(&process, "c", 4, 3).await);
    assert!(late.iter().all(|s| *s >= 1_800), "{late:?}");
    // Of one that has more of them than is assumed nobody knows which are the last.
    let more = self::hidden(&world.deliver(&process, "d", 6, 3).await);
    assert!(more.len() == 10 && more.iter().all(|s| *s <= left + 6), "{more:?} for {left} s");
}

#[tokio::test(start_paused = true)]
async fn all_processes_know_it_from_the_record_and_none_pauses_it_again() {
    let world = World::new();
    let (first, second) = (world.process(), world.process());
    world.open(&first).await;
    assert_eq!(world.mapping.log(), "is_on plan off");
    // It fails by itself, is refused as busy, and reads the record while it waits; its probe fails, too.
    let report = world.deliver(&second, "b", 1, 50).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("", 0));
    let left = world.mapping.returns.lock().unwrap()[0].since(world.mapping.clock.now()).as_secs();
    let hidden = hidden(&report);
    assert!(!hidden.is_empty() && hidden.iter().all(|s| (left..=left + 6).contains(s)), "{hidden:?} for {left} s");
    // The third one learns it after that probe's claim and renewal.
    let third = world.process();
    let hidden = self::hidden(&world.deliver(&third, "c", 1, 12).await);
    assert!(!hidden.is_empty() && hidden.iter().all(|s| *s <= left + 6), "{hidden:?} for {left} s");
}

#[tokio::test(start_paused = true)]
async fn whoever_closes_the_breaker_switches_it_on_and_the_return_stays() {
    let once = "is_on has_return on";
    // The other time it is still being switched off when the breaker closes.
    for (in_use, asked) in [(0, once.to_owned()), (3, [once; 4].join(" "))] {
        let world = World::new();
        let process = world.process();
        world.open(&process).await;
        let _ = world.mapping.log();
        world.mapping.faults.lock().unwrap().insert("on", Fault::InUse(in_use));
        // Another process, which has waited and probes: it knows the pause from the record.
        let waiting = world.process();
        let (report, ()) = tokio::join!(world.deliver(&waiting, "b", 1, 60), async {
            sleep(Duration::from_secs(5)).await;
            world.away.store(false, Ordering::SeqCst);
        });
        assert_eq!(report.counts().get("completed"), Some(&5), "{report:?}");
        assert_eq!(world.mapping.log(), asked);
        assert!(world.mapping.is_letting_in() && world.mapping.has_way_back());
    }
}

/// The second time a call hangs for longer than a probe has the record: another process probes beside it.
#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_when_another_process_has_closed_the_breaker_pauses_nothing() {
    for (hangs, back_after, asked) in [(20, 12, "is_on plan off is_on has_return on"), (90, 70, "")] {
        let world = World { hangs: Duration::from_secs(hangs), ..World::new() };
        let processes = [world.process_of(10), world.process_of(10)];
        tokio::join!(world.deliver(&processes[0], "a", 1, 100), world.deliver(&processes[1], "b", 1, 100));
        let (of_first, of_second, ()) =
            tokio::join!(world.deliver(&processes[0], "c", 1, 200), world.deliver(&processes[1], "d", 1, 200), async {
                sleep(Duration::from_secs(back_after)).await;
                world.away.store(false, Ordering::SeqCst);
            });
        assert_eq!(world.mapping.log(), asked);
        assert!(world.mapping.is_letting_in());
        let done = [&of_first, &of_second].map(|report| super::support::count(report, "completed"));
        assert_eq!(done.iter().sum::<usize>(), 19, "all but the probe: {of_first:?} {of_second:?}");
    }
}

/// Its third call, or its first one, answers after longer than it has the record: another process has probed, and the system is away again.
#[tokio::test(start_paused = true)]
async fn a_probe_that_has_lost_the_record_closes_nothing_and_switches_nothing_on() {
    for (prefix, seconds, done) in [("late", 45, 3), ("slow", 80, 1)] {
        let world = World::new();
        let (first, other) = (world.process(), world.process());
        world.open(&first).await;
        assert_eq!(world.mapping.log(), "is_on plan off");
        world.away.store(false, Ordering::SeqCst);
        let (report, _) = tokio::join!(world.deliver(&first, prefix, 1, seconds), async {
            sleep(Duration::from_secs(22)).await;
            world.away.store(true, Ordering::SeqCst);
            world.deliver(&other, "other", 1, 40).await
        });
        assert_eq!(world.mapping.log(), "");
        assert!(!world.mapping.is_letting_in());
        let counts = ["completed", "breaker_open"].map(|word| super::support::count(&report, word));
        assert_eq!(counts, [done, 10 - done], "{report:?} {:?}", world.runs.lock().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_breaker_whose_release_has_no_answer_is_closed_for_its_process_and_resumes_nothing() {
    let world = World::new();
    let process = world.process();
    world.open(&process).await;
    let _ = world.mapping.log();
    world.away.store(false, Ordering::SeqCst);
    let runs = || world.runs.lock().unwrap().len();
    let before = runs();
    let (report, ()) = tokio::join!(world.deliver(&process, "b", 1, 60), async {
        // While the third call is under way.
        while runs() < before + 3 {
            sleep(Duration::from_millis(10)).await;
        }
        world.store.away_for(Duration::from_millis(300), StoreErrorKind::Unreachable);
    });
    assert_eq!(super::support::count(&report, "completed"), 10);
    assert_eq!(world.mapping.log(), "");
    assert!(!world.mapping.is_letting_in());
}

#[tokio::test(start_paused = true)]
async fn it_stays_off_where_the_breaker_opens_again_while_it_is_resumed() {
    let world = World::new();
    let process = world.process();
    world.open(&process).await;
    let _ = world.mapping.log();
    world.mapping.faults.lock().unwrap().insert("on", Fault::InUse(5));
    world.away.store(false, Ordering::SeqCst);
    let (resuming, held) = tokio::join!(world.deliver(&process, "b", 1, 120), async {
        while world.mapping.faults.lock().unwrap()["on"] == Fault::InUse(5) {
            sleep(Duration::from_secs(1)).await;
        }
        // Closed, asked for once, and away again.
        world.away.store(true, Ordering::SeqCst);
        let held = world.deliver(&process, "c", 1, 10).await;
        sleep(Duration::from_secs(30)).await;
        assert!(!world.mapping.is_letting_in(), "{}", world.mapping.log());
        held
    });
    assert_eq!(super::support::count(&resuming, "completed"), 10);
    let left = world.mapping.returns.lock().unwrap()[0].since(world.mapping.clock.now()).as_secs();
    let hidden = hidden(&held);
    assert!(hidden.len() == 5 && hidden.iter().all(|s| (left..left + 50).contains(s)), "{hidden:?} for {left} s");
}

#[tokio::test(start_paused = true)]
async fn the_return_is_the_probe_and_if_it_fails_the_next_pause_is_longer() {
    let world = World::new();
    let process = world.process();
    world.open(&process).await;
    world.pass(400);
    assert!(world.mapping.is_letting_in());
    let _ = world.mapping.log();
    let runs = world.runs.lock().unwrap().len();
    let report = world.deliver(&process, "b", 2, 5).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("is_on plan off", 1));
    assert_eq!(world.runs.lock().unwrap().len(), runs + 1, "one probe");
    let left = world.mapping.returns.lock().unwrap()[0].since(world.mapping.clock.now()).as_secs();
    assert!((710..=720).contains(&left), "{left} s");
    // A process that has just started knows nothing, and fails first.
    world.pass(800);
    assert!(world.mapping.is_letting_in());
    let report = world.deliver(&world.process(), "c", 2, 5).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("is_on plan off", 1));
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_switched_on_is_not_paused_before_the_pause_would_have_ended() {
    let world = World::new();
    let process = world.process();
    world.open(&process).await;
    world.mapping.on.store(true, Ordering::SeqCst);
    let _ = world.mapping.log();
    let runs = || world.runs.lock().unwrap().len();
    let before = runs();
    for (prefix, asked) in [("b", ""), ("c", ""), ("d", "is_on plan off")] {
        world.pass(150);
        let report = world.deliver(&process, prefix, 2, 5).await;
        assert_eq!((world.mapping.log().as_str(), super::support::count(&report, "breaker_open")), (asked, 9));
    }
    assert_eq!(runs(), before + 3, "a probe each time");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_switched_off_is_left_alone() {
    let world = World::new();
    let process = world.process();
    world.mapping.returns.lock().unwrap().push(Timestamp::from_millis(u64::MAX));
    world.mapping.on.store(false, Ordering::SeqCst);
    let report = world.open(&process).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("is_on", 0));
    // Off while the breaker pauses it and its return is gone: by a person, who has deleted that.
    let world = World::new();
    let process = world.process();
    world.open(&process).await;
    let _ = world.mapping.log();
    world.mapping.returns.lock().unwrap().clear();
    world.away.store(false, Ordering::SeqCst);
    let asked = claimant_core::intake::resume(&Off(&world.mapping)).await;
    assert!(!asked.unwrap());
    assert!(!world.mapping.on.load(Ordering::SeqCst));
}

/// The intake, whose return was deleted by a person.
struct Off<'a>(&'a Mapping);

impl Intake for Off<'_> {
    fn is_on(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(self.0.on.load(Ordering::SeqCst)) })
    }

    fn plan_return<'a>(&'a self, _: Timestamp, _: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        unreachable!("it is off")
    }

    fn has_return(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async { Ok(self.0.has_way_back()) })
    }

    fn switch_off(&self, _: Timestamp) -> BoxFuture<'_, Result<(), Error>> {
        unreachable!("it is off")
    }

    fn switch_on(&self) -> BoxFuture<'_, Result<(), Error>> {
        unreachable!("a person has switched it off")
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_permission_or_an_answer_messages_are_held_back_as_ever() {
    for (step, fault, asked) in [
        ("is_on", Fault::Refused, "is_on"),
        ("plan", Fault::Refused, "is_on plan"),
        ("off", Fault::Refused, "is_on plan off"),
        ("is_on", Fault::Silent, "is_on"),
        ("plan", Fault::Silent, "is_on plan"),
        ("plan", Fault::AnswerLost, "is_on plan"),
        ("off", Fault::AnswerLost, "is_on plan off"),
        ("intake", Fault::Panics, ""),
        ("is_on", Fault::Panics, "is_on"),
        ("plan", Fault::Panics, "is_on plan"),
        ("off", Fault::Panics, "is_on plan off"),
    ] {
        let world = World::new();
        world.mapping.faults.lock().unwrap().insert(step, fault);
        let process = world.process();
        let report = world.open(&process).await;
        assert_eq!((world.mapping.log().as_str(), report.totals.pauses), (asked, 0), "{step} {fault:?}");
        let hidden = hidden(&report);
        assert!(hidden.len() == 4 && hidden.iter().all(|s| (225..=300).contains(s)), "{hidden:?}");
        assert!(world.mapping.is_letting_in() || world.mapping.has_way_back());
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_known_though_the_answer_to_it_was_an_error() {
    let world = World::new();
    world.mapping.faults.lock().unwrap().insert("off", Fault::Failed);
    let process = world.process();
    let report = world.deliver(&process, "a", 1, 60).await;
    assert_eq!((world.mapping.log().as_str(), report.totals.pauses), ("is_on plan off is_on", 1));
}

#[tokio::test(start_paused = true)]
async fn a_death_at_any_step_leaves_it_on_or_with_its_return() {
    let mut steps = Vec::new();
    for ms in (11_000..12_500).step_by(50) {
        let world = World::new();
        let process = world.process();
        assert!(timeout(Duration::from_millis(ms), world.open(&process)).await.is_err());
        sleep(Duration::from_secs(5)).await;
        assert!(world.mapping.is_letting_in() || world.mapping.has_way_back());
        let log = world.mapping.log();
        if steps.last() != Some(&log) {
            steps.push(log);
        }
    }
    assert_eq!(steps, ["", "is_on", "is_on plan", "is_on plan off"]);
}

#[tokio::test(start_paused = true)]
async fn without_an_intake_nothing_changes() {
    let world = World::new();
    let process = world.process();
    let message = |n| Message::new(format!("a{n}"), r#""x""#).unwrap().with_receive_count(1);
    let batch: Vec<_> = (0..10).map(message).collect();
    let time =
        InvocationTime::new(process.now(), process.now().plus(Duration::from_secs(15)), Duration::from_millis(500));
    let report = process.process(&batch, time, &NoQueue).await;
    assert_eq!(report.totals.pauses, 0);
    assert!(hidden(&report).iter().all(|s| (225..=300).contains(s)));
}
