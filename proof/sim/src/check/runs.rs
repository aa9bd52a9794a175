//! What handlers do.

use std::collections::{BTreeMap, BTreeSet};

use super::Found;
use crate::entities::Run;
use crate::history::{End, Event, InvocationNo};
use crate::scenario::{Guarantee, Scenario, Shape};
use crate::timeline::Timeline;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    let mut by_key: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in timeline.runs.values() {
        by_key.entry(run.record(timeline.scenario)).or_default().push(run);
        let meant = timeline
            .spec(&run.message_id)
            .is_some_and(|s| s.works().any(|key| key == run.key) && s.shape == Shape::Good);
        if !meant {
            found.add("unexpected", run.start, format!("{} runs for key {}", run.message_id, run.key));
        }
    }
    for run in timeline.runs.values() {
        attempts(timeline, run, found);
    }
    for run in timeline.runs.values().filter(|_| timeline.scenario.consumer.guarantee != Guarantee::Optimistic) {
        let record = run.record(timeline.scenario);
        let highest = timeline.record_between(&record, 0, run.start).flatten().map(|record| record.fence).max();
        if highest.is_none_or(|highest| run.fence > highest) {
            found.add("S1", run.start, format!("{record} runs under fence {}, and has had {highest:?}", run.fence));
        }
    }
    if timeline.scenario.consumer.guarantee != Guarantee::Optimistic {
        once(timeline, found);
    }
    for (record, runs) in &by_key {
        effects(timeline, record, runs, found);
        if timeline.scenario.consumer.guarantee == Guarantee::AtMostOnce && !timeline.is_operated(record) {
            cut_off(record, runs, found);
        }
        if timeline.scenario.consumer.guarantee != Guarantee::Optimistic {
            overlaps(timeline, record, runs, found);
        }
    }
    order(timeline, found);
}

/// No run is one more than there may be, and it is told how many there were.
fn attempts(timeline: &Timeline<'_>, run: &Run, found: &mut Found) {
    let Scenario { consumer, .. } = timeline.scenario;
    let record = run.record(timeline.scenario);
    if let Some(max) = consumer.attempts_max.filter(|max| run.attempt > *max) {
        found.add("attempts", run.start, format!("{record} runs in attempt {} of {max}", run.attempt));
    }
    let states = timeline.record_between(&record, 0, run.start).flatten();
    let claimed = states.filter(|state| state.fence == run.fence && state.status == "IN_PROGRESS").last();
    if let Some(claimed) = claimed.filter(|claimed| claimed.attempts != u64::from(run.attempt)) {
        let what = format!("{record} runs in attempt {}, and its claim is attempt {}", run.attempt, claimed.attempts);
        found.add("attempts", run.start, what);
    }
}

/// Each claim is run once: what is tried again, set aside or taken over has another fence. By invocation, since fences begin again with a
/// record, which can be deleted within one, too.
fn once(timeline: &Timeline<'_>, found: &mut Found) {
    let mut claims: BTreeMap<(InvocationNo, String, u64), u64> = BTreeMap::new();
    for run in timeline.runs.values() {
        let record = run.record(timeline.scenario);
        let Some(before) = claims.insert((run.invocation, record.clone(), run.fence), run.start) else { continue };
        if timeline.record_between(&record, before, run.start).all(|state| state.is_some()) {
            let what = format!("{record} is run again under fence {} by the same invocation", run.fence);
            found.add("one run", run.start, what);
        }
    }
}

