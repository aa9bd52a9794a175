//! Scripts with what each step must show.

use claimant_core::protocol::Ending;

use super::examiner::{Examiner, Finding, ensure};
use super::rule::Rule;
use super::scene::{fresh_id, play};
use super::windows::{endings_of_windows, fences};
use crate::player::Player;
use crate::script::{LEASE_MS, SKEW_MS, Step, claim, done, endings, failed, rejected, renew, settle};

pub(super) async fn check(examiner: &mut Examiner) {
    let store = examiner.store.clone();
    for batched in [false, true] {
        let suffix = if batched { ", batched" } else { "" };
        for Rule { clause, name, steps, expected } in
            rules().into_iter().chain(own_writes()).chain(fences()).chain(endings_of_windows())
        {
            let finding = play(store.as_ref(), "rule", &steps, batched).await.and_then(|seen| {
                let so = seen.iter().zip(&expected).all(|(seen, wanted)| seen.starts_with(wanted));
                ensure(so, || format!("expected {expected:?}, saw {seen:?}"))
            });
            examiner.hold(clause, format!("{name}{suffix}"), finding);
        }
        for (name, steps) in tried_again() {
            examiner.hold(4, format!("{name}{suffix}"), changes_nothing(examiner, &steps, batched).await);
        }
    }
}

pub(super) fn rules() -> Vec<Rule> {
    let a = || claim("a", 0).step();
    let rule = |clause, name, steps, expected| Rule { clause, name, steps, expected };
    vec![
        rule(
            1,
            "a lease and its margin are honoured to their last millisecond, and no longer",
            vec![a(), claim("b", LEASE_MS + SKEW_MS).step(), claim("b", LEASE_MS + SKEW_MS + 1).step()],
            vec![
                "granted: fence 1, attempt 1, interruptions 0",
                "refused: Busy",
                "granted: fence 2, attempt 2, interruptions 1",
            ],
        ),
        rule(
            1,
            "a result is kept, and shown to duplicates",
            vec![a(), settle("a", Ending::Completed { result: Some("[7]".into()) }, 5), claim("b", 6).step()],
            vec!["granted", "done", "refused: Completed { result: Some(\"[7]\") }"],
        ),
        rule(
            1,
            "a release gives the attempt back",
            vec![a(), settle("a", Ending::Released, 5), claim("b", 6).step()],
            vec!["granted: fence 1, attempt 1", "done", "granted: fence 2, attempt 1"],
        ),
        rule(
            1,
            "work that was taken over and set aside is taken over again, and each takeover counts, until a run of it ended",
            vec![
                a(),
                claim("b", LEASE_MS + SKEW_MS + 1).step(),
                settle("b", Ending::SetAside { interruptions: 1 }, 1_800),
                claim("c", 1_801).step(),
                claim("d", 5_000).step(),
                settle("d", Ending::SetAside { interruptions: 2 }, 5_001),
                claim("e", 5_002).step(),
                settle("e", failed(), 5_003),
                claim("f", 5_004).step(),
            ],
            vec![
                "granted: fence 1, attempt 1, interruptions 0",
                "granted: fence 2, attempt 2, interruptions 1",
                "done",
                "granted: fence 3, attempt 2, interruptions 1",
                "granted: fence 4, attempt 3, interruptions 2",
                "done",
                "granted: fence 5, attempt 3, interruptions 2",
                "done",
                "granted: fence 6, attempt 4, interruptions 0, last error \"it failed\"",
            ],
        ),
        rule(
            1,
            "one key with two payloads is a conflict",
            vec![a(), claim("b", 1).payload("p2").step(), settle("a", failed(), 5), claim("c", 6).payload("p2").step()],
            vec!["granted", "refused: Conflict", "done", "refused: Conflict"],
        ),
        rule(
            1,
            "but payloads of two versions of a rule are not compared",
            vec![
                a(),
                claim("b", 1).payload("p2/1").step(),
                settle("a", failed(), 5),
                claim("c", 6).payload("p2/1").step(),
                settle("c", failed(), 7),
                claim("d", 8).payload("p3/1").step(),
                claim("e", 9).payload("p3/2").step(),
                settle("e", done(), 10),
                claim("f", 11).step(),
            ],
            vec![
                "granted",
                "refused: Busy",
                "done",
                "granted: fence 2, attempt 2",
                "done",
                "refused: Conflict",
                "granted: fence 3, attempt 3",
                "done",
                "refused: Completed",
            ],
        ),
        rule(
            1,
            "unless the key alone counts",
            vec![
                a(),
                claim("b", 1).payload("p2").by_key_alone().step(),
                settle("a", failed(), 5),
                claim("c", 6).payload("p2").by_key_alone().step(),
                claim("d", 7).step(),
            ],
            vec!["granted", "refused: Busy", "done", "granted: fence 2, attempt 2", "refused: Conflict"],
        ),
        rule(
            1,
            "a rejected message stays rejected until it comes with a new id",
            vec![a(), settle("a", rejected(), 5), claim("b", 6).step(), claim("c", 7).message("M1").step()],
            vec![
                "granted",
                "done",
                "refused: Rejected",
                "granted: fence 2, attempt 1, interruptions 0, last error \"never\"",
            ],
        ),
        rule(
            1,
            "abandoned work of an at-most-once consumer is parked and stays so",
            vec![
                a(),
                claim("b", LEASE_MS + SKEW_MS).parking().step(),
                claim("b", 9_000).parking().step(),
                claim("c", 9_001).message("m2").step(),
                settle("a", done(), 9_002),
            ],
            vec!["granted", "refused: Busy", "refused: Parked", "refused: Parked", "lost", "Record { status: Parked"],
        ),
        rule(
            7,
            "a late renewal shortens nothing",
            vec![a(), renew("a", 10, 5_000), renew("a", 20, 3_000), renew("a", 30, 5_000), claim("b", 4_000).step()],
            vec!["granted", "held until 5000", "held until 5000", "held until 5000", "refused: Busy"],
        ),
        rule(
            7,
            "a renewal shorter than the first lease shortens nothing",
            vec![a(), renew("a", 10, 500), claim("b", LEASE_MS + SKEW_MS).step()],
            vec!["granted", "held until 1000", "refused: Busy"],
        ),
        rule(
            9,
            "a claimant whose clock is behind meets a live lease, and one ahead an abandoned one",
            vec![
                claim("a", 7_200_000).step(),
                claim("b", 0).step(),
                claim("c", 7_200_000 + LEASE_MS + SKEW_MS + 1).step(),
                settle("c", done(), 5),
                claim("d", 7).step(),
            ],
            vec![
                "granted: fence 1",
                "refused: Busy",
                "granted: fence 2, attempt 2, interruptions 1",
                "done",
                "refused: Completed",
            ],
        ),
    ]
}

