//! The checks themselves: pure functions from what is known to answers.

mod alarms;
mod batches;
mod breaker;
mod costs;
mod dead_letters;
mod fix;
mod gone;
mod pair;
mod records;
mod redrive;
mod rights;
mod scaling;
mod schedules;
mod settings;
mod tables;

use crate::finding::{Answer, Report};
use crate::model::System;
use pair::Pair;

/// A check of one mapping; `None` where it has nothing to look at.
type OfPair = fn(&Pair<'_>) -> Option<Answer>;

const OF_PAIRS: &[(u8, OfPair)] = &[
    (1, batches::visibility),
    (2, batches::six_times),
    (3, batches::reports),
    (6, dead_letters::copies),
    (10, batches::window),
    (11, scaling::own_limit),
    (13, scaling::pollers),
    (14, scaling::in_flight),
    (15, batches::filters),
    (16, batches::one_reader),
    (17, batches::region),
    (18, rights::missing),
    (19, rights::keys),
    (20, rights::default_key),
    (21, rights::feeds_itself),
    (23, scaling::groups),
    (31, alarms::mapping_metrics),
    (32, dead_letters::window),
    (35, dead_letters::told),
    (39, batches::by_arn),
];

/// A check of a whole system, which records its answers itself.
type OfSystem = fn(&System, &mut Report);

const OF_SYSTEMS: &[OfSystem] = &[
    dead_letters::check,
    scaling::check,
    records::check,
    tables::check,
    alarms::check,
    costs::check,
    settings::check,
    breaker::check,
    schedules::check,
    gone::check,
];

/// Runs all checks.
pub fn run(system: &System) -> Report {
    let mut report = Report::default();
    for mapping in &system.mappings {
        let pair = Pair {
            system,
            mapping,
            queue: mapping.queue.known().and_then(|link| system.queue(link)),
            function: mapping.invokes.function.known().and_then(|link| system.function(link)),
        };
        for (number, check) in OF_PAIRS {
            if let Some(answer) = check(&pair) {
                report.answer(*number, pair.place(*number), answer);
            }
        }
    }
    for check in OF_SYSTEMS {
        check(system, &mut report);
    }
    report.sort();
    report
}
