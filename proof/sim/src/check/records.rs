//! What is written to the store.

use claimant_core::limit::{LIMIT_PLAN, LIMIT_WANTED};
use claimant_core::limits::WINDOW_DEFAULT_S;

use super::Found;
use crate::calls::{LIMIT, is_of_message};
use crate::entities::Request;
use crate::history::{Call, Event, Kind, Record};
use crate::scenario::{Fault, Guarantee, Scenario};
use crate::timeline::Timeline;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    for (at, event) in &timeline.history.events {
        match event {
            Event::Changed { request, id, before, after } => {
                let request = request.and_then(|request| timeline.requests.get(&request));
                let change = Change { at: *at, id, before: before.as_ref(), after: after.as_ref(), request };
                changed(timeline, &change, found);
            }
            Event::Refused { request, call, seen: Some(seen) } => {
                if let Some(request) = timeline.requests.get(request) {
                    refused(timeline, *at, request, *call, seen, found);
                }
            }
            Event::Asked { request, .. } => {
                if let Some(request) = timeline.requests.get(request) {
                    asked(timeline, *at, request, found);
                }
            }
            _ => {}
        }
    }
}

struct Change<'a> {
    at: u64,
    id: &'a str,
    before: Option<&'a Record>,
    after: Option<&'a Record>,
    request: Option<&'a Request>,
}

fn changed(timeline: &Timeline<'_>, change: &Change<'_>, found: &mut Found) {
    let scenario = timeline.scenario;
    let Change { at, id, before, after, request } = *change;
    let call = request.and_then(|request| request.calls.iter().find(|call| call.id == id));
    if let (Some(after), Some(call)) = (after, call) {
        kept(scenario, change, after, call, found);
    }
    match (before, after) {
        (None, Some(after)) if after.fence != 1 => {
            found.add("S1", at, format!("{id} begins with fence {}", after.fence));
        }
        (Some(before), Some(after)) if before.owner == after.owner && before.fence == after.fence => {
            let foreign = |call: &&Call| call.kind != Kind::Replace && call.owner != Some(before.owner);
            if call.filter(foreign).is_some() {
                found.add("S3", at, format!("{id} is written in the name of another than its owner"));
            } else if before.status != "IN_PROGRESS" {
                found.add("S3", at, format!("{id} goes from {} to {} under one claim", before.status, after.status));
            } else if after.lease_until < before.lease_until {
                found.add("S3", at, format!("the lease of {id} gets shorter"));
            } else if after.attempts != before.attempts && has_run(timeline, change, before) {
                let what =
                    format!("the attempts at {id} go from {} to {}, though it ran", before.attempts, after.attempts);
                found.add("attempts", at, what);
            }
        }
        (Some(before), Some(after)) if after.fence == before.fence + 1 && before.owner == after.owner => {
            found.add("S1", at, format!("{id} is claimed again under the token of its last claim"));
        }
        (Some(before), Some(after)) if after.fence == before.fence + 1 => {
            // The sender's time: the rules promise nothing about clocks.
            let now = call.and_then(|call| call.now).unwrap_or(u64::MAX);
            claimed(scenario, change, before, after, now, found);
        }
        (Some(before), Some(after)) => {
            found.add("S1", at, format!("the fence of {id} goes from {} to {}", before.fence, after.fence));
        }
        (Some(_), None) if request.is_some() => found.add("S3", at, format!("{id} is deleted by a request")),
        _ => {}
    }
}

/// Whether a handler ran under this claim, in the invocation that writes now. Fences begin again with a record; tokens do not.
fn has_run(timeline: &Timeline<'_>, change: &Change<'_>, claim: &Record) -> bool {
    let Change { at, id, request, .. } = *change;
    let mut states = timeline.records.get(id).into_iter().flatten();
    let claimed = states.find(|(_, state)| state.as_ref().is_some_and(|state| state.owner == claim.owner));
    let (Some((claimed, _)), Some(no)) = (claimed, request.and_then(|request| request.invocation)) else {
        return false;
    };
    timeline.runs.values().any(|run| {
        let here = run.invocation == no && (*claimed..=at).contains(&run.start);
        here && run.fence == claim.fence && run.record(timeline.scenario) == id
    })
}

/// S5: what is finished is kept for the consumer's window, whatever its record says of that.
fn kept(scenario: &Scenario, change: &Change<'_>, after: &Record, call: &Call, found: &mut Found) {
    let Change { at, id, before, .. } = *change;
    let ended = |record: &Record| matches!(record.status.as_str(), "COMPLETED" | "PARKED" | "REJECTED");
    let ends = ended(after) && before.is_none_or(|before| before.status != after.status || before.fence != after.fence);
    let window_s = scenario.consumer.window_s.unwrap_or(WINDOW_DEFAULT_S);
    let forgotten = call.now.is_none_or(|now| after.expires_s * 1_000 < now + window_s * 1_000);
    if ends && forgotten && is_of_message(id) {
        let what = format!("{id} is {}, and forgotten before its window of {window_s} s is over", after.status);
        found.add("S5", at, what);
    }
}

