//! The cases of messages that hold several events, or none.

use claimant_core::Status::{Completed, Rejected};

use super::Case;
use super::cases::{KILLED, LONG_S, PLAIN, Refused, Settle, Taken, after, now};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "a message is done when all events in it are",
        deliveries: &[
            now(&["a ok + b flaky + c ok", "d ok"], "retry completed"),
            now(&["a ok + b flaky + c ok"], "completed"),
            now(&["a ok + b flaky + c ok"], "duplicate"),
        ],
        runs: "a/1 b/1 b/2 c/1 d/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "an event that no retry can fix waits for the others of its message, and runs once",
        letters: Taken,
        deliveries: &[
            now(&["a reject + b flaky", r#"[{"id":"c","do":"ok"},7]"#], "retry rejected"),
            now(&["a reject + b flaky"], "rejected"),
        ],
        runs: "a/1 b/1 b/2 c/1",
        status: Some(Rejected),
        ..PLAIN
    },
    Case {
        name: "or stays with its message, without a dead-letter queue",
        deliveries: &[now(&["a ok + b reject", "c ok"], "rejected completed"), now(&["a ok + b reject"], "rejected")],
        runs: "a/1 b/1 c/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "one key in several events is one run",
        deliveries: &[now(
            &[
                "a ok + a ok",
                "b fail + a ok",
                "a ok + b fail + c ok",
                r#"[{"id":"c","do":"ok","more":1},{"id":"d","do":"ok"}]"#,
            ],
            "completed retry retry conflict",
        )],
        runs: "a/1 b/1 c/1 d/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "events of an ordered group are in order, and nothing of it runs after one that failed",
        letters: Taken,
        deliveries: &[
            now(&["g:d reject + a ok + b flaky + c ok", "g:e ok", "f ok"], "retry blocked completed"),
            now(&["g:d reject + a ok + b flaky + c ok", "g:e ok"], "rejected completed"),
        ],
        runs: "a/1 b/1 b/2 c/1 d/1 e/1 f/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "an event that was not dead-lettered holds up its ordered group",
        letters: Refused,
        deliveries: &[now(&["g:a reject + b ok", "g:c ok", "g:[]"], "rejected blocked blocked")],
        runs: "a/1 b/1",
        status: Some(Rejected),
        ..PLAIN
    },
    Case {
        name: "a message that holds no event is done",
        deliveries: &[now(&["[]", "g:[]", "g:a ok"], "empty empty completed")],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "killed between two events of a message (faults 1, 5)",
        faults: &[(Settle, KILLED)],
        deliveries: &[now(&["a ok + b ok"], "settle_unknown"), after(LONG_S, &["a ok + b ok"], "duplicate")],
        runs: "a/1 b/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "events of one message are items of one call",
        calls: Some(10),
        letters: Taken,
        deliveries: &[
            now(&["a ok + b fail + c ok", "d ok + e reject"], "retry rejected"),
            now(&["a ok + b ok + c ok"], "conflict"),
        ],
        runs: "a/1 b/1 c/1 d/1 e/1",
        status: Some(Completed),
        ..PLAIN
    },
];
