//! The cases.

use std::time::Duration;

use claimant_core::Status::{Completed, Failed, InProgress};
use claimant_core::{Conflicts, StoreErrorKind};

use super::{Case, Delivery};
pub(super) use crate::faulty::Call::{Claim, Settle};
use crate::faulty::Fault::{self, Applied, NotApplied};
pub(super) use crate::faulty::Fault::{AnswerLost, Hangs};
use crate::queue::DeadLetterQueue::Without;
pub(super) use crate::queue::DeadLetterQueue::{Refused, Taken};

pub(super) const UNREACHABLE: Fault = NotApplied(StoreErrorKind::Unreachable);

pub(super) const THROTTLED: Fault = NotApplied(StoreErrorKind::Throttled);

/// What no other try can fix: it is said at once.
pub(super) const REFUSED: Fault = NotApplied(StoreErrorKind::Corrupt);

/// The call applies, and whoever made it is gone.
pub(super) const KILLED: Fault = Applied(StoreErrorKind::Corrupt);

/// Longer than any invocation here, and its lease.
pub(super) const LONG_S: u64 = 2_000;

pub(super) const PLAIN: Case = Case {
    name: "",
    setting: |consumer| consumer,
    calls: None,
    letters: Without,
    faults: &[],
    deliveries: &[],
    runs: "",
    status: None,
};

/// A delivery right after what was before.
pub(super) const fn now(batch: &'static [&'static str], outcomes: &'static str) -> Delivery {
    after(0, batch, outcomes)
}

pub(super) const fn after(wait_s: u64, batch: &'static [&'static str], outcomes: &'static str) -> Delivery {
    Delivery { wait_s, batch, outcomes }
}

