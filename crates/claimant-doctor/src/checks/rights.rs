//! What a function's role may do.

use claimant_aws::sqs::queue_arn;

use super::fix;
use super::pair::{Pair, home};
use crate::environment::{DEAD_LETTER_QUEUE, MAPPING_CHECK, VISIBILITY};
use crate::fact::{self, Fact};
use crate::finding::{Answer, FINE, Level, found, together};
use crate::model::{Function, Key, Link, Queue};
use crate::rights::{EVERYTHING, LIST_MAPPINGS, Rights};

/// What Lambda does with a queue, in the function's name.
const POLLING: [&str; 3] = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];

/// All that is missing; that goes before what is not known of another place.
pub(super) fn missing(pair: &Pair<'_>) -> Option<Answer> {
    let of_function = pair
        .function
        .filter(|_| pair.is_first())
        .map_or(FINE, |function| together([assumed(function), logging(function), checking(function)]));
    Some(together([polling(pair), sending(pair), backoff(pair), of_function]))
}

/// Whether Lambda may act as the role at all.
fn assumed(function: &Function) -> Answer {
    if *function.is_assumable.known()? {
        return FINE;
    }
    found(
        Level::Error,
        format!("lambda.amazonaws.com may not assume the role of {}: Lambda refuses the function", function.place.id),
        "Effect: Allow, Principal: {Service: lambda.amazonaws.com}, Action: sts:AssumeRole in the role's AssumeRolePolicyDocument",
    )
}

fn polling(pair: &Pair<'_>) -> Answer {
    let (queue, function) = (pair.queue?, pair.function?);
    let lacking = lacking_on(&function.rights, &POLLING, queue)?;
    if lacking.is_empty() {
        return FINE;
    }
    found(
        Level::Error,
        format!("the role of {} may not {} on {}", function.place.id, lacking.join(", "), queue.place.id),
        fix::allow(&lacking, &queue.place, &function.place),
    )
}

fn sending(pair: &Pair<'_>) -> Answer {
    let function = pair.function?;
    if !*function.is_consumer().known()? {
        return FINE;
    }
    let Some(letters) = dead_letter_queue(pair) else { return FINE };
    // The policy of one that is not described here may admit the role.
    let letters = letters?;
    if lacking_on(&function.rights, &["sqs:SendMessage"], letters)?.is_empty() {
        return FINE;
    }
    found(
        Level::Error,
        format!("{} is to send dead letters to {}, and its role may not", function.place.id, letters.place.id),
        fix::allow(&["sqs:SendMessage"], &letters.place, &function.place),
    )
}

fn backoff(pair: &Pair<'_>) -> Answer {
    let (queue, function) = (pair.queue?, pair.function?);
    let action = "sqs:ChangeMessageVisibility";
    if !*function.is_consumer().known()? || lacking_on(&function.rights, &[action], queue)?.is_empty() {
        return FINE;
    }
    if *function.has_value(VISIBILITY, "off").known()? {
        return FINE;
    }
    found(
        Level::Warning,
        format!(
            "the role of {} may not {action} on {}: what fails comes back without backoff",
            function.place.id, queue.place.id
        ),
        format!("{}, or CLAIMANT_VISIBILITY: off", fix::allow(&[action], &queue.place, &function.place)),
    )
}

/// Whether it is a consumer of claimant. One that has claimant's variables only as all functions of its template have them may be none.
fn is_certain(function: &Function) -> Option<bool> {
    let is_consumer = *function.is_consumer().known()?;
    (!is_consumer || !function.environment.is_inherited).then_some(is_consumer)
}

/// Whether it may write its log; IAM is not asked about that.
fn logging(function: &Function) -> Answer {
    let action = "logs:PutLogEvents";
    let is_read = matches!(function.rights, Rights::Stated(_));
    if !is_certain(function)? || !is_read || *function.rights.allow_somewhere(action).known()? {
        return FINE;
    }
    found(
        Level::Warning,
        format!("the role of {} may not {action}: it works without a line of its log", function.place.id),
        "ManagedPolicyArns: [arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole]",
    )
}

