//! What roles may do that pause a function's intake, and end the pause.

use super::pair::Pair;
use super::records::decided;
use super::rights::lacking;
use super::schedules::trusting;
use crate::environment::RESUME_ROLE;
use crate::fact::{self, Fact};
use crate::finding::{Answer, FINE, Level, found, together};
use crate::model::{Function, Link, System};

/// What a breaker asks for that pauses it.
const PAUSING: [&str; 5] = [
    "lambda:ListEventSourceMappings",
    "lambda:UpdateEventSourceMapping",
    "scheduler:CreateSchedule",
    "scheduler:ListSchedules",
    "iam:PassRole",
];

/// What ends a pause.
const RESUME: &str = "lambda:UpdateEventSourceMapping";

/// What is done with a breaker's record, and the reserved consumer that has it.
const UPDATE: &str = "dynamodb:UpdateItem";
const BREAKER: &str = "claimant-breaker";

/// A function that is told how its intake comes back has a breaker.
pub(super) fn record(pair: &Pair<'_>) -> Option<Answer> {
    let is_told = |function: &&Function| function.environment.has(RESUME_ROLE) != Fact::Known(false);
    let function = pair.function.filter(is_told)?;
    let answer = || {
        function.environment.has(RESUME_ROLE).known()?;
        together([may_use_record(pair.system, function), may_pause(function), may_resume(function)])
    };
    Some(answer())
}

fn may_use_record(system: &System, function: &Function) -> Answer {
    let table = function.environment.get("CLAIMANT_TABLE").filter(|_| !function.has_records_elsewhere());
    let Some(table) = table else { return FINE };
    // They can be in another store, too.
    let table = table.known().filter(|_| !function.environment.is_open)?;
    let allowed = |one: &Link| {
        let by_role = function.rights.allow_records(UPDATE, one.text(), BREAKER);
        decided(system, function, (UPDATE, one), by_role).known().copied()
    };
    // Which table has the record follows from its name.
    if fact::all(table.each().map(allowed))? {
        return FINE;
    }
    found(
        Level::Warning,
        format!("the role of {} may not use the records of breakers in {}", function.place.id, table.text()),
        "add claimant-breaker#*, or claimant-breaker# and the breaker's name, to dynamodb:LeadingKeys",
    )
}

/// Whether its role has what a pause takes, on whatever.
fn may_pause(function: &Function) -> Answer {
    let lacking = lacking(&PAUSING, |action| function.rights.allow_somewhere(action))?;
    if lacking.is_empty() {
        return FINE;
    }
    let lacking = lacking.join(", ");
    found(
        Level::Warning,
        format!("the role of {} may not {lacking}: an open breaker pauses nothing", function.place.id),
        format!("allow it {lacking}, as claimant's docs/breaker.md has it; or leave {RESUME_ROLE} out"),
    )
}

/// Whether the schedule that ends a pause may do so, in whose name it does.
fn may_resume(function: &Function) -> Answer {
    let role = function.environment.schedulers.get(RESUME_ROLE)?;
    let switches = || match *role.rights.allow_somewhere(RESUME).known()? {
        true => FINE,
        false => found(
            Level::Error,
            format!("{} may not {RESUME}: what an open breaker pauses stays so", role.place.id),
            format!("allow it {RESUME}, as claimant's docs/breaker.md has it"),
        ),
    };
    together([trusting(role, "an open breaker pauses nothing"), switches()])
}
