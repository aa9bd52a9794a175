//! L4: a message that kills its process takes no other one with it to the dead-letter queue.
//!
//! A process is a future that is dropped when such a message says so; what it had claimed and not reported comes back.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::CONCURRENCY_DEFAULT;
use claimant_core::protocol::{ClaimRequest, Decision, Ending, Renewal, Settlement, claim_of, decide};
use claimant_core::{
    BoxFuture, Call, Claim, ClaimAnswer, Confirmation, Consumer, HandlerError, HideAnswer, InvocationTime, MemoryStore,
    Message, NoQueue, Outcome, Queue, Renewed, Router, Routes, Settled, Store, StoreError,
};
use claimant_testkit::clock::MovableClock;
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{Call as Asked, Fault, FaultyStore};
use tokio::sync::Notify;

/// SQS's usual limit of receives.
const RECEIVES_MAX: u32 = 5;

const TIMEOUT: Duration = Duration::from_secs(30);

/// How long a good message takes.
const WORK: Duration = Duration::from_secs(2);

/// One that kills lets the others begin.
const FUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Queued,
    Gone,
    Dead,
}

/// A queue, what its messages' handlers did, and one process after the other.
struct World {
    store: FaultyStore,
    clock: MovableClock,
    messages: Vec<(String, u32, Place)>,
    receives_max: u32,
    /// How many consumers share the messages.
    consumers: usize,
    /// How many handlers run at once.
    concurrency: usize,
    /// Whether the function may delete by itself.
    deletes: bool,
    /// From outside: all processes end after this.
    killed_after: Option<Duration>,
    /// How often each key's handler came to its end.
    done: Arc<Mutex<BTreeMap<String, u32>>>,
    /// The keys of the runs in their order, a line for each delivery.
    runs: Arc<Mutex<Vec<Vec<String>>>>,
}

impl World {
    fn new(store: Arc<dyn Store>, texts: impl IntoIterator<Item = String>) -> Self {
        Self {
            store: FaultyStore::new(store),
            clock: MovableClock::start(),
            messages: texts.into_iter().map(|text| (text, 0, Place::Queued)).collect(),
            receives_max: RECEIVES_MAX,
            consumers: 1,
            concurrency: CONCURRENCY_DEFAULT,
            deletes: true,
            killed_after: None,
            done: Arc::default(),
            runs: Arc::default(),
        }
    }

    /// The handler of one process, and what ends it.
    fn router(&self, fatal: &Arc<Notify>) -> Router {
        let (done, runs, fatal) = (Arc::clone(&self.done), Arc::clone(&self.runs), Arc::clone(fatal));
        let handler = move |work: Work, _| {
            let (done, runs, fatal) = (Arc::clone(&done), Arc::clone(&runs), Arc::clone(&fatal));
            async move {
                runs.lock().unwrap().last_mut().unwrap().push(work.id.clone());
                if work.action == "kill" {
                    tokio::time::sleep(FUSE).await;
                    fatal.notify_one();
                    return std::future::pending().await;
                }
                tokio::time::sleep(WORK).await;
                *done.lock().unwrap().entry(work.id).or_default() += 1;
                Ok(())
            }
        };
        let consumer = |number: usize| {
            Consumer::new(format!("c{number}"), self.store.clone(), handler.clone()).key(|w: &Work| &w.id)
        };
        let count = self.consumers;
        let router = match count {
            1 => Router::new(consumer(0), self.concurrency),
            _ => {
                let by_sum = move |message: &Message| {
                    Some((message.body().bytes().map(usize::from).sum::<usize>() % count).to_string())
                };
                let routes = (0..count).fold(Routes::by(by_sum), |routes, n| routes.on(n.to_string(), consumer(n)));
                Router::new(routes, self.concurrency)
            }
        };
        router.unwrap().receives_max(self.receives_max).clock(Arc::new(self.clock.clone()))
    }