/// A claim of a key that has a record.
fn claimed(scenario: &Scenario, change: &Change<'_>, before: &Record, after: &Record, now: u64, found: &mut Found) {
    let Change { at, id, .. } = *change;
    // OK because the margin is positive.
    let live = before.status == "IN_PROGRESS" && now <= before.lease_until + Scenario::SKEW_MS as u64;
    // That a process has no slot of a limit, two of them may say at once.
    let is_mark = id.starts_with(LIMIT) && id.ends_with(LIMIT_WANTED);
    if live && before.owner != after.owner && !is_mark {
        return found.add("S11", at, format!("{id} is claimed while its lease lives"));
    }
    let over = before.expires_s * 1_000 < now;
    // They begin anew with a window, and where another message claims rejected work.
    let tried = if over || before.status == "REJECTED" { 0 } else { before.attempts };
    if after.status == "IN_PROGRESS" && after.attempts != tried + 1 && is_of_message(id) {
        found.add("attempts", at, format!("{id} is claimed in attempt {}, after {tried}", after.attempts));
    }
    if over {
        return;
    }
    // Without force, too: that is what operators are for.
    let of_operator = change.request.is_some_and(|request| request.of_operator);
    match before.status.as_str() {
        "COMPLETED" => {
            let rule = if after.status == "COMPLETED" { "S2" } else { "S5" };
            found.add(rule, at, format!("{id} was completed and is {} again", after.status));
        }
        _ if of_operator => {}
        "PARKED" => found.add("S5", at, format!("{id} was parked and is {}", after.status)),
        "REJECTED" if before.message_id == after.message_id => {
            found.add("S5", at, format!("{id} was rejected and is claimed by the same message"));
        }
        "IN_PROGRESS" if scenario.consumer.guarantee == Guarantee::AtMostOnce && is_of_message(id) => {
            found.add("at most once", at, format!("abandoned work of {id} is claimed again"));
        }
        _ => {}
    }
}

/// L1: a dead owner's key can be claimed.
fn refused(timeline: &Timeline<'_>, at: u64, request: &Request, call: usize, seen: &Record, found: &mut Found) {
    let Some(call) = request.calls.get(call) else { return };
    own_claim(timeline, at, request, call, seen, found);
    let scenario = timeline.scenario;
    let conflict = scenario.messages.iter().any(|message| message.variant > 0);
    let parks = scenario.consumer.guarantee == Guarantee::AtMostOnce;
    // A record with the fingerprint of another rule is read, and then replaced; so is the plan of a version that sets a limit otherwise.
    let deployed = scenario.faults.iter().any(|fault| matches!(fault, Fault::Deploy { .. }))
        || call.id.starts_with(LIMIT) && call.id.ends_with(LIMIT_PLAN);
    if call.kind != Kind::Claim || request.operation != "UpdateItem" || conflict || parks || deployed {
        return;
    }
    let now = call.now.unwrap_or_default();
    // OK because the margin is positive.
    let dead = seen.status == "IN_PROGRESS" && seen.lease_until + (Scenario::SKEW_MS as u64) < now;
    if dead && call.owner != Some(seen.owner) && seen.expires_s * 1_000 > now {
        found.add("L1", at, format!("{} is refused though its owner's lease is over", call.id));
    }
}

/// A claim whose answer was lost is recognised when it is tried again, and used or given back.
fn own_claim(timeline: &Timeline<'_>, at: u64, request: &Request, call: &Call, seen: &Record, found: &mut Found) {
    // An open breaker is a claim that nobody uses, and a slot of a limit one that no run has.
    let own = is_of_message(&call.id)
        && call.kind == Kind::Claim
        && call.owner == Some(seen.owner)
        && seen.status == "IN_PROGRESS";
    let told = matches!(request.operation.as_str(), "PutItem" | "UpdateItem")
        && request.answered.is_some()
        && request.fate.is_none();
    let Some(no) = request.invocation.filter(|_| own && told) else { return };
    let Some(invocation) = timeline.invocations.get(&no) else { return };
    let Some((returned, _)) = &invocation.returned else { return };
    let used = timeline
        .runs
        .values()
        .any(|run| run.invocation == no && run.fence == seen.fence && run.message_id == seen.message_id);
    let mut later =
        timeline.requests.values().filter(|other| other.invocation == Some(no) && other.asked >= request.asked);
    let ended = later.any(|other| other.calls.iter().any(|c| c.kind != Kind::Claim && c.owner == call.owner));
    if !used && !ended && !timeline.was_frozen(invocation.process_run, invocation.began, *returned) {
        found.add("own claim", at, format!("{} is refused to its own owner, who does not take it", call.id));
    }
}

/// S9: nothing is written when no invocation is under way.
fn asked(timeline: &Timeline<'_>, at: u64, request: &Request, found: &mut Found) {
    if request.of_operator || request.calls.iter().all(|call| call.kind == Kind::Read) {
        return;
    }
    let over = match request.invocation.and_then(|no| timeline.invocations.get(&no)) {
        Some(invocation) => invocation.over(timeline) < at,
        None => true,
    };
    if over {
        found.add("S9", at, format!("{} after its invocation was over", request.operation));
    }
}
