//! What is told to the event source mapping.

use std::collections::{BTreeSet, HashSet};

use claimant_core::limits::VISIBILITY_MAX_S;
use claimant_core::{MessageId, backoff};

use super::Found;
use crate::entities::{Failures, Invocation, Run};
use crate::history::{End, Event, InvocationNo, Record};
use crate::scenario::{Fault, Guarantee, MessageSpec, Scenario, Shape, Work};
use crate::timeline::Timeline;

/// By how much before its deadline an invocation has returned: `CLAIMANT_MARGIN_MS`.
const MARGIN_MS: u64 = 500;

/// Timers are a millisecond coarse, and there are a few in a row.
const COARSE_MS: u64 = 20;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    for (no, invocation) in &timeline.invocations {
        in_time(timeline, *no, invocation, found);
        if let (Some((at, Some(failures))), false) = (&invocation.returned, invocation.timed_out) {
            sound(*no, invocation, *at, failures, found);
            in_order(timeline, *no, invocation, *at, failures, found);
            not_in_vain(timeline, *no, invocation, *at, failures, found);
            for id in done(invocation, failures) {
                acknowledged(timeline, *no, invocation, *at, id, found);
            }
        }
    }
    for (at, event) in &timeline.history.events {
        match event {
            Event::Deleted { invocation, id, done: true } => {
                if let Some(told) = timeline.invocations.get(invocation) {
                    acknowledged(timeline, *invocation, told, *at, id, found);
                }
            }
            Event::Scheduled { invocation: Some(invocation), id, at_ms, .. } => {
                in_due_time(timeline, *invocation, (*at, *at_ms), id, found);
            }
            _ => {}
        }
    }
}

/// The ids that were reported done, each once.
fn done<'a>(invocation: &'a Invocation, failures: &Failures) -> BTreeSet<&'a str> {
    let ids = invocation.batch.iter().map(|delivered| delivered.id.as_str());
    ids.filter(|id| !failures.contains(id)).collect()
}

/// L3.
fn in_time(timeline: &Timeline<'_>, no: InvocationNo, invocation: &Invocation, found: &mut Found) {
    let frozen = timeline.was_frozen(invocation.process_run, invocation.began, invocation.ends);
    let over = invocation.over(timeline);
    let late = invocation.timed_out || over != u64::MAX && over + MARGIN_MS > invocation.ends + COARSE_MS;
    let killed = timeline.process_runs.get(&invocation.process_run).and_then(|process_run| process_run.died);
    let killed = killed.is_some_and(|(at, why)| at == over && why != "timed out");
    if late && !frozen && !killed {
        found.add("L3", over, format!("invocation {no} was to end {MARGIN_MS} ms before {}", invocation.ends));
    }
}

/// S7.
fn sound(no: InvocationNo, invocation: &Invocation, at: u64, failures: &Failures, found: &mut Found) {
    let own: HashSet<_> = invocation.batch.iter().map(|delivered| delivered.id.as_str()).collect();
    let foreign = failures.listed.iter().any(|id| !own.contains(id.as_str()));
    if failures.repeat() || foreign {
        found.add("S7", at, format!("invocation {no} reports {:?}", failures.listed));
    }
}

/// S8, within a batch.
fn in_order(
    timeline: &Timeline<'_>,
    no: InvocationNo,
    invocation: &Invocation,
    at: u64,
    failures: &Failures,
    found: &mut Found,
) {
    let Some(groups) = timeline.scenario.queue.fifo_groups else { return };
    let mut failed = BTreeSet::new();
    for delivered in &invocation.batch {
        let id = &delivered.id;
        // OK because there are a few keys.
        let group = timeline.spec(id).map(|spec| spec.key as u32 % groups);
        if failed.contains(&group) && (invocation.ran(id) || !failures.contains(id)) {
            found.add("S8", at, format!("invocation {no}: {id} was not left behind a failure of its group"));
        }
        if failures.contains(id) {
            failed.insert(group);
        }
    }
}