    /// Delivers all that is queued as one batch to a new process, long after the last one.
    async fn deliver(&mut self) {
        for (_, receives, place) in self.messages.iter_mut().filter(|(_, _, place)| *place == Place::Queued) {
            *receives += 1;
            if *receives > self.receives_max {
                *place = Place::Dead;
            }
        }
        let queued = self.messages.iter().enumerate().filter(|(_, (_, _, place))| *place == Place::Queued);
        let (numbers, batch): (Vec<usize>, Vec<Message>) =
            queued.map(|(number, (text, receives, _))| (number, message(number, text, *receives))).unzip();
        self.runs.lock().unwrap().push(Vec::new());
        let (queue, fatal) = (Deleting { can: self.deletes, gone: Mutex::default() }, Arc::new(Notify::new()));
        let router = self.router(&fatal);
        self.clock.advance(Duration::from_secs(3_600));
        let time = InvocationTime::new(router.now(), router.now().plus(TIMEOUT), Duration::from_millis(500));
        let killed_after = self.killed_after.unwrap_or(TIMEOUT * 2);
        let report = tokio::select! {
            biased;
            () = fatal.notified() => None,
            () = tokio::time::sleep(killed_after) => None,
            report = router.process(&batch, time, &queue) => Some(report.all().clone()),
        };
        let reported = report.iter().flat_map(|report| report.entries().iter().enumerate());
        let reported = reported.filter(|(_, entry)| entry.outcome.is_success()).map(|(place, _)| place);
        for place in reported.chain(queue.gone.into_inner().unwrap()) {
            self.messages[numbers[place]].2 = Place::Gone;
        }
    }

    /// Delivers until the queue is empty. The texts of what was dead-lettered.
    async fn drain(&mut self) -> Vec<String> {
        while self.messages.iter().any(|(_, _, place)| *place == Place::Queued) {
            self.deliver().await;
        }
        let dead = self.messages.iter().filter(|(_, _, place)| *place == Place::Dead);
        dead.map(|(text, _, _)| text.clone()).collect()
    }

    fn done(&self) -> Vec<u32> {
        self.done.lock().unwrap().values().copied().collect()
    }
}

/// A queue that deletes, where it can.
struct Deleting {
    can: bool,
    gone: Mutex<Vec<usize>>,
}

impl Queue for Deleting {
    fn hide(&self, _: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        Box::pin(std::future::ready(HideAnswer::Hidden))
    }

    fn delete<'a>(&'a self, places: &'a [usize]) -> BoxFuture<'a, Confirmation> {
        if self.can {
            self.gone.lock().unwrap().extend(places);
        }
        Box::pin(std::future::ready(if self.can { Confirmation::Confirmed } else { Confirmation::Unconfirmed }))
    }
}

/// A store whose claims are nowhere but in their process, as open transactions are.
#[derive(Default)]
struct Fleeting {
    records: MemoryStore,
    open: Mutex<Vec<ClaimRequest>>,
}

impl Store for Fleeting {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> BoxFuture<'a, Result<ClaimAnswer, StoreError>> {
        Box::pin(async move {
            let seen = self.records.get(&request.id, call).await?;
            match decide(seen.as_ref(), request) {
                Decision::Grant { next, interruptions } => {
                    self.open.lock().unwrap().push(request.clone());
                    Ok(ClaimAnswer::Granted(claim_of(request.id.clone(), &next, interruptions)))
                }
                Decision::Refuse(refusal) => Ok(ClaimAnswer::Refused(refusal)),
                decision => panic!("{decision:?}"),
            }
        })
    }

    fn renew<'a>(&'a self, _: &'a mut Claim, _: Renewal, _: Call<'a>) -> BoxFuture<'a, Result<Renewed, StoreError>> {
        Box::pin(std::future::ready(Ok(Renewed::Held)))
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> BoxFuture<'a, Settled> {
        Box::pin(async move {
            if matches!(settlement.ending, Ending::Released | Ending::SetAside { .. }) {
                return Settled::Done;
            }
            let request = self.open.lock().unwrap().iter().find(|request| request.owner == claim.owner).cloned();
            match self.records.claim(&request.unwrap(), call).await {
                Ok(ClaimAnswer::Granted(claim)) => self.records.settle(claim, settlement, call).await,
                _ => Settled::Lost,
            }
        })
    }

    claimant_testkit::pass_on!(self => self.records; get);
}

/// Ten messages, of which those at these places kill.
fn ten(kill: &[usize]) -> Vec<String> {
    let text = |n: usize| format!("k{n} {}", if kill.contains(&n) { "kill" } else { "ok" });
    (0..10).map(text).collect()
}

async fn only_those_that_kill_are_dead_lettered(mut world: World, kill: &[usize]) {
    let dead = world.drain().await;
    let wanted: Vec<_> = ten(kill).into_iter().filter(|text| text.ends_with("kill")).collect();
    assert_eq!(dead, wanted, "{:?}", world.runs.lock().unwrap());
    assert_eq!(world.done(), vec![1; 10 - kill.len()], "each good one is done once");
}

