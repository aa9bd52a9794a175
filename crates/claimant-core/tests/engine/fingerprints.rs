//! A deployment that changes what is compared of a payload makes no conflicts (F8).

use std::sync::Arc;
use std::time::Duration;

use claimant_core::{Consumer, Engine, Fingerprint, InvocationTime, MemoryStore, NoQueue};
use claimant_testkit::FaultyStore;
use claimant_testkit::outcomes::{Work, message};

use super::{TIMEOUT, words};

type Rule = fn(Consumer<Work>) -> Consumer<Work>;

/// The rules of deployments, one after the other, all on one store.
const WHOLE: Rule = |consumer| consumer;
const KEY: Rule = |consumer| consumer.fingerprint_of(1, |work| Fingerprint::of_bytes(work.id.as_bytes()));
const ACTION: Rule = |consumer| consumer.fingerprint_of(2, |work| Fingerprint::of_bytes(work.action.as_bytes()));

/// What each delivery gets, by the rule of its deployment.
async fn deployed(deliveries: &[(Rule, &str)]) -> Vec<String> {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()));
    let mut seen = Vec::new();
    for (rule, text) in deliveries {
        let handler = |work: Work, cx: claimant_core::Context| async move {
            if work.action == "flaky" && cx.attempt() == 1 { Err("no luck".into()) } else { Ok(()) }
        };
        let consumer = Consumer::new("c", store.clone(), handler).key(|work: &Work| &work.id);
        let engine = Engine::with_defaults(rule(consumer)).unwrap();
        let time = InvocationTime::new(engine.now(), engine.now().plus(TIMEOUT), Duration::from_millis(100));
        seen.push(words(&engine.process(&[message(0, text, 1)], time, &NoQueue).await));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn work_outlives_a_change_of_what_is_compared() {
    for (old, new) in [(WHOLE, KEY), (KEY, ACTION), (KEY, WHOLE)] {
        // In retry while the rule changes, and after that done for a late copy under the rule before.
        let seen = deployed(&[(old, "a flaky"), (new, "a flaky"), (old, "a flaky @late")]).await;
        assert_eq!(seen, ["retry", "completed", "duplicate"]);
    }
}

#[tokio::test(start_paused = true)]
async fn payloads_of_one_rule_are_compared_as_ever() {
    let seen = deployed(&[(ACTION, "a ok"), (ACTION, "a value"), (KEY, "a value"), (ACTION, "a ok")]).await;
    assert_eq!(seen, ["completed", "conflict", "duplicate", "duplicate"]);
}

/// As docs/keys.md warns: a record is found by its key as it is stored.
#[tokio::test(start_paused = true)]
async fn keys_that_are_stored_otherwise_are_new() {
    const HASHED: Rule = |consumer| consumer.hashed_keys();
    let seen = deployed(&[(WHOLE, "a ok"), (HASHED, "a ok"), (HASHED, "a ok"), (WHOLE, "a ok")]).await;
    assert_eq!(seen, ["completed", "completed", "duplicate", "duplicate"]);
}
