//! A queue in memory with a consumer behind it, or several.

use std::sync::Arc;
use std::time::Duration;

use claimant_core::limits::{CONCURRENCY_DEFAULT, RECEIVES_MAX_DEFAULT};
use claimant_core::{ConsumerName, Consumers, HandlerThreads, Key, Message, Record, RecordId, Report, Router};

use crate::backlog::End;
use crate::clock::MovableClock;
use crate::faulty::{Fault, FaultyStore};
use crate::life::{self, SharedSteps};
use crate::message::{TestMessage, reordered};
use crate::played::{Played, Story, Taken};
use crate::probe::{Probe, Seen};
use crate::records::Records;
use crate::scenario::{Kind, Scenario};
use crate::worker::Worker;

/// How long an invocation may last, unless set, and how many messages a batch has.
const TIMEOUT: Duration = Duration::from_secs(30);
const BATCH_MAX: usize = 10;

/// What fails a handler beside a process that stands still, though it is right.
const SHARED: &str = "  Processes of a test share what the handler holds: if it waited for a lock, a permit or a connection that the process which stands \
    still has, give the handler room for two of them in the test, or skip scenarios that stop (Scenario::stops)\n";

/// A queue in memory with a consumer behind it, or with several behind [`Routes`](claimant_core::Routes), as SQS and Lambda have it: batches, receive counts, visibility timeouts, FIFO groups, a
/// dead-letter queue. Its clock is moved on when all messages are hidden, so no test waits for a backoff or a lease.
///
/// All processes of it share the consumer and what its handler holds, of which each has its own on Lambda: a lock, a semaphore, a pool.
///
/// Use it on Tokio's paused time: `#[tokio::test(start_paused = true)]`, with Tokio's feature `test-util`. With a store on a server, leave
/// `start_paused` out: the store's time limits would be over at once.
///
/// ```
/// # use claimant_core as claimant;
/// use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
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
pub struct TestQueue {
    worker: Worker,
    faulty: FaultyStore,
    batch_max: usize,
}

