//! Faults of requests to the store.

use super::{Coverage, Occurrence};
use crate::calls::{BREAKER, LIMIT};
use crate::entities::Request;
use crate::history::{Call, Kind};
use crate::scenario::{Fate, Guarantee};
use crate::timeline::Timeline;
use crate::wire::is_refused;

pub(super) fn count(timeline: &Timeline<'_>, coverage: &mut Coverage) {
    for request in timeline.requests.values() {
        answers(timeline, request, coverage);
        late(timeline, request, coverage);
        refusals(timeline, request, coverage);
        looks(timeline, request, coverage);
        for (_, before, _) in &request.changed {
            let now = request.calls.first().and_then(|call| call.now).unwrap_or_default();
            let expired = before.as_ref().is_some_and(|before| before.expires_s * 1_000 < now);
            coverage.add(
                Occurrence::ExpiredNotDeleted,
                usize::from(expired && request.calls.iter().any(|call| call.kind != Kind::Renew)),
            );
        }
        let partly = matches!(request.fate, Some(Fate::PartlyThrottled(_)));
        let some = partly && request.calls.len() > 1 && !request.changed.is_empty();
        coverage
            .add(Occurrence::ClaimsPartlyThrottled, usize::from(some && request.calls.len() > request.changed.len()));
        coverage.add(Occurrence::ReadsPartlyThrottled, usize::from(read_in_part(request)));
    }
}

/// Whether some of several records were read, and others not.
fn read_in_part(request: &Request) -> bool {
    let Some(Fate::PartlyThrottled(bits)) = request.fate.filter(|_| request.operation == "BatchGetItem") else {
        return false;
    };
    let unread = (0..request.calls.len()).filter(|place| is_refused(bits, *place)).count();
    request.arrived.is_some() && unread > 0 && unread < request.calls.len()
}

/// Whether the request ends a claim as completed.
fn completes(request: &Request) -> bool {
    request.calls.iter().any(|call| call.status.as_deref() == Some("COMPLETED"))
}

fn claims(timeline: &Timeline<'_>, request: &Request) -> bool {
    let optimistic = timeline.scenario.consumer.guarantee == Guarantee::Optimistic;
    !optimistic
        && request.calls.iter().any(|call| matches!(call.kind, Kind::Claim | Kind::Replace))
        && !completes(request)
}

fn answers(timeline: &Timeline<'_>, request: &Request, coverage: &mut Coverage) {
    let lost = !request.changed.is_empty() && !request.answered.is_some_and(|(_, good)| good);
    if !lost {
        return;
    }
    if completes(request) {
        coverage.add(Occurrence::CompletionAnswerLost, 1);
    }
    if claims(timeline, request) {
        let owner = request.calls.first().and_then(|call| call.owner);
        let again = timeline.requests.values().any(|other| {
            let asked = other.asked > request.asked && other.calls.iter().any(|call| call.owner == owner);
            asked && claims(timeline, other)
        });
        coverage.add(Occurrence::ClaimTriedAgain, usize::from(again));
    }
}

fn late(timeline: &Timeline<'_>, request: &Request, coverage: &mut Coverage) {
    let Some((arrived, abandoned)) = request.arrived else { return };
    let applied = !request.changed.is_empty();
    coverage.add(Occurrence::LateClaim, usize::from(abandoned && applied && claims(timeline, request)));
    for call in request.calls.iter().filter(|call| call.kind == Kind::Renew) {
        let overtaken = timeline.requests.values().any(|other| {
            let later = other.asked > request.asked && other.arrived.is_some_and(|(at, _)| at < arrived);
            later && other.calls.iter().any(|o| o.kind == Kind::Renew && o.owner == call.owner)
        });
        let settled = request.refused.iter().any(|(_, seen)| {
            seen.as_ref().is_none_or(|seen| seen.status != "IN_PROGRESS" || Some(seen.owner) != call.owner)
        });
        coverage.add(Occurrence::LateRenewal, usize::from(overtaken));
        coverage.add(Occurrence::RenewalAfterSettle, usize::from(settled));
    }
}

fn looks(timeline: &Timeline<'_>, request: &Request, coverage: &mut Coverage) {
    let optimistic = timeline.scenario.consumer.guarantee == Guarantee::Optimistic;
    // A breaker reads its record, too.
    let of_work = |call: &Call| call.kind == Kind::Read && !call.id.starts_with(BREAKER) && !call.id.starts_with(LIMIT);
    if optimistic || request.of_operator {
        return;
    }
    let looks = request.calls.iter().filter(|call| of_work(call));
    let done = looks.filter(|look| {
        let states = timeline.records.get(&look.id).map_or(&[][..], Vec::as_slice);
        let now = states.iter().rfind(|(at, _)| *at <= request.asked).and_then(|(_, record)| record.as_ref());
        let before = timeline.requests.values().any(|other| {
            let earlier = other.invocation == request.invocation && other.asked < request.asked;
            earlier && other.calls.iter().any(|call| call.kind == Kind::Claim && call.id == look.id)
        });
        now.is_some_and(|now| now.status == "COMPLETED") && !before
    });
    coverage.add(Occurrence::LookedAtAndDone, done.count());
}

fn refusals(timeline: &Timeline<'_>, request: &Request, coverage: &mut Coverage) {
    for (call, seen) in &request.refused {
        let Some(call) = request.calls.get(*call).filter(|call| call.kind == Kind::Settle) else { continue };
        let states = timeline.records.get(&call.id).map_or(&[][..], Vec::as_slice);
        let mine = states.iter().rposition(|(_, r)| r.as_ref().is_some_and(|r| Some(r.owner) == call.owner));
        let arrived = request.arrived.map_or(0, |(at, _)| at);
        let gone = mine.is_some_and(|mine| states[mine..].iter().any(|(at, r)| r.is_none() && *at <= arrived));
        coverage.add(Occurrence::OwnerReturnsToNothing, usize::from(gone));
        match seen {
            Some(seen) if Some(seen.owner) != call.owner && call.status.as_deref() == Some("COMPLETED") => {
                coverage.add(Occurrence::OvertakenCompletes, 1);
            }
            Some(seen) if Some(seen.owner) != call.owner => coverage.add(Occurrence::StaleRelease, 1),
            _ => {}
        }
    }
}
