//! What occurs in calls of batch handlers, between several consumers, to payloads elsewhere, and while messages wait for a key.

use std::collections::BTreeSet;

use super::{Coverage, Occurrence};
use crate::entities::{Failures, Invocation, Run};
use crate::history::{End, Event, InvocationNo, Kind, RunNo};
use crate::scenario::Shape;
use crate::timeline::Timeline;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    let mut unfetched = BTreeSet::new();
    for (_, event) in &timeline.history.events {
        match event {
            Event::Called { runs } => call(timeline, runs, coverage),
            Event::FetchAsked { invocation: Some(invocation), fate: Some(_) } => drop(unfetched.insert(*invocation)),
            _ => {}
        }
    }
    for (no, invocation) in &timeline.invocations {
        let Some((_, Some(failures))) = &invocation.returned else { continue };
        waits(timeline, *no, invocation, failures, coverage);
        messages(timeline, invocation, failures, coverage);
        let failed = invocation.batch.iter().filter(|delivered| failures.contains(&delivered.id));
        let large = failed.filter(|delivered| timeline.spec(&delivered.id).is_some_and(|spec| spec.large));
        let unread = large.filter(|delivered| !invocation.ran(&delivered.id));
        coverage.add(Occurrence::NotFetched, if unfetched.contains(no) { unread.count() } else { 0 });
    }
}

fn call(timeline: &Timeline<'_>, runs: &[RunNo], coverage: &mut Coverage) {
    let runs: Vec<_> = runs.iter().filter_map(|run| timeline.runs.get(run)).collect();
    let ended = |wanted: &[End]| {
        let how = |run: &&&Run| run.end.is_some_and(|(_, end)| wanted.contains(&end));
        runs.iter().filter(how).count()
    };
    coverage.add(Occurrence::ItemsFail, usize::from(ended(&[End::Good]) > 0 && ended(&[End::Failed]) > 0));
    let broken = ended(&[End::Panicked, End::Dropped]) == runs.len();
    coverage.add(Occurrence::CallBreaks, usize::from(runs.len() > 1 && broken));
}

/// Keys that were busy, and messages that asked for them again in their invocation.
fn waits(
    timeline: &Timeline<'_>,
    no: InvocationNo,
    invocation: &Invocation,
    failures: &Failures,
    coverage: &mut Coverage,
) {
    if timeline.scenario.consumer.busy_wait_ms.is_none() {
        return;
    }
    for delivered in &invocation.batch {
        let Some(spec) = timeline.spec(&delivered.id).filter(|spec| spec.shape == Shape::Good) else { continue };
        let record = timeline.scenario.record_of(spec.key, &delivered.id);
        let mine = timeline.requests.values().filter(|request| request.invocation == Some(no));
        let refused = mine.flat_map(|request| request.refused.iter().map(move |refused| (request, refused)));
        let busy = refused.filter(|(request, (call, seen))| {
            let claim = request.calls.get(*call).filter(|call| call.id == record && call.kind == Kind::Claim);
            let seen = seen.as_ref().filter(|seen| seen.status == "IN_PROGRESS");
            claim.zip(seen).is_some_and(|(claim, seen)| claim.owner != Some(seen.owner))
        });
        let (busy, failed) = (busy.count(), failures.contains(&delivered.id));
        coverage.add(Occurrence::BusyThenFree, usize::from(busy > 0 && !failed));
        coverage.add(Occurrence::BusyTooLong, usize::from(busy > 1 && failed && !invocation.ran(&delivered.id)));
    }
}

/// Messages for several consumers, and for none.
fn messages(timeline: &Timeline<'_>, invocation: &Invocation, failures: &Failures, coverage: &mut Coverage) {
    for delivered in &invocation.batch {
        let Some(spec) = timeline.spec(&delivered.id) else { continue };
        let consumers: BTreeSet<_> = spec.works().map(|key| timeline.scenario.consumer_of(key)).collect();
        let failed = failures.contains(&delivered.id);
        coverage.add(
            Occurrence::SharedMessageFails,
            usize::from(consumers.len() > 1 && failed && invocation.ran(&delivered.id)),
        );
        if spec.shape == Shape::Stray || spec.stray {
            let fault =
                if timeline.scenario.accepts(spec) { Occurrence::StrayIgnored } else { Occurrence::StrayRejected };
            coverage.add(fault, 1);
        }
    }
}