/// S4 and S10: what is reported done is done, or safely dead-lettered.
fn acknowledged(
    timeline: &Timeline<'_>,
    no: InvocationNo,
    invocation: &Invocation,
    at: u64,
    id: &str,
    found: &mut Found,
) {
    let lettered = timeline.letters.get(id).is_some_and(|times| times.iter().any(|time| *time <= at));
    let scheduled = timeline.schedules.get(id).is_some_and(|times| times.iter().any(|time| *time <= at));
    let Some(spec) = timeline.spec(id) else {
        return found.add("S6", at, format!("invocation {no} was done with {id}, which was never sent"));
    };
    let same = |message_id: &str| {
        let theirs = timeline.spec(message_id).map(|spec| spec.variant);
        timeline.scenario.consumer.ignores_conflicts || theirs == Some(spec.variant)
    };
    let completed = spec.works().all(|key| {
        let record = timeline.scenario.record_of(key, id);
        let mut states = timeline.record_between(&record, invocation.began, at);
        states.any(|r| r.is_some_and(|r| r.status == "COMPLETED" && same(&r.message_id)))
    });
    let done = timeline.scenario.accepts(spec) && (completed || spec.shape == Shape::Stray);
    // A message of which a run failed in its last attempt has nothing to come but its rejection.
    let is_over = |run: &Run| run.invocation == no && run.message_id == id && is_last(timeline, run);
    let over = || timeline.runs.values().any(|run| is_over(run) && matches!(run.end, Some((_, End::Failed))));
    if !lettered && !done && (!scheduled || over()) {
        let what = format!(
            "invocation {no} reports {id} done, which is neither completed nor dead-lettered nor rightly scheduled"
        );
        found.add("S4", at, what);
    }
}

/// L4: what was done is reported done; and a failure is hidden as long as it is to wait.
fn not_in_vain(
    timeline: &Timeline<'_>,
    no: InvocationNo,
    invocation: &Invocation,
    at: u64,
    failures: &Failures,
    found: &mut Found,
) {
    let mut once = HashSet::new();
    let again = invocation.batch.iter().map(|delivered| &delivered.id).filter(|id| !once.insert(*id));
    let twice: HashSet<_> = again.collect();
    let failed = |run: &&Run| run.invocation == no && failures.contains(&run.message_id);
    for run in timeline.runs.values().filter(failed).filter(|run| !twice.contains(&run.message_id)) {
        let id = &run.message_id;
        let mine = |r: &Record| r.status == "COMPLETED" && r.message_id == *id;
        let completed = |record: String| {
            timeline.requests.values().any(|request| {
                let good = request.answered.is_some_and(|(_, good)| good);
                let answered = request.invocation == Some(no) && good;
                let mut changes = request.changed.iter().filter(|(changed, _, _)| answered && *changed == record);
                changes.any(|(_, _, after)| after.as_ref().is_some_and(mine))
            })
        };
        let spec = timeline.spec(id).filter(|spec| timeline.scenario.accepts(spec));
        let records = spec.map(|spec| spec.works().map(|key| timeline.scenario.record_of(key, id)));
        if records.is_some_and(|mut records| records.all(completed)) {
            found.add("L4", at, format!("invocation {no} completed {id} and reports it failed"));
        }
        let failed = run.end.is_some_and(|(_, end)| matches!(end, End::Failed | End::Panicked));
        let healthy = invocation.disturbed == not_scheduled(timeline, no)
            && !timeline.was_frozen(invocation.process_run, invocation.began, at);
        if !failed || !healthy || !timeline.scenario.queue.changes_visibility {
            continue;
        }
        let hidden = |(_, event): &(u64, Event)| match event {
            Event::Hidden { invocation: Some(of), id: hidden, for_s, done } if *of == no && hidden == id => {
                Some((*for_s, *done))
            }
            _ => None,
        };
        let hidden = timeline.history.events.iter().rev().find_map(hidden);
        let wanted = hidden_for(timeline, invocation, run);
        if hidden.is_none() && invocation.disturbed == 0 {
            found.add("visibility", at, format!("invocation {no} did not say when {id} is to come back"));
        } else if let (Some((for_s, true)), Some(wanted)) = (hidden, wanted)
            && for_s != wanted
        {
            found.add("visibility", at, format!("invocation {no} hides {id} for {for_s} s, and not for {wanted} s"));
        }
    }
}

/// Whether no other run follows this one, should it fail.
fn is_last(timeline: &Timeline<'_>, run: &Run) -> bool {
    timeline.scenario.consumer.attempts_max.is_some_and(|max| run.attempt >= max)
}

/// How many of its requests to the scheduler went wrong: what could not be scheduled is hidden all the same.
fn not_scheduled(timeline: &Timeline<'_>, no: InvocationNo) -> usize {
    let of_scheduler = |(_, event): &&(u64, Event)| match event {
        Event::QueueAsked { invocation: Some(of), operation, fate: Some(_), .. } => {
            *of == no && operation.ends_with("Schedule")
        }
        _ => false,
    };
    timeline.history.events.iter().filter(of_scheduler).count()
}

