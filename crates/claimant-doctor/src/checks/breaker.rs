//! What roles may do that pause a function's intake, and end the pause.

use super::records::decided;
use super::rights::lacking;
use super::schedules::{PASS, may_pass, so, told, trusting};
use crate::environment::{RESUME_ROLE, TABLE};
use crate::fact;
use crate::finding::{Answer, FINE, Level, Report, found, together};
use crate::model::{Function, Link, Scheduler, System};
use crate::rights::LIST_MAPPINGS;

/// What a breaker asks for that pauses it.
const PAUSING: [&str; 5] = [LIST_MAPPINGS, "lambda:UpdateEventSourceMapping", CREATE, "scheduler:ListSchedules", PASS];
const CREATE: &str = "scheduler:CreateSchedule";

/// A schedule that it makes.
const NAME: &str = "claimant-resume-b1c2d3e4000011112222333344445555-1800000360";

/// What ends a pause.
const RESUME: &str = "lambda:UpdateEventSourceMapping";

/// What is done with a breaker's record, and the reserved consumer that has it.
const UPDATE: &str = "dynamodb:UpdateItem";
const BREAKER: &str = "claimant-breaker";

/// A function that is told how its intake comes back has a breaker.
pub(super) fn check(system: &System, report: &mut Report) {
    for function in told(system, RESUME_ROLE) {
        report.answer(36, &function.place, rights(system, function));
    }
}

fn rights(system: &System, function: &Function) -> Answer {
    function.environment.has(RESUME_ROLE).known()?;
    let role = function.environment.schedulers.get(RESUME_ROLE);
    let pauses = together([may_pause(function, role), role.and_then(trusting)]);
    let pauses = so(pauses, "an open breaker pauses nothing");
    together([may_use_record(system, function), pauses, role.and_then(may_resume)])
}

fn may_use_record(system: &System, function: &Function) -> Answer {
    let table = function.environment.get(TABLE).filter(|_| !function.has_records_elsewhere());
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

/// Whether its role has what a pause takes, on whatever mappings.
fn may_pause(function: &Function, role: Option<&Scheduler>) -> Answer {
    let lacking = lacking(&PAUSING, |action| match action {
        PASS => may_pass(function, role),
        CREATE => function.rights.allow_schedule(action, NAME),
        action => function.rights.allow_somewhere(action),
    })?;
    if lacking.is_empty() {
        return FINE;
    }
    let lacking = lacking.join(", ");
    found(
        Level::Warning,
        format!("the role of {} may not {lacking}", function.place.id),
        format!("allow it {lacking}, as claimant's docs/breaker.md has it; or leave {RESUME_ROLE} out"),
    )
}

/// Whether the schedule that ends a pause may do so, in whose name it does.
fn may_resume(role: &Scheduler) -> Answer {
    if *role.rights.allow_somewhere(RESUME).known()? {
        return FINE;
    }
    found(
        Level::Error,
        format!("{} may not {RESUME}: what an open breaker pauses stays so", role.place.id),
        format!("allow it {RESUME}, as claimant's docs/breaker.md has it"),
    )
}
