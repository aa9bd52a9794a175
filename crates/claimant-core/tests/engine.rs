//! The engine: one outcome for every message, whatever happens.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::limits::{MARGIN_DEFAULT_MS, SETTLE_RESERVE_MAX_MS};
use claimant_core::{
    Clock, Consumer, ConsumerName, Context, Engine, HandlerError, Key, MemoryStore, Message, MessageId, RecordId,
    Report, Schedule, Status, Store, StoreErrorKind,
};
use claimant_testkit::Call::{Claim, Settle};
use claimant_testkit::Fault::{AnswerLost, Hangs, NotApplied};
use claimant_testkit::{Call, Fault, FaultyStore, VirtualClock};
use serde::Deserialize;

/// The time-out of an invocation in these tests.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a message asks the handler to do.
#[derive(Debug, Deserialize)]
struct Work {
    id: String,
    #[serde(rename = "do")]
    action: String,
}

type Log = Arc<Mutex<Vec<String>>>;

async fn work(work: Work, cx: Context, log: Log) -> Result<(), HandlerError> {
    log.lock().unwrap().push(format!("{}/{}", work.id, cx.attempt()));
    assert_eq!(work.id, cx.key());
    match work.action.as_str() {
        "ok" => Ok(()),
        // Fails at the first attempt only.
        "flaky" if cx.attempt() > 1 => Ok(()),
        "fail" | "flaky" => Err(HandlerError::retry("no luck")),
        "later" => Err(HandlerError::retry("no luck").after(Duration::from_secs(77))),
        "reject" => Err(HandlerError::terminal("no use")),
        "panic" => panic!("on purpose"),
        "hang" => std::future::pending().await,
        slow => {
            let millis = slow.parse().expect("a number of milliseconds");
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok(())
        }
    }
}

/// A world of one store, one clock and any number of invocations.
struct World {
    store: FaultyStore,
    clock: Arc<VirtualClock>,
    log: Log,
}

impl World {
    fn new() -> Self {
        let store = FaultyStore::new(Arc::new(MemoryStore::new()));
        Self { store, clock: Arc::new(VirtualClock::start()), log: Log::default() }
    }