pub(super) const CASES: &[Case] = &[
    Case { name: "an empty batch", deliveries: &[now(&[], "")], ..PLAIN },
    Case {
        name: "completed; killed after completing, or SQS did not delete it (faults 1, 5, 6)",
        deliveries: &[
            now(&["a ok", "b ok"], "completed completed"),
            now(&["a ok", "b ok"], "duplicate duplicate"),
            after(LONG_S, &["a ok @m9"], "duplicate"),
        ],
        runs: "a/1 b/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "each failure stays with its message (fault 27, L4)",
        deliveries: &[now(
            &["a fail", "b reject", "c panic", "d ok", "e later"],
            "retry rejected retry completed retry",
        )],
        runs: "a/1 b/1 c/1 d/1 e/1",
        status: Some(Failed),
        ..PLAIN
    },
    Case {
        name: "bad bodies are rejected one by one (fault 24)",
        deliveries: &[now(
            &["nonsense", r#"{"id":"a"}"#, r#"{"id":"","do":"ok"}"#, r#"{"id":5,"do":"ok"}"#, "", "a ok"],
            "rejected rejected rejected rejected rejected completed",
        )],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a failed message is tried again with the next attempt",
        deliveries: &[now(&["a flaky"], "retry"), now(&["a flaky"], "completed"), now(&["a flaky"], "duplicate")],
        runs: "a/1 a/2",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "one key twice is one run, whatever comes of it (fault 19)",
        deliveries: &[now(
            &["a ok", "b fail", "a ok", "b fail", "c reject", "c reject"],
            "completed retry duplicate retry rejected rejected",
        )],
        runs: "a/1 b/1 c/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "one key with two payloads is a conflict (S10)",
        deliveries: &[
            now(&["a ok", r#"{"id":"a","do":"ok","more":1}"#], "completed conflict"),
            now(&[r#"{"id":"a","do":"ok","more":2}"#], "conflict"),
        ],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "or a duplicate, where the consumer says that the key is all",
        setting: |consumer| consumer.conflicts(Conflicts::Ignore),
        deliveries: &[
            now(&["a ok", r#"{"id":"a","do":"ok","more":1}"#], "completed duplicate"),
            now(&[r#"{"id":"a","do":"ok","more":2}"#], "duplicate"),
        ],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a handler that never returns is cancelled, its siblings are not (fault 28)",
        deliveries: &[
            now(&["a hang", "b ok", "c long"], "cancelled completed completed"),
            now(&["a hang"], "cancelled"),
        ],
        runs: "a/1 a/2 b/1 c/1",
        status: Some(Failed),
        ..PLAIN
    },
    Case {
        name: "or at its own timeout",
        setting: |consumer| consumer.timeout(Duration::from_millis(20)),
        deliveries: &[now(&["a hang", "b ok"], "cancelled completed")],
        runs: "a/1 b/1",
        status: Some(Failed),
        ..PLAIN
    },
    Case {
        name: "after a failure the rest of its group is not run (fault 23, S8)",
        deliveries: &[
            now(&["x:a ok", "x:b flaky", "y:c ok", "x:d ok", "y:e ok"], "completed retry completed blocked completed"),
            now(&["x:b flaky @m1", "x:d ok @m3"], "completed completed"),
        ],
        runs: "a/1 b/1 b/2 c/1 d/1 e/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a bad body blocks its group",
        deliveries: &[now(&["x:nonsense", "x:a ok"], "rejected blocked")],
        ..PLAIN
    },
    Case {
        name: "unless it is dead-lettered: the group goes on",
        letters: Taken,
        deliveries: &[now(&["x:nonsense", "x:a ok"], "rejected completed")],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "throttled claims are tried again (fault 26)",
        faults: &[(Claim, THROTTLED), (Claim, UNREACHABLE), (Claim, THROTTLED)],
        deliveries: &[now(&["a ok", "b ok", "c ok"], "completed completed completed")],
        runs: "a/1 b/1 c/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a claim whose answer was lost is recognised when it is tried again (faults 2, 7)",
        faults: &[(Claim, AnswerLost)],
        deliveries: &[now(&["a ok", "b ok"], "completed completed")],
        runs: "a/1 b/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "claims that no other try can help fail alone; the others proceed",
        faults: &[(Claim, REFUSED), (Claim, REFUSED)],
        deliveries: &[
            now(&["a ok", "b ok", "c ok"], "store_failed store_failed completed"),
            now(&["a ok", "b ok"], "completed completed"),
        ],
        runs: "a/1 b/1 c/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a busy key is waited for in vain (faults 2, 21)",
        setting: |consumer| consumer.wait_while_busy(Duration::from_millis(200)),
        faults: &[(Claim, KILLED)],
        deliveries: &[
            now(&["a ok"], "store_failed"),
            now(&["a ok", "b ok", "a ok"], "busy completed busy"),
            after(LONG_S, &["a ok"], "completed"),
        ],
        runs: "a/2 b/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "killed after the claim applied: busy, then taken over (faults 2, 10, 21, L1)",
        faults: &[(Claim, KILLED)],
        deliveries: &[now(&["a ok"], "store_failed"), now(&["a ok"], "busy"), after(LONG_S, &["a ok"], "completed")],
        runs: "a/2",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a store that never answers (fault 32)",
        faults: &[(Claim, Hangs), (Claim, Hangs)],
        deliveries: &[now(&["a ok", "b ok"], "store_failed store_failed")],
        ..PLAIN
    },
    Case {
        name: "one claim that hangs holds up no other one (L4)",
        faults: &[(Claim, Hangs)],
        deliveries: &[now(&["a ok", "b ok", "c ok"], "store_failed completed completed")],
        runs: "b/1 c/1",
        ..PLAIN
    },
    Case {
        name: "completed, and the answer was lost: seen at the next try (fault 8)",
        faults: &[(Settle, AnswerLost), (Settle, THROTTLED), (Settle, UNREACHABLE)],
        deliveries: &[now(&["a ok"], "completed"), now(&["a ok"], "duplicate")],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "or never: no success before it is (fault 9)",
        faults: &[(Settle, KILLED)],
        deliveries: &[now(&["a ok"], "settle_unknown"), now(&["a ok"], "duplicate")],
        runs: "a/1",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "killed after the effect, before completing: run again after the lease (faults 3, 4)",
        faults: &[(Settle, REFUSED)],
        deliveries: &[now(&["a ok"], "settle_unknown"), now(&["a ok"], "busy"), after(LONG_S, &["a ok"], "completed")],
        runs: "a/1 a/2",
        status: Some(Completed),
        ..PLAIN
    },
    Case {
        name: "a completion that hangs is no success, and neither is its copy",
        faults: &[(Settle, Hangs)],
        deliveries: &[now(&["a ok", "a ok"], "settle_unknown settle_unknown")],
        runs: "a/1",
        status: Some(InProgress),
        ..PLAIN
    },
    Case {
        name: "the lease ends in mid-handler and another owner claims (faults 13, 14)",
        deliveries: &[now(&["a robbed"], "lease_lost")],
        runs: "a/1",
        status: Some(InProgress),
        ..PLAIN
    },
    Case {
        name: "the clock jumps an hour while the handler runs (fault 17)",
        deliveries: &[
            now(&["a forward", "b ok"], "completed completed"),
            now(&["c backward", "d ok"], "completed completed"),
            now(&["a forward", "b ok", "c backward @m0", "d ok @m1"], "duplicate duplicate duplicate duplicate"),
        ],
        runs: "a/1 b/1 c/1 d/1",
        status: Some(Completed),
        ..PLAIN
    },
];