/// Effects of one key beside its completions.
fn effects(timeline: &Timeline<'_>, record: &str, runs: &[&Run], found: &mut Found) {
    let times: Vec<u64> = runs.iter().flat_map(|run| run.effects.iter().copied()).collect();
    let completions: Vec<(u64, u64)> = timeline
        .requests
        .values()
        // What an operator knows to be done needs no effect.
        .filter(|request| !request.of_operator)
        .flat_map(|request| request.changed.iter().map(|change| (request.arrived, change)))
        .filter_map(|(arrived, (id, _, after))| {
            let after = after.as_ref().filter(|r| *id == record && r.status == "COMPLETED")?;
            Some((arrived?.0, after.fence))
        })
        .collect();
    let guarantee = timeline.scenario.consumer.guarantee;
    let last = times.iter().max().copied().unwrap_or_default();
    if guarantee.is_transactional() {
        // Completions of one key beyond the first are another rule's business.
        if times.len() != completions.len() {
            let what = format!("{record} has {} effects and {} completions", times.len(), completions.len());
            found.add("effects", last, what);
        }
        return;
    }
    if guarantee == Guarantee::AtMostOnce && times.len() > 1 && !timeline.is_operated(record) {
        found.add("at most once", last, format!("{record} has {} effects", times.len()));
    }
    for (at, fence) in completions {
        if !runs.iter().any(|run| run.fence == fence && run.effects.iter().any(|effect| *effect <= at)) {
            found.add("effects", at, format!("{record} is completed under fence {fence} without an effect"));
        }
    }
}

/// At most once: what was cut off, by whatever, is never run again.
fn cut_off(record: &str, runs: &[&Run], found: &mut Found) {
    let is_cut = |run: &&Run| !run.end.is_some_and(|(_, end)| matches!(end, End::Good | End::Failed));
    let first = runs.iter().position(is_cut);
    if let Some(again) = first.and_then(|first| runs.get(first + 1)) {
        found.add("at most once", again.start, format!("{record} runs again after it was cut off"));
    }
}

/// S11: no two handlers of one key at once, if clocks agree and handlers stop when told.
fn overlaps(timeline: &Timeline<'_>, record: &str, runs: &[&Run], found: &mut Found) {
    if !timeline.scenario.clocks_agree() {
        return;
    }
    let end = |run: &Run| run.end.map_or(u64::MAX, |(at, _)| at);
    let stops = |run: &Run| {
        !timeline.was_frozen(run.process_run, run.start, end(run))
            && !timeline.was_blocked(run.process_run, run.start, end(run))
    };
    for (place, first) in runs.iter().enumerate() {
        for second in &runs[place + 1..] {
            if second.start < end(first) && first.start < end(second) && stops(first) && stops(second) {
                let what = format!("{record}: fences {} and {} run at once", first.fence, second.fence);
                found.add("S11", second.start, what);
            }
        }
    }
}

/// S8, over the whole run: nothing of a group runs while an earlier message of it is neither done nor dead-lettered.
fn order(timeline: &Timeline<'_>, found: &mut Found) {
    let Some(groups) = timeline.scenario.queue.fifo_groups else { return };
    if timeline.scenario.consumer.window_s.is_some() {
        return;
    }
    let number = |id: &str| id.trim_start_matches("m-").parse::<u32>().unwrap_or_default();
    let mut queued: BTreeSet<u32> = BTreeSet::new();
    let mut lettered: BTreeSet<u32> = BTreeSet::new();
    let mut completed: BTreeSet<String> = BTreeSet::new();
    for (at, event) in &timeline.history.events {
        match event {
            Event::Sent { id, .. } | Event::Redriven { again: id, .. } => {
                queued.insert(number(id));
            }
            Event::Deleted { id, done: true, .. } | Event::Exhausted { id } => {
                queued.remove(&number(id));
            }
            Event::Lettered { id, .. } => {
                lettered.insert(number(id));
            }
            Event::Changed { id, after: Some(after), .. } if after.status == "COMPLETED" => {
                completed.insert(id.clone());
            }
            Event::RunStarted { message_id, key, .. } => {
                let before = |other: &&u32| {
                    // OK because there are a few keys.
                    let spec = timeline.spec(&format!("m-{other}"));
                    let theirs = spec.map(|spec| spec.key);
                    let record = |key| timeline.scenario.record_of(key, &format!("m-{other}"));
                    **other < number(message_id)
                        && theirs.is_some_and(|theirs| theirs as u32 % groups == *key as u32 % groups)
                        && !lettered.contains(other)
                        && spec.is_some_and(|spec| spec.shape != Shape::Stray || !timeline.scenario.accepts(spec))
                        && !spec.is_some_and(|spec| spec.works().all(|key| completed.contains(&record(key))))
                };
                if let Some(other) = queued.iter().find(before) {
                    found.add("S8", *at, format!("{message_id} runs before m-{other} of its group is done"));
                }
            }
            _ => {}
        }
    }
}
