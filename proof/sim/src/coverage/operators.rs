//! What operators meet.

use super::{Coverage, Occurrence};
use crate::entities::Run;
use crate::history::Event;
use crate::timeline::Timeline;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for request in timeline.requests.values().filter(|request| request.of_operator) {
        coverage.add(Occurrence::OperatorOvertaken, request.refused.len());
        for (id, before, after) in &request.changed {
            let status = before.as_ref().map_or("", |before| before.status.as_str());
            coverage
                .add(Occurrence::OperatorActs, usize::from(matches!(status, "IN_PROGRESS" | "PARKED" | "REJECTED")));
            let fence = after.as_ref().map_or(u64::MAX, |after| after.fence);
            let again = |run: &&Run| run.fence > fence && run.record(timeline.scenario) == *id;
            coverage.add(Occurrence::RunsAfterOperator, timeline.runs.values().filter(again).count());
        }
    }
    for (_, event) in &timeline.history.events {
        if let Event::Operated { came, .. } = event {
            coverage.add(Occurrence::OperatorDies, usize::from(*came == "died"));
            coverage.add(Occurrence::OperatorRefused, usize::from(*came == "refused"));
        }
    }
    let amid = timeline.history.events.iter().take_while(|(_, event)| !matches!(event, Event::FaultsStopped));
    coverage
        .add(Occurrence::RedrivenAmidFaults, amid.filter(|(_, event)| matches!(event, Event::Redriven { .. })).count());
}