/// Whether it may look up its mapping, which it does where messages fail.
fn checking(function: &Function) -> Answer {
    if !is_certain(function)? || *function.has_value(MAPPING_CHECK, "off").known()? {
        return FINE;
    }
    if *function.rights.allow_somewhere(LIST_MAPPINGS).known()? {
        return FINE;
    }
    let (level, then, instead) = match *function.has_value(MAPPING_CHECK, "refuse").known()? {
        true => (Level::Error, "each batch in which a message fails is failed as a whole (refuse)", "warn"),
        false => (Level::Note, "it cannot check that its mapping reports failures", "off"),
    };
    found(
        level,
        format!("the role of {} may not {LIST_MAPPINGS}: {then}", function.place.id),
        format!("Effect: Allow, Action: [{LIST_MAPPINGS}], Resource: '{EVERYTHING}', or {MAPPING_CHECK}: {instead}"),
    )
}

/// The actions that are not allowed; nothing where none is known not to be, and one is not known.
pub(super) fn lacking<'a>(actions: &[&'a str], allowed: impl Fn(&str) -> Fact<bool>) -> Option<Vec<&'a str>> {
    let answers: Vec<_> = actions.iter().map(|action| (*action, allowed(action))).collect();
    let denied = answers.iter().filter(|(_, allowed)| *allowed == Fact::Known(false));
    let lacking: Vec<_> = denied.map(|(action, _)| *action).collect();
    let all_known = answers.iter().all(|(_, allowed)| *allowed != Fact::Unknown);
    (all_known || !lacking.is_empty()).then_some(lacking)
}

/// As [`lacking`], on a queue.
pub(super) fn lacking_on<'a>(rights: &Rights, actions: &[&'a str], queue: &Queue) -> Option<Vec<&'a str>> {
    let lacking = lacking(actions, |action| rights.allow(action, &queue.place.id))?;
    // The queue's own policy may do what the role's does not.
    (lacking.is_empty() || !queue.policy.admits_principals).then_some(lacking)
}

/// Where claimant sends dead letters: `None` if it is told of no queue, `Some(None)` if that is not known, or not described here.
pub(super) fn dead_letter_queue<'a>(pair: &Pair<'a>) -> Option<Option<&'a Queue>> {
    let link = pair.function?.environment.get(DEAD_LETTER_QUEUE)?;
    Some(link.known().and_then(|link| pair.system.queue(link)))
}

pub(super) fn keys(pair: &Pair<'_>) -> Option<Answer> {
    let right = |function: &Function, queue: &Queue, action: &str| {
        let who = format!("the role of {}", function.place.id);
        key_right((&who, &function.rights), &queue.place.id, &queue.key, action)
    };
    let answer = || {
        let function = pair.function?;
        let is_consumer = function.is_consumer();
        let letters = dead_letter_queue(pair).filter(|_| is_consumer == Fact::Known(true));
        let receives = pair.queue.and_then(|queue| right(function, queue, "kms:Decrypt"));
        // A sender needs both.
        let to_send = ["kms:GenerateDataKey", "kms:Decrypt"];
        let send = |letters: Option<&Queue>| to_send.map(|action| right(function, letters?, action));
        let sends = letters.into_iter().flat_map(send);
        let may_send = (is_consumer == Fact::Unknown).then_some(None);
        together(std::iter::once(receives).chain(sends).chain(may_send))
    };
    Some(answer())
}

