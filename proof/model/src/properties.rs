//! What must always hold, and what must be reachable.

use stateright::Property;

use claimant_core::{Abandoned, Conflicts, Status};

use crate::checked::Checked;
use crate::config::Config;
use crate::rules::{Verdict, Why};
use crate::state::{Flaw, Out, Place, State, Worker};
use crate::values::{FOREVER, Rec, Req, Time};

/// A promise: its name, what it says, and the configurations in which it must hold.
pub struct Promise {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Whether it is made in this configuration.
    pub made: fn(&Config) -> bool,
    /// Whether it holds in this state.
    pub holds: fn(&Config, &State) -> bool,
}

/// Something that must be reachable in a configuration that says so.
pub struct Sight {
    /// Its name.
    pub name: &'static str,
    /// Whether this state shows it.
    pub shown: fn(&State) -> bool,
}

const fn everywhere(_: &Config) -> bool {
    true
}

/// Every promise.
pub const PROMISES: &[Promise] = &[
    Promise {
        name: "S1",
        says: "each accepted claim of a key has the next fence",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::S1),
    },
    Promise {
        name: "S2",
        says: "at most one completion of a key is accepted in its window",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::S2),
    },
    Promise {
        name: "S3",
        says: "a claim's writes apply only to exactly (IN_PROGRESS, owner, fence)",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::S3),
    },
    Promise {
        name: "S4",
        says: "a message is reported successful only if its work was completed and had its effect, or a copy is in the dead-letter queue",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::S4),
    },
    Promise {
        name: "S5",
        says: "COMPLETED changes only after its window ended",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::S5),
    },
    Promise {
        name: "S6",
        says: "no message is gone whose work was not completed and of which no copy is in the dead-letter queue",
        made: everywhere,
        holds: |config, state| {
            let known = |payload: u8| match config.conflicts {
                Conflicts::Reject => state.done[usize::from(payload)],
                Conflicts::Ignore => state.done.contains(&true),
            };
            let messages = config.payloads.iter().zip(&state.messages);
            messages
                .filter(|(_, message)| message.place == Place::Deleted)
                .all(|(p, message)| message.copied || known(*p))
        },
    },
    Promise {
        name: "S10",
        says: "one key with two payloads is an explicit conflict",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::S10),
    },
    Promise {
        name: "S11",
        says: "two handlers of one key never run at the same time",
        made: |config| config.stops,
        holds: |_, state| {
            state.workers.iter().filter(|worker| matches!(worker, Worker::Running { base: None, .. })).count() <= 1
        },
    },
    Promise {
        name: "at most once",
        says: "a consumer that parks abandoned work has its effect at most once",
        made: |config| config.abandoned == Abandoned::Park && !config.windows_end(),
        holds: |_, state| state.effects.iter().all(|effects| *effects <= 1),
    },
    Promise {
        name: "exactly once",
        says: "an effect that commits with the completion is there at most once, and before the message is gone",
        made: |config| config.commits() && !config.windows_end(),
        holds: |_, state| state.effects.iter().all(|effects| *effects <= 1),
    },
    Promise {
        name: "one decision",
        says: "a store writes for a claim what the decision on its record gives (contract, clause 1)",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::OneDecision),
    },
    Promise {
        name: "own writes",
        says: "what a worker wrote itself is never another owner's (contract, clause 4)",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::OwnWrites),
    },
    Promise {
        name: "leases grow",
        says: "a renewal never makes a lease shorter (contract, clause 7)",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::LeasesGrow),
    },
    Promise {
        name: "rejected once",
        says: "a handler that rejected a message is not run for it again, unless for another one of its key in between",
        made: everywhere,
        holds: |_, state| !state.has(Flaw::RejectedOnce),
    },
    Promise {
        name: "attempts",
        says: "the count of attempts grows by one with each claim of a window, and begins anew after a rejection",
        made: |config| config.attempts,
        holds: |_, state| !state.has(Flaw::Attempts),
    },
    Promise {
        name: "L1",
        says: "a key in progress is claimable, or parked, when its lease and the margin are over; a failed one at once; a rejected one by another message",
        made: everywhere,
        holds: claimable_in_time,
    },
    Promise {
        name: "windows end",
        says: "a key whose window is over, and no lease live, is claimable (contract, clause 8)",
        made: Config::windows_end,
        holds: claimable_after_window,
    },
    Promise {
        name: "L2",
        says: "once faults stop, every message ends within two deliveries",
        made: |config| config.drained,
        holds: |config, state| state.drains(config),
    },
];

