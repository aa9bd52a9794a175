//! The engine: one outcome for every message, whatever happens, in time and in few requests.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod again;
mod breaker;
mod breaker_calls;
mod busy;
mod calls;
mod events;
mod fingerprints;
mod last_receive;
mod limit;
mod many;
mod outages;
mod panics;
mod pause;
mod payloads;
mod poison;
mod probes;
mod queue;
mod routes;
mod shared;
mod support;
mod suspects;
mod tenants;
mod threads;
mod time;
mod transaction;
mod turns;
mod unpacking;
mod way_back;
mod workers;

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Consumer, Engine, Fingerprint, Lease, MemoryStore, Report};
use claimant_testkit::FaultyStore;
use claimant_testkit::outcomes::{self, Work, World};
use claimant_testkit::queue::DeadLetterQueue;

/// The timeout of an invocation, on paused time.
const TIMEOUT: Duration = Duration::from_secs(10);

fn world(setting: outcomes::Setting) -> World {
    World::new(Arc::new(MemoryStore::new()), TIMEOUT, setting, DeadLetterQueue::Without)
}

fn words(report: &Report) -> String {
    report.entries().iter().map(|e| e.outcome.word()).collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn every_message_has_the_outcome_it_must() {
    // No longer than the longest call of a store, so that one which hangs is not made again.
    let cases = outcomes::check(Arc::new(MemoryStore::new()), TIMEOUT / 2).await;
    assert!(cases > 25);
}

#[tokio::test(start_paused = true)]
async fn invocations_at_once_run_a_key_once() {
    // Fault 20: one engine, several invocations in one process.
    let world = world(|consumer| consumer);
    let (first, second, third) = tokio::join!(
        world.deliver(&["a long", "b ok"], 0),
        world.deliver(&["a long @other", "c ok @m5"], 0),
        world.deliver(&["d ok @m6"], 0),
    );
    let mut seen = [words(&first), words(&second), words(&third)];
    seen.sort();
    assert_eq!(seen, ["busy completed", "completed", "completed completed"]);
    assert_eq!(world.runs(), "a/1 b/1 c/1 d/1");
}

#[test]
fn at_most_once_needs_claims_that_outlive_their_owners() {
    let engine = |store: FaultyStore, at_most_once| {
        let consumer = Consumer::new("c", store, |_: Work, _| async { Ok(()) }).key(|work: &Work| &work.id);
        Engine::with_defaults(if at_most_once { consumer.at_most_once() } else { consumer })
    };
    let store = || FaultyStore::new(Arc::new(MemoryStore::new()));
    assert!(engine(store(), true).is_ok() && engine(store().fleeting(), false).is_ok());
    let error = engine(store().fleeting(), true).unwrap_err().to_string();
    assert!(error.contains("at most once needs a store whose claims outlive their owners"), "{error}");
}

#[test]
fn at_most_once_needs_a_key_rule() {
    // A redrive gives a message a new id, so a record under the old one would not stop the parked work (F3).
    let consumer = || Consumer::new("c", MemoryStore::new(), |_: Work, _| async { Ok(()) });
    let error = Engine::with_defaults(consumer().at_most_once()).unwrap_err().to_string();
    assert!(error.contains("at most once needs a key rule") && error.contains(".key("), "{error}");
    let keyed: [fn(Consumer<Work>) -> Consumer<Work>; 2] =
        [|consumer| consumer.key(|work| &work.id), |consumer| consumer.key_of(|work| work.id.clone())];
    for keyed in keyed {
        assert!(Engine::with_defaults(keyed(consumer()).at_most_once()).is_ok());
    }
    assert!(Engine::with_defaults(consumer()).is_ok());
}

#[test]
fn at_most_once_needs_a_window_that_no_message_outlives() {
    // A message that comes back after its key's window is a new one: cut-off work would run again.
    let engine = |window_s: u64| {
        let consumer =
            Consumer::new("c", MemoryStore::new(), |_: Work, _| async { Ok(()) }).key(|work: &Work| &work.id);
        let consumer = consumer.window(Duration::from_secs(window_s));
        (Engine::with_defaults(consumer.at_most_once()), window_s)
    };
    for (engine, window_s) in [3_600, 14 * 86_400, 15 * 86_400 - 1].map(engine) {
        let error = engine.map(drop).unwrap_err().to_string();
        assert!(error.contains("at most once needs a window of 15 days or more"), "{window_s} s: {error}");
    }
    for (engine, window_s) in [15 * 86_400, 60 * 86_400].map(engine) {
        assert!(engine.is_ok(), "{window_s} s");
    }
}

#[test]
fn settings_out_of_bounds_are_all_named() {
    let consumer = Consumer::new("a b", MemoryStore::new(), |_: Work, _| async { Ok(()) });
    let consumer = consumer
        .concurrency(0)
        .window(Duration::from_secs(1))
        .clock_skew(Duration::from_secs(61))
        .expected(Duration::from_secs(901))
        .timeout(Duration::ZERO)
        .attempts_max(0)
        .fingerprint_of(0, |work| Fingerprint::of_bytes(work.id.as_bytes()))
        .lease(Lease::Renewed(Duration::from_secs(1)));
    let error = Engine::with_defaults(consumer).unwrap_err().to_string();
    let wanted = [
        "9 faults",
        "fingerprint rule is 0",
        "consumer name \"a b\"",
        "concurrency is 0",
        "window is 1 s",
        "clock skew is 61000 ms",
        "expected duration is 901000 ms",
        "timeout is 0 ms",
        "limit of attempts is 0",
        "lease is 1000 ms; 3000 to",
    ];
    for wanted in wanted {
        assert!(error.contains(wanted), "{wanted} in {error}");
    }
}
