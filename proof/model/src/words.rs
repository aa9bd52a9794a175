//! Traces in words.

use std::fmt::Write as _;

use claimant_core::Status;
use stateright::{Model as _, Path};

use crate::checked::Checked;
use crate::config::Finish;
use crate::state::{Ask, Out, Place, State, Worker};
use crate::steps::{Fate, Step};
use crate::values::{FOREVER, Rec, Req};

/// A path as numbered steps, each with what it came to.
#[must_use]
pub fn trace(model: &Checked, path: Path<State, Step>) -> String {
    let mut text = String::new();
    for (number, (before, step)) in path.into_vec().into_iter().enumerate() {
        let Some(step) = step else { break };
        let Some(after) = model.next_state(&before, step) else { break };
        // Writing to a String cannot fail.
        let _ = write!(text, "{:>3}. [{} s] {}", number + 1, before.now, step_in_words(&before, step));
        if before.record != after.record {
            let _ = write!(text, "; the record is now {}", record_in_words(after.record));
        }
        let _ = writeln!(text, "{}", coming_to(&before, &after));
    }
    text
}

fn name(worker: usize) -> char {
    char::from(b'A' + u8::try_from(worker).unwrap_or(25))
}

fn record_in_words(record: Option<Rec>) -> String {
    let Some(Rec { status, owner, fence, lease, message, payload, expires, .. }) = record else {
        return "gone".to_owned();
    };
    let mut text = format!("{status}, owner o{owner}, fence {fence}");
    if status == Status::InProgress {
        text.push_str(&format!(", lease until {lease}"));
    }
    text.push_str(&format!(", message m{message}"));
    if payload > 0 {
        text.push_str(&format!(", payload {payload}"));
    }
    if expires < FOREVER {
        text.push_str(&format!(", window until {expires}"));
    }
    text
}

fn coming_to(before: &State, after: &State) -> String {
    let changed = before.workers.iter().zip(&after.workers).enumerate().filter(|(_, (was, is))| was != is);
    let words = changed.filter_map(|(worker, (was, is))| {
        let what = match (was, is) {
            (Worker::Running { .. }, Worker::Running { .. }) => return None,
            (_, Worker::Running { held, .. }) => {
                format!("runs its handler under owner o{}, fence {}", held.owner, held.fence)
            }
            (_, Worker::Reporting { out, letter: None, .. }) => format!("knows: {}", out_in_words(*out)),
            (Worker::Asking { .. }, Worker::Asking { ask, lost: false, .. }) => {
                format!("goes on to {}", ask_in_words(ask))
            }
            _ => return None,
        };
        Some(format!("; {} {what}", name(worker)))
    });
    words.collect()
}

fn out_in_words(out: Out) -> &'static str {
    match out {
        Out::Completed { resolved: false } => "completed",
        Out::Completed { resolved: true } => "completed, as the record shows",
        Out::Duplicate => "a duplicate of completed work",
        Out::Busy => "busy elsewhere",
        Out::Retry => "to be tried again",
        Out::Rejected { conflict: false } => "rejected",
        Out::Rejected { conflict: true } => "a conflict",
        Out::Parked => "parked",
        Out::Lost => "the claim was lost",
        Out::Unsettled => "the settlement is unknown",
        Out::StoreFailed => "the store gave no answer",
    }
}

fn claim_in_words(req: &Req) -> String {
    let Req { owner, message, now, lease, .. } = req;
    format!("owner o{owner} for m{message} at {now}, lease until {lease}")
}