impl TestQueue {
    /// Returns an empty queue with this consumer behind it, or these routes. It has a dead-letter queue, messages are moved there after
    /// five receives, batches have up to ten messages, and invocations 30 s.
    ///
    /// # Panics
    /// When the consumers' settings are not usable, with all faults.
    #[must_use]
    pub fn new(consumers: impl Into<Consumers>) -> Self {
        let (clock, seen) = (MovableClock::start(), Seen::default());
        let (mut stores, mut faulty, noted) = (Vec::new(), None::<FaultyStore>, seen.clone());
        let consumers = consumers.into().identified(move |message_id, record| noted.note_record(message_id, record));
        let consumers = consumers.behind(&mut |_, own| {
            stores.push(Arc::clone(&own));
            // One script for all of them.
            let first = faulty.get_or_insert_with(|| FaultyStore::new(Arc::clone(&own)).clock(clock.clone()));
            Arc::new(Probe::new(first.before(Arc::clone(&own)), own, seen.clone()))
        });
        let router = Router::new(consumers, CONCURRENCY_DEFAULT).unwrap_or_else(|faults| panic!("{faults}"));
        let worker = Worker {
            router: router.clock(Arc::new(clock.clone())).handlers_on(HandlerThreads::spawned_by(life::spawn)),
            clock,
            steps: SharedSteps::default(),
            backlog: Arc::default(),
            timeout: TIMEOUT,
            receives_max: RECEIVES_MAX_DEFAULT,
            dead_letters: true,
            records: Records { stores, seen },
        };
        let faulty = faulty.expect("a consumer at least: a router refuses to have none");
        Self { worker, faulty, batch_max: BATCH_MAX }
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
        self.worker.router = self.worker.router.receives_max(receives);
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

    /// Returns what stands before the consumer's store, to let its calls fail. With several consumers, it stands before all of their
    /// stores: a fault hits the next call, whichever of them makes it.
    #[must_use]
    pub fn store(&self) -> &FaultyStore {
        &self.faulty
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
        backlog.push(message.message(number), copy_of, self.worker.router.now());
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
    /// When there are no messages, or their work was done before, or it does not come out as the scenario says; and as [`drain`](Self::drain).
    pub async fn play(&self, scenario: &Scenario, messages: &[TestMessage]) -> Played {
        assert!(!messages.is_empty(), "{scenario}: there are no messages, so nothing would be shown: give it some");
        let mut twice = false;
        let first = self.worker.backlog().all.len();
        let (steps_before, granted_before) =
            (life::taken(&self.worker.steps).len(), self.worker.records.seen.granted());
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
                messages.iter().for_each(|_| self.faulty.fail_next(call, Fault::AnswerLost));
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
        // A process that died, or an answer that was lost, may have been of what comes back as a duplicate.
        let was_begun = self.worker.records.seen.granted() > granted_before;
        assert!(
            was_begun || !self.worker.backlog().are_duplicates(first),
            "{name}: the work was done before: give each scenario a consumer, a store and effects of its own"
        );
        match scenario.kind() {
            Kind::AnswersLost(call) => assert!(
                scenario.one_of_all() || self.faulty.left(call) < messages.len(),
                "{name}: no answer was lost: the consumer made no such call"
            ),
            Kind::HaltedAt(..) => {
                let unused = life::take_halt(&self.worker.steps);
                let steps = life::taken(&self.worker.steps).len() - steps_before;
                assert!(!unused || scenario.one_of_all(), "{name}: nothing has happened: there are only {steps} steps");
            }
            _ => {}
        }
        let mut done = Vec::new();
        if scenario.kind() == Kind::DeliveredTwice {
            done = self.worker.backlog().restore_done(self.worker.router.now());
            self.worker.work_in(self.batch_max, false).await;
        }
        let played = self.played(&name).await;
        match scenario.kind() {
            Kind::AsTheyCome => scenario.note(played.steps().len()),
            Kind::DeliveredTwice => played.assert_duplicates_at_last(&done),
            Kind::SentTwice => played.assert_one_run_each(),
            Kind::BesideItself => played.assert_completed_once(),
            Kind::AnswersLost(_) => played.assert_answered(),
            Kind::Reordered | Kind::HaltedAt(..) => {}
        }
        if scenario.stops() { played.with_hint(SHARED) } else { played }
    }

    /// Hands the consumer one batch by hand, beside the queue, and returns its report. A message without an id of its own is `d-` and
    /// its number in the batch.
    pub async fn deliver(&self, messages: &[TestMessage]) -> Report {
        let batch: Vec<Message> = (1..).zip(messages).map(|(number, message)| message.delivered(number)).collect();
        let queue = self.worker.receiver(Vec::new());
        self.worker.router.process(&batch, self.worker.time(), &queue).await.all().clone()
    }

    /// Returns the record of a key, also where keys are hashed; `None` if there is none. With several consumers, it is that of the
    /// first one that has one.
    ///
    /// # Panics
    /// When the store does not answer.
    pub async fn record(&self, key: &str) -> Option<Record> {
        self.record_where(key, |_| true).await
    }

    /// Returns the record that this consumer has of a key, as [`record`](Self::record).
    ///
    /// # Panics
    /// When there is no consumer of this name, and as [`record`](Self::record).
    pub async fn record_of(&self, consumer: &str, key: &str) -> Option<Record> {
        let known = self.worker.router.names().any(|name| name.as_str() == consumer);
        assert!(known, "there is no consumer {consumer:?} behind this queue");
        self.record_where(key, |name| name.as_str() == consumer).await
    }

    async fn record_where(&self, key: &str, of: impl Fn(&ConsumerName) -> bool) -> Option<Record> {
        let key = Key::new(key).expect("a key is not empty and not too long");
        for name in self.worker.router.names().filter(|name| of(name)) {
            for id in RecordId::both(name, &key) {
                if let Some(record) = self.worker.records.look(&id).await {
                    return Some(record);
                }
            }
        }
        None
    }

    /// Returns what became of all messages, and checks what must hold whatever happens.
    async fn played(&self, scenario: &str) -> Played {
        let mut stories = Vec::new();
        let all = self.worker.backlog().all.clone();
        for queued in all {
            let id = queued.message.id();
            let mut undone = queued.undone.clone();
            if undone.is_none() && queued.end == Some(End::Done) {
                undone = self.worker.records.undone(id, self.worker.router.now()).await;
            }
            if let Some(why) = undone {
                panic!("{scenario}: {} was reported as done, and {why}", id.as_str());
            }
            let error = self.worker.records.error(id).await;
            stories.push(Story { queued, error });
        }
        let twice = self.worker.records.seen.completed_twice();
        assert!(twice.is_empty(), "{scenario}: two owners completed {twice:?}: the store does not keep its contract");
        let (steps, halted_at) = (life::taken(&self.worker.steps), life::halted_at(&self.worker.steps));
        Played::new(scenario.to_owned(), Taken { steps, halted_at }, stories)
    }
}

impl std::fmt::Debug for TestQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestQueue").field("consumers", &self.worker.router).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::{Consumer, Context, HandlerError, MemoryStore, MessageId};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_copy_in_the_batch_is_done_by_its_record_alone() {
        let mail = async |_: u64, _: Context| Ok::<_, HandlerError>(());
        let queue = TestQueue::new(Consumer::new("mails", MemoryStore::new(), mail).key(|order| order));
        queue.send(&[TestMessage::text("1"), TestMessage::text("1")]);
        queue.drain().await.assert_done();
        let (Records { seen, .. }, now) = (&queue.worker.records, queue.worker.router.now());
        let copy = MessageId::new("m-2").unwrap();
        assert_eq!(queue.worker.records.undone(&copy, now).await, None);
        let forgetful = Records { stores: vec![Arc::new(MemoryStore::new())], seen: seen.clone() };
        assert_eq!(forgetful.undone(&copy, now).await.unwrap(), "its record is not completed: None");
    }
}
