//! The cases of batch handlers: what the items of a call share, and what they do not.

use std::time::Duration;

use claimant_core::Status::{Completed, Failed, Parked, Rejected};

use super::Case;
use super::cases::{AnswerLost, Claim, Hangs, KILLED, PLAIN, REFUSED, Settle, Taken, UNREACHABLE, after, now};

const CALLS: Case = Case { calls: Some(10), ..PLAIN };

pub(super) const CASES: &[Case] = &[
    Case {
        name: "a call: each item has its own outcome (L4)",
        letters: Taken,
        deliveries: &[
            now(
                &["a ok", "b fail", "c reject", "d value", "e later", "nonsense"],
                "completed retry rejected completed retry rejected",
            ),
            now(&["a ok", "b ok @m1", "d value @m9"], "duplicate conflict duplicate"),
        ],
        runs: "a/1 b/1 c/1 d/1 e/1",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "a call that panics fails all of its items, and each is then alone",
        deliveries: &[
            now(&["a ok", "b panic", "c ok"], "retry retry retry"),
            now(&["a ok", "b panic", "c ok"], "completed retry completed"),
        ],
        runs: "a/1 a/2 b/1 b/2 c/1 c/2",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "a call that hangs is cancelled with all of its items, and each is then alone",
        setting: |consumer| consumer.timeout(Duration::from_millis(50)),
        deliveries: &[now(&["a hang", "b ok"], "cancelled cancelled"), now(&["a hang", "b ok"], "cancelled completed")],
        runs: "a/1 a/2 b/1 b/2",
        status: Some(Failed),
        ..CALLS
    },
    Case {
        name: "an error of the call is that of all its items, and each is then alone",
        deliveries: &[now(&["a sink", "b ok"], "retry retry"), now(&["a sink", "b ok"], "retry completed")],
        runs: "b/2",
        status: Some(Failed),
        ..CALLS
    },
    Case {
        name: "a permanent error of the call rejects nothing but an item that is alone (L4)",
        deliveries: &[now(&["a doom", "b ok"], "retry retry"), now(&["a doom", "b ok"], "rejected completed")],
        runs: "b/2",
        status: Some(Rejected),
        ..CALLS
    },
    Case {
        name: "results that are not one for each item count for none",
        deliveries: &[now(&["a few", "b ok"], "retry retry"), now(&["a few", "b ok"], "retry completed")],
        runs: "a/1 a/2 b/1 b/2",
        status: Some(Failed),
        ..CALLS
    },
    Case {
        name: "and at most once they may be done, as what was cut off may",
        setting: |consumer| consumer.at_most_once(),
        deliveries: &[
            now(&["a few", "b ok", "c ok"], "parked parked parked"),
            now(&["a few", "b ok", "d panic", "e ok"], "parked parked parked parked"),
        ],
        runs: "a/1 b/1 c/1 d/1 e/1",
        status: Some(Parked),
        ..CALLS
    },
    Case {
        name: "of a group, a call gets the next message only (S8)",
        deliveries: &[
            now(&["x:a ok", "x:b fail", "y:c ok", "x:d ok", "y:e ok"], "completed retry completed blocked completed"),
            now(&["x:b fail @m1", "x:d ok @m3"], "retry blocked"),
        ],
        runs: "a/1 b/1 b/2 c/1 e/1",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "one key twice is one item of a call",
        deliveries: &[now(&["a ok", "b fail", "a ok", "b fail"], "completed retry duplicate retry")],
        runs: "a/1 b/1",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "more messages than a call has items",
        setting: |consumer| consumer.items_max(2),
        deliveries: &[
            now(&["a ok", "b ok", "c ok", "d ok", "e ok"], "completed completed completed completed completed"),
            now(&["a ok", "b ok", "c ok"], "duplicate duplicate duplicate"),
        ],
        runs: "a/1 b/1 c/1 d/1 e/1",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "a call waits for no claim that hangs (L4)",
        faults: &[(Claim, Hangs)],
        deliveries: &[now(&["a ok", "b ok", "c ok"], "store_failed completed completed")],
        runs: "b/1 c/1",
        ..CALLS
    },
    Case {
        name: "one completion without an answer is no success, its neighbours are (fault 9)",
        faults: &[(Settle, KILLED)],
        deliveries: &[
            now(&["a ok", "b ok"], "settle_unknown completed"),
            now(&["a ok", "b ok"], "duplicate duplicate"),
        ],
        runs: "a/1 b/1",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "completions are tried again as others are (fault 8)",
        faults: &[(Settle, AnswerLost), (Settle, UNREACHABLE)],
        deliveries: &[now(&["a ok", "b ok", "c ok"], "completed completed completed")],
        runs: "a/1 b/1 c/1",
        status: Some(Completed),
        ..CALLS
    },
    Case {
        name: "killed after a call, before its completions: each is taken over, alone (faults 3, 4)",
        faults: &[(Settle, REFUSED), (Settle, REFUSED)],
        deliveries: &[
            now(&["a ok", "b panics-again"], "settle_unknown settle_unknown"),
            now(&["a ok", "b panics-again"], "busy busy"),
            after(2_000, &["a ok", "b panics-again"], "completed retry"),
        ],
        runs: "a/1 a/2 b/1 b/2",
        status: Some(Completed),
        ..CALLS
    },
];
