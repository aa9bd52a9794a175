//! Faults of processes, invocations and handlers.

use std::collections::BTreeSet;

use super::{Coverage, Occurrence};
use crate::entities::Invocation;
use crate::history::{Call, End, Event, InvocationNo, Kind};
use crate::scenario::{Fault, Shape, Work};
use crate::timeline::Timeline;

/// From so many messages on, a batch is a large one.
const LARGE: usize = 10_000;

/// An ending that waits longer than this waits for others on purpose.
const AT_ONCE_MS: u64 = 10;

/// From this receive on, a message is near its end.
const NEAR: u32 = 4;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for (no, invocation) in &timeline.invocations {
        killed(timeline, *no, invocation, coverage);
        batch(timeline, invocation, coverage);
        reported(timeline, *no, invocation, coverage);
    }
    handlers(timeline, coverage);
    rest(timeline, coverage);
}

fn killed(timeline: &Timeline<'_>, no: InvocationNo, invocation: &Invocation, coverage: &mut Coverage) {
    let died = timeline.process_runs.get(&invocation.process_run).and_then(|process_run| process_run.died);
    let Some((at, why)) = died.filter(|_| invocation.returned.is_none()) else { return };
    let mine: Vec<_> = timeline.requests.values().filter(|request| request.invocation == Some(no)).collect();
    let wrote = |status: &str| {
        let before = mine.iter().filter(|request| request.arrived.is_some_and(|(arrived, _)| arrived <= at));
        let changes = before.flat_map(|request| &request.changed);
        changes.filter(|(_, _, after)| after.as_ref().is_some_and(|r| r.status == status)).count()
    };
    let unanswered = mine.iter().filter(|request| {
        let claims = request.calls.iter().any(|call| call.kind == Kind::Claim);
        claims && !request.changed.is_empty() && request.answered.is_none_or(|(answered, _)| answered >= at)
    });
    coverage.add(Occurrence::KilledBeforeClaim, usize::from(wrote("IN_PROGRESS") == 0 && wrote("COMPLETED") == 0));
    coverage.add(Occurrence::KilledBeforeAnswer, unanswered.count());
    coverage.add(Occurrence::KilledAfterCompletion, wrote("COMPLETED"));
    coverage.add(Occurrence::Terminated, usize::from(why == "terminated"));
    for run in timeline.runs.values().filter(|run| run.invocation == no) {
        let ended = run.end.map_or(u64::MAX, |(end, _)| end);
        coverage.add(
            Occurrence::KilledInHandler,
            usize::from(run.end.is_some_and(|(end, how)| end >= at && how == End::Dropped)),
        );
        let had_effect = run.effects.iter().any(|effect| *effect <= at)
            || ended < at && run.end.is_some_and(|(_, how)| how == End::Good);
        coverage.add(Occurrence::KilledAfterEffect, usize::from(had_effect && wrote("COMPLETED") == 0));
        let record = run.record(timeline.scenario);
        let is_its_ending = |call: &Call| call.kind == Kind::Settle && call.id == record;
        let asked = mine.iter().any(|request| request.asked >= ended && request.calls.iter().any(is_its_ending));
        let done = run.end.is_some_and(|(_, how)| how == End::Good);
        coverage.add(Occurrence::KilledBeforeEnding, usize::from(done && ended + AT_ONCE_MS < at && !asked));
    }
}

fn batch(timeline: &Timeline<'_>, invocation: &Invocation, coverage: &mut Coverage) {
    let mut keys = BTreeSet::new();
    let specs = invocation.batch.iter().filter_map(|delivered| timeline.spec(&delivered.id));
    let good = specs.clone().filter(|spec| spec.shape == Shape::Good);
    coverage.add(Occurrence::KeyTwiceInBatch, good.filter(|spec| !keys.insert(spec.key)).count());
    coverage.add(Occurrence::BadBody, specs.filter(|spec| spec.shape != Shape::Good).count());
    let failures = invocation.returned.as_ref().and_then(|(_, failures)| failures.as_ref());
    coverage.add(Occurrence::LargeBatch, usize::from(failures.is_some_and(|failures| failures.listed.len() >= LARGE)));
    let beside = timeline.invocations.values().filter(|other| {
        other.process_run == invocation.process_run
            && other.began > invocation.began
            && other.began < invocation.over(timeline)
    });
    coverage.add(Occurrence::SeveralInvocations, beside.count());
}

