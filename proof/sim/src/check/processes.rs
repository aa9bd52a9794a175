//! What a process does at once, and what its death leaves.

use std::collections::BTreeMap;

use super::Found;
use crate::history::{Event, Record};
use crate::scenario::Guarantee;
use crate::story::{Invocation, Run, Story};

pub(super) fn check(story: &Story<'_>, found: &mut Found) {
    at_once(story, found);
    if story.scenario.consumer.guarantee == Guarantee::AtMostOnce {
        for (life, died) in story.lives.iter().filter_map(|(no, life)| Some((*no, life.died?.0))) {
            claimed_ahead(story, life, died, found);
        }
        parked_unstarted(story, found);
    }
}

/// No more handlers at once than the consumer says, however many invocations the process has.
fn at_once(story: &Story<'_>, found: &mut Found) {
    let mut by_life: BTreeMap<u32, Vec<&Run>> = BTreeMap::new();
    // A handler that blocks its thread is left behind, and its slot goes to another.
    for run in story.runs.values().filter(|run| !story.was_blocked(run.life, 0, u64::MAX)) {
        by_life.entry(run.life).or_default().push(run);
    }
    for (life, runs) in by_life {
        let beside =
            |run: &Run| runs.iter().filter(|other| other.start <= run.start && other.over() > run.start).count();
        let slots = story.scenario.consumer.concurrency;
        if let Some((run, count)) = runs.iter().map(|run| (run, beside(run))).find(|(_, count)| *count > slots) {
            let what = format!("{count} handlers run at once in process {life}, which has {slots} slots");
            found.add("at once", run.start, what);
        }
    }
}

/// At most once: what a dead process had claimed and not started is parked; no more than it had slots.
fn claimed_ahead(story: &Story<'_>, life: u32, died: u64, found: &mut Found) {
    let mine: Vec<_> = story.invocations.iter().filter(|(_, invocation)| invocation.life == life).collect();
    if mine.iter().any(|(_, invocation)| invocation.disturbed > 0) {
        return;
    }
    let of_mine = |no: Option<u32>| no.is_some_and(|no| mine.iter().any(|(mine, _)| **mine == no));
    let claimed = story.requests.values().filter(|request| of_mine(request.invocation)).flat_map(|r| &r.changed);
    let unstarted = claimed.filter(|(id, _, after)| {
        let Some(after) = after.as_ref().filter(|after| after.status == "IN_PROGRESS") else { return false };
        let now = story.record_between(id, died, died).last().flatten();
        let held = now.is_some_and(|now| now.owner == after.owner && now.status == "IN_PROGRESS");
        held && !has_run(story, id, after)
    });
    let (count, slots) = (unstarted.count(), story.scenario.consumer.concurrency);
    if count > slots {
        let what = format!("process {life} dies with {count} claims that it had not started, and has {slots} slots");
        found.add("ahead", died, what);
    }
}

fn has_run(story: &Story<'_>, id: &str, claimed: &Record) -> bool {
    story.runs.values().any(|run| run.fence == claimed.fence && run.record(story.scenario) == id)
}

/// At most once: work that no handler was started for is not parked, unless its claim was lost with a process or a request.
fn parked_unstarted(story: &Story<'_>, found: &mut Found) {
    for (at, event) in &story.history.events {
        let Event::Changed { id, before: Some(before), after: Some(after), .. } = event else { continue };
        if after.status != "PARKED" || has_run(story, id, before) {
            continue;
        }
        let claims = story.requests.values().filter(|request| {
            let granted = |r: &Record| r.owner == before.owner && r.status == "IN_PROGRESS";
            request.changed.iter().any(|(changed, _, after)| changed == id && after.as_ref().is_some_and(granted))
        });
        let healthy = |i: &&Invocation| {
            let whole = i.returned.as_ref().filter(|_| !i.timed_out && i.disturbed == 0);
            whole.is_some_and(|(returned, _)| !story.was_frozen(i.life, i.began, *returned))
        };
        let invocation = claims.filter_map(|request| story.invocations.get(&request.invocation?)).find(healthy);
        if invocation.is_some() && story.scenario.clocks_agree() {
            found.add("at most once", *at, format!("{id} is parked, and no handler was ever started for it"));
        }
    }
}