    fn engine(&self) -> Engine<Work> {
        let log = Arc::clone(&self.log);
        let consumer = Consumer::new("c", self.store.clone(), move |w, cx| work(w, cx, Arc::clone(&log)));
        let engine = Engine::with_defaults(consumer.key(|w: &Work| &w.id)).unwrap();
        engine.clock(Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    async fn invoke(&self, batch: &[Message]) -> Report {
        let now = self.clock.now();
        let schedule = Schedule::new(now, now.plus(TIMEOUT), Duration::from_millis(MARGIN_DEFAULT_MS));
        let report = self.engine().process(batch.to_vec(), schedule).await;
        let left = now.plus(TIMEOUT).since(self.clock.now());
        assert!(left >= Duration::from_millis(MARGIN_DEFAULT_MS), "returned {left:?} before the deadline");
        assert_eq!(report.entries().len(), batch.len());
        report
    }

    async fn status(&self, key: &str) -> Option<Status> {
        let id = RecordId::new(&ConsumerName::new("c").unwrap(), &Key::new(key).unwrap());
        self.store.look(&id, TIMEOUT).await.unwrap().map(|r| r.status)
    }
}

fn message(id: &str, body: &str) -> Message {
    Message { id: MessageId::new(id).unwrap(), body: body.to_owned(), receive_count: 1, ordered_group: None }
}

/// `key action`, or a body as it is where there is no such pair.
fn body(text: &str) -> String {
    match text.split_once(' ') {
        Some((key, action)) if !text.starts_with('{') => format!(r#"{{"id":"{key}","do":"{action}"}}"#),
        _ => text.to_owned(),
    }
}

/// A batch with message ids m0, m1, …; `group:body` puts a message into an ordered group.
fn batch(bodies: &[&str]) -> Vec<Message> {
    let messages = bodies.iter().enumerate().map(|(n, text)| {
        let (group, text) = match text.split_once(':') {
            Some((group, text)) if group.len() == 1 => (Some(group.to_owned()), text),
            _ => (None, *text),
        };
        Message { ordered_group: group, ..message(&format!("m{n}"), &body(text)) }
    });
    messages.collect()
}

fn words(report: &Report) -> String {
    report.entries().iter().map(|e| e.outcome.word()).collect::<Vec<_>>().join(" ")
}

/// One invocation: what goes in, which calls fail, and what must be seen.
struct Case {
    name: &'static str,
    batch: &'static [&'static str],
    faults: &'static [(Call, Fault)],
    outcomes: &'static str,
    /// Handler runs as `key/attempt`, sorted: lanes run side by side.
    runs: &'static str,
    /// The first key's status afterwards.
    status: Option<Status>,
}

const UNREACHABLE: Fault = NotApplied(StoreErrorKind::Unreachable);

const CASES: &[Case] = &[
    Case { name: "an empty batch", batch: &[], faults: &[], outcomes: "", runs: "", status: None },
    Case {
        name: "done",
        batch: &["a ok", "b ok"],
        faults: &[],
        outcomes: "completed completed",
        runs: "a/1 b/1",
        status: Some(Status::Completed),
    },
    Case {
        name: "each failure stays with its message (L4)",
        batch: &["a fail", "b reject", "c panic", "d ok", "e later"],
        faults: &[],
        outcomes: "retry rejected retry completed retry",
        runs: "a/1 b/1 c/1 d/1 e/1",
        status: Some(Status::Failed),
    },
    Case {
        name: "bad bodies are rejected one by one (fault 24)",
        batch: &["nonsense", r#"{"id":"a"}"#, r#"{"id":"","do":"ok"}"#, r#"{"id":5,"do":"ok"}"#, "", "a ok"],
        faults: &[],
        outcomes: "rejected rejected rejected rejected rejected completed",
        runs: "a/1",
        status: Some(Status::Completed),
    },
    Case {
        name: "one key twice is one run (fault 19)",
        batch: &["a ok", "b ok", "a ok"],
        faults: &[],
        outcomes: "completed completed duplicate",
        runs: "a/1 b/1",
        status: Some(Status::Completed),
    },
    Case {
        name: "a second copy follows a failure too",
        batch: &["a fail", "a fail"],
        faults: &[],
        outcomes: "retry retry",
        runs: "a/1",
        status: Some(Status::Failed),
    },
    Case {
        name: "one key with two payloads is a conflict (S10)",
        batch: &["a ok", r#"{"id":"a","do":"ok","more":1}"#],
        faults: &[],
        outcomes: "completed rejected",
        runs: "a/1",
        status: Some(Status::Completed),
    },
    Case {
        name: "a handler that never returns is cancelled, its siblings are not (fault 28)",
        batch: &["a hang", "b ok", "c 8000"],
        faults: &[],
        outcomes: "retry completed completed",
        runs: "a/1 b/1 c/1",
        status: Some(Status::Failed),
    },
    Case {
        name: "after a failure the rest of its group is not run (S8, fault 23)",
        batch: &["x:a ok", "x:b fail", "y:c ok", "x:d ok", "y:e ok"],
        faults: &[],
        outcomes: "completed retry completed blocked completed",
        runs: "a/1 b/1 c/1 e/1",
        status: Some(Status::Completed),
    },
    Case {
        name: "a bad body blocks its group",
        batch: &["x:nonsense", "x:a ok"],
        faults: &[],
        outcomes: "rejected blocked",
        runs: "",
        status: None,
    },
    Case {
        name: "a claim that was not applied fails its message only (fault 26)",
        batch: &["a ok", "b ok"],
        faults: &[(Claim, NotApplied(StoreErrorKind::Throttled))],
        outcomes: "store_failed completed",
        runs: "b/1",
        status: None,
    },
    Case {
        name: "a claim whose answer is lost fails; the key is held until the lease ends (fault 2)",
        batch: &["a ok"],
        faults: &[(Claim, AnswerLost)],
        outcomes: "store_failed",
        runs: "",
        status: Some(Status::InProgress),
    },
    Case {
        name: "a claim that never answers ends in time (fault 32)",
        batch: &["a ok", "b ok"],
        faults: &[(Claim, Hangs), (Claim, UNREACHABLE)],
        outcomes: "store_failed store_failed",
        runs: "",
        status: None,
    },
    Case {
        name: "a completion that is not known is no success (fault 9)",
        batch: &["a ok"],
        faults: &[(Settle, AnswerLost)],
        outcomes: "unsettled",
        runs: "a/1",
        status: Some(Status::Completed),
    },
    Case {
        name: "a completion that hangs is no success, and its copy follows",
        batch: &["a ok", "a ok"],
        faults: &[(Settle, Hangs)],
        outcomes: "unsettled unsettled",
        runs: "a/1",
        status: Some(Status::InProgress),
    },
];

#[tokio::test(start_paused = true)]
async fn every_message_has_the_outcome_it_must() {
    for case in CASES {
        let world = World::new();
        for (call, fault) in case.faults {
            world.store.fail_next(*call, *fault);
        }
        let batch = batch(case.batch);
        let report = world.invoke(&batch).await;
        assert_eq!(words(&report), case.outcomes, "{}", case.name);
        let mut runs = world.log.lock().unwrap().clone();
        runs.sort();
        assert_eq!(runs.join(" "), case.runs, "{}", case.name);
        assert_eq!(world.status("a").await, case.status, "{}", case.name);
    }
}

#[tokio::test(start_paused = true)]
async fn a_redelivery_continues_where_the_last_one_ended() {
    // The same message is delivered again and again; each row is one delivery after `wait` seconds.
    type Row = (&'static str, &'static str, &'static [(Call, Fault)], &'static [(u64, &'static str)], &'static str);
    let cases: [Row; 6] = [
        (
            "completed before (faults 5 and 6)",
            "a ok",
            &[],
            &[(0, "completed"), (0, "duplicate"), (99, "duplicate")],
            "a/1",
        ),
        ("failed at first", "a flaky", &[], &[(0, "retry"), (0, "completed"), (0, "duplicate")], "a/1 a/2"),
        ("rejected is not run again", "a reject", &[], &[(0, "rejected"), (0, "rejected"), (99, "rejected")], "a/1"),
        (
            "an orphaned claim is busy, then taken over (faults 2 and 21, L1)",
            "a ok",
            &[(Claim, AnswerLost)],
            &[(0, "store_failed"), (5, "busy"), (20, "completed")],
            "a/2",
        ),
        (
            "a completion whose answer was lost is found (fault 8)",
            "a ok",
            &[(Settle, AnswerLost)],
            &[(0, "unsettled"), (0, "duplicate")],
            "a/1",
        ),
        (
            "a completion that never applied is done again after the lease (fault 4)",
            "a ok",
            &[(Settle, UNREACHABLE)],
            &[(0, "unsettled"), (0, "busy"), (20, "completed")],
            "a/1 a/2",
        ),
    ];
    for (name, text, faults, deliveries, runs) in cases {
        let world = World::new();
        for (call, fault) in faults {
            world.store.fail_next(*call, *fault);
        }
        for (wait, outcome) in deliveries {
            tokio::time::sleep(Duration::from_secs(*wait)).await;
            let report = world.invoke(&batch(&[text])).await;
            assert_eq!(words(&report), *outcome, "{name}");
        }
        assert_eq!(world.log.lock().unwrap().join(" "), runs, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_invocations_at_once_run_a_key_once() {
    let world = World::new();
    let copies = batch(&["a 3000"]);
    let again = vec![message("other", &body("a 3000"))];
    let (first, second) = tokio::join!(world.invoke(&copies), world.invoke(&again));
    let mut seen = [words(&first), words(&second)];
    seen.sort();
    assert_eq!(seen, ["busy", "completed"]);
    assert_eq!(world.log.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn without_time_nothing_is_started() {
    let world = World::new();
    let now = world.clock.now();
    for deadline in [now, now.minus(Duration::from_secs(9)), now.plus(Duration::from_millis(MARGIN_DEFAULT_MS))] {
        let schedule = Schedule::new(now, deadline, Duration::from_millis(MARGIN_DEFAULT_MS));
        let report = world.engine().process(batch(&["a ok", "b ok"]), schedule).await;
        assert_eq!(words(&report), "not_started not_started");
    }
    assert!(world.store.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_into_the_time_is_not_started() {
    let world = World::new();
    // 10 at once and 3 s each: three rounds fit into the 8.5 s before handlers are cancelled, the rest does not.
    let bodies: Vec<String> = (0..40).map(|n| format!("k{n} 3000")).collect();
    let report = world.invoke(&batch(&bodies.iter().map(String::as_str).collect::<Vec<_>>())).await;
    let counts = report.counts();
    assert_eq!((counts["completed"], counts["retry"], counts["not_started"]), (20, 10, 10));
    assert_eq!(report.failures().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn failures_come_back_when_a_retry_can_help() {
    let world = World::new();
    let report = world.invoke(&batch(&["a fail", "b later", "c reject", "d ok", "d ok"])).await;
    let after: Vec<_> = report.entries().iter().map(|e| e.visible_after.map(|d| d.as_millis())).collect();
    assert!((500..=1_000).contains(&after[0].unwrap()), "a first backoff: {after:?}");
    assert_eq!(after[1..], [Some(77_000), Some(0), None, None]);
    // Busy elsewhere: not before the other's lease is over, with its margins.
    world.store.fail_next(Claim, AnswerLost);
    world.invoke(&batch(&["e ok"])).await;
    let busy = world.invoke(&batch(&["e ok"])).await;
    let after = busy.entries()[0].visible_after.unwrap();
    let lease = TIMEOUT + Duration::from_millis(claimant_core::limits::LEASE_MARGIN_MS);
    assert!(after >= lease && after <= lease + Duration::from_secs(3), "{after:?}");
}

/// Real time, since a thread is really blocked; only the order of events is checked.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_handler_that_blocks_its_thread_keeps_its_claim() {
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let handler = move |w: Work, _cx| {
        let blocked = Arc::clone(&blocked);
        async move {
            if w.action == "block" {
                // Ends when the test drops its end.
                let _ = blocked.lock().unwrap().recv();
            }
            Ok(())
        }
    };
    let consumer = Consumer::new("c", store.clone(), handler).key(|w: &Work| &w.id);
    let engine = Engine::with_defaults(consumer).unwrap();
    let now = engine.now();
    let schedule = Schedule::new(now, now.plus(Duration::from_secs(3)), Duration::from_millis(100));
    let report = engine.process(batch(&["a block", "b ok"]), schedule).await;
    assert_eq!(words(&report), "stuck completed");
    let id = RecordId::new(engine.name(), &Key::new("a").unwrap());
    let record = store.look(&id, TIMEOUT).await.unwrap().unwrap();
    assert_eq!(record.status, Status::InProgress);
    assert_eq!(store.calls().iter().filter(|c| **c == Settle).count(), 1, "the stuck claim is left alone");
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_batch_cancels_its_handlers() {
    let world = World::new();
    let batch = batch(&["a hang"]);
    let cut = tokio::time::timeout(Duration::from_secs(1), world.invoke(&batch)).await;
    assert!(cut.is_err());
    // The claim ends with its lease; nothing else is left behind.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(world.status("a").await, Some(Status::InProgress));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[test]
fn settings_out_of_bounds_are_all_named() {
    let consumer = Consumer::new("a b", MemoryStore::new(), |_: Work, _| async { Ok(()) });
    let consumer = consumer.concurrency(0).window(Duration::from_secs(1)).clock_skew(Duration::from_secs(61));
    let error = Engine::with_defaults(consumer).unwrap_err().to_string();
    for wanted in ["4 faults", "consumer name \"a b\"", "concurrency is 0", "window is 1 s", "clock skew is 61000 ms"] {
        assert!(error.contains(wanted), "{wanted} in {error}");
    }
}

const _: () = assert!(SETTLE_RESERVE_MAX_MS < 2_000, "the third round of 3 s tests relies on it");
