//! Probes of a breaker on a FIFO queue: messages of one group come one after the other, and each has to end before the next one begins.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{
    Breaker, Consumer, ConsumerName, Context, Engine, HandlerError, InvocationTime, Key, MemoryStore, Message, Meter,
    RecordId, Status, Store,
};
use claimant_testkit::outcomes::{Work, message};
use claimant_testkit::{DeadLetterQueue, FaultyStore, MovableClock, ScriptedQueue};
use tokio::time::{Instant, timeout};

use super::support::{MARGIN, deliver};
use super::words;

/// A process whose breaker is open, and when its handlers were run.
struct World {
    store: FaultyStore,
    engine: Engine,
    clock: MovableClock,
    start: Instant,
    runs: Arc<Mutex<Vec<u64>>>,
}

impl World {
    async fn open() -> Self {
        Self::open_with(|consumer| consumer).await
    }

    async fn open_with(set: fn(Consumer<Work>) -> Consumer<Work>) -> Self {
        let (store, start) = (FaultyStore::new(Arc::new(MemoryStore::new())), Instant::now());
        let runs = Arc::<Mutex<Vec<u64>>>::default();
        let log = Arc::clone(&runs);
        let handler = move |work: Work, _: Context| {
            log.lock().unwrap().push(start.elapsed().as_secs());
            async move {
                match work.action.as_str() {
                    "away" => Err(HandlerError::retry("it is away").downstream("mail")),
                    "reject" => Err(HandlerError::terminal("never")),
                    _ => Ok(()),
                }
            }
        };
        let consumer = Consumer::new("c", store.clone(), handler).key(|work| &work.id).concurrency(1);
        let engine = Engine::with_defaults(set(consumer).breaker(Breaker::new("mail"))).unwrap();
        let clock = MovableClock::start();
        let engine = engine.clock(Arc::new(clock.clone()));
        let opens: Vec<_> = (0..5).map(|n| message(n, &format!("o{n} away"), 1)).collect();
        assert_eq!(words(&deliver(&engine, &opens, 4).await), "retry retry retry retry retry");
        runs.lock().unwrap().clear();
        Self { store, engine, clock, start, runs }
    }

    /// Delivers messages of one group, in which the first one probes; and how long after that the others were run.
    async fn deliver(&self, actions: &[&str]) -> (String, Vec<u64>) {
        let text = |(n, action): (usize, &&str)| message(n, &format!("x:k{n} {action}"), 1);
        let batch: Vec<Message> = actions.iter().enumerate().map(text).collect();
        let time = InvocationTime::new(self.engine.now(), self.engine.now().plus(Duration::from_secs(60)), MARGIN);
        let queue = ScriptedQueue::new(DeadLetterQueue::Taken);
        let report = self.engine.process(&batch, time, &queue).await;
        let runs = self.runs.lock().unwrap().clone();
        assert!(runs[0] >= 10, "it was open for 10 s: {runs:?}");
        (words(&report), runs.iter().map(|at| at - runs[0]).collect())
    }

    /// Another process claims the key of this message, and dies. Its lease is over soon after so many seconds.
    async fn hold(&self, number: usize, action: &str, seconds: u64) {
        let hangs = |_: Work, _: Context| std::future::pending::<Result<(), HandlerError>>();
        let consumer = Consumer::new("c", self.store.clone(), hangs).key(|work| &work.id);
        let dies = Engine::with_defaults(consumer).unwrap().clock(Arc::new(self.clock.clone()));
        let batch = [message(number, &format!("x:k{number} {action}"), 1)];
        assert!(timeout(Duration::from_millis(5), deliver(&dies, &batch, seconds)).await.is_err());
    }

    async fn breaker(&self) -> Status {
        let id = RecordId::new(&ConsumerName::new("claimant-breaker").unwrap(), &Key::new("mail").unwrap());
        let meter = Meter::default();
        let call = claimant_core::Call { within: MARGIN, meter: &meter };
        Store::get(&self.store, &id, call).await.unwrap().unwrap().status
    }
}

#[tokio::test(start_paused = true)]
async fn one_answer_closes_no_breaker_while_more_of_its_group_wait() {
    let world = World::open().await;
    let (words, after) = world.deliver(&["ok", "away", "ok", "ok"]).await;
    assert_eq!((words.as_str(), after), ("completed retry blocked blocked", vec![0, 0]));
    assert_eq!(world.breaker().await, Status::InProgress, "the second one failed: open");
    // Of two messages, two answers are enough.
    let world = World::open().await;
    assert_eq!(world.deliver(&["ok", "ok"]).await, ("completed completed".to_owned(), vec![0, 0]));
    assert_eq!(world.breaker().await, Status::Failed, "closed");
}

#[tokio::test(start_paused = true)]
async fn a_message_of_which_nothing_is_learned_leaves_the_probe_to_the_next_of_its_group() {
    let world = World::open().await;
    let (words, after) = world.deliver(&["reject", "ok", "ok", "ok"]).await;
    assert_eq!(words, "rejected completed completed completed");
    assert_eq!(after, [0; 4], "at once, and not when the lease of the probe is over");
    assert!(world.start.elapsed() < Duration::from_secs(30));
}

/// Nothing else waits or is in hand meanwhile.
#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_a_busy_key_keeps_the_probe() {
    let waits = || World::open_with(|consumer| consumer.wait_while_busy(Duration::from_secs(10)));
    let world = waits().await;
    world.hold(0, "ok", 14).await;
    assert_eq!(world.deliver(&["ok"]).await.0, "completed");
    assert_eq!(world.breaker().await, Status::Failed, "closed");
    let took = world.start.elapsed();
    assert!(
        took < Duration::from_secs(19),
        "when the key is free, and not when the lease of the probe is over: {took:?}"
    );
    // One answer before it closes nothing.
    let world = waits().await;
    world.hold(1, "away", 14).await;
    assert_eq!(world.deliver(&["ok", "away"]).await.0, "completed retry");
    assert_eq!(world.breaker().await, Status::InProgress, "the second one failed: open");
}

/// Its claim on the probe lasts as long as the breaker was open.
#[tokio::test(start_paused = true)]
async fn a_message_that_waits_for_a_busy_key_for_long_leaves_the_probe_to_others() {
    let world = World::open_with(|consumer| consumer.wait_while_busy(Duration::from_secs(20))).await;
    world.hold(0, "ok", 26).await;
    let other = async {
        tokio::time::sleep(Duration::from_secs(22)).await;
        let report = deliver(&world.engine, &[message(9, "y:k9 ok", 1)], 60).await;
        (words(&report), world.start.elapsed())
    };
    let (waited, (other, at)) = tokio::join!(world.deliver(&["ok"]), other);
    assert_eq!((waited.0.as_str(), other.as_str()), ("completed", "completed"));
    assert!(at < Duration::from_secs(25), "when the lease of the probe is over, and not when the key is free: {at:?}");
    // And its answer before that closes nothing.
    let world = World::open_with(|consumer| consumer.wait_while_busy(Duration::from_secs(20))).await;
    world.hold(1, "away", 26).await;
    assert_eq!(world.deliver(&["ok", "away"]).await.0, "completed retry");
    assert_eq!(world.breaker().await, Status::InProgress, "the second one failed: open");
}