fn reported(timeline: &Timeline<'_>, no: InvocationNo, invocation: &Invocation, coverage: &mut Coverage) {
    let Some((_, failures)) = &invocation.returned else { return };
    let mine = || timeline.requests.values().filter(move |request| request.invocation == Some(no));
    let cut = mine().count() > 1
        && mine().all(|request| request.answered.is_none_or(|(_, good)| !good && request.fate.is_some()));
    coverage.add(Occurrence::StoreUnreachable, usize::from(cut));
    coverage.add(
        Occurrence::MappingWithoutReports,
        usize::from(failures.is_none() && timeline.scenario.function.mapping_reports == Some(false)),
    );
    let failed = |id: &str| failures.as_ref().is_some_and(|failures| failures.contains(id));
    for delivered in invocation.batch.iter().filter(|delivered| failed(&delivered.id)) {
        let Some(spec) = timeline.spec(&delivered.id) else { continue };
        let ran = invocation.runs.get(&delivered.id).and_then(|run| timeline.runs.get(run));
        let good = ran.is_some_and(|run| run.end.is_some_and(|(_, end)| end == End::Good));
        coverage.add(Occurrence::CompletionUnresolved, usize::from(good && invocation.disturbed > 0));
        let record = timeline.scenario.record_of(spec.key, &delivered.id);
        let busy = mine().flat_map(|request| request.refused.iter().map(move |refused| (request, refused)));
        let busy = busy.filter(|(request, (call, seen))| {
            let call = request.calls.get(*call);
            let claim = call.filter(|call| call.id == record && call.kind == Kind::Claim);
            let seen = seen.as_ref().filter(|seen| seen.status == "IN_PROGRESS");
            claim.zip(seen).is_some_and(|(claim, seen)| claim.owner != Some(seen.owner))
        });
        let busy = usize::from(ran.is_none() && busy.count() > 0);
        coverage.add(Occurrence::BusyElsewhere, busy);
        coverage.add(Occurrence::BusyNearEnd, if delivered.receives >= NEAR { busy } else { 0 });
    }
    if let Some(groups) = timeline.scenario.queue.fifo_groups {
        let group = |id: &str| timeline.spec(id).map(|spec| spec.key as u32 % groups);
        let first = invocation.batch.iter().position(|delivered| failed(&delivered.id));
        let rest = first.map_or(&[][..], |first| &invocation.batch[first..]);
        coverage
            .add(Occurrence::GroupFails, rest.iter().skip(1).filter(|d| group(&d.id) == group(&rest[0].id)).count());
    }
}

fn handlers(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for run in timeline.runs.values() {
        let panicked = run.end.is_some_and(|(_, end)| end == End::Panicked);
        coverage.add(Occurrence::HandlerPanics, usize::from(panicked));
        coverage.add(Occurrence::HandlerHangs, usize::from(matches!(run.work, Work::Hang | Work::Block(_))));
        let returned = run.end.is_some_and(|(_, end)| end == End::Good);
        coverage.add(Occurrence::LargeResult, usize::from(run.work == Work::Large && returned));
        let end = run.end.map_or(u64::MAX, |(at, _)| at);
        let again = timeline.invocations.values().any(|other| {
            let meanwhile = other.began > run.start && other.began < end;
            meanwhile && other.batch.iter().any(|delivered| delivered.id == run.message_id)
        });
        coverage.add(Occurrence::VisibilityRunsOut, usize::from(again));
    }
}

fn rest(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    let scenario = timeline.scenario;
    let mut letters_asked = 0;
    for (_, event) in &timeline.history.events {
        match event {
            Event::Deleted { done: false, .. } | Event::ReportLost { .. } => coverage.add(Occurrence::DeletionFails, 1),
            Event::Jumped { .. } => coverage.add(Occurrence::ClockFarOff, 1),
            Event::QueueAsked { operation, fate, .. } if operation == "SendMessageBatch" => {
                letters_asked += usize::from(fate.is_some());
            }
            _ => {}
        }
    }
    coverage.add(Occurrence::DeadLetteringFails, letters_asked);
    let far = scenario.function.clocks_ms.iter().any(|off| off.abs() >= 20_000);
    coverage.add(Occurrence::ClockFarOff, usize::from(far));
    let idle: BTreeSet<u32> = timeline
        .history
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Frozen { process_run, idle: true } => Some(*process_run),
            _ => None,
        })
        .collect();
    let thawed = timeline
        .history
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Thawed { process_run } if idle.contains(process_run)));
    coverage.add(Occurrence::FrozenIdle, thawed.count());
    let nameless = |no: &InvocationNo| {
        scenario.faults.iter().any(|f| matches!(f, Fault::Nameless { invocation } if invocation == no))
    };
    let failed = timeline.invocations.iter().filter(|(no, i)| nameless(no) && matches!(i.returned, Some((_, None))));
    coverage.add(Occurrence::NoMessageId, failed.count());
}
