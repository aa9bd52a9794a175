//! What it takes to send again by schedules what waits for long.

use super::fix;
use super::pair::Pair;
use super::rights::{key_right, lacking, lacking_on};
use crate::environment::{SCHEDULE_LETTERS, SCHEDULE_ROLE};
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, found, together};
use crate::model::{Function, Queue, Scheduler};

/// What the function asks for.
const SCHEDULING: [&str; 3] = ["scheduler:CreateSchedule", "scheduler:GetSchedule", "iam:PassRole"];

const SEND: &str = "sqs:SendMessage";

/// What takes its place where there is no schedule.
const INSTEAD: &str = "what is to wait longer than 12 hours comes back after 11 h 45 min";

/// A function that is told in whose name schedules send makes some.
pub(super) fn rights(pair: &Pair<'_>) -> Option<Answer> {
    let is_told = |function: &&Function| function.environment.has(SCHEDULE_ROLE) != Fact::Known(false);
    let function = pair.function.filter(is_told)?;
    let answer = || {
        function.environment.has(SCHEDULE_ROLE).known()?;
        let role = function.environment.schedulers.get(SCHEDULE_ROLE);
        let of_role = |ask: &dyn Fn(&Scheduler) -> Answer| role.and_then(ask);
        let letters = function.environment.get(SCHEDULE_LETTERS).map(|link| pair.system.queue(link.known()?));
        together([
            may_schedule(function),
            of_role(&|role| trusting(role, INSTEAD)),
            of_role(&|role| {
                may_send(role, pair.queue?, Level::Error, "what is due is not sent, and its original is deleted")
            }),
            // Without the variable the function does not start.
            letters.map_or(FINE, |letters| {
                of_role(&|role| may_send(role, letters?, Level::Warning, "what cannot be sent for a day is lost"))
            }),
        ])
    };
    Some(answer())
}

fn may_schedule(function: &Function) -> Answer {
    let lacking = lacking(&SCHEDULING, |action| function.rights.allow_somewhere(action))?;
    if lacking.is_empty() {
        return FINE;
    }
    let lacking = lacking.join(", ");
    found(
        Level::Warning,
        format!("the role of {} may not {lacking}: {INSTEAD}", function.place.id),
        format!("allow it {lacking}, as claimant's docs/outcomes.md has it; or leave {SCHEDULE_ROLE} out"),
    )
}

/// Whether `EventBridge` Scheduler may act in the role's name: it refuses a schedule where it may not.
pub(super) fn trusting(role: &Scheduler, then: &str) -> Answer {
    if *role.is_trusting.known()? {
        return FINE;
    }
    found(
        Level::Warning,
        format!("scheduler.amazonaws.com may not assume {}: {then}", role.place.id),
        format!(
            "Effect: Allow, Principal: {{Service: scheduler.amazonaws.com}}, Action: sts:AssumeRole in AssumeRolePolicyDocument of {}",
            role.place.id
        ),
    )
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