/// Everything that can be seen.
pub const SIGHTS: &[Sight] = &[
    Sight { name: "completed", shown: |state| reported(state, |out| matches!(out, Out::Completed { .. })) },
    Sight {
        name: "lost answer resolved",
        shown: |state| reported(state, |out| out == Out::Completed { resolved: true }),
    },
    Sight { name: "duplicate", shown: |state| reported(state, |out| out == Out::Duplicate) },
    Sight { name: "busy", shown: |state| reported(state, |out| out == Out::Busy) },
    Sight { name: "retry", shown: |state| reported(state, |out| out == Out::Retry) },
    Sight { name: "rejected", shown: |state| reported(state, |out| out == Out::Rejected { conflict: false }) },
    Sight { name: "conflict", shown: |state| reported(state, |out| out == Out::Rejected { conflict: true }) },
    Sight { name: "parked", shown: |state| reported(state, |out| out == Out::Parked) },
    Sight { name: "stale settlement refused", shown: |state| reported(state, |out| out == Out::Lost) },
    Sight { name: "settlement unknown", shown: |state| reported(state, |out| out == Out::Unsettled) },
    Sight { name: "claim unanswered", shown: |state| reported(state, |out| out == Out::StoreFailed) },
    Sight { name: "takeover", shown: |state| running(state, |held| held.taken_over) },
    Sight { name: "third fence", shown: |state| state.record.is_some_and(|record| record.fence >= 3) },
    Sight {
        name: "rejected, redriven, run again",
        shown: |state| {
            let redriven = state.messages.iter().any(|message| message.redriven > 0);
            redriven && running(state, |held| held.fence > 1)
        },
    },
    Sight { name: "a claim whose answer was lost", shown: orphaned },
    Sight { name: "two effects", shown: |state| state.effects.contains(&2) },
    Sight { name: "dead letter", shown: |state| state.messages.iter().any(|message| message.copied) },
    Sight {
        name: "dead-lettered by the queue",
        shown: |state| state.messages.iter().any(|message| message.place == Place::DeadLetters),
    },
    Sight {
        name: "everything done",
        shown: |state| state.messages[0].place == Place::Deleted && state.workers.iter().all(|w| *w == Worker::Idle),
    },
];

/// The model's properties: the promises that are made, and the sights asked for.
#[must_use]
pub fn properties(model: &Checked) -> Vec<Property<Checked>> {
    // A condition is a plain function, so each promise gets one by its place.
    let promises = PROMISES.iter().zip(PROMISE_CONDITIONS);
    let wanted = |name| model.only.is_none_or(|only| only.contains(&name));
    let promises = promises.filter(|(promise, _)| (promise.made)(&model.config) && wanted(promise.name));
    let mut all: Vec<_> = promises.map(|(promise, condition)| Property::always(promise.name, *condition)).collect();
    let sights = SIGHTS.iter().zip(SIGHT_CONDITIONS).filter(|(sight, _)| model.sights.contains(&sight.name));
    all.extend(sights.map(|(sight, condition)| Property::sometimes(sight.name, *condition)));
    all
}

type Condition = fn(&Checked, &State) -> bool;

macro_rules! by_place {
    ($($place:literal)*) => {
        const PROMISE_CONDITIONS: &[Condition] =
            &[$(|model, state| (PROMISES[$place % PROMISES.len()].holds)(&model.config, state)),*];
        const SIGHT_CONDITIONS: &[Condition] = &[$(|_, state| (SIGHTS[$place % SIGHTS.len()].shown)(state)),*];
    };
}

by_place!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);

const _: () = assert!(PROMISES.len() <= PROMISE_CONDITIONS.len() && SIGHTS.len() <= SIGHT_CONDITIONS.len());

fn reported(state: &State, wanted: impl Fn(Out) -> bool) -> bool {
    state.workers.iter().any(|worker| matches!(worker, Worker::Reporting { out, .. } if wanted(*out)))
}

fn running(state: &State, wanted: impl Fn(&crate::values::Held) -> bool) -> bool {
    state.workers.iter().any(|worker| matches!(worker, Worker::Running { held, .. } if wanted(held)))
}

/// A key in progress under an owner that no worker knows: a claim that landed late, or whose owner died.
fn orphaned(state: &State) -> bool {
    let Some(record) = state.record.filter(|record| record.status == Status::InProgress) else { return false };
    !state.workers.iter().any(|worker| match worker {
        Worker::Asking { ask, .. } => ask.owner() == record.owner,
        Worker::Running { held, .. } => held.owner == record.owner,
        Worker::Idle | Worker::Reporting { .. } => false,
    })
}

/// A request that was not made yet, of another message with the record's payload.
fn fresh(state: &State, record: &Rec, now: Time, config: &Config) -> Req {
    let message = record.message + 1;
    let lease = now.saturating_add(config.lease);
    Req { owner: state.fresh_owner(), message, payload: record.payload, now, lease }
}

fn claimable_in_time(config: &Config, state: &State) -> bool {
    let Some(record) = state.record else { return true };
    let now = match record.status {
        Status::InProgress => record.lease.saturating_add(config.skew).saturating_add(1),
        Status::Failed | Status::Rejected => 1,
        Status::Completed | Status::Parked => return true,
    };
    let verdict = config.rules().decide(Some(record), &fresh(state, &record, now, config));
    matches!(verdict, Verdict::Grant { .. } | Verdict::Park { .. })
}

fn claimable_after_window(config: &Config, state: &State) -> bool {
    let Some(record) = state.record.filter(|record| record.expires < FOREVER - 1) else { return true };
    let lease_over = match record.status {
        Status::InProgress => record.lease.saturating_add(config.skew),
        _ => 0,
    };
    let now = record.expires.max(lease_over) + 1;
    let other = Req { payload: 1 - record.payload, ..fresh(state, &record, now, config) };
    let verdict = config.rules().decide(Some(record), &other);
    !matches!(verdict, Verdict::Refuse(Why::Completed | Why::Conflict | Why::Rejected | Why::Parked | Why::Busy { .. }))
}
