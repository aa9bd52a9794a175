//! The contract of a store, as checks that any store can be held to.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let store = std::sync::Arc::new(claimant_core::MemoryStore::new());
//! claimant_testkit::contract::check(store).await;
//! # }
//! ```

use std::sync::Arc;

use claimant_core::protocol::{Abandoned, ClaimPolicy, ClaimRequest, Ending};
use claimant_core::{
    Call, ClaimAnswer, ConsumerName, Fingerprint, Key, MemoryStore, MessageId, Meter, OwnerToken, RecordId, Store,
    Timestamp,
};

use crate::clock::TEST_EPOCH;
use crate::script::{ClaimStep, Player, SKEW_MS, Step, WINDOW_MS, WITHIN, claim, done, failed, rejected, settle};

/// How many claimants race for one key.
const RACERS: usize = 50;

/// Holds a store to every clause of the [`Store`] contract. Uses fresh keys, so a store in use can be given.
///
/// Needs a Tokio runtime. Gives the number of checks made.
///
/// # Panics
/// At the first check that does not hold, naming it.
pub async fn check(store: Arc<dyn Store>) -> usize {
    let mut checks = 0;
    for batched in [false, true] {
        for (name, steps, expected) in expectations() {
            let seen = play(store.as_ref(), &format!("expected {name}"), &steps, batched).await;
            let starts: Vec<bool> = seen.iter().zip(&expected).map(|(seen, wanted)| seen.starts_with(wanted)).collect();
            assert!(starts.iter().all(|ok| *ok), "{name}, batched {batched}: expected {expected:?}, saw {seen:?}");
            checks += 1;
        }
        for (name, steps) in variations() {
            let wanted = play(&MemoryStore::new(), &name, &steps, false).await;
            let seen = play(store.as_ref(), &name, &steps, batched).await;
            assert_eq!(seen, wanted, "clause 1, {name}, batched {batched}: not what the reference store does");
            checks += 1;
        }
    }
    race(&store).await;
    keys(store.as_ref()).await;
    checks + 2
}

async fn play(store: &dyn Store, name: &str, steps: &[Step], batched: bool) -> Vec<String> {
    let id = fresh_id(name);
    match Player::new(store, id, batched).play(steps).await {
        Ok(seen) => seen,
        Err(error) => panic!("{name}: the store gave no answer: {error} ({error:?})"),
    }
}

/// A record id that no other check and no earlier run has used.
fn fresh_id(name: &str) -> RecordId {
    let token = OwnerToken::draw().expect("a test machine has random bytes");
    let key = Key::new(format!("{name} {}", token.as_str())).expect("names of checks are short");
    RecordId::new(&consumer(), &key)
}

fn call(meter: &Meter) -> Call<'_> {
    Call { within: WITHIN, meter }
}

fn consumer() -> ConsumerName {
    ConsumerName::new("contract").expect("it is a name")
}

