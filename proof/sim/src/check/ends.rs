//! What becomes of every message.

use std::collections::BTreeMap;

use super::{Found, clocks_are_right};
use crate::expected;
use crate::history::{Event, Record};
use crate::scenario::{Guarantee, MessageSpec, Scenario, Shape, Work};
use crate::timeline::Timeline;

/// How much longer than the function's timeout a lease lasts, with the jitter of those who wait for its end.
const LEASE_BEYOND_MS: u64 = 2_000;

/// What an invocation under a limit needs beside its handlers: the longest interval of a slot, and the time for its report.
const BESIDE_MS: u64 = 2_300;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    let end = timeline.history.events.last().map_or(0, |(at, _)| *at);
    let mut queued: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, event) in &timeline.history.events {
        match event {
            Event::Sent { id, .. } | Event::Redriven { again: id, .. } => {
                queued.insert(id, *at);
            }
            // Until it has sent its message, the schedule is where that is.
            Event::Scheduled { name, .. } => {
                queued.insert(name, *at);
            }
            Event::SentAgain { name, again, .. } => {
                queued.remove(name.as_str());
                queued.insert(again, *at);
            }
            Event::Deleted { id, done: true, .. } => {
                queued.remove(id.as_str());
            }
            Event::Exhausted { id } => {
                queued.remove(id.as_str());
                busy_to_death(timeline, *at, id, found);
            }
            Event::Lettered { id, .. } if must_complete(timeline, id) => {
                found.add("unexpected", *at, format!("{id} is rejected, though nothing is wrong with it"));
            }
            Event::ScheduledWrongly { id } => {
                let what =
                    format!("the schedule of {id} lacks a time, or the role or the dead-letter queue of the settings");
                found.add("unexpected", *at, what);
            }
            Event::Drained { left } => {
                queued.retain(|id, _| !left.iter().any(|other| other == id));
                left.iter().for_each(|id| found.add("L2", *at, format!("{id} never ends")));
            }
            _ => {}
        }
    }
    for (id, at) in queued {
        found.add("S6", at, format!("{id} is lost"));
    }
    for id in &timeline.dead {
        if !must_complete(timeline, id) {
            given_up(timeline, end, id, found);
        } else if !begins_anew(timeline.scenario) && has_turns(timeline.scenario) {
            found.add("L2", end, format!("{id} is dead, though nothing is wrong with it and faults have stopped"));
        }
    }
    if !matches!(timeline.history.events.last(), Some((_, Event::Drained { .. }))) {
        found.add("L2", end, "the run did not end");
    }
}

/// L2 of a consumer that runs work at most once, or so many times: a good message is dead only if its work is over, or was tried so often.
fn given_up(timeline: &Timeline<'_>, end: u64, id: &str, found: &mut Found) {
    let scenario = timeline.scenario;
    let Some(spec) = timeline.spec(id).filter(|spec| expected::ends(scenario, spec)) else { return };
    if !has_turns(scenario) {
        return;
    }
    let max = scenario.consumer.attempts_max.map(u64::from);
    let over = |record: &Record| match record.status.as_str() {
        "COMPLETED" => true,
        "PARKED" => scenario.consumer.guarantee == Guarantee::AtMostOnce,
        // Each run takes an attempt, and the one in which it is seen that there were enough takes another. Not by the fence: it goes on
        // where attempts begin anew, so that after a few redrives it says nothing of them.
        "REJECTED" => max.is_some_and(|max| record.attempts > max),
        _ => max.is_some_and(|max| record.fence >= max),
    };
    for key in spec.works() {
        let record = timeline.record_between(&scenario.record_of(key, id), end, end).last().flatten();
        if !record.is_some_and(over) {
            found.add("L2", end, format!("{id} is dead, and its work was neither done nor given up"));
        }
    }
}

fn must_complete(timeline: &Timeline<'_>, id: &str) -> bool {
    timeline.spec(id).is_some_and(|spec| expected::completes(timeline.scenario, spec))
}

