//! A queue in memory with a consumer behind it.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::limits::RECEIVES_MAX_DEFAULT;
use claimant_core::{
    Call as StoreCall, Consumer, Engine, HandlerThreads, Key, Message, Meter, Record, RecordId, Report, Status,
    Store as _,
};

use crate::backlog::End;
use crate::clock::MovableClock;
use crate::faulty::{Fault, FaultyStore};
use crate::life::{self, SharedSteps};
use crate::message::{TestMessage, reordered};
use crate::played::{Played, Story};
use crate::probe::{Probe, Seen};
use crate::scenario::{Kind, Scenario};
use crate::worker::Worker;

/// How long an invocation may last, unless set, and how many messages a batch has.
const TIMEOUT: Duration = Duration::from_secs(30);
const BATCH_MAX: usize = 10;

/// How long a look at a record may take.
const LOOK: Duration = Duration::from_secs(20);

/// A queue in memory with a consumer behind it, as SQS and Lambda have it: batches, receive counts, visibility timeouts, FIFO groups, a
/// dead-letter queue. Its clock is moved on when all messages are hidden, so no test waits for a backoff or a lease.
///
/// Use it on Tokio's paused time: `#[tokio::test(start_paused = true)]`, with Tokio's feature `test-util`.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, HandlerError, MemoryStore};
/// use claimant_test::{TestMessage, TestQueue};
///
/// async fn pack(order: u64, cx: Context) -> Result<(), HandlerError> {
///     match (order, cx.attempt()) {
///         (0, _) => Err(HandlerError::terminal("there is no order 0")),
///         (_, 1) => Err(HandlerError::retry("the printer has no paper")),
///         _ => Ok(()),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = TestQueue::new(Consumer::new("packing", MemoryStore::new(), pack).key(|order| order));
/// queue.send(&[TestMessage::text("7"), TestMessage::text("0")]);
/// let played = queue.drain().await;
/// assert_eq!(played.outcomes(), ["m-1: retry, completed", "m-2: rejected"]);
/// assert_eq!(played.dead_letters(), ["m-2: there is no order 0"]);
/// # }
/// ```
pub struct TestQueue<T> {
    worker: Worker<T>,
    store: FaultyStore,
    seen: Seen,
    batch_max: usize,
}

