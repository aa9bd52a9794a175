//! Batches that do not fit into the time: who has a turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{Consumer, Engine, HandlerError, InvocationTime, MemoryStore, Message, NoQueue, Outcome};
use claimant_testkit::clock::MovableClock;
use claimant_testkit::outcomes::{Work, message};

use super::many::Shared;

/// SQS's usual limit of receives.
const RECEIVES_MAX: u32 = 5;

const TIMEOUT: Duration = Duration::from_secs(30);

/// At a concurrency of 10, about 280 of these fit into an invocation.
const WORK: Duration = Duration::from_secs(1);

struct Turns {
    engine: Engine,
    runs: Arc<Mutex<Vec<String>>>,
}

impl Turns {
    fn new() -> Self {
        let runs = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&runs);
        let handler = move |work: Work, _| {
            log.lock().unwrap().push(work.id);
            tokio::time::sleep(WORK)
        };
        let handler = move |work, cx| {
            let run = handler(work, cx);
            async move {
                run.await;
                Ok(())
            }
        };
        let consumer = Consumer::new("c", MemoryStore::new(), handler).key(|w: &Work| &w.id).concurrency(10);
        let engine = Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()));
        Self { engine, runs }
    }

    async fn deliver(&self, batch: &[Message]) -> Vec<Outcome> {
        let now = self.engine.now();
        let time = InvocationTime::new(now, now.plus(TIMEOUT), Duration::from_millis(500));
        let report = self.engine.process(batch, time, &NoQueue).await;
        report.entries().iter().map(|entry| entry.outcome.clone()).collect()
    }
}

/// A thousand at first, then about as many as fit each time, and the queue shows the newest first.
#[tokio::test(start_paused = true)]
async fn nothing_is_dead_lettered_without_a_run_while_there_is_room_for_it() {
    let turns = Turns::new();
    let mut queued: Vec<(usize, u32)> = (0..1_000).map(|n| (n, 0)).collect();
    let mut sent = queued.len();
    for delivery in 0.. {
        if (1..8).contains(&delivery) {
            queued.splice(0..0, (sent..sent + 150).map(|n| (n, 0)));
            sent += 150;
        }
        queued.iter_mut().for_each(|(_, receives)| *receives += 1);
        let late: Vec<_> = queued.iter().filter(|(_, receives)| *receives > RECEIVES_MAX).collect();
        assert!(late.is_empty(), "dead-lettered without a run, delivery {delivery}: {}", late.len());
        if queued.is_empty() {
            break;
        }
        let batch: Vec<_> = queued.iter().map(|(n, receives)| message(*n, &format!("k{n} ok"), *receives)).collect();
        let outcomes = turns.deliver(&batch).await;
        let capacity = outcomes.iter().filter(|outcome| outcome.is_success()).count();
        assert!(capacity == queued.len() || capacity >= 270, "{capacity} of {}", queued.len());
        let mut outcomes = outcomes.into_iter();
        queued.retain(|_| !outcomes.next().unwrap().is_success());
    }
    let mut runs = turns.runs.lock().unwrap().clone();
    runs.sort();
    runs.dedup();
    assert_eq!(runs.len(), sent, "each ran");
}

/// What ends the process may be among what came back, also where most of that was done before.
#[tokio::test(start_paused = true)]
async fn while_no_handler_has_returned_what_came_back_is_claimed_in_slots_alone() {
    const CONCURRENCY: usize = 2;
    let (store, hangs) = (Shared::of(None), Arc::new(AtomicBool::new(false)));
    let process = || {
        let hangs = Arc::clone(&hangs);
        let handler = move |work: Work, _| {
            let hangs = Arc::clone(&hangs);
            async move {
                match (hangs.load(Ordering::SeqCst), work.action.as_str()) {
                    (true, _) => std::future::pending().await,
                    (false, "ok") => Ok(()),
                    (false, _) => Err(HandlerError::retry("no luck")),
                }
            }
        };
        let consumer = Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id).concurrency(CONCURRENCY);
        Engine::with_defaults(consumer).unwrap().clock(Arc::new(MovableClock::start()))
    };
    let deliver = async |engine: &Engine, receives: [u32; 2]| {
        let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(500));
        let done = (0..12).map(|n| message(n, &format!("k{n} ok"), receives[0]));
        let failed = (12..42).map(|n| message(n, &format!("k{n} fail"), receives[1]));
        let batch: Vec<_> = done.chain(failed).collect();
        engine.process(&batch, time, &NoQueue).await;
    };
    deliver(&process(), [1, 1]).await;
    hangs.store(true, Ordering::SeqCst);
    let before = store.0.open.load(Ordering::SeqCst);
    let second = process();
    let dies = tokio::time::timeout(Duration::from_secs(5), deliver(&second, [3, 2])).await;
    assert!(dies.is_err());
    assert_eq!(store.0.open.load(Ordering::SeqCst) - before, 12 + CONCURRENCY, "those that are done, and its own");
}

#[tokio::test(start_paused = true)]
async fn who_was_received_most_runs_first_and_a_group_counts_by_its_most_received() {
    let turns = Turns::new();
    let batch: Vec<_> = [("a ok", 1), ("b ok", 3), ("x:c ok", 2), ("x:d ok", 4), ("y:e ok", 1), ("f ok", 3)]
        .into_iter()
        .enumerate()
        .map(|(place, (text, receives))| message(place, text, receives))
        .collect();
    let consumer = Consumer::new("c", MemoryStore::new(), {
        let runs = Arc::clone(&turns.runs);
        move |work: Work, _| {
            runs.lock().unwrap().push(work.id);
            async { Ok(()) }
        }
    });
    let engine = Engine::with_defaults(consumer.key(|w: &Work| &w.id).concurrency(1)).unwrap();
    let turns = Turns { engine, ..turns };
    turns.deliver(&batch).await;
    let runs = turns.runs.lock().unwrap().concat();
    assert_eq!(runs, "cbfaed", "the group of d first, in its order; the rest of a group goes to the back");
}
