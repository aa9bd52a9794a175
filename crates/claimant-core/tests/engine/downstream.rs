//! Half an hour without what the handlers call, with a queue that counts receives: with a breaker, and without.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::protocol::{ClaimRequest, Renewal, Settlement};
use claimant_core::{
    Breaker, Call, Claim, ClaimAnswer, Consumer, Context, Engine, HandlerError, MemoryStore, Message, NoQueue, Record,
    RecordId, Renewed, Schedule, Settled, Store, StoreError, StoreFuture,
};
use claimant_testkit::MovableClock;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

/// Messages a second, for so long; the system is away meanwhile.
const RATE: u64 = 2;
const SENT_FOR: Duration = Duration::from_secs(40 * 60);
const AWAY: std::ops::Range<u64> = 120..120 + 30 * 60;

const TIMEOUT: Duration = Duration::from_secs(30);
const BATCH_MAX: usize = 10;
const PROCESSES: usize = 4;
const RECEIVES_MAX: u32 = 5;

/// A store that counts what it is asked of breakers: reads and writes.
#[derive(Clone, Default)]
struct Counts {
    inner: Arc<MemoryStore>,
    asked: Arc<Mutex<(usize, usize)>>,
}

impl Counts {
    fn count(&self, id: &RecordId, reads: usize, writes: usize) {
        if id.as_str().starts_with("claimant-breaker#") {
            let mut asked = self.asked.lock().unwrap();
            *asked = (asked.0 + reads, asked.1 + writes);
        }
    }
}

impl Store for Counts {
    fn claim<'a>(
        &'a self,
        request: &'a ClaimRequest,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<ClaimAnswer, StoreError>> {
        self.count(&request.id, 0, 1);
        self.inner.claim(request, call)
    }

    fn renew<'a>(
        &'a self,
        claim: &'a mut Claim,
        renewal: Renewal,
        call: Call<'a>,
    ) -> StoreFuture<'a, Result<Renewed, StoreError>> {
        self.count(&claim.id, 0, 1);
        self.inner.renew(claim, renewal, call)
    }

    fn settle<'a>(&'a self, claim: Claim, settlement: &'a Settlement, call: Call<'a>) -> StoreFuture<'a, Settled> {
        self.count(&claim.id, 0, 1);
        self.inner.settle(claim, settlement, call)
    }

    fn get<'a>(&'a self, id: &'a RecordId, call: Call<'a>) -> StoreFuture<'a, Result<Option<Record>, StoreError>> {
        self.count(id, 1, 0);
        self.inner.get(id, call)
    }
}

struct Waiting {
    visible_at: Instant,
    receives: u32,
}

/// What became of the messages.
#[derive(Default, Debug)]
struct Seen {
    /// How often each was done.
    done: BTreeMap<u64, u32>,
    dead: usize,
    hidden_most: usize,
    runs_while_away: usize,
    receives: usize,
    /// Of the breaker's record.
    reads: usize,
    writes: usize,
    /// When nothing was left, since the beginning.
    drained: Duration,
}

#[derive(Clone)]
struct World {
    start: Instant,
    queue: Arc<Mutex<BTreeMap<u64, Waiting>>>,
    seen: Arc<Mutex<Seen>>,
    sending: Arc<AtomicUsize>,
}

impl World {
    fn is_away(&self) -> bool {
        AWAY.contains(&self.start.elapsed().as_secs())
    }

    /// Sends messages, each at its time.
    async fn send(self) {
        for n in 0..RATE * SENT_FOR.as_secs() {
            self.queue.lock().unwrap().insert(n, Waiting { visible_at: Instant::now(), receives: 0 });
            sleep(Duration::from_millis(1_000 / RATE)).await;
        }
        self.sending.store(0, Ordering::SeqCst);
    }

    /// Receives the oldest messages that are visible; those that were received too often are dead.
    fn receive(&self) -> Vec<(u64, u32)> {
        let (mut queue, now) = (self.queue.lock().unwrap(), Instant::now());
        let before = queue.len();
        queue.retain(|_, waiting| waiting.visible_at > now || waiting.receives < RECEIVES_MAX);
        let dead = before - queue.len();
        let visible = queue.iter_mut().filter(|(_, waiting)| waiting.visible_at <= now).take(BATCH_MAX);
        let received = visible.map(|(n, waiting)| {
            (waiting.visible_at, waiting.receives) = (now + TIMEOUT * 6, waiting.receives + 1);
            (*n, waiting.receives)
        });
        let received: Vec<_> = received.collect();
        let hidden = queue.values().filter(|waiting| waiting.visible_at > now).count();
        let mut seen = self.seen.lock().unwrap();
        seen.receives += received.len();
        (seen.dead, seen.hidden_most) = (seen.dead + dead, seen.hidden_most.max(hidden));
        received
    }

