//! What was done is completed as soon as the store answers, as long as the invocation has time: else it would be done again.

use super::Found;
use crate::entities::Run;
use crate::history::{End, InvocationNo};
use crate::timeline::Timeline;

/// How much before its deadline an invocation has settled what it can: the margin, the visibility changes, and timers.
const DUE_MS: u64 = 500 + 300 + 20;

/// A store that answers so long before that is asked once more: a call takes 5 s at most, and so long is waited between two.
const AGAIN_MS: u64 = 5_000 + 2_500;

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    if timeline.scenario.consumer.guarantee.is_transactional() || !timeline.scenario.clocks_agree() {
        return;
    }
    for run in timeline.runs.values() {
        if let Some((at, End::Good)) = run.end.filter(|_| !run.effects.is_empty()) {
            finished(timeline, run, at, found);
        }
    }
}

fn finished(timeline: &Timeline<'_>, run: &Run, at: u64, found: &mut Found) {
    let Some(invocation) = timeline.invocations.get(&run.invocation) else { return };
    let Some((returned, _)) = invocation.returned.as_ref().filter(|_| !invocation.timed_out) else { return };
    let stopped = timeline.was_frozen(invocation.process_run, invocation.began, *returned)
        || timeline.was_blocked(invocation.process_run, invocation.began, *returned);
    let away_until = last_disturbed(timeline, run.invocation).max(at);
    if stopped || away_until + AGAIN_MS > invocation.ends.saturating_sub(DUE_MS) {
        return;
    }
    let name = run.record(timeline.scenario);
    let record = timeline.record_between(&name, *returned, *returned).last().flatten();
    if let Some(record) = record.filter(|record| record.fence == run.fence && record.status != "COMPLETED") {
        let what =
            format!("{name} is done, and {} when its invocation returns, though the store answers", record.status);
        found.add("finished", *returned, what);
    }
}

/// When the invocation last asked for something that did not go as it should.
fn last_disturbed(timeline: &Timeline<'_>, no: InvocationNo) -> u64 {
    let mine = timeline.requests.values().filter(|request| request.invocation == Some(no) && request.fate.is_some());
    mine.map(|request| request.asked).max().unwrap_or_default()
}
