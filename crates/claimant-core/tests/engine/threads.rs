//! Handlers that block their threads for ever, and what becomes of all others. In real time, since threads are really
//! blocked; only states and the order of events are checked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use claimant_core::limits::{BLOCKED_MAX, THREADS_MAX};
use claimant_core::{
    BoxFuture, Breaker, Call as StoreCall, Consumer, Engine, HandlerError, HandlerThreads, HideAnswer, InvocationTime,
    Items, Key, Lease, MemoryStore, Message, Meter, NoQueue, Queue, Record, RecordId, Report, Status, Store,
};
use claimant_testkit::Call::Settle;
use claimant_testkit::FaultyStore;
use claimant_testkit::outcomes::{Work, message};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::OnceCell;

use super::{TIMEOUT, words};

/// The timeout of an invocation: what is not blocked needs a tenth of it.
const PERIOD: Duration = Duration::from_secs(4);

/// For handlers that do not return anyway: long enough to get a thread, of fresh ones if need be.
const SHORT: Duration = Duration::from_millis(500);

/// A lease that is renewed.
const RENEWED: Lease = Lease::Renewed(Duration::from_secs(3));

type Setting = fn(Consumer<Work>) -> Consumer<Work>;

/// Handlers that block until they are released.
struct Blocked {
    store: FaultyStore,
    engine: Engine,
    threads: HandlerThreads,
    /// The runtimes that were made for them.
    made: Arc<Mutex<Vec<Handle>>>,
    release: mpsc::Sender<()>,
}

/// A connection to what sends everything back: opened by the first handler that needs it, and kept for others, as pools do.
struct Connection {
    near: std::os::unix::net::UnixStream,
    open: OnceCell<tokio::sync::Mutex<UnixStream>>,
}

impl Connection {
    fn new() -> Self {
        let (near, far) = UnixStream::pair().unwrap();
        tokio::spawn(async move {
            let (mut from, mut to) = split(far);
            copy(&mut from, &mut to).await
        });
        Self { near: near.into_std().unwrap(), open: OnceCell::new() }
    }

    async fn ask(&self) {
        let open = || async { UnixStream::from_std(self.near.try_clone().unwrap()).unwrap().into() };
        let mut open = self.open.get_or_init(open).await.lock().await;
        open.write_all(b"?").await.unwrap();
        open.read_exact(&mut [0]).await.unwrap();
    }
}

fn runtime(count: usize) -> std::io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(count).enable_all().build()
}

/// Returns the threads of this runtime, whatever blocks them: there are no others.
fn on_no_others(runtime: Handle) -> HandlerThreads {
    HandlerThreads::spawned_by(move |task| runtime.spawn(task))
}

