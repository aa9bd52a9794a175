//! What happened, step by step, for the timeline.

use std::time::Duration;

use claimant_core::Timestamp;
use serde::Serialize;

use super::fact::{Answer, BatchEnd, Claim, Fact, Finished, Origin, Process, What};
use super::waits::{LATE_MIN, Waited, of_last_receive, waited};
use super::words::{clock, lasting, ordinal, sentence, short};

/// A wait shorter than this is not shown as one.
const WAIT_MIN: Duration = Duration::from_millis(500);

/// What a step is, for the shape that it is drawn with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It was received.
    Receive,
    /// It came to a process.
    Handed,
    /// A queue did something else.
    Queue,
    /// A claim.
    Claim,
    /// The handler had an effect.
    Effect,
    /// It went well.
    Done,
    /// It did not, and comes back.
    Failed,
    /// A process died or was stopped.
    Broken,
    /// Nothing happened for a while.
    Wait,
    /// A line of a log.
    Log,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// The message's id.
    pub message: String,
    /// Whether that is the message that the timeline is of, and not one of the same key.
    pub own: bool,
    /// The function and the process in which it happened.
    pub process: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// What happened, in a few words.
    pub what: String,
    /// More of it.
    pub detail: Option<String>,
}

/// Returns the steps of these facts, which are in their order; those of `focus` are its own, and it waits until then, if it does.
pub(super) fn steps(facts: &[Fact], focus: &str, waits_until: Option<Timestamp>, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    for (index, fact) in facts.iter().enumerate() {
        let step = |at: Timestamp, (kind, what, detail): (Kind, String, Option<String>)| Step {
            at_ms: at.as_millis(),
            message: fact.message.clone(),
            own: fact.message == focus,
            process: fact.process.as_ref().map(process),
            kind,
            what,
            detail,
        };
        if matches!(fact.what, What::Received { .. })
            && let Some(Waited { from, mut why, hidden_until }) = waited(&facts[..index], &fact.message)
            && fact.at.since(from) >= WAIT_MIN
        {
            let waited = format!("Waited {}", lasting(millis(fact.at.since(from))));
            let late = hidden_until.map(|until| fact.at.since(until)).filter(|late| *late >= LATE_MIN);
            why.extend(late.map(|late| format!(", and {} more to be received", lasting(millis(late)))));
            steps.push(Step { process: None, ..step(from, (Kind::Wait, waited, Some(why))) });
        }
        let (kind, mut what, mut detail) = words(fact, now);
        if matches!(fact.what, What::Hidden { .. }) && is_worked_on(&facts[..index], &fact.message) {
            detail = Some("so that no other worker receives it while this one works".to_owned());
        }
        if let What::Claimed(claim) = &fact.what
            && claimed_before(&facts[..index], &fact.message)
        {
            what = format!("Claimed again by {}", claim.consumer);
        }
        steps.push(step(fact.at, (kind, what, detail)));
    }
    if let Some((until, Waited { from, why, .. })) = waits_until.zip(waited(facts, focus)) {
        steps.push(Step {
            at_ms: from.as_millis(),
            message: focus.to_owned(),
            own: true,
            process: None,
            kind: Kind::Wait,
            what: format!("Waits until {}", clock(until, now)),
            detail: Some(why),
        });
    }
    steps.sort_by_key(|step| step.at_ms);
    steps
}

fn process(process: &Process) -> String {
    match &process.id {
        Some(id) => format!("{}, process {id}", process.function),
        None => process.function.clone(),
    }
}

/// Whether a worker had claimed a message, and had not ended.
fn is_worked_on(before: &[Fact], message: &str) -> bool {
    let mut own = of_last_receive(before, message).into_iter();
    let last = own.find(|fact| matches!(fact.what, What::Claimed(_) | What::Finished(_) | What::BatchFailed(_)));
    last.is_some_and(|fact| matches!(fact.what, What::Claimed(_)))
}

/// Whether a message was claimed already in this receive: then that claim was given back.
fn claimed_before(before: &[Fact], message: &str) -> bool {
    of_last_receive(before, message).iter().any(|fact| matches!(fact.what, What::Claimed(_)))
}

