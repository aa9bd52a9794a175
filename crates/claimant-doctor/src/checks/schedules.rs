//! What it takes to send again by schedules what waits for long.

use super::fix;
use super::rights::{key_right, lacking, lacking_on};
use crate::environment::{SCHEDULE_LETTERS, SCHEDULE_ROLE};
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Found, Level, Report, found, together};
use crate::model::{Function, Queue, Scheduler, System};

/// What the function asks for.
const SCHEDULING: [&str; 3] = ["scheduler:CreateSchedule", "scheduler:GetSchedule", PASS];
pub(super) const PASS: &str = "iam:PassRole";

/// A schedule that it makes.
const NAME: &str = "claimant-0d317b0da1b1c6fe76b1ad797120192431caf034f7363db1c066";

const SEND: &str = "sqs:SendMessage";

/// A function that is told in whose name schedules send makes some.
pub(super) fn check(system: &System, report: &mut Report) {
    for function in told(system, SCHEDULE_ROLE) {
        report.answer(40, &function.place, rights(system, function));
    }
}

/// The functions with a queue that have this variable, or may have it.
pub(super) fn told<'a>(system: &'a System, variable: &str) -> impl Iterator<Item = &'a Function> {
    let reads = |function: &&Function| system.mappings_of(function).next().is_some();
    let is_told = move |function: &&Function| function.environment.has(variable) != Fact::Known(false);
    system.functions.iter().filter(is_told).filter(reads)
}

fn rights(system: &System, function: &Function) -> Answer {
    function.environment.has(SCHEDULE_ROLE).known()?;
    let role = function.environment.schedulers.get(SCHEDULE_ROLE);
    let of_role = |ask: &dyn Fn(&Scheduler) -> Answer| role.and_then(ask);
    let makes = together([may_schedule(function, role), of_role(&trusting)]);
    let sends = system.mappings_of(function).map(|mapping| {
        let queue = mapping.queue.known().and_then(|link| system.queue(link));
        of_role(&|role| may_send(role, queue?, Level::Error, "what is due is not sent, and its original is deleted"))
    });
    let letters = function.environment.get(SCHEDULE_LETTERS).map(|link| system.queue(link.known()?));
    // Without the variable the function does not start.
    let letters = letters.map_or(FINE, |letters| {
        of_role(&|role| may_send(role, letters?, Level::Warning, "what cannot be sent for a day is lost"))
    });
    let instead = so(makes, "what is to wait longer than 12 hours comes back after 11 h 45 min");
    together([instead].into_iter().chain(sends).chain([letters]))
}

fn may_schedule(function: &Function, role: Option<&Scheduler>) -> Answer {
    let lacking = lacking(&SCHEDULING, |action| match action {
        PASS => may_pass(function, role),
        action => function.rights.allow_schedule(action, NAME),
    })?;
    if lacking.is_empty() {
        return FINE;
    }
    let lacking = lacking.join(", ");
    found(
        Level::Warning,
        format!("the role of {} may not {lacking}", function.place.id),
        format!("allow it {lacking}, as claimant's docs/outcomes.md has it; or leave {SCHEDULE_ROLE} out"),
    )
}

/// Whether the function may hand over the role in whose name a schedule acts; any role where that one is not described here.
pub(super) fn may_pass(function: &Function, role: Option<&Scheduler>) -> Fact<bool> {
    match role {
        Some(role) => function.rights.allow(PASS, &role.place.id),
        None => function.rights.allow_somewhere(PASS),
    }
}

/// Whether `EventBridge` Scheduler may act in the role's name: it refuses a schedule where it may not.
pub(super) fn trusting(role: &Scheduler) -> Answer {
    if *role.is_trusting.known()? {
        return FINE;
    }
    found(
        Level::Warning,
        format!("scheduler.amazonaws.com may not assume {}", role.place.id),
        format!(
            "Effect: Allow, Principal: {{Service: scheduler.amazonaws.com}}, Action: sts:AssumeRole in AssumeRolePolicyDocument of {}",
            role.place.id
        ),
    )
}

/// The answer with what comes of what is found.
pub(super) fn so(answer: Answer, then: &str) -> Answer {
    answer.map(|found| found.map(|found| Found { what: format!("{}: {then}", found.what), ..found }))
}

fn may_send(role: &Scheduler, queue: &Queue, level: Level, then: &str) -> Answer {
    let id = &queue.place.id;
    let sends = || match lacking_on(&role.rights, &[SEND], queue)?.is_empty() {
        true => FINE,
        false => found(
            level,
            format!("{} may not {SEND} on {id}: {then}", role.place.id),
            fix::allow(&[SEND], &queue.place, &role.place),
        ),
    };
    let key = |action| key_right((&role.place.id, &role.rights), id, &queue.key, action);
    together([sends(), key("kms:GenerateDataKey"), key("kms:Decrypt")])
}
