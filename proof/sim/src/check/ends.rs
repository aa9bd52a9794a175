//! What becomes of every message.

use std::collections::BTreeMap;

use super::Found;
use crate::expected;
use crate::history::Event;
use crate::scenario::{MessageSpec, Scenario, Shape};
use crate::timeline::Timeline;

/// How much longer than the function's timeout a lease lasts, with the jitter of those who wait for its end.
const LEASE_BEYOND_MS: u64 = 2_000;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    let end = timeline.history.events.last().map_or(0, |(at, _)| *at);
    let mut queued: BTreeMap<&str, u64> = BTreeMap::new();
    for (at, event) in &timeline.history.events {
        match event {
            Event::Sent { id, .. } | Event::Redriven { again: id, .. } => {
                queued.insert(id, *at);
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
        if must_complete(timeline, id) && !begins_anew(timeline.scenario) {
            found.add("L2", end, format!("{id} is dead, though nothing is wrong with it and faults have stopped"));
        }
    }
    if !matches!(timeline.history.events.last(), Some((_, Event::Drained { .. }))) {
        found.add("L2", end, "the run did not end");
    }
}

fn must_complete(timeline: &Timeline<'_>, id: &str) -> bool {
    timeline.spec(id).is_some_and(|spec| expected::completes(timeline.scenario, spec))
}

/// Whether a redrive can begin done work anew without end: a FIFO queue that shows messages while they run, which AWS refuses,
/// takes no deletion of them, and under the message id as the key a redriven message is another piece of work.
fn begins_anew(scenario: &Scenario) -> bool {
    let shown_early = scenario.queue.visibility_s * 1_000 < scenario.function.timeout_ms;
    scenario.consumer.by_message_id && scenario.queue.fifo_groups.is_some() && shown_early
}

/// Whether the queue is set up as L5 wants it: the receives last longer than any lease.
pub(super) fn outlasts_leases(scenario: &Scenario) -> bool {
    let lease = scenario.function.timeout_ms + LEASE_BEYOND_MS + Scenario::SKEW_MS as u64;
    u64::from(scenario.queue.max_receives - 1) * scenario.queue.visibility_s * 1_000 > lease
}

/// L5: a message that found its key busy each time did not wait long enough.
fn busy_to_death(timeline: &Timeline<'_>, at: u64, id: &str, found: &mut Found) {
    let scenario = timeline.scenario;
    let queue = &scenario.queue;
    let good = |spec: &&MessageSpec| spec.shape == Shape::Good && !expected::conflicts(scenario, spec);
    let Some(spec) = timeline.spec(id).filter(good) else { return };
    if !outlasts_leases(scenario) || !scenario.clocks_agree() {
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