    /// One process after the other invocation.
    async fn work(self, engine: Engine<u64>) {
        while self.sending.load(Ordering::SeqCst) > 0 || !self.queue.lock().unwrap().is_empty() {
            let received = self.receive();
            if received.is_empty() {
                sleep(Duration::from_secs(1)).await;
                continue;
            }
            let message = |(n, receives): &(u64, u32)| {
                Message::new(format!("m{n}"), n.to_string()).unwrap().with_receive_count(*receives)
            };
            let batch: Vec<_> = received.iter().map(message).collect();
            let schedule = Schedule::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
            let report = engine.process(&batch, schedule, &NoQueue).await;
            let mut queue = self.queue.lock().unwrap();
            for ((n, _), entry) in received.iter().zip(report.entries()) {
                if entry.outcome.is_success() {
                    queue.remove(n);
                } else if let (Some(waiting), Some(after)) = (queue.get_mut(n), entry.visible_after) {
                    waiting.visible_at = Instant::now() + after;
                }
            }
        }
    }
}

async fn outage(breaker: bool) -> Seen {
    let world = World {
        start: Instant::now(),
        queue: Arc::default(),
        seen: Arc::default(),
        sending: Arc::new(AtomicUsize::new(1)),
    };
    let (store, clock) = (Counts::default(), MovableClock::start());
    let process = || {
        let called = world.clone();
        let handler = move |n: u64, _: Context| {
            let world = called.clone();
            async move {
                sleep(Duration::from_millis(50)).await;
                let away = world.is_away();
                let mut seen = world.seen.lock().unwrap();
                if away {
                    seen.runs_while_away += 1;
                    return Err(HandlerError::retry("the mail server is away").downstream("mail"));
                }
                *seen.done.entry(n).or_default() += 1;
                Ok(())
            }
        };
        let consumer =
            Consumer::new("confirmation", store.clone(), handler).key_of(|n: &u64| n.to_string()).concurrency(5);
        let consumer = if breaker { consumer.breaker(Breaker::new("mail")) } else { consumer };
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(clock.clone())).receives_max(RECEIVES_MAX)
    };
    let workers: Vec<_> = (0..PROCESSES).map(|_| world.clone().work(process())).collect();
    tokio::join!(world.clone().send(), join_all(workers));
    let mut seen = std::mem::take(&mut *world.seen.lock().unwrap());
    seen.drained = world.start.elapsed();
    (seen.reads, seen.writes) = *store.asked.lock().unwrap();
    seen
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_half_an_hour_dead_letters_nothing() {
    let all = (RATE * SENT_FOR.as_secs()) as usize;
    let with = outage(true).await;
    let show = |name: &str, seen: &Seen| {
        println!(
            "{name:8} dead {:5}  hidden at most {:5}  receives {:6}  runs while away {:6}  drained after {:5} s  reads {:4}  writes {:4}",
            seen.dead,
            seen.hidden_most,
            seen.receives,
            seen.runs_while_away,
            seen.drained.as_secs(),
            seen.reads,
            seen.writes
        );
    };
    show("with", &with);
    assert_eq!((with.dead, with.done.len()), (0, all));
    assert!(with.done.values().all(|times| *times == 1), "nothing is done twice");
    // Four processes fail five to ten times each before they know, and then there is a probe a minute.
    assert!(with.runs_while_away <= 10 * PROCESSES + 30 + 5, "{}", with.runs_while_away);
    // What the book says of costs: a read of each process every 5 s and before each probe, and few writes.
    assert!(with.reads <= PROCESSES * (30 * 60 / 5 + 60), "{}", with.reads);
    assert!(with.writes <= PROCESSES + 30 * (2 + PROCESSES), "{}", with.writes);

    let without = outage(false).await;
    assert_eq!((without.reads, without.writes), (0, 0));
    show("without", &without);
    assert_eq!(without.dead + without.done.len(), all);
    assert!(without.dead > all / 3, "{}", without.dead);
    assert!(without.runs_while_away > 50 * with.runs_while_away);
}
