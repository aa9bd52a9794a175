//! What a function's role may do.

use super::pair::{Pair, home};
use crate::environment::RESUME_ROLE;
use crate::fact::Fact;
use crate::finding::{Answer, FINE, Level, found};
use crate::model::{Function, Key, Queue};

/// What Lambda does with a queue, in the function's name.
const POLLING: [&str; 3] = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];

const DEAD_LETTER_QUEUE: &str = "CLAIMANT_DEAD_LETTER_QUEUE_URL";

/// What a breaker asks for that pauses it.
const PAUSING: [&str; 5] = [
    "lambda:ListEventSourceMappings",
    "lambda:UpdateEventSourceMapping",
    "scheduler:CreateSchedule",
    "scheduler:ListSchedules",
    "iam:PassRole",
];

/// A breaker's record: any name will do.
const BREAKER: &str = "claimant-breaker#name";

pub(super) fn missing(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let (queue, function) = (pair.queue?, pair.function?);
        if let Some(lacking) = lacking(function, &POLLING, queue)? {
            return found(
                Level::Error,
                format!("the role of {} may not {} on {}", function.place.id, lacking.join(", "), queue.place.id),
                allow(&lacking, queue),
            );
        }
        if !*function.is_consumer().known()? {
            return FINE;
        }
        if let Some(letters) = dead_letter_queue(pair) {
            let lacking = lacking(function, &["sqs:SendMessage"], letters)?;
            if lacking.is_some() {
                return found(
                    Level::Error,
                    format!(
                        "{} is to send dead letters to {}, and its role may not",
                        function.place.id, letters.place.id
                    ),
                    allow(&["sqs:SendMessage"], letters),
                );
            }
        }
        let action = "sqs:ChangeMessageVisibility";
        if function.is_set("CLAIMANT_VISIBILITY", "off") || lacking(function, &[action], queue)?.is_none() {
            return FINE;
        }
        found(
            Level::Warning,
            format!(
                "the role of {} may not {action} on {}: what fails comes back without backoff",
                function.place.id, queue.place.id
            ),
            format!("{}; or CLAIMANT_VISIBILITY: off", allow(&[action], queue)),
        )
    };
    Some(answer())
}

/// The actions that are not allowed, if there are any.
fn lacking<'a>(function: &Function, actions: &[&'a str], queue: &Queue) -> Option<Option<Vec<&'a str>>> {
    let mut lacking = Vec::new();
    for action in actions {
        if !*function.rights.allow(action, &queue.place.id).known()? {
            // The queue's own policy may do what the role's does not.
            if queue.policy.admits_principals {
                return None;
            }
            lacking.push(*action);
        }
    }
    Some(Some(lacking).filter(|lacking| !lacking.is_empty()))
}

fn allow(actions: &[&str], queue: &Queue) -> String {
    format!("Effect: Allow, Action: [{}], Resource: !GetAtt {}.Arn", actions.join(", "), queue.place.id)
}

/// Where claimant sends dead letters, if that is described here.
fn dead_letter_queue<'a>(pair: &Pair<'a>) -> Option<&'a Queue> {
    let link = pair.function?.environment.get(DEAD_LETTER_QUEUE)?.known()?;
    pair.system.queue(link)
}

pub(super) fn keys(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let (queue, function) = (pair.queue?, pair.function?);
        let mut wanted = vec![(queue, "kms:Decrypt")];
        let is_consumer = function.is_consumer();
        if let Some(letters) = dead_letter_queue(pair).filter(|_| is_consumer == Fact::Known(true)) {
            // A sender needs both.
            wanted.extend([(letters, "kms:GenerateDataKey"), (letters, "kms:Decrypt")]);
        }
        let answers = wanted.into_iter().filter_map(|(queue, action)| key_right(function, queue, action));
        let sends = (is_consumer == Fact::Unknown).then_some(None);
        // What is missing goes before what is not known.
        answers.chain(sends).min_by_key(|answer| !matches!(answer, Some(Some(_)))).unwrap_or(FINE)
    };
    Some(answer())
}