/// Whether a limit lets as much begin in an invocation as it receives, and each run end in time after the interval before it, as
/// `docs/rate.md` asks: what has no turn, or is cut off, loses a receive. So does what a queue shows while it waits for its turn, which AWS
/// refuses to set up (seed 11047413). In a group the messages of several consumers wait one after the other, each for an interval of a
/// slot that its consumer has just been granted (seed 11000253).
fn has_turns(scenario: &Scenario) -> bool {
    let Some(limit) = scenario.consumer.limit else { return true };
    // The plan of either version can hold, and a change of it takes a while.
    let rates = [0, 1].map(|place| limit.of_process(place).per_second);
    let Some(rate) = rates.into_iter().min().flatten().map(u64::from) else { return true };
    let takes = |work: &Work| match work {
        Work::Good { before_ms, after_ms } => before_ms + after_ms,
        _ => 0,
    };
    let longest_ms = scenario.keys.iter().flatten().map(takes).max().unwrap_or(0);
    let begin_ms = scenario.function.timeout_ms.saturating_sub(BESIDE_MS + longest_ms);
    let shown_early = scenario.queue.visibility_s * 1_000 < scenario.function.timeout_ms;
    let intervals_ms = scenario.queue.batch_max as u64 * u64::from(limit.used()) * 1_000 / rate;
    let one_by_one = scenario.consumers() > 1 && scenario.queue.fifo_groups.is_some();
    if shown_early || one_by_one && intervals_ms > begin_ms {
        return false;
    }
    scenario.queue.batch_max as u64 * scenario.function.clocks_ms.len() as u64 <= rate * begin_ms / 1_000
}

/// Whether a redrive can begin done work anew without end: a FIFO queue that shows messages while they run, which AWS refuses,
/// takes no deletion of them, and under the message id as the key a redriven message is another piece of work.
fn begins_anew(scenario: &Scenario) -> bool {
    let shown_early = scenario.queue.visibility_s * 1_000 < scenario.function.timeout_ms;
    scenario.consumer.by_message_id && scenario.queue.fifo_groups.is_some() && shown_early
}

/// Whether the queue is set up as L5 wants it: the receives last longer than any lease, and what is done is remembered for longer than
/// they do, or a message that is done can begin again each time before another one (seed 40002027). A lease by a clock that is an hour
/// ahead looks as if it ran (seed 2221778).
pub(super) fn outlasts_leases(scenario: &Scenario) -> bool {
    let lease = scenario.function.timeout_ms + LEASE_BEYOND_MS + Scenario::SKEW_MS as u64;
    let receives_s = u64::from(scenario.queue.max_receives - 1) * scenario.queue.visibility_s;
    clocks_are_right(scenario)
        && receives_s * 1_000 > lease
        && scenario.consumer.window_s.is_none_or(|window_s| window_s > receives_s)
}

/// L5: a message that found its key busy each time did not wait long enough.
fn busy_to_death(timeline: &Timeline<'_>, at: u64, id: &str, found: &mut Found) {
    let scenario = timeline.scenario;
    let queue = &scenario.queue;
    let good = |spec: &&MessageSpec| spec.shape == Shape::Good && !expected::conflicts(scenario, spec);
    let Some(spec) = timeline.spec(id).filter(good) else { return };
    if !outlasts_leases(scenario) {
        return;
    }
    let deliveries = timeline.invocations.iter().filter(|(_, i)| i.batch.iter().any(|delivered| delivered.id == id));
    let mut owners = Vec::new();
    for (no, invocation) in deliveries {
        let Some((returned, Some(_))) = &invocation.returned else { return };
        let ran = timeline.runs.values().any(|run| run.invocation == *no && run.message_id == id);
        let busy = spec.works().find_map(|key| {
            let name = scenario.record_of(key, id);
            let record = timeline.record_between(&name, *returned, *returned).last().flatten();
            record.filter(|record| record.is_busy_at(*returned) && record.message_id != id)
        });
        let Some(record) = busy else { return };
        let blocked = queue.fifo_groups.is_some();
        if ran
            || blocked
            || invocation.disturbed > 0
            || timeline.was_frozen(invocation.process_run, invocation.began, *returned)
        {
            return;
        }
        owners.push(record.owner);
    }
    if owners.windows(2).all(|pair| pair[0] == pair[1]) {
        found.add("L5", at, format!("{id} waited for a busy key until it was received too often"));
    }
}
