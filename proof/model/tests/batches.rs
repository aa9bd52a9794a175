//! S7 and S8 on every batch of three messages: the real engine, with every choice of group, key, id and handler's word.
#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimant_core::{
    Consumer, Context, Engine, Fingerprint, HandlerError, InvocationTime, MemoryStore, Message, MessageId, NoQueue,
    Report,
};
use claimant_testkit::outcomes::Work;

const MESSAGES: usize = 3;
const GROUPS: [Option<&str>; 3] = [None, Some("a"), Some("b")];
const KEYS: [&str; 2] = ["x", "y"];
const WORDS: [&str; 3] = ["ok", "fail", "reject"];
/// Whether the last message is the first one once more.
const REPEATS: [bool; 2] = [false, true];

/// A batch, as its messages' group, key and word.
type Batch = [(Option<&'static str>, &'static str, &'static str); MESSAGES];

/// Every batch, by counting.
fn batches() -> impl Iterator<Item = Batch> {
    let each = GROUPS.len() * KEYS.len() * WORDS.len();
    (0..each.pow(MESSAGES as u32)).map(move |number| {
        std::array::from_fn(|place| {
            let n = number / each.pow(place as u32) % each;
            (GROUPS[n % 3], KEYS[n / 3 % 2], WORDS[n / 6])
        })
    })
}

fn messages(batch: &Batch, repeated: bool) -> Vec<Message> {
    let message = |(place, (group, key, word)): (usize, &(Option<&str>, &str, &str))| {
        let id = if repeated && place == 2 { "m0".to_owned() } else { format!("m{place}") };
        let message = Message::new(id, format!(r#"{{"id":"{key}","do":"{word} {place}"}}"#)).unwrap();
        group.map_or_else(|| message.clone(), |group| message.clone().with_ordered_group(group))
    };
    batch.iter().enumerate().map(message).collect()
}

/// The report on a batch, and the places whose handlers ran.
async fn process(batch: &Batch, repeated: bool) -> (Report, Vec<usize>) {
    let runs = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&runs);
    let act = move |work: Work, _: Context| {
        let log = Arc::clone(&log);
        async move {
            let (word, place) = work.action.split_once(' ').unwrap();
            log.lock().unwrap().push(place.parse().unwrap());
            match word {
                "ok" => Ok(()),
                "fail" => Err(HandlerError::retry("no luck")),
                _ => Err(HandlerError::terminal("no use")),
            }
        }
    };
    let consumer = Consumer::new("c", MemoryStore::new(), act).key(|work| &work.id);
    // The key is all of the work, so that every batch has duplicates and not conflicts.
    let consumer = consumer.fingerprint_of(1, |work| Fingerprint::of_bytes(work.id.as_bytes()));
    let engine = Engine::with_defaults(consumer).unwrap();
    let now = engine.now();
    let time = InvocationTime::new(now, now.plus(Duration::from_secs(10)), Duration::from_millis(500));
    let report = engine.process(&messages(batch, repeated), time, &NoQueue).await;
    let runs = runs.lock().unwrap().clone();
    (report, runs)
}

fn check(batch: &Batch, report: &Report, runs: &[usize]) {
    let entries = report.entries();
    assert_eq!(entries.len(), MESSAGES);
    // S7: non-empty ids of this batch, each once, and all of what failed.
    let failures: Vec<&str> = report.failures().into_iter().map(MessageId::as_str).collect();
    let unique: HashSet<&str> = failures.iter().copied().collect();
    let failed: HashSet<&str> =
        entries.iter().filter(|e| !e.outcome.is_success()).map(|e| e.message_id.as_str()).collect();
    assert_eq!(failures.len(), unique.len());
    assert_eq!(unique, failed);
    for (place, (group, key, _)) in batch.iter().enumerate() {
        let success = entries[place].outcome.is_success();
        // S8: nothing of an ordered group runs after a failure, and all of it is reported failed.
        let after_failure =
            (0..place).any(|p| group.is_some() && batch[p].0 == *group && !entries[p].outcome.is_success());
        assert!(!after_failure || !success && !runs.contains(&place), "place {place}");
        // S4: a success is of work that was done.
        let done = runs.iter().any(|p| batch[*p].1 == *key && batch[*p].2 == "ok");
        assert!(!success || done, "place {place}");
        assert!(runs.iter().filter(|p| **p == place).count() <= 1, "place {place}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_batch_of_three_keeps_s7_and_s8() {
    let (mut count, mut blocked) = (0, 0);
    for batch in batches() {
        for repeated in REPEATS {
            let (report, runs) = process(&batch, repeated).await;
            println!("{batch:?} repeated {repeated}: {:?} ran {runs:?}", report.counts());
            check(&batch, &report, &runs);
            count += 1;
            blocked += report.counts().get("blocked").copied().unwrap_or_default();
        }
    }
    assert_eq!(count, 11_664);
    assert!(blocked > 1_000, "{blocked} blocked messages");
}