/// Scripts with the beginning of what each step must show, by clause.
fn expectations() -> Vec<(&'static str, Vec<Step>, Vec<&'static str>)> {
    let again = |who, at| claim(who, at).step();
    vec![
        (
            "clause 4: a claim tried again by its own owner is granted",
            vec![again("a", 0), again("a", 10)],
            vec!["granted: fence 1", "granted: fence 1", "Record { status: InProgress"],
        ),
        (
            "a result is kept, and shown to duplicates",
            vec![again("a", 0), settle("a", Ending::Completed { result: Some("[7]".into()) }, 5), again("b", 6)],
            vec!["granted", "done", "refused: Completed { result: Some(\"[7]\") }"],
        ),
        (
            "a release gives the attempt back",
            vec![again("a", 0), settle("a", Ending::Released, 5), again("b", 6)],
            vec!["granted: fence 1, attempt 1", "done", "granted: fence 2, attempt 1"],
        ),
        (
            "clause 4: a completion tried again is done",
            vec![again("a", 0), settle("a", done(), 5), settle("a", done(), 6)],
            vec!["granted", "done", "done", "Record { status: Completed"],
        ),
        (
            "clause 5: the fence grows across release",
            vec![again("a", 0), settle("a", failed(), 5), again("b", 6), settle("b", failed(), 7), again("c", 8)],
            vec![
                "granted: fence 1, attempt 1",
                "done",
                "granted: fence 2, attempt 2",
                "done",
                "granted: fence 3, attempt 3",
            ],
        ),
        (
            "clause 3 and 5: takeover, and the stale owner writes nothing",
            vec![
                again("a", 0),
                again("b", 1_000 + SKEW_MS),
                again("b", 1_001 + SKEW_MS),
                settle("a", done(), 1_700),
                settle("a", failed(), 1_700),
                settle("b", done(), 1_800),
                settle("a", done(), 1_900),
            ],
            vec![
                "granted: fence 1",
                "refused: Busy",
                "granted: fence 2, attempt 2, taken over true",
                "lost",
                "lost",
                "done",
                "lost",
            ],
        ),
        (
            "clause 6: completed is final until the window ends",
            vec![
                again("a", 0),
                settle("a", done(), 10),
                again("b", 20),
                claim("c", WINDOW_MS).message("m2").step(),
                settle("a", failed(), 30),
                again("d", WINDOW_MS + 1_011),
            ],
            vec!["granted", "done", "refused: Completed", "refused: Completed", "lost", "granted: fence 2, attempt 1"],
        ),
        (
            "clause 7: a late renewal shortens nothing",
            vec![
                again("a", 0),
                Step::Renew { who: "a", at: 10, until: 5_000 },
                Step::Renew { who: "a", at: 20, until: 3_000 },
                again("b", 4_000),
            ],
            vec!["granted", "held until 4102444805000ms", "held until 4102444805000ms", "refused: Busy"],
        ),
        (
            "clause 3: a renewal after the end is lost",
            vec![again("a", 0), settle("a", done(), 5), Step::Renew { who: "a", at: 10, until: 5_000 }],
            vec!["granted", "done", "lost", "Record { status: Completed"],
        ),
        (
            "clause 8: a record past its window is absent, but not while its lease is live",
            vec![
                ClaimStep { until: 3 * WINDOW_MS, ..claim("a", 0) }.step(),
                again("b", 2 * WINDOW_MS),
                claim("c", 4 * WINDOW_MS + 2_000).payload("p2").step(),
            ],
            vec!["granted: fence 1", "refused: Busy", "granted: fence 2, attempt 1"],
        ),
        (
            "one key with two payloads is a conflict",
            vec![
                again("a", 0),
                claim("b", 1).payload("p2").step(),
                settle("a", failed(), 5),
                claim("c", 6).payload("p2").step(),
            ],
            vec!["granted", "refused: Conflict", "done", "refused: Conflict"],
        ),
        (
            "a rejected message stays rejected until it comes with a new id",
            vec![again("a", 0), settle("a", rejected(), 5), again("b", 6), claim("c", 7).message("m2").step()],
            vec!["granted", "done", "refused: Rejected", "granted: fence 2, attempt 2"],
        ),
        (
            "abandoned work of an at-most-once consumer is parked and stays so",
            vec![
                again("a", 0),
                claim("b", 9_000).parking().step(),
                claim("c", 9_001).message("m2").step(),
                settle("a", done(), 9_002),
            ],
            vec!["granted", "refused: Parked", "refused: Parked", "lost", "Record { status: Parked"],
        ),
    ]
}

