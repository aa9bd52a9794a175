//! The cases of work that is rejected, parked, or done at most once.

use std::time::Duration;

use claimant_core::Status::{Completed, Parked, Rejected};

use super::Case;
use super::cases::{AnswerLost, LONG_S, PLAIN, REFUSED, Refused, Settle, THROTTLED, UNREACHABLE, after, now};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "rejected: not run again, until it comes with a new id",
        deliveries: &[
            now(&["a reject"], "rejected"),
            after(LONG_S, &["a reject"], "rejected"),
            now(&["a reject @m9"], "rejected"),
        ],
        runs: "a/1 a/1",
        status: Some(Rejected),
        ..PLAIN
    },
    Case {
        name: "rejected messages that cannot be dead-lettered stay (fault 35)",
        letters: Refused,
        deliveries: &[now(&["a reject", "nonsense"], "rejected rejected")],
        runs: "a/1",
        status: Some(Rejected),
        ..PLAIN
    },
    Case {
        name: "finished work of an at-most-once consumer is not parked while its completion can be tried again",
        setting: |consumer| consumer.at_most_once(),
        faults: &[(Settle, UNREACHABLE), (Settle, AnswerLost), (Settle, THROTTLED)],
        deliveries: &[now(&["a ok"], "completed"), after(LONG_S, &["a ok", "a ok @m9"], "duplicate duplicate")],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "abandoned work of an at-most-once consumer is parked",
        setting: |consumer| consumer.at_most_once(),
        faults: &[(Settle, REFUSED)],
        deliveries: &[
            now(&["a ok"], "settle_unknown"),
            now(&["a ok"], "busy"),
            after(LONG_S, &["a ok"], "parked"),
            now(&["a ok @m9"], "parked"),
        ],
        runs: "a/1",
        status: Some(Parked),
        ..PLAIN
    },
    Case {
        name: "and so is what was cut off: it may have had its effect",
        setting: |consumer| consumer.at_most_once().timeout(Duration::from_millis(20)),
        deliveries: &[
            now(&["a hang", "b panic", "c ok"], "parked parked completed"),
            now(&["a hang", "b panic"], "parked parked"),
        ],
        runs: "a/1 b/1 c/1",
        status: Some(Parked),
        ..PLAIN
    },
    Case {
        name: "and what its handler is uncertain of, for every message of the key",
        setting: |consumer| consumer.at_most_once(),
        deliveries: &[now(&["a doubt", "b ok"], "parked completed"), now(&["a doubt", "a doubt @m9"], "parked parked")],
        runs: "a/1 b/1",
        status: Some(Parked),
        ..PLAIN
    },
    Case {
        name: "where the ending is not written, by whoever comes next",
        setting: |consumer| consumer.at_most_once(),
        faults: &[(Settle, REFUSED)],
        deliveries: &[now(&["a doubt"], "settle_unknown"), after(LONG_S, &["a doubt"], "parked")],
        runs: "a/1",
        status: Some(Parked),
        ..PLAIN
    },
    Case {
        name: "any other consumer runs it again",
        deliveries: &[now(&["a doubt"], "retry"), now(&["a doubt"], "completed")],
        runs: "a/1 a/2",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "what failed by itself is run again all the same",
        setting: |consumer| consumer.at_most_once(),
        deliveries: &[now(&["a flaky"], "retry"), now(&["a flaky"], "completed")],
        runs: "a/1 a/2",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a limit on attempts rejects, and a redrive starts with fresh ones",
        setting: |consumer| consumer.attempts_max(2),
        deliveries: &[
            now(&["a fail"], "retry"),
            now(&["a fail"], "retry"),
            now(&["a fail"], "rejected"),
            now(&["a fail"], "rejected"),
            now(&["a fail @m9"], "retry"),
            now(&["a fail @m9"], "retry"),
            now(&["a fail @m9"], "rejected"),
            now(&["a fail @m9"], "rejected"),
        ],
        runs: "a/1 a/1 a/2 a/2",
        status: Some(Rejected),
        ..PLAIN
    },
    Case {
        name: "work whose result is too large to keep was done: it is completed without it (fault 31)",
        deliveries: &[
            now(&["a big", "b value", "a big @m8"], "completed completed duplicate"),
            now(&["a big @m9"], "duplicate"),
        ],
        runs: "a/1 b/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "and so it is at most once",
        setting: |consumer| consumer.at_most_once(),
        deliveries: &[now(&["a big"], "completed"), now(&["a big @m9"], "duplicate")],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
];
