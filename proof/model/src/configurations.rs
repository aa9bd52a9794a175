//! The worlds that are explored.

use claimant_core::{Abandoned, Conflicts};

use crate::checked::Checked;
use crate::config::{Clocks, Config, Finish, Form};
use crate::values::Time;

const ENDS: &[Finish] = &[Finish::Ok, Finish::Fail, Finish::Cut { acted: true }];
const REJECTS: &[Finish] = &[Finish::Ok, Finish::Fail, Finish::Reject];
const CUTS: &[Finish] = &[Finish::Ok, Finish::Fail, Finish::Cut { acted: true }, Finish::Cut { acted: false }];
const RETRIES: &[Finish] = &[Finish::Ok, Finish::Fail];
const RELEASES: &[Finish] = &[Finish::Ok, Finish::Release];
const JUMPS: Clocks = Clocks::Jumping(&[1, 9]);

/// The window where windows end, in seconds.
const WINDOW: Time = 1;

fn of(config: Config, sights: &'static [&'static str]) -> Checked {
    Checked { config, only: None, sights }
}

/// The worlds that continuous integration explores whole.
#[must_use]
pub fn small() -> Vec<Checked> {
    vec![
        of(
            Config {
                finishes: ENDS,
                losses: 1,
                deaths: 1,
                ticks: 4,
                receives: 2,
                ..Config::new("clocks within the margin")
            },
            &["completed", "lost answer resolved", "duplicate", "busy", "retry", "takeover", "everything done"],
        ),
        of(
            Config { renewed: true, losses: 2, ticks: 4, receives: 2, ..Config::new("renewed leases") },
            &["completed", "busy"],
        ),
        of(
            Config {
                form: Form::Conditional,
                finishes: ENDS,
                losses: 1,
                deaths: 1,
                ticks: 4,
                receives: 2,
                ..Config::new("clocks within the margin, lock table")
            },
            &["completed", "busy", "takeover"],
        ),
        of(
            Config {
                form: Form::Batched,
                finishes: ENDS,
                losses: 1,
                deaths: 1,
                ticks: 4,
                receives: 2,
                ..Config::new("clocks within the margin, batched claims")
            },
            &["completed", "busy", "takeover"],
        ),
        of(
            Config {
                form: Form::Conditional,
                clocks: JUMPS,
                stops: false,
                finishes: ENDS,
                losses: 1,
                deaths: 1,
                ticks: 2,
                receives: 2,
                ..Config::new("jumping clocks, lock table")
            },
            &["completed", "duplicate", "busy", "takeover", "stale settlement refused", "two effects"],
        ),
        of(
            Config {
                form: Form::Batched,
                stops: false,
                finishes: ENDS,
                losses: 2,
                deaths: 1,
                ticks: 3,
                receives: 2,
                ..Config::new("batched claims")
            },
            &["completed", "lost answer resolved", "a claim whose answer was lost"],
        ),
        of(
            Config {
                form: Form::Conditional,
                abandoned: Abandoned::Park,
                stops: false,
                finishes: CUTS,
                losses: 1,
                ticks: 3,
                receives: 2,
                letters: true,
                redrives: 1,
                ..Config::new("at most once")
            },
            &["completed", "parked", "dead letter", "stale settlement refused"],
        ),
        of(
            Config {
                form: Form::Conditional,
                finishes: REJECTS,
                payloads: &[0, 1],
                stops: false,
                losses: 1,
                redrives: 1,
                letters: true,
                ticks: 1,
                receives: 1,
                ..Config::new("rejections, conflicts, redrive")
            },
            &["rejected", "conflict", "rejected, redriven, run again", "dead letter", "dead-lettered by the queue"],
        ),
        of(
            Config {
                form: Form::Conditional,
                window: WINDOW,
                ttl: true,
                attempts: true,
                stops: false,
                finishes: RETRIES,
                ticks: 4,
                ..Config::new("windows that end")
            },
            &["completed", "third fence", "two effects"],
        ),
        of(
            Config {
                window: WINDOW,
                ttl: true,
                clocks: JUMPS,
                stops: false,
                finishes: RETRIES,
                losses: 1,
                ticks: 3,
                receives: 2,
                ..Config::new("jumping clocks, windows that end")
            },
            &["completed", "takeover", "two effects"],
        ),
        of(
            Config {
                transactional: true,
                form: Form::Conditional,
                stops: false,
                losses: 2,
                ticks: 3,
                ..Config::new("transactions")
            },
            &[
                "completed",
                "lost answer resolved",
                "takeover",
                "stale settlement refused",
                "settlement unknown",
                "claim unanswered",
            ],
        ),
        of(
            Config {
                form: Form::Optimistic,
                stops: false,
                finishes: REJECTS,
                losses: 2,
                deaths: 1,
                ticks: 1,
                receives: 2,
                ..Config::new("optimistic transactions")
            },
            &["completed", "lost answer resolved", "duplicate", "rejected"],
        ),
        of(
            Config {
                finishes: RELEASES,
                conflicts: Conflicts::Ignore,
                payloads: &[0, 1],
                attempts: true,
                attempts_max: Some(1),
                deaths: 1,
                ticks: 3,
                receives: 2,
                ..Config::new("a limit on attempts")
            },
            &["completed", "rejected"],
        ),
    ]
}

/// The world that `make model` explores beside them: 64 million states.
#[must_use]
pub fn large() -> Checked {
    of(
        Config {
            form: Form::Conditional,
            finishes: ENDS,
            losses: 2,
            deaths: 1,
            ticks: 6,
            drained: false,
            ..Config::new("large: clocks within the margin, lock table")
        },
        &[],
    )
}