/// Every reachable state of a record, each followed by every kind of claim: the store must do what the reference does.
fn variations() -> Vec<(String, Vec<Step>)> {
    let a = || claim("a", 0).step();
    let states: [(&str, Vec<Step>); 9] = [
        ("absent", vec![]),
        ("in progress", vec![a()]),
        ("completed", vec![a(), settle("a", done(), 10)]),
        ("failed", vec![a(), settle("a", failed(), 10)]),
        ("rejected", vec![a(), settle("a", rejected(), 10)]),
        ("parked", vec![a(), settle("a", Ending::Parked, 10)]),
        ("released", vec![a(), settle("a", Ending::Released, 10)]),
        ("failed twice", vec![a(), settle("a", failed(), 10), claim("a2", 11).step(), settle("a2", failed(), 12)]),
        ("renewed", vec![a(), Step::Renew { who: "a", at: 10, until: 9_000 }]),
    ];
    // Around the end of the lease, of the renewed lease, and of the window.
    let times = [20, 1_000 + SKEW_MS, 1_001 + SKEW_MS, 9_600, WINDOW_MS + 999, WINDOW_MS + 2_600, WINDOW_MS + 12_000];
    let mut all = Vec::new();
    for (state, steps) in &states {
        for at in times {
            for (message, payload, abandoned) in [
                ("m1", "p1", Abandoned::Rerun),
                ("m2", "p1", Abandoned::Rerun),
                ("m1", "p2", Abandoned::Rerun),
                ("m1", "p1", Abandoned::Park),
            ] {
                let last = ClaimStep { message, payload, abandoned, ..claim("z", at) };
                let name = format!("{state}, then at {at} {message} {payload} {abandoned:?}");
                all.push((name, steps.iter().cloned().chain([last.step()]).collect()));
            }
        }
    }
    all
}

/// Clause 2: of many claims at once, one is granted.
async fn race(store: &Arc<dyn Store>) {
    let id = fresh_id("race");
    let racers: Vec<_> = (0..RACERS)
        .map(|n| {
            let (store, id) = (Arc::clone(store), id.clone());
            tokio::spawn(async move {
                let owner = OwnerToken::draw().expect("a test machine has random bytes");
                store.claim(&request(id, owner, n), call(&Meter::default())).await
            })
        })
        .collect();
    let mut granted = 0;
    for racer in racers {
        let answer = racer.await.expect("a store does not panic").expect("the store answers");
        granted += usize::from(matches!(answer, ClaimAnswer::Granted(_)));
    }
    assert_eq!(granted, 1, "clause 2: {granted} of {RACERS} claims at once were granted");
}

fn request(id: RecordId, owner: OwnerToken, n: usize) -> ClaimRequest {
    let now = TEST_EPOCH;
    ClaimRequest {
        id,
        owner,
        message_id: MessageId::new(format!("m{n}")).expect("it is short"),
        fingerprint: Fingerprint::of_bytes(b"p1"),
        now,
        lease_until: Timestamp::from_millis(now.as_millis() + 60_000),
        policy: ClaimPolicy::default(),
        first_delivery: true,
    }
}

/// Clause 10: keys that look alike are different records.
async fn keys(store: &dyn Store) {
    let token = OwnerToken::draw().expect("a test machine has random bytes");
    let long = "k".repeat(claimant_core::key::KEY_MAX_BYTES - 64);
    let alike = [
        "a",
        "A",
        "a ",
        " a",
        "á",
        "a\u{301}",
        "a\0",
        "\0a",
        "a#b",
        "a~b",
        "'",
        "\"",
        "%",
        "_",
        "\u{10ffff}",
        "ß",
        "ss",
        &long,
        &format!("{long}k"),
        "🦀",
        "a\nb",
        "{\"S\":\"a\"}",
    ];
    for (n, key) in alike.iter().enumerate() {
        let key = Key::new(format!("{key}{}", token.as_str())).expect("within the bounds");
        let id = RecordId::new(&consumer(), &key);
        let owner = OwnerToken::draw().expect("a test machine has random bytes");
        let answer = store
            .claim(&request(id.clone(), owner.clone(), n), call(&Meter::default()))
            .await
            .expect("the store answers");
        let ClaimAnswer::Granted(_) = answer else { panic!("clause 10: key number {n} is taken for another one") };
        let record =
            store.look(&id, call(&Meter::default())).await.expect("the store answers").expect("the record is there");
        assert_eq!(record.owner, owner, "clause 10: key number {n} shows another record");
    }
}