impl<T: Send + 'static> TestQueue<T> {
    /// Returns an empty queue with this consumer behind it. It has a dead-letter queue, messages are moved there after five receives,
    /// batches have up to ten messages, and invocations 30 s.
    ///
    /// # Panics
    /// When the consumer's settings are not usable, with all faults.
    #[must_use]
    pub fn new(consumer: Consumer<T>) -> Self {
        let (clock, seen) = (MovableClock::start(), Seen::default());
        let mut store = None;
        let consumer = consumer.behind(|own| {
            let faulty = store.insert(FaultyStore::new(Arc::clone(&own))).clone();
            Probe::new(faulty, own, seen.clone())
        });
        let engine = Engine::with_defaults(consumer).unwrap_or_else(|faults| panic!("{faults}"));
        let worker = Worker {
            engine: engine.clock(Arc::new(clock.clone())).handlers_on(HandlerThreads::spawned_by(life::spawn)),
            clock,
            steps: SharedSteps::default(),
            backlog: Arc::default(),
            timeout: TIMEOUT,
            receives_max: RECEIVES_MAX_DEFAULT,
            dead_letters: true,
        };
        Self { worker, store: store.expect("set while the probe was made"), seen, batch_max: BATCH_MAX }
    }

    /// Sets how long an invocation may last. A message that is not reported stays hidden for six times as long.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.worker.timeout = timeout;
        self
    }

    /// Sets how many messages a batch has at most; 0 counts as 1.
    #[must_use]
    pub fn batch_max(self, messages: usize) -> Self {
        Self { batch_max: messages.max(1), ..self }
    }

    /// Sets after how many receives a message is moved to the dead-letter queue; 0 counts as 1.
    #[must_use]
    pub fn receives_max(mut self, receives: u32) -> Self {
        self.worker.engine = self.worker.engine.receives_max(receives);
        self.worker.receives_max = receives.max(1);
        self
    }

    /// Takes away the dead-letter queue that the consumer sends rejected messages to: they come back until they were received too
    /// often, and are moved then.
    #[must_use]
    pub fn without_dead_letters(mut self) -> Self {
        self.worker.dead_letters = false;
        self
    }

    /// Returns the clock of the queue and the consumer.
    #[must_use]
    pub fn clock(&self) -> &MovableClock {
        &self.worker.clock
    }

    /// Returns what stands before the consumer's store, to let its calls fail.
    #[must_use]
    pub fn store(&self) -> &FaultyStore {
        &self.store
    }

    /// Sends messages, to be received in this order. One without an id of its own is `m-` and its number.
    pub fn send(&self, messages: &[TestMessage]) {
        for message in messages {
            let next = self.worker.backlog().all.len();
            self.push(message, next);
        }
    }

    fn push(&self, message: &TestMessage, copy_of: usize) {
        let mut backlog = self.worker.backlog();
        let number = backlog.all.len() + 1;
        backlog.push(message.message(number), copy_of, self.worker.engine.now());
    }

    /// Has messages worked on until the queue is empty, and returns what became of them. The clock moves on to when the next one can
    /// be received.
    ///
    /// # Panics
    /// When it is not empty after 10,000 invocations, or when a message was reported as done that is not.
    pub async fn drain(&self) -> Played {
        let stopped = self.worker.work_in(self.batch_max, false).await;
        assert!(stopped.is_none(), "a process stands still only in a scenario");
        self.played("drained").await
    }

    /// Sends messages, and lets this happen to them, until the queue is empty.
    ///
    /// # Panics
    /// When it does not come out as the scenario says; and as [`drain`](Self::drain).
    pub async fn play(&self, scenario: &Scenario, messages: &[TestMessage]) -> Played {
        let mut twice = false;
        match scenario.kind() {
            Kind::AsTheyCome | Kind::DeliveredTwice => self.send(messages),
            Kind::SentTwice => {
                for message in messages {
                    let first = self.worker.backlog().all.len();
                    self.push(message, first);
                    self.push(&message.sent_again(), first);
                }
            }
            Kind::Reordered => self.send(&reordered(messages)),
            Kind::BesideItself => {
                self.send(messages);
                twice = true;
            }
            Kind::AnswersLost(call) => {
                self.send(messages);
                messages.iter().for_each(|_| self.store.fail_next(call, Fault::AnswerLost));
            }
            Kind::HaltedAt(step, halt) => {
                self.send(messages);
                life::halt_at(&self.worker.steps, step, halt);
            }
        }
        let (batch_max, name) =
            (if scenario.kind() == Kind::Reordered { 1 } else { self.batch_max }, scenario.to_string());
        if let Some(stopped) = self.worker.work_in(batch_max, twice).await {
            self.worker.go_on(stopped, &name).await;
        }
        if scenario.kind() == Kind::DeliveredTwice {
            self.worker.backlog().restore_done(self.worker.engine.now());
            self.worker.work_in(self.batch_max, false).await;
        }
        let played = self.played(&name).await;
        match scenario.kind() {
            Kind::AsTheyCome => scenario.note(played.steps().len()),
            Kind::DeliveredTwice => played.assert_duplicates_at_last(),
            Kind::SentTwice => played.assert_one_run_each(),
            Kind::BesideItself => played.assert_completed_once(),
            Kind::AnswersLost(_) => played.assert_answered(),
            Kind::Reordered | Kind::HaltedAt(..) => {}
        }
        played
    }

    /// Hands the consumer one batch by hand, beside the queue, and returns its report.
    pub async fn deliver(&self, messages: &[TestMessage]) -> Report {
        let batch: Vec<Message> = (1..).zip(messages).map(|(number, message)| message.message(number)).collect();
        let queue = self.worker.receiver(Vec::new());
        self.worker.engine.process(&batch, self.worker.schedule(), &queue).await
    }

    /// Returns the record of a key, also where keys are hashed; `None` if there is none.
    ///
    /// # Panics
    /// When the store does not answer.
    pub async fn record(&self, key: &str) -> Option<Record> {
        let key = Key::new(key).expect("a key is not empty and not too long");
        let name = self.worker.engine.name();
        match self.look(&RecordId::new(name, &key)).await {
            None => self.look(&RecordId::hashed(name, &key)).await,
            record => record,
        }
    }

    async fn look(&self, id: &RecordId) -> Option<Record> {
        let meter = Meter::default();
        let call = StoreCall { within: LOOK, meter: &meter };
        self.store.get(id, call).await.unwrap_or_else(|error| panic!("the store does not answer: {error}"))
    }

    /// Returns what became of all messages, and checks what must hold whatever happens.
    async fn played(&self, scenario: &str) -> Played {
        let mut stories = Vec::new();
        let all = self.worker.backlog().all.clone();
        for queued in all {
            let id = queued.message.id().as_str();
            let mut error = None;
            for record_id in self.seen.records_of(id) {
                let record = self.look(&record_id).await;
                let done = record.as_ref().is_some_and(|record| record.status == Status::Completed);
                assert!(
                    done || queued.end != Some(End::Done),
                    "{scenario}: {id} was reported as done, and its record is not completed: {record:?}"
                );
                error = record.and_then(|record| record.error).or(error);
            }
            stories.push(Story { queued, error });
        }
        let twice = self.seen.completed_twice();
        assert!(twice.is_empty(), "{scenario}: two owners completed {twice:?}: the store does not keep its contract");
        Played::new(scenario.to_owned(), life::taken(&self.worker.steps), stories)
    }
}

impl<T> std::fmt::Debug for TestQueue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestQueue").field("engine", &self.worker.engine).finish_non_exhaustive()
    }
}