/// Whether the role that is called so may use the key of what has this id.
pub(super) fn key_right((role, rights): (&str, &Rights), id: &str, key: &Fact<Option<Key>>, action: &str) -> Answer {
    // AWS's own keys admit all of the account that may use what they are for.
    let Some(Key::Own { link, by_iam_only }) = key.known()? else { return FINE };
    match (rights.allow(action, link.text()), by_iam_only) {
        (Fact::Known(true), Fact::Known(true)) => FINE,
        (Fact::Known(false), Fact::Known(true)) => found(
            Level::Error,
            format!("{id} is encrypted with {}, and {role} may not {action}", link.text()),
            format!("Effect: Allow, Action: {action}, Resource: the ARN of {}", link.text()),
        ),
        // Its policy may admit the role, or may not leave it to IAM.
        _ => None,
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
    Some(together([goes_round(pair), copies_to_itself(pair)]))
}

/// Whether claimant copies dead letters to this queue, which the function reads: whatever loops are allowed.
fn copies_to_itself(pair: &Pair<'_>) -> Answer {
    let function = pair.function?;
    let Some(letters) = function.environment.get(DEAD_LETTER_QUEUE) else { return FINE };
    if !is_certain(function)? || !*pair.mapping.enabled.known()? {
        return FINE;
    }
    let queue = pair.mapping.queue.known()?;
    if !is_same(pair, queue, letters.known()?)? {
        return FINE;
    }
    let mut others = pair.system.mappings_of(function).filter(|other| other.enabled.known() != Some(&false));
    let has_others = others.any(|other| other.place.id != pair.mapping.place.id);
    let others = if has_others { "the dead letters of its other queues are worked on again there, and " } else { "" };
    found(
        Level::Error,
        format!(
            "{DEAD_LETTER_QUEUE} of {} is {}, which it reads: {others}what is rejected there is not copied, and comes back until a \
             redrive policy moves it or it expires",
            function.place.id,
            queue.text()
        ),
        format!("{DEAD_LETTER_QUEUE}: the URL of a queue that it does not read"),
    )
}

/// Whether a queue that a mapping names is the one of this URL.
fn is_same(pair: &Pair<'_>, queue: &Link, url: &Link) -> Option<bool> {
    match (queue, url) {
        (Link::Here(one), Link::Here(other)) => Some(one == other),
        (Link::Elsewhere(arn), Link::Elsewhere(url)) if !arn.contains("${") && !url.contains("${") => {
            Some(queue_arn(url, arn).as_ref() == Some(arn))
        }
        // One that is described here has its name, or CloudFormation makes that.
        (one, other) => {
            let name = |link: &Link| match pair.system.queue(link) {
                Some(queue) => queue.name.known().cloned(),
                None => link.text().rsplit([':', '/']).next().filter(|name| !name.contains('}')).map(str::to_owned),
            };
            (name(one)? != name(other)?).then_some(false)
        }
    }
}

fn goes_round(pair: &Pair<'_>) -> Answer {
    let function = pair.function?;
    let stopped = pair.system.history.as_ref().and_then(|history| history.functions.get(&*function.place.id));
    let stopped = stopped.map_or(0.0, |seen| seen.loops_stopped);
    if stopped > 0.0 {
        return found(
            Level::Error,
            format!("Lambda stopped {stopped:.0} invocations within the last day as parts of loops"),
            "let it send somewhere else, or RecursiveLoop: Allow if each message goes round a few times only",
        );
    }
    // Of what is deployed, neither other variables than claimant's nor what the role's policies name is asked for.
    if function.place.file.is_none() {
        return pair.system.history.as_ref().filter(|history| !history.is_refused).and(FINE);
    }
    let queue = pair.queue?;
    let mut own = function.environment.variables.iter().filter(|(name, _)| *name != DEAD_LETTER_QUEUE);
    let knows_it = own.any(|(_, value)| value.known().is_some_and(|link| link.is(&queue.place.id)));
    let may_send = function.rights.mean("sqs:SendMessage", &queue.place.id).known().copied();
    let is_stopped = function.loops_allowed.known().map(|allowed| !allowed);
    if !fact::all([Some(knows_it), may_send, is_stopped])? {
        return FINE;
    }
    found(
        Level::Note,
        format!("{} has the URL of {}, which it reads, and may send there", function.place.id, queue.place.id),
        "RecursiveLoop: Allow if messages go round on purpose, each a few times; else take the right away",
    )
}
