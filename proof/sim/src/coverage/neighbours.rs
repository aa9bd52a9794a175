//! Faults that one message, or one deployment, brings over others.

use super::{Coverage, Occurrence};
use crate::history::{End, Event};
use crate::scenario::Work;
use crate::timeline::Timeline;

/// An outage that lasts longer than the engine used to ask for.
const LONG_MS: u64 = 10_000;

/// From this receive on, a message is near its end.
const NEAR: u32 = 3;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    aborts(timeline, coverage);
    blocks(timeline, coverage);
    outages(timeline, coverage);
    identities(timeline, coverage);
    crowds(timeline, coverage);
}

fn aborts(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for run in timeline.runs.values().filter(|run| matches!(run.work, Work::Abort(_))) {
        let died = timeline
            .process_runs
            .get(&run.process_run)
            .and_then(|process_run| process_run.died)
            .is_some_and(|(_, why)| why == "aborted");
        let Some(invocation) = timeline.invocations.get(&run.invocation).filter(|_| died) else { continue };
        coverage.add(
            Occurrence::HandlerAborts,
            invocation.batch.iter().filter(|delivered| delivered.id != run.message_id).count(),
        );
    }
}

fn blocks(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for run in timeline.runs.values() {
        let blocked =
            timeline.process_runs.get(&run.process_run).map_or(&[][..], |process_run| process_run.blocked.as_slice());
        let after = blocked.iter().any(|(start, end)| *start < run.start && run.start < *end);
        coverage.add(Occurrence::ThreadBlocked, usize::from(after && run.end.is_some_and(|(_, end)| end == End::Good)));
    }
}

fn outages(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for (no, invocation) in &timeline.invocations {
        let mine = || timeline.requests.values().filter(move |request| request.invocation == Some(*no));
        let away = mine().filter(|request| request.fate.is_some()).map(|request| request.asked).max();
        let effects =
            timeline.runs.values().filter(|run| run.invocation == *no).flat_map(|run| run.effects.iter().copied());
        let Some((first, last)) = effects.min().zip(away).filter(|_| invocation.returned.is_some()) else { continue };
        let later = mine().any(|request| request.asked > last && !request.changed.is_empty());
        coverage.add(Occurrence::LongOutage, usize::from(last > first + LONG_MS && later));
    }
}

fn identities(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    let mut deployed = Vec::new();
    for (at, event) in &timeline.history.events {
        match event {
            Event::Redriven { .. } => {
                coverage.add(Occurrence::RedrivenUnderNewId, usize::from(timeline.scenario.consumer.by_message_id))
            }
            Event::Deployed => deployed.push(*at),
            _ => {}
        }
    }
    for invocation in timeline.invocations.values() {
        let older = |id: &str| {
            let spec = timeline.spec(id)?;
            let since = deployed.iter().filter(|at| **at < invocation.began).max()?;
            let record = timeline.scenario.record_of(spec.key, id);
            timeline.record_between(&record, *since, *since).last().flatten().map(|_| ())
        };
        coverage.add(
            Occurrence::RuleChanged,
            invocation.batch.iter().filter(|delivered| older(&delivered.id).is_some()).count(),
        );
    }
}

fn crowds(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for (no, invocation) in &timeline.invocations {
        let over = invocation.over(timeline);
        let beside = timeline.invocations.iter().filter(|(other, theirs)| {
            *other != no
                && theirs.process_run == invocation.process_run
                && theirs.began < over
                && theirs.over(timeline) > invocation.began
        });
        let messages: usize = beside.map(|(_, theirs)| theirs.batch.len()).sum();
        let crowded = messages > 0 && messages + invocation.batch.len() > timeline.scenario.consumer.concurrency;
        coverage.add(Occurrence::ProcessCrowded, usize::from(crowded));
        let Some((_, Some(failures))) = invocation.returned.as_ref().filter(|_| invocation.disturbed == 0) else {
            continue;
        };
        let waited =
            |d: &&crate::history::Delivered| d.receives >= NEAR && failures.contains(&d.id) && !invocation.ran(&d.id);
        let others = invocation.batch.iter().any(|delivered| invocation.ran(&delivered.id));
        coverage
            .add(Occurrence::NoTimeNearEnd, if others { invocation.batch.iter().filter(waited).count() } else { 0 });
    }
}