/// Whether it is known of the message of a run that failed that this receive is its last one, and nothing but runs decides what becomes of it.
fn is_dead_lettered_next(timeline: &Timeline<'_>, invocation: &Invocation, run: &Run) -> bool {
    let (queue, id) = (&timeline.scenario.queue, &run.message_id);
    let is_last = |receives: u32| queue.tells_receives && receives == queue.max_receives;
    let delivered = invocation.batch.iter().find(|delivered| delivered.id == *id);
    let ran = |key: usize| {
        timeline.runs.values().any(|other| {
            let ended = matches!(other.end, Some((_, End::Good | End::Failed | End::Panicked)));
            other.invocation == run.invocation && other.message_id == *id && other.key == key && ended
        })
    };
    let guarantee = timeline.scenario.consumer.guarantee;
    // Another event of it waits for longer where what it did was rolled back, or done by another owner in between.
    let alone = |spec: &MessageSpec| spec.more.is_empty() || !guarantee.is_transactional();
    let decides = timeline.spec(id).is_some_and(|spec| !spec.stray && spec.works().all(ran) && alone(spec));
    let retries =
        matches!(run.work, Work::Fail(_) | Work::FailFor(_) | Work::Panic(_)) && guarantee != Guarantee::AtMostOnce;
    delivered.is_some_and(|delivered| is_last(delivered.receives)) && decides && retries
}

/// A message is scheduled if its handler has asked for it, and for when, counted from the end of its run or later, where nothing but that
/// run decides it.
fn in_due_time(timeline: &Timeline<'_>, no: InvocationNo, (at, at_ms): (u64, u64), id: &str, found: &mut Found) {
    let scenario = timeline.scenario;
    let mut runs = timeline.runs.values().filter(|run| run.invocation == no && run.message_id == id);
    let (Some(run), None) = (runs.next(), runs.next()) else { return };
    let alone = timeline.spec(id).is_some_and(|spec| spec.more.is_empty() && !spec.stray);
    if !alone || !keeps_claims(scenario) || is_ever_away(scenario) || scenario.consumer.breaker.is_some() {
        return;
    }
    let asked = match run.work {
        Work::FailFor(s) if s > VISIBILITY_MAX_S && !is_last(timeline, run) => Some(s),
        _ => None,
    };
    let (Some(s), Some((end, End::Failed))) = (asked, run.end) else {
        return found.add("schedule", at, format!("invocation {no} schedules {id}, and nobody asked for it"));
    };
    let process = timeline.process_runs.get(&run.process_run).map(|process_run| process_run.process);
    let off = process.and_then(|process| scenario.function.clocks_ms.get(process)).copied().unwrap_or_default();
    // Whole seconds, rounded up; and clocks are right when faults have stopped.
    let earliest = (end + s * 1_000).saturating_add_signed(off.min(0));
    let latest = (at + s * 1_000 + 1_000).saturating_add_signed(off.max(0));
    if !(earliest..=latest).contains(&at_ms) {
        let what = format!("invocation {no} schedules {id} for {at_ms} ms, and not {s} s after its run");
        found.add("schedule", at, what);
    }
}

/// Whether what a run that failed asks for is done: it has its claim, and what it calls was there.
fn is_heard(timeline: &Timeline<'_>, run: &Run) -> bool {
    let scenario = timeline.scenario;
    keeps_claims(scenario) && !is_ever_away(scenario) && matches!(run.end, Some((_, End::Failed)))
}

/// Whether what handlers call is away at any time.
fn is_ever_away(scenario: &Scenario) -> bool {
    scenario.faults.iter().any(|fault| matches!(fault, Fault::Away { .. }))
}

/// Whether no run loses its claim to another owner.
fn keeps_claims(scenario: &Scenario) -> bool {
    let guarantee = scenario.consumer.guarantee;
    guarantee != Guarantee::Optimistic && guarantee != Guarantee::AtMostOnce && scenario.clocks_agree()
}

/// For how many seconds the message of a run that failed is hidden, where nothing but that run decides it.
fn hidden_for(timeline: &Timeline<'_>, invocation: &Invocation, run: &Run) -> Option<u64> {
    // It is dead-lettered then, and until then it is in flight for nothing.
    if is_dead_lettered_next(timeline, invocation, run) {
        return Some(0);
    }
    let consumer = &timeline.scenario.consumer;
    let decides = timeline.spec(&run.message_id).is_some_and(|spec| spec.more.is_empty() && !spec.stray);
    if !decides || consumer.guarantee == Guarantee::AtMostOnce || consumer.breaker.is_some() {
        return None;
    }
    match run.work {
        // Nothing is to come but its rejection.
        Work::Fail(_) | Work::FailFor(_) | Work::Panic(_) if is_last(timeline, run) => {
            keeps_claims(timeline.scenario).then_some(0)
        }
        // Beside a panic in the same call, or while what it calls is away, it does not come to ask for that; and what has lost its claim
        // asks in vain.
        Work::FailFor(s) if is_heard(timeline, run) => Some(s.min(VISIBILITY_MAX_S)),
        Work::Fail(_) | Work::Panic(_) => {
            let delay = backoff::delay(run.attempt, &MessageId::new(run.message_id.as_str()).ok()?);
            Some(delay.as_millis().div_ceil(1_000).try_into().ok()?)
        }
        _ => None,
    }
}