/// The answer for one key, if it is not that all is well.
fn key_right(function: &Function, queue: &Queue, action: &str) -> Option<Answer> {
    let key = match &queue.key {
        Fact::Unknown => return Some(None),
        // The key of SQS admits all of the account that may use the queue.
        Fact::Known(None | Some(Key::Default)) => return None,
        Fact::Known(Some(key)) => key,
    };
    let Key::Own { link, by_iam_only } = key else { return None };
    match (function.rights.allow(action, link.text()), by_iam_only) {
        (Fact::Known(true), Fact::Known(true)) => None,
        (Fact::Known(false), Fact::Known(true)) => Some(found(
            Level::Error,
            format!(
                "{} is encrypted with {}, and the role of {} may not {action}",
                queue.place.id,
                link.text(),
                function.place.id
            ),
            format!("Effect: Allow, Action: {action}, Resource: the ARN of {}", link.text()),
        )),
        // Its policy may admit the role, or may not leave it to IAM.
        _ => Some(None),
    }
}

pub(super) fn default_key(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let queue = pair.queue?;
        if *queue.key.known()? != Some(Key::Default) {
            return FINE;
        }
        let receivers = &queue.policy.receivers;
        let others = match home(pair.system, queue).1 {
            Some(own) => receivers.iter().any(|receiver| receiver != own),
            // The one can be the stack's own; of two, one is another.
            None if receivers.len() == 1 => return None,
            None => !receivers.is_empty(),
        };
        if !others {
            return FINE;
        }
        found(
            Level::Error,
            "another account may receive from it, and its key is alias/aws/sqs, which no other account can use",
            "KmsMasterKeyId: a key of your own whose policy admits that account, or SqsManagedSseEnabled: true",
        )
    };
    Some(answer())
}

pub(super) fn feeds_itself(pair: &Pair<'_>) -> Option<Answer> {
    let answer = || {
        let (queue, function) = (pair.queue?, pair.function?);
        let stopped = pair.system.history.as_ref().and_then(|history| history.functions.get(&*function.place.id));
        let stopped = stopped.map_or(0.0, |seen| seen.loops_stopped);
        if stopped > 0.0 {
            return found(
                Level::Error,
                format!("Lambda stopped {stopped:.0} invocations within the last day as parts of loops"),
                "let it send somewhere else, or RecursiveLoop: Allow if each message goes round a few times only",
            );
        }
        let knows_it = function
            .environment
            .variables
            .values()
            .any(|value| value.known().is_some_and(|link| link.is(&queue.place.id)));
        if !knows_it || !function.rights.mean("sqs:SendMessage", &queue.place.id) || *function.loops_allowed.known()? {
            return FINE;
        }
        found(
            Level::Note,
            format!("{} has the URL of {}, which it reads, and may send there", function.place.id, queue.place.id),
            "RecursiveLoop: Allow if messages go round on purpose, each a few times; else take the right away",
        )
    };
    Some(answer())
}

/// A function that is told how its intake comes back has a breaker.
pub(super) fn breaker_record(pair: &Pair<'_>) -> Option<Answer> {
    let is_told = |function: &&Function| function.environment.has(RESUME_ROLE) != Fact::Known(false);
    let function = pair.function.filter(is_told)?;
    let table = function.environment.get("CLAIMANT_TABLE")?;
    // Which table has the record follows from its name.
    let may_use = || {
        let mut each = table.known()?.each();
        each.try_fold(true, |all, one| {
            Some(all && *function.rights.allow_key("dynamodb:UpdateItem", one.text(), BREAKER).known()?)
        })
    };
    let answer = || match function.environment.has(RESUME_ROLE).known().and_then(|_| may_use())? {
        true => may_pause(function),
        false => found(
            Level::Warning,
            format!(
                "the role of {} may not use the records of breakers in {}",
                function.place.id,
                table.known()?.text()
            ),
            "add claimant-breaker#* to dynamodb:LeadingKeys",
        ),
    };
    Some(answer())
}

/// Whether its role has what a pause takes, on whatever.
fn may_pause(function: &Function) -> Answer {
    let lacks = |action: &&str| matches!(function.rights.allow_somewhere(action), Fact::Known(false));
    let lacking: Vec<_> = PAUSING.into_iter().filter(lacks).collect();
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