impl Blocked {
    /// With a thread more than those.
    fn new(at_once: usize, setting: Setting) -> Self {
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let connection = Arc::new(Connection::new());
        let handler = move |w: Work, _cx| {
            let (blocked, connection) = (Arc::clone(&blocked), Arc::clone(&connection));
            // Ends when the test drops its end.
            let block = move || {
                let _ = blocked.lock().unwrap().recv();
            };
            async move {
                match w.action.as_str() {
                    "block" => block(),
                    "late-block" => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        block();
                    }
                    "fail" => return Err(HandlerError::retry("it is away").downstream("mail")),
                    "ask" => connection.ask().await,
                    "spawn-block" => drop(tokio::spawn(async move { block() })),
                    "nap" => tokio::time::sleep(Duration::from_millis(300)).await,
                    _ => {}
                }
                Ok(())
            }
        };
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let consumer = setting(Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id));
        let made = Arc::<Mutex<Vec<Handle>>>::default();
        let all = Arc::clone(&made);
        let make = move |count| {
            let runtime = runtime(count)?;
            all.lock().unwrap().push(runtime.handle().clone());
            Ok(runtime)
        };
        let threads = HandlerThreads::new(at_once, make).unwrap();
        let engine = Engine::with_defaults(consumer).unwrap().handlers_on(threads.clone());
        Self { store, engine, threads, made, release }
    }

    async fn deliver(&self, batch: &[&str]) -> Report {
        let now = self.engine.now();
        let time = InvocationTime::new(now, now.plus(PERIOD), Duration::from_millis(100));
        let batch: Vec<Message> = batch.iter().enumerate().map(|(place, text)| message(place, text, 1)).collect();
        let report = self.engine.process(&batch, time, &NoQueue).await;
        assert!(self.engine.now() < now.plus(PERIOD), "back before the deadline");
        report
    }

    async fn release(&self) {
        (0..self.threads.blocked()).for_each(|_| self.release.send(()).unwrap());
        while self.threads.blocked() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn record(&self, key: &str) -> Record {
        let (id, meter) = (RecordId::new(self.engine.name(), &Key::new(key).unwrap()), Meter::default());
        self.store.get(&id, StoreCall { within: TIMEOUT, meter: &meter }).await.unwrap().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_every_thread_keep_their_claims_and_hold_up_nothing() {
    let world = Blocked::new(1, |consumer| consumer);
    assert_eq!(words(&world.deliver(&["a block", "b block"]).await), "stuck stuck");
    assert!(!world.store.calls().contains(&Settle), "a stuck claim is left alone");
    // The threads are the process's: what comes later gets others.
    assert_eq!(words(&world.deliver(&["c ok", "d nap", "e ok"]).await), "completed completed completed");
    assert_eq!(world.record("a").await.status, Status::InProgress);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_hold_up_no_other_message_of_their_batch() {
    let world = Blocked::new(1, |consumer| consumer);
    let report = world.deliver(&["a block", "b block", "c ok", "d ok", "e ok"]).await;
    assert_eq!(words(&report), "stuck stuck completed completed completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_the_thread_that_tends_the_timers_holds_up_no_timer() {
    let world = Blocked::new(4, |consumer| consumer);
    assert_eq!(words(&world.deliver(&["a late-block", "b nap", "c nap"]).await), "stuck completed completed");
}

/// Nobody counts those: the threads run nothing any more, and are not taken for free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_handlers_that_block_every_thread_hold_up_no_other_message() {
    let world = Blocked::new(1, |consumer| consumer);
    let batch: Vec<_> = (0..40).map(|n| format!("{n} spawn-block")).collect();
    let report = world.deliver(&batch.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!(report.counts()["completed"], 40);
}

/// It is on the threads that are replaced then, and served by what is left of them: one thread, where all handlers of a moment block.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_take_no_connection_with_them_that_others_opened() {
    let world = Blocked::new(2, |consumer| consumer.concurrency(2).timeout(SHORT));
    assert_eq!(words(&world.deliver(&["a ask"]).await), "completed");
    for batch in 0..2 {
        let batch = ["b block", "c block", "d ask", "e ask"].map(|text| format!("{batch}{text}"));
        let report = world.deliver(&batch.each_ref().map(String::as_str)).await;
        assert_eq!(words(&report), "stuck stuck completed completed");
    }
    world.release().await;
    assert_eq!(words(&world.deliver(&["f ask"]).await), "completed");
    // One more, whose timer fires on the thread that waits for sockets.
    let (entered, has_entered) = mpsc::channel();
    let (release, blocked) = mpsc::channel::<()>();
    world.made.lock().unwrap()[0].spawn(async move {
        tokio::time::sleep(Duration::from_millis(20)).await;
        entered.send(()).unwrap();
        let _ = blocked.recv();
    });
    has_entered.recv().unwrap();
    assert_eq!(words(&world.deliver(&["g ask"]).await), "completed");
    drop(release);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_never_had_a_thread_never_started() {
    let (release, blocked) = mpsc::channel::<()>();
    let (entered, has_entered) = mpsc::channel();
    let lonely = runtime(1).unwrap();
    lonely.spawn(async move {
        entered.send(()).unwrap();
        let _ = blocked.recv();
    });
    has_entered.recv().unwrap();
    let threads = on_no_others(lonely.handle().clone());
    for (at_most_once, lease) in [(false, Lease::default()), (true, Lease::default()), (true, RENEWED)] {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        let consumer = Consumer::new("c", store.clone(), |_: Work, _| async { Ok(()) }).key(|w: &Work| &w.id);
        let consumer = if at_most_once { consumer.at_most_once() } else { consumer };
        let engine = Engine::with_defaults(consumer.lease(lease).timeout(SHORT)).unwrap().handlers_on(threads.clone());
        let (made, release) = (Arc::default(), release.clone());
        let world = Blocked { store, engine, threads: threads.clone(), made, release };
        assert_eq!(words(&world.deliver(&["a ok"]).await), "not_started");
        let record = world.record("a").await;
        assert_eq!((record.status, record.attempts), (Status::Failed, 0), "not parked, and not counted");
    }
    drop(release);
    lonely.shutdown_background();
}

/// A payload whose drop panics.
#[derive(serde::Deserialize)]
struct Bomb {
    id: String,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{} is dropped", self.id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payload_that_panics_as_it_is_dropped_without_a_thread_fails_no_other_message() {
    let (release, blocked) = mpsc::channel::<()>();
    let lonely = runtime(1).unwrap();
    lonely.spawn(async move {
        let _ = blocked.recv();
    });
    let consumer = Consumer::new("c", MemoryStore::new(), |_: Bomb, _| async { Ok(()) }).key(|bomb| &bomb.id);
    let engine = Engine::with_defaults(consumer.timeout(SHORT)).unwrap();
    let engine = engine.handlers_on(on_no_others(lonely.handle().clone()));
    let batch = [message(0, "a ok", 1), message(1, "b ok", 1)];
    let time = || InvocationTime::new(engine.now(), engine.now().plus(PERIOD), Duration::from_millis(100));
    assert_eq!(words(&engine.process(&batch, time(), &NoQueue).await), "not_started not_started");
    // Nor where the invocation is dropped.
    let cut_off = engine.process(&batch, time(), &NoQueue);
    assert!(tokio::time::timeout(SHORT / 5, cut_off).await.is_err());
    drop(release);
    lonely.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_are_started_when_they_are_needed_and_without_any_nothing_starts() {
    let tries = Arc::new(AtomicUsize::new(0));
    let made = Arc::clone(&tries);
    let threads = HandlerThreads::later(1, move |count| match made.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Err(std::io::Error::other("there are too many already")),
        _ => runtime(count),
    });
    assert_eq!(tries.load(Ordering::SeqCst), 0);
    assert!(threads.start().is_err());
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let consumer = Consumer::new("c", store.clone(), |_: Work, _| async { Ok(()) }).key(|w: &Work| &w.id);
    let engine = Engine::with_defaults(consumer.at_most_once()).unwrap().handlers_on(threads.clone());
    let world = Blocked { store, engine, threads, made: Arc::default(), release: mpsc::channel().0 };
    assert_eq!(words(&world.deliver(&["a ok"]).await), "not_started");
    assert_eq!(world.record("a").await.attempts, 0);
    assert_eq!(words(&world.deliver(&["a ok"]).await), "completed");
    assert!(world.threads.start().is_ok());
    assert_eq!(tries.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_that_are_blocked_are_counted_until_they_are_not_and_then_taken_again() {
    let world = Blocked::new(1, |consumer| consumer.timeout(SHORT));
    for batch in 1..=3 {
        assert_eq!(
            words(&world.deliver(&["a block @1", "b block @2"]).await),
            if batch == 1 { "stuck stuck" } else { "busy busy" }
        );
    }
    assert_eq!((world.threads.blocked(), world.threads.are_exhausted()), (2, false));
    let made = || world.made.lock().unwrap().len();
    let before = made();
    world.release().await;
    assert_eq!(words(&world.deliver(&["c block"]).await), "stuck");
    assert_eq!(words(&world.deliver(&["d nap"]).await), "completed");
    assert_eq!(made(), before);
}

/// A system that accepts and never answers, and a client that blocks its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_that_block_beyond_their_timeout_open_a_breaker_and_fail_its_probe() {
    fn with(consumer: Consumer<Work>, open_for: Duration) -> Consumer<Work> {
        let breaker = Breaker::new("mail").opens_after(2, 4).open_for(open_for);
        consumer.concurrency(1).timeout(SHORT).clock_skew(Duration::ZERO).breaker(breaker)
    }
    let opens: Setting = |consumer| with(consumer, Duration::from_secs(60));
    let probes: Setting = |consumer| with(consumer, Duration::from_secs(1));
    for (setting, receives_max, fail, wanted) in [(opens, 1, 0, (0, 2, 8)), (probes, 5, 2, (2, 1, 7))] {
        let mut world = Blocked::new(2, setting);
        world.engine = world.engine.receives_max(receives_max);
        let action = |n| if n < fail { "fail" } else { "block" };
        let batch: Vec<_> = (0..10).map(|n| format!("k{n} {}", action(n))).collect();
        let report = world.deliver(&batch.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let count = |word| super::support::count(&report, word);
        assert_eq!((count("retry"), count("stuck"), count("breaker_open")), wanted, "{report:?}");
        let held = report.entries().iter().filter(|entry| entry.visible_after >= Some(Duration::from_secs(225)));
        // With what opened it, or failed its probe; what is stuck so on its last receive, too.
        assert_eq!(held.count(), wanted.2 + if fail > 0 { 2 } else { 1 });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_threads_as_may_be_blocked_and_no_more() {
    let world = Blocked::new(THREADS_MAX, |consumer| consumer.concurrency(THREADS_MAX).timeout(SHORT));
    let mut stuck = 0;
    while !world.threads.are_exhausted() {
        let batch: Vec<_> = (0..THREADS_MAX).map(|n| format!("{stuck}-{n} block")).collect();
        let report = world.deliver(&batch.iter().map(String::as_str).collect::<Vec<_>>()).await;
        stuck += report.counts()["stuck"];
        assert_eq!(world.threads.blocked(), stuck);
    }
    assert!((BLOCKED_MAX..BLOCKED_MAX + THREADS_MAX).contains(&stuck), "{stuck}");
}

/// A queue whose first message is gone when it is to be hidden, which is when handlers return.
struct Gone(mpsc::Sender<()>);

impl Queue for Gone {
    fn hide(&self, index: usize, _: Duration) -> BoxFuture<'_, HideAnswer> {
        let _ = self.0.send(());
        Box::pin(std::future::ready(if index == 0 { HideAnswer::Lost } else { HideAnswer::Hidden }))
    }
}

/// The claim is still held, and what was returned says what is done: nothing runs again, and nothing is parked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_handler_returns_while_it_is_stopped_for_a_lost_message_counts() {
    let threads = HandlerThreads::new(1, runtime).unwrap();
    for (in_calls, batch, wanted) in
        [(false, &["a ok"][..], "completed"), (true, &["a ok", "b ok"][..], "completed completed")]
    {
        let (release, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let block = move || {
            let _ = blocked.lock().unwrap().recv();
            std::future::ready(Ok::<_, HandlerError>(()))
        };
        // Called when they are polled, in their last poll.
        let consumer = match in_calls {
            false => Consumer::new("c", MemoryStore::new(), move |_: Work, _| {
                let block = block.clone();
                async move { block().await }
            }),
            true => Consumer::batch("c", MemoryStore::new(), move |_: Items<Work>| {
                let block = block.clone();
                async move { block().await }
            }),
        };
        let consumer = consumer.key(|work: &Work| &work.id).at_most_once().lease(RENEWED);
        let engine = Engine::with_defaults(consumer).unwrap().handlers_on(threads.clone());
        let batch: Vec<_> = batch.iter().enumerate().map(|(place, text)| message(place, text, 1)).collect();
        let time = InvocationTime::new(engine.now(), engine.now().plus(PERIOD), Duration::from_millis(100));
        assert_eq!(words(&engine.process(&batch, time, &Gone(release)).await), wanted);
    }
}
