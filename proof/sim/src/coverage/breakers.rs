//! What occurs to breakers.

use super::{Coverage, Occurrence};
use crate::calls::BREAKER;
use crate::history::{Event, Kind};
use crate::scenario::Fault;
use crate::timeline::Timeline;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for (_, event) in &timeline.history.events {
        match event {
            Event::Intake { what: "switched off", .. } => coverage.add(Occurrence::IntakePaused, 1),
            Event::Intake { what: "switched on", .. } => coverage.add(Occurrence::IntakeResumed, 1),
            Event::IntakeAsked { number, what: "plan return" | "switch off", .. } => {
                let stops = |fault: &Fault| match fault {
                    Fault::KillAtIntake { nth } | Fault::FreezeAtIntake { nth, .. } => nth == number,
                    _ => false,
                };
                coverage.add(
                    Occurrence::PauseInterrupted,
                    timeline.scenario.faults.iter().filter(|fault| stops(fault)).count(),
                );
            }
            _ => {}
        }
    }
    for (at, event) in &timeline.history.events {
        let Event::Changed { request: Some(no), id, before, after: Some(after) } = event else { continue };
        let Some(request) = timeline.requests.get(no).filter(|_| id.starts_with(BREAKER)) else { continue };
        let kind = request.calls.first().map(|call| call.kind);
        let claims = matches!(kind, Some(Kind::Claim | Kind::Replace));
        coverage.add(Occurrence::BreakerOpens, usize::from(claims && before.is_none()));
        coverage.add(Occurrence::BreakerCloses, usize::from(kind == Some(Kind::Settle)));
        let invocation = request.invocation.and_then(|no| timeline.invocations.get(&no));
        let process_run = invocation.and_then(|invocation| timeline.process_runs.get(&invocation.process_run));
        // OK because a lease is after the beginning.
        let lease = after.lease_until.saturating_sub(crate::world::BEGIN_MS);
        let dies =
            process_run.and_then(|process_run| process_run.died).is_some_and(|(died, _)| died >= *at && died < lease);
        coverage.add(Occurrence::BreakerOwnerDies, usize::from(claims && dies));
    }
}
