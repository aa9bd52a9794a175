//! Rules about what outlasts a claim: its fence, and the record until its window ends.

use claimant_core::protocol::Ending;

use super::rule::Rule;
use crate::script::{LEASE_MS, SKEW_MS, WINDOW_MS, claim, done, endings, failed, parked, rejected, renew, settle};

pub(super) fn fences() -> Vec<Rule> {
    let over = LEASE_MS + SKEW_MS;
    let expired = WINDOW_MS + 2 * LEASE_MS + SKEW_MS;
    let rule = |name, steps, expected| Rule { clause: 5, name, steps, expected };
    let twice = |ending: Ending, message| {
        vec![
            claim("a", 0).step(),
            settle("a", ending.clone(), 5),
            claim("b", 6).message(message).step(),
            settle("b", ending, 7),
            claim("c", 8).message("m3").step(),
        ]
    };
    vec![
        rule(
            "across failures",
            twice(failed(), "m1"),
            vec![
                "granted: fence 1, attempt 1",
                "done",
                "granted: fence 2, attempt 2",
                "done",
                "granted: fence 3, attempt 3",
            ],
        ),
        rule(
            "across releases",
            twice(Ending::Released, "m1"),
            vec![
                "granted: fence 1, attempt 1",
                "done",
                "granted: fence 2, attempt 1",
                "done",
                "granted: fence 3, attempt 1",
            ],
        ),
        rule(
            "across rejections, where attempts begin anew",
            twice(rejected(), "m2"),
            vec![
                "granted: fence 1, attempt 1",
                "done",
                "granted: fence 2, attempt 1",
                "done",
                "granted: fence 3, attempt 1",
            ],
        ),
        rule(
            "across takeovers",
            vec![claim("a", 0).step(), claim("b", over + 1).step(), claim("c", 2 * over + 2).step()],
            vec!["granted: fence 1", "granted: fence 2, attempt 2", "granted: fence 3, attempt 3"],
        ),
        rule(
            "across the end of the window, where attempts begin anew",
            vec![
                claim("a", 0).step(),
                settle("a", done(), 5),
                claim("b", expired).step(),
                claim("c", expired + over + 1).step(),
            ],
            vec![
                "granted: fence 1",
                "done",
                "granted: fence 2, attempt 1, interruptions 0",
                "granted: fence 3, attempt 2",
            ],
        ),
    ]
}

/// Clause 6 and 8: each ending to the end of its window, which is counted in whole seconds, and beyond it.
pub(super) fn endings_of_windows() -> Vec<Rule> {
    let a = || claim("a", 0).step();
    // Settled 400 ms after the epoch: the window ends in the middle of a second, and is rounded up.
    let last = WINDOW_MS + 1_000;
    let mut rules = vec![
        Rule {
            clause: 8,
            name: "a record past its window is absent, but not while its lease is live",
            steps: vec![
                claim("a", 0).until(3 * WINDOW_MS).step(),
                claim("b", 2 * WINDOW_MS).step(),
                claim("c", 3 * WINDOW_MS + SKEW_MS).step(),
                claim("d", 4 * WINDOW_MS + 2_000).payload("p2").step(),
            ],
            expected: vec![
                "granted: fence 1",
                "refused: Busy",
                "refused: Busy",
                "granted: fence 2, attempt 1, interruptions 1",
            ],
        },
        Rule {
            clause: 8,
            name: "a renewal moves the window on",
            steps: vec![a(), renew("a", 900, 2 * WINDOW_MS), claim("b", 2 * WINDOW_MS + LEASE_MS).payload("p2").step()],
            expected: vec!["granted: fence 1", "held until 120000", "refused: Conflict"],
        },
    ];
    let kept = [
        (done(), 6, "completed: final until its window ends", "refused: Completed"),
        (rejected(), 8, "rejected: until its window ends", "refused: Rejected"),
        (parked(), 8, "parked: until its window ends", "refused: Parked"),
    ];
    for (ending, clause, name, refused) in kept {
        rules.push(Rule {
            clause,
            name,
            steps: vec![a(), settle("a", ending, 400), claim("b", 401).step(), claim("c", last).step()],
            expected: vec!["granted", "done", refused, refused],
        });
    }
    for (ending, name) in endings().into_iter().zip(["completed", "failed", "rejected", "parked", "released"]) {
        rules.push(Rule {
            clause: 8,
            name,
            steps: vec![a(), settle("a", ending, 400), claim("b", last + 1).payload("p2").step()],
            expected: vec!["granted", "done", "granted: fence 2, attempt 1, interruptions 0"],
        });
    }
    rules
}