fn words(fact: &Fact, now: Timestamp) -> (Kind, String, Option<String>) {
    let until = |time: Timestamp| clock(time, now);
    match &fact.what {
        What::Sent { queue, group, delayed_until, origin } => {
            let made = match origin {
                None => None,
                Some(Origin::DeadLetterOf(id)) => {
                    Some(format!("by its function, as a dead letter of message {}", short(id)))
                }
                Some(Origin::RedriveOf(id)) => {
                    Some(format!("from a dead-letter queue: before, it was message {}", short(id)))
                }
            };
            let group = group.as_ref().map(|group| format!("group {group}"));
            let delayed = delayed_until.map(|time| format!("delayed until {}", until(time)));
            (Kind::Queue, format!("Sent to {queue}"), joined([made, group, delayed]))
        }
        What::Received { queue, count, hidden_until } => {
            let nth = ordinal(*count as usize);
            let detail = format!("hidden from other receivers until {}", until(*hidden_until));
            (Kind::Receive, format!("Received from {queue}, for the {nth} time"), Some(detail))
        }
        What::Delivered { batch } => {
            let batch = if *batch > 1 {
                format!("one of {batch} messages in its batch")
            } else {
                "alone in its batch".to_owned()
            };
            (Kind::Handed, "Handed to its function".to_owned(), Some(batch))
        }
        What::Claimed(claim) => claimed(claim, now),
        What::Effect { did, refused } => {
            (if *refused { Kind::Failed } else { Kind::Effect }, format!("The handler {did}"), None)
        }
        What::Finished(finished) => ended(finished),
        What::Hidden { until: time } if *time > fact.at => {
            (Kind::Queue, format!("Hidden until {}", until(*time)), None)
        }
        What::Hidden { .. } => (Kind::Queue, "Visible again at once".to_owned(), None),
        What::BatchFailed(how) => {
            let (what, detail) = match how {
                BatchEnd::Died(status) => ("Its process ended", Some(status.clone())),
                BatchEnd::TimedOut => ("Its function timed out", None),
                BatchEnd::Failed(why) => ("Its batch failed", Some(why.clone())),
            };
            (Kind::Broken, what.to_owned(), detail)
        }
        What::Answered(answer) => (Kind::Queue, answered(*answer).to_owned(), None),
        What::Killed => (Kind::Broken, "A fault killed its process".to_owned(), None),
        What::Fault { did, times } => {
            let times = (*times > 1).then(|| format!("{times} times in a row, "));
            (Kind::Broken, did.clone(), Some(format!("{}by a fault", times.unwrap_or_default())))
        }
        What::Frozen => (Kind::Broken, "A fault froze its process".to_owned(), None),
        What::Resumed => (Kind::Queue, "Its process went on".to_owned(), None),
        What::Deleted => (Kind::Queue, "Deleted from its queue".to_owned(), None),
        What::Moved { to } => (Kind::Failed, format!("Moved to {to} by SQS"), None),
        What::Copied { to, copy } => {
            (Kind::Failed, format!("Copied to {to} by its function"), Some(format!("as message {}", short(copy))))
        }
        What::Redriven { to, copy } => {
            (Kind::Queue, format!("Sent back to {to}"), Some(format!("as message {}", short(copy))))
        }
        What::Expired => (Kind::Failed, "Expired: its queue keeps it no longer".to_owned(), None),
        What::Filtered => (Kind::Queue, "Fits no filter of its event source mapping".to_owned(), None),
        What::Purged => (Kind::Queue, "Deleted: its queue was emptied".to_owned(), None),
        What::QueueDeleted => (Kind::Queue, "Deleted with its queue".to_owned(), None),
        What::Line(line) => {
            let level = line.level.as_ref().map_or_else(String::new, |level| format!("{level} "));
            (Kind::Log, format!("{level}{}", line.text), line.reason.clone())
        }
    }
}

fn claimed(claim: &Claim, now: Timestamp) -> (Kind, String, Option<String>) {
    let what = if claim.taken_over { "Claim taken over" } else { "Claimed" };
    let detail = format!(
        "run {} of the handler · owner {} · fence {} · lease until {}",
        claim.attempt,
        claim.owner,
        claim.fence,
        clock(claim.lease_until, now)
    );
    (Kind::Claim, format!("{what} by {}", claim.consumer), Some(detail))
}

fn answered(answer: Answer) -> &'static str {
    match answer {
        Answer::Done => "Taken for done by its event source mapping",
        Answer::Failed => "Left in its queue by its event source mapping",
    }
}

fn ended(finished: &Finished) -> (Kind, String, Option<String>) {
    let kind = if finished.is_done() { Kind::Done } else { Kind::Failed };
    let ran = finished.handle_ms.map(|ms| format!("the handler ran for {}", lasting(ms)));
    let events = (finished.events > 1).then(|| format!("{} events", finished.events));
    let letter = finished.dead_lettered.then(|| "the dead-letter queue has confirmed a copy".to_owned());
    (
        kind,
        sentence(&finished.outcome.replace('_', " ")).trim_end_matches('.').to_owned(),
        joined([ran, events, letter]),
    )
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
