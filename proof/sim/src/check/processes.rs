//! What a process does at once, and what its death leaves.

use std::collections::BTreeMap;

use super::Found;
use crate::calls::is_of_message;
use crate::entities::{Invocation, Run};
use crate::history::{Event, Record};
use crate::scenario::Guarantee;
use crate::timeline::Timeline;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    at_once(timeline, found);
    if timeline.scenario.consumer.guarantee == Guarantee::AtMostOnce {
        for (process_run, died) in
            timeline.process_runs.iter().filter_map(|(no, process_run)| Some((*no, process_run.died?.0)))
        {
            claimed_ahead(timeline, process_run, died, found);
        }
        parked_unstarted(timeline, found);
    }
}

/// No more handlers at once than each consumer says, however many invocations the process has.
fn at_once(timeline: &Timeline<'_>, found: &mut Found) {
    let mut by_consumer: BTreeMap<(u32, usize), Vec<&Run>> = BTreeMap::new();
    // A handler that blocks its thread is left behind, and its slot goes to another.
    for run in timeline.runs.values().filter(|run| !timeline.was_blocked(run.process_run, 0, u64::MAX)) {
        let consumer = timeline.scenario.consumer_of(run.key);
        by_consumer.entry((run.process_run, consumer)).or_default().push(run);
    }
    for ((process_run, _), runs) in by_consumer {
        let beside =
            |run: &Run| runs.iter().filter(|other| other.start <= run.start && other.over() > run.start).count();
        let slots = timeline.scenario.consumer.concurrency;
        if let Some((run, count)) = runs.iter().map(|run| (run, beside(run))).find(|(_, count)| *count > slots) {
            let what = format!("{count} handlers run at once in process {process_run}, which has {slots} slots");
            found.add("at once", run.start, what);
        }
    }
}

/// At most once: what a dead process had claimed and not started is parked; no more than it had slots.
fn claimed_ahead(timeline: &Timeline<'_>, process_run: u32, died: u64, found: &mut Found) {
    let mine: Vec<_> =
        timeline.invocations.iter().filter(|(_, invocation)| invocation.process_run == process_run).collect();
    if mine.iter().any(|(_, invocation)| invocation.disturbed > 0) {
        return;
    }
    let of_mine = |no: Option<u32>| no.is_some_and(|no| mine.iter().any(|(mine, _)| **mine == no));
    let claimed = timeline.requests.values().filter(|request| of_mine(request.invocation)).flat_map(|r| &r.changed);
    let unstarted = claimed.filter(|(id, ..)| is_of_message(id)).filter(|(id, _, after)| {
        let Some(after) = after.as_ref().filter(|after| after.status == "IN_PROGRESS") else { return false };
        let now = timeline.record_between(id, died, died).last().flatten();
        let held = now.is_some_and(|now| now.owner == after.owner && now.status == "IN_PROGRESS");
        held && !has_run(timeline, id, after)
    });
    let slots = timeline.scenario.consumer.concurrency * timeline.scenario.consumers();
    let count = unstarted.count();
    if count > slots {
        let what =
            format!("process {process_run} dies with {count} claims that it had not started, and has {slots} slots");
        found.add("ahead", died, what);
    }
}

fn has_run(timeline: &Timeline<'_>, id: &str, claimed: &Record) -> bool {
    timeline.runs.values().any(|run| run.fence == claimed.fence && run.record(timeline.scenario) == id)
}

/// At most once: work that no handler was started for is not parked, unless its claim was lost with a process or a request.
fn parked_unstarted(timeline: &Timeline<'_>, found: &mut Found) {
    for (at, event) in &timeline.history.events {
        let Event::Changed { id, before: Some(before), after: Some(after), .. } = event else { continue };
        if after.status != "PARKED" || has_run(timeline, id, before) {
            continue;
        }
        let claims = timeline.requests.values().filter(|request| {
            let granted = |r: &Record| r.owner == before.owner && r.status == "IN_PROGRESS";
            request.changed.iter().any(|(changed, _, after)| changed == id && after.as_ref().is_some_and(granted))
        });
        let healthy = |i: &&Invocation| {
            let whole = i.returned.as_ref().filter(|_| !i.timed_out && i.disturbed == 0);
            whole.is_some_and(|(returned, _)| !timeline.was_frozen(i.process_run, i.began, *returned))
        };
        let invocation = claims.filter_map(|request| timeline.invocations.get(&request.invocation?)).find(healthy);
        if invocation.is_some() && timeline.scenario.clocks_agree() {
            found.add("at most once", *at, format!("{id} is parked, and no handler was ever started for it"));
        }
    }
}