#[tokio::test(start_paused = true)]
async fn one_message_that_kills_takes_none_of_its_nine_neighbours_along() {
    for (place, consumers) in (0..10).flat_map(|place| [1, 2, 3, 10].map(|consumers| (place, consumers))) {
        let mut world = World::new(Arc::new(MemoryStore::new()), ten(&[place]));
        world.consumers = consumers;
        only_those_that_kill_are_dead_lettered(world, &[place]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nor_do_two_or_three() {
    for first in 0..10 {
        for second in first + 1..10 {
            for consumers in [1, 3] {
                let mut world = World::new(Arc::new(MemoryStore::new()), ten(&[first, second]));
                world.consumers = consumers;
                only_those_that_kill_are_dead_lettered(world, &[first, second]).await;
            }
            for third in second + 1..10 {
                let kill = [first, second, third];
                let world = World::new(Arc::new(MemoryStore::new()), ten(&kill));
                only_those_that_kill_are_dead_lettered(world, &kill).await;
            }
        }
    }
}

/// What failed before it met them was tried more often than they are; but no owner died of it.
#[tokio::test(start_paused = true)]
async fn nor_of_those_that_failed_before() {
    for kill in [[0, 1, 2], [2, 5, 9], [7, 8, 9]] {
        let world = World::new(Arc::new(MemoryStore::new()), ten(&kill));
        let away = |_: Work, _| async { Err::<(), _>(HandlerError::retry("it is away")) };
        let away = Consumer::new("c0", world.store.clone(), away).key(|work: &Work| &work.id);
        let away = Router::new(away, CONCURRENCY_DEFAULT).unwrap().clock(Arc::new(world.clock.clone()));
        let good = ten(&kill).into_iter().enumerate().filter(|(place, _)| !kill.contains(place));
        let good: Vec<_> = good.map(|(place, text)| message(place, &text, 1)).collect();
        for _ in 0..5 {
            let time = InvocationTime::new(away.now(), away.now().plus(TIMEOUT), Duration::from_millis(500));
            let report = away.process(&good, time, &NoQueue).await;
            assert!(report.all().entries().iter().all(|entry| entry.outcome == Outcome::Retry), "{report:?}");
        }
        only_those_that_kill_are_dead_lettered(world, &kill).await;
    }
}

/// At a low concurrency some begin only after a death, and die while others are set aside.
#[tokio::test(start_paused = true)]
async fn nor_where_few_run_at_once() {
    for concurrency in 1..CONCURRENCY_DEFAULT {
        for chosen in (0..1_u32 << 10).filter(|chosen| (2..=3).contains(&chosen.count_ones())) {
            let kill: Vec<usize> = (0..10).filter(|place| (chosen & (1 << place)) != 0).collect();
            let mut world = World::new(Arc::new(MemoryStore::new()), ten(&kill));
            world.concurrency = concurrency;
            only_those_that_kill_are_dead_lettered(world, &kill).await;
        }
    }
}

/// With n receives, n − 2 of them: every choice of places.
#[tokio::test(start_paused = true)]
async fn nor_do_more_where_the_queue_has_more_receives() {
    for (receives_max, count) in [(3, 1), (4, 2), (6, 4), (7, 5)] {
        for chosen in (0..1_u32 << 10).filter(|chosen| chosen.count_ones() == count) {
            let kill: Vec<usize> = (0..10).filter(|place| (chosen & (1 << place)) != 0).collect();
            let mut world = World::new(Arc::new(MemoryStore::new()), ten(&kill));
            world.receives_max = receives_max;
            only_those_that_kill_are_dead_lettered(world, &kill).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nor_where_the_function_cannot_delete() {
    for (place, consumers) in (0..10).flat_map(|place| [1, 3].map(|consumers| (place, consumers))) {
        let mut world = World::new(Arc::new(MemoryStore::new()), ten(&[place]));
        (world.consumers, world.deletes) = (consumers, false);
        only_those_that_kill_are_dead_lettered(world, &[place]).await;
    }
}

/// Put off until it is alone, a message without another receive would never be tried again.
#[tokio::test(start_paused = true)]
async fn only_what_has_a_receive_left_is_put_off_behind_what_could_not_be_deleted() {
    for (receives_max, done) in [(3, 2), (4, 1)] {
        let mut world = World::new(Arc::new(MemoryStore::new()), ["a ok".to_owned()]);
        (world.receives_max, world.deletes, world.killed_after) = (receives_max, false, Some(WORK / 2));
        world.deliver().await;
        // The next process ends in its turn, behind the other.
        world.messages.push(("b ok".to_owned(), 0, Place::Queued));
        world.killed_after = Some(WORK * 3 / 2);
        world.deliver().await;
        world.killed_after = None;
        world.deliver().await;
        assert_eq!(world.done().len(), done, "the third of {receives_max} receives");
        assert_eq!((world.drain().await, world.done()), (Vec::new(), vec![1; 2]), "{receives_max} receives");
    }
}

#[tokio::test(start_paused = true)]
async fn nor_where_a_death_leaves_no_trace() {
    for (place, consumers) in (0..10).flat_map(|place| [1, 3].map(|consumers| (place, consumers))) {
        let mut world = World::new(Arc::new(Fleeting::default()), ten(&[place]));
        world.consumers = consumers;
        world.store = world.store.fleeting();
        only_those_that_kill_are_dead_lettered(world, &[place]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_suspect_runs_nothing_else_is_claimed() {
    let mut world = World::new(Arc::new(MemoryStore::new()), ten(&[4]));
    world.deliver().await;
    assert_eq!(world.runs.lock().unwrap()[0].len(), 10, "side by side");
    world.deliver().await;
    let second = world.runs.lock().unwrap()[1].clone();
    assert_eq!(second.last().map(String::as_str), Some("k4"));
    assert_eq!(world.done(), vec![1; second.len() - 1]);
    // The third delivery meets one claim of a dead owner, not nine.
    world.deliver().await;
    assert_eq!(world.runs.lock().unwrap()[2].len(), 10 - second.len() + 1);
    assert_eq!(world.done(), [1; 9]);
}

/// The next try of a claim is shown the record as the lost answer's write left it: whose work it took over is not in it any more.
#[tokio::test(start_paused = true)]
async fn a_takeover_whose_answer_was_lost_is_one_all_the_same() {
    let mut world = World::new(Arc::new(MemoryStore::new()), ten(&[4]));
    world.deliver().await;
    (0..10).for_each(|_| world.store.fail_next(Asked::Claim, Fault::AnswerLost));
    world.deliver().await;
    let second = world.runs.lock().unwrap()[1].clone();
    assert_eq!(second.last().map(String::as_str), Some("k4"));
    assert_eq!(world.done(), vec![1; second.len() - 1], "{second:?}");
}

/// S8: a suspect blocks its own group, and no other.
#[tokio::test(start_paused = true)]
async fn a_group_keeps_its_order_behind_a_suspect() {
    for consumers in 1..=6 {
        a_group_keeps_its_order_in(consumers).await;
    }
}

async fn a_group_keeps_its_order_in(consumers: usize) {
    let texts = ["x:a ok", "x:b kill", "x:c ok", "y:d ok", "y:e ok", "z:f ok"].map(str::to_owned);
    let mut world = World::new(Arc::new(MemoryStore::new()), texts);
    world.consumers = consumers;
    let dead = world.drain().await;
    assert!(dead.contains(&"x:b kill".to_owned()) && !dead.iter().any(|text| text[..1] != *"x"), "{dead:?}");
    let runs = world.runs.lock().unwrap().concat();
    let place = |key: &str| runs.iter().position(|run| run == key);
    assert!(place("a") < place("b") && place("d") < place("e"), "{runs:?}");
    assert!(!runs.contains(&"c".to_owned()), "behind a failure: {runs:?}");
    assert_eq!(world.done(), [1; 4], "a d e f");
}

/// A process that ended for another reason: what was in it is not slowed down more than the time allows.
#[tokio::test(start_paused = true)]
async fn suspects_run_together_where_they_do_not_fit_one_after_the_other() {
    let texts = (0..40).map(|n| format!("k{n} ok"));
    let mut world = World::new(Arc::new(MemoryStore::new()), texts);
    world.killed_after = Some(Duration::from_secs(1));
    world.deliver().await;
    world.killed_after = None;
    world.deliver().await;
    assert_eq!(world.done(), [1; 40], "{:?}", world.messages);
}

#[tokio::test(start_paused = true)]
async fn a_suspect_without_neighbours_costs_no_request_more() {
    let mut world = World::new(Arc::new(MemoryStore::new()), ["k kill".to_owned()]);
    world.deliver().await;
    assert_eq!(world.store.calls(), [Asked::Claim]);
    world.deliver().await;
    assert_eq!(world.store.calls(), [Asked::Claim, Asked::Claim]);
}