fn own_writes() -> Vec<Rule> {
    let a = || claim("a", 0).step();
    let rule = |name, steps, expected| Rule { clause: 4, name, steps, expected };
    vec![
        rule(
            "a claim tried again is granted, with its own fence",
            vec![a(), claim("a", 10).step(), claim("b", 20).step()],
            vec!["granted: fence 1, attempt 1", "granted: fence 1, attempt 1", "refused: Busy"],
        ),
        rule(
            "even after its lease",
            vec![a(), claim("a", LEASE_MS + SKEW_MS + 10).step()],
            vec!["granted: fence 1, attempt 1", "granted: fence 1, attempt 1"],
        ),
        rule(
            "and is still known to have taken the key over, with the error of the last run",
            vec![
                a(),
                settle("a", failed(), 5),
                claim("b", 6).step(),
                claim("c", 6 + LEASE_MS + SKEW_MS + 1).step(),
                claim("c", 6 + LEASE_MS + SKEW_MS + 2).step(),
            ],
            vec![
                "granted: fence 1",
                "done",
                "granted: fence 2, attempt 2, interruptions 0, last error \"it failed\"",
                "granted: fence 3, attempt 3, interruptions 1, last error \"it failed\"",
                "granted: fence 3, attempt 3, interruptions 1, last error \"it failed\"",
            ],
        ),
        rule(
            "but not after it was settled",
            vec![a(), settle("a", done(), 5), claim("a", 10).step()],
            vec!["granted: fence 1", "done", "refused: Completed"],
        ),
        rule(
            "nor after it was taken over",
            vec![a(), claim("b", LEASE_MS + SKEW_MS + 1).step(), claim("a", LEASE_MS + SKEW_MS + 2).step()],
            vec!["granted: fence 1", "granted: fence 2", "refused: Busy"],
        ),
    ]
}

/// Calls that are tried again after they applied: steps whose last one is the repetition.
fn tried_again() -> Vec<(String, Vec<Step>)> {
    let a = || claim("a", 0).step();
    let mut all = vec![
        ("a claim tried again changes nothing".to_owned(), vec![a(), claim("a", 10).step()]),
        ("a renewal tried again changes nothing".to_owned(), vec![a(), renew("a", 10, 5_000), renew("a", 20, 5_000)]),
    ];
    for ending in endings() {
        let name = format!("{ending:?} tried again changes nothing");
        // From the second attempt on, so that one given back twice shows.
        let earlier = [claim("z", 0).step(), settle("z", failed(), 1)];
        let steps = [a(), settle("a", ending.clone(), 5), settle("a", ending, 6)];
        all.push((name, earlier.into_iter().chain(steps).collect()));
    }
    all
}

/// The last step succeeds as the one before it did, and leaves the record as it was.
async fn changes_nothing(examiner: &Examiner, steps: &[Step], batched: bool) -> Finding {
    let (last, before) = steps.split_last().ok_or("a script without steps")?;
    let mut player = Player::new(examiner.store.as_ref(), fresh_id("again"), batched);
    let seen = player.play(before).await?;
    let [.., first, record] = seen.as_slice() else { return Err("a script without steps".into()) };
    let again = player.play(std::slice::from_ref(last)).await?;
    ensure(again == [first.clone(), record.clone()], || format!("first {first}, {record}; then {again:?}"))
}