fn ask_in_words(ask: &Ask) -> String {
    match ask {
        Ask::Insert(req) => format!("insert a claim ({})", claim_in_words(req)),
        Ask::Look(_) => "read the record".to_owned(),
        Ask::Begin(req) => format!("read what an attempt starts from ({})", claim_in_words(req)),
        Ask::Claim(req) => format!("claim ({})", claim_in_words(req)),
        Ask::Replace { req, seen, next, .. } => {
            let what = if next.status == Status::Parked { "park" } else { "claim" };
            format!("{what} by compare and set on {}, fence {} ({})", seen.status, seen.fence, claim_in_words(req))
        }
        Ask::Renew { held, lease, .. } => {
            format!("renew the lease of o{}, fence {}, until {lease}", held.owner, held.fence)
        }
        Ask::Settle { held, end, .. } => format!("settle o{}, fence {}, as {}", held.owner, held.fence, end.status()),
        Ask::Commit { req, seen, end, .. } => {
            let on = seen.map_or("no record".to_owned(), |seen| format!("{}, fence {}", seen.status, seen.fence));
            format!("commit the attempt of o{} as {} on {on}", req.owner, end.status())
        }
    }
}

fn step_in_words(before: &State, step: Step) -> String {
    let asked = |worker: usize| match &before.workers[worker] {
        Worker::Asking { ask, .. } => ask_in_words(ask),
        _ => "nothing".to_owned(),
    };
    let delayed = |place: usize| before.delayed[place].as_ref().map_or_else(String::new, ask_in_words);
    let arrives = |applied: bool| if applied { "it arrives, its answer is lost" } else { "it never arrives" };
    match step {
        Step::Receive { worker, message, clock } => {
            let times = before.messages[message].receives + 1;
            format!("{} receives message {message} (time {times}); its clock shows {clock}", name(worker))
        }
        Step::Answer { worker } => format!("{} asks the store to {}", name(worker), asked(worker)),
        Step::Lose { worker, applied } => {
            format!("{} asks the store to {}: {}", name(worker), asked(worker), arrives(applied))
        }
        Step::Delay { worker } => {
            format!("{} asks the store to {}: it is delayed, and no answer comes", name(worker), asked(worker))
        }
        Step::Again { worker } => format!("{} sends it again", name(worker)),
        Step::Resolve { worker } => format!("{} reads what became of it", name(worker)),
        Step::GiveUp { worker } => format!("{} gives up", name(worker)),
        Step::Finish { worker, how, clock } => {
            format!("{}'s handler {}; its clock shows {clock}", name(worker), finish_in_words(how))
        }
        Step::Renew { worker, clock, fate } => {
            format!("{} renews its lease at {clock}: {}", name(worker), fate_in_words(fate))
        }
        Step::Letter { worker, confirmed } => {
            let what =
                if confirmed { "sends a dead letter" } else { "sends a dead letter, whose confirmation is lost" };
            format!("{} {what}", name(worker))
        }
        Step::Report { worker, heard } => {
            format!("{} reports{}", name(worker), if heard { "" } else { ", and the queue does not hear it" })
        }
        Step::Die { worker, applied: true } => {
            format!("{} dies; what it asked arrives: {}", name(worker), asked(worker))
        }
        Step::Die { worker, applied: false } => format!("{} dies", name(worker)),
        Step::Land { place } => format!("the delayed write arrives: {}", delayed(place)),
        Step::Vanish { place } => format!("the delayed write is lost for good: {}", delayed(place)),
        Step::Show { message } => match before.messages[message].place {
            Place::InFlight => format!("the visibility of message {message} ends"),
            _ => format!("message {message} is shown"),
        },
        Step::Redrive { message } => format!("an operator redrives message {message}, which gets a new id"),
        Step::Expire => "the table deletes the record, whose window is over".to_owned(),
        Step::Tick => "a second passes".to_owned(),
    }
}

fn finish_in_words(how: Finish) -> &'static str {
    match how {
        Finish::Ok => "has its effect and returns",
        Finish::Fail => "fails",
        Finish::Reject => "rejects the message",
        Finish::Cut { acted: true } => "has its effect and is cut off",
        Finish::Cut { acted: false } => "is cut off before its effect",
        Finish::Release => "is not run for want of time",
    }
}

fn fate_in_words(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "answered",
        Fate::Repeated => "it applies, its answer is lost, and it is sent again",
        Fate::Lost { applied: true } => "it applies, and no answer comes",
        Fate::Lost { applied: false } => "it never arrives",
        Fate::Delayed => "it is delayed, and no answer comes",
    }
}
