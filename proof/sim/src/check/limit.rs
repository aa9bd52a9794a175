//! Limits: in any time W no more than rate × (W + 20 ms) + slots runs begin in all processes together, and no more go on at once than
//! the limit says.

use super::{Found, clocks_are_right};
use crate::entities::Run;
use crate::scenario::{Fault, Scenario, Work};
use crate::timeline::Timeline;

/// What a timer may be late, and two times that are whole milliseconds.
const LATE_MS: u64 = 22;

/// A slot's lease, and the margin.
const LEASE_MS: u64 = 16_000;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    let scenario = timeline.scenario;
    let Some(limit) = scenario.consumer.limit.filter(|_| clocks_are_right(scenario)) else { return };
    // What was admitted begins later where its process stands still, or another handler has its thread. A call that was rolled back
    // is made again.
    let is_prompt = |run: &&Run| {
        !timeline.was_frozen(run.process_run, run.start.saturating_sub(LEASE_MS), run.start)
            && !timeline.was_blocked(run.process_run, 0, u64::MAX)
    };
    let again = scenario.consumer.items.is_some() && scenario.consumer.guarantee.is_transactional();
    let mut runs: Vec<&Run> = timeline.runs.values().filter(is_prompt).collect();
    runs.sort_by_key(|run| run.start);
    if let Some(rate) = limit.rate().filter(|_| !again) {
        rate_holds(&runs, (rate, limit.used()), found);
    }
    // Where two versions split it otherwise, what runs when the plan changes counts in the slots of before.
    let plans = 1 + u32::from(limit.other.is_some());
    if let Some(most) = limit.at_once.map(|most| most * plans).filter(|_| !again && keeps_slots(scenario)) {
        at_once_holds(timeline, &runs, most, found);
    }
}

fn rate_holds(runs: &[&Run], (rate, slots): (u32, u32), found: &mut Found) {
    for (first, from) in runs.iter().enumerate() {
        for (more, to) in runs[first..].iter().enumerate() {
            let most = u64::from(rate) * (to.start - from.start + LATE_MS) / 1_000 + u64::from(slots);
            if more as u64 + 1 > most {
                let what = format!("{} runs begin from {} ms on, and {most} may", more + 1, from.start);
                return found.add("R1", to.start, what);
            }
        }
    }
}

/// Whether no process is cut off from the store for as long as a lease, nor goes on with what it was told to stop.
fn keeps_slots(scenario: &Scenario) -> bool {
    let stops = |fault: &Fault| {
        matches!(
            fault,
            Fault::Outage { .. }
                | Fault::Store { .. }
                | Fault::Freeze { .. }
                | Fault::FreezeIdle { .. }
                | Fault::Block { .. }
        )
    };
    // A handler that blocks its thread goes on, too.
    let blocks = scenario.keys.iter().flatten().any(|work| matches!(work, Work::Block(_)));
    !blocks && !scenario.faults.iter().any(stops)
}

fn at_once_holds(timeline: &Timeline<'_>, runs: &[&Run], most: u32, found: &mut Found) {
    for run in runs {
        // One that ends within this millisecond makes room for the next one.
        let beside = timeline.runs.values().filter(|other| other.start <= run.start && other.over() > run.start);
        let beside = beside.count();
        if beside as u64 > u64::from(most) {
            return found.add("R2", run.start, format!("{beside} runs go on at once, and {most} may"));
        }
    }
}
