//! Breakers: a process that knows one open runs nothing, and one that probes runs one message after the other. The intake is never off
//! without a return to come.

use std::collections::{BTreeMap, BTreeSet};

use super::{Found, clocks_are_right};
use crate::calls::BREAKER;
use crate::entities::{Request, Run};
use crate::history::{End, Event, Kind, Record, RequestNo, RunNo};
use crate::timeline::Timeline;
use crate::world::BEGIN_MS;

/// What a process knows, by what it has asked for and what it was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Knows {
    /// That it is closed, or nothing.
    Nothing,
    /// That it is open since then, or can be probed by whoever is granted its claim.
    Open { since: u64, half: bool },
    /// That it is the one to probe since then; and whether its last call has failed.
    Probes { since: u64, failed: bool },
}

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    let scenario = timeline.scenario;
    for (at, event) in &timeline.history.events {
        if let Event::Intake { off: true, returns: 0, .. } = event {
            found.add("P1", *at, "the intake is off, and nothing switches it on again");
        }
    }
    // Of several consumers each has a breaker of its own in a process, with one record.
    if scenario.consumer.breaker.is_none() || scenario.consumers() > 1 || !clocks_are_right(scenario) {
        return;
    }
    let mut known: BTreeMap<u32, Knows> = BTreeMap::new();
    // What the record is, and what each request found when it arrived: by the order of events, since it may change within the
    // same millisecond (seed 400676).
    let (mut record, mut read) = (None, BTreeMap::new());
    // What arrived when nobody waited for it any more: no process learns what came of it (seed 923143).
    let mut unheard = BTreeSet::new();
    for (at, event) in &timeline.history.events {
        match event {
            Event::Changed { id, after, .. } if is_breaker(id) => record = after.as_ref(),
            Event::Arrived { request, abandoned, .. } => {
                read.insert(*request, record);
                if *abandoned {
                    unheard.insert(*request);
                }
            }
            _ => {}
        }
        match event {
            Event::RunStarted { run, process_run, .. } => {
                let knows = known.get(process_run).copied().unwrap_or(Knows::Nothing);
                started(timeline, *at, *run, knows, found);
            }
            Event::RunEnded { run, end } => {
                let Some(run) = timeline.runs.get(run) else { continue };
                let failed = is_failure(timeline, run, *at, *end);
                if *end == End::Good || failed {
                    known.entry(run.process_run).and_modify(|knows| *knows = ended(*knows, run, failed));
                }
            }
            _ => {
                if let Some((process_run, no)) = asker(timeline, event)
                    && !unheard.contains(&no)
                {
                    let knows = known.entry(process_run).or_insert(Knows::Nothing);
                    *knows = after(timeline, *knows, (*at, event), no, read.get(&no).copied().flatten());
                }
            }
        }
    }
}

/// Whether the end of a run says that what it calls is away: an error meanwhile, or its own timeout, unless its process was frozen and its
/// lease was over as well.
fn is_failure(timeline: &Timeline<'_>, run: &Run, at: u64, end: End) -> bool {
    let cut_off = |ms| at >= run.start + ms && !timeline.was_frozen(run.process_run, run.start, at);
    match end {
        End::Failed => timeline.scenario.is_away(run.start),
        End::Dropped => timeline.scenario.consumer.timeout_ms.is_some_and(cut_off),
        End::Good | End::Panicked => false,
    }
}

fn ended(knows: Knows, run: &Run, failed: bool) -> Knows {
    match knows {
        Knows::Probes { since, .. } if run.start >= since => Knows::Probes { since, failed },
        knows => knows,
    }
}

/// The process of the function that a request for a breaker's record is of, and the request.
fn asker(timeline: &Timeline<'_>, event: &Event) -> Option<(u32, RequestNo)> {
    let no = match event {
        Event::Asked { request, .. } | Event::Refused { request, .. } => *request,
        Event::Answered { request, .. } | Event::Unanswered { request } => *request,
        Event::Changed { request: Some(request), .. } => *request,
        _ => return None,
    };
    let request = timeline.requests.get(&no).filter(|request| request.calls.iter().any(|call| is_breaker(&call.id)))?;
    Some((timeline.invocations.get(&request.invocation?)?.process_run, no))
}

fn is_breaker(id: &str) -> bool {
    id.starts_with(BREAKER)
}

fn is_of(request: &Request, kinds: &[Kind]) -> bool {
    request.calls.iter().any(|call| kinds.contains(&call.kind))
}

/// What a process knows after an event of its request, which has `read` this record.
fn after(
    timeline: &Timeline<'_>,
    knows: Knows,
    (at, event): (u64, &Event),
    no: RequestNo,
    read: Option<&Record>,
) -> Knows {
    let Some(request) = timeline.requests.get(&no) else { return knows };
    let claims = is_of(request, &[Kind::Claim, Kind::Replace]);
    match (event, knows) {
        (Event::Asked { .. }, Knows::Nothing) if claims => Knows::Open { since: at, half: false },
        // Else it keeps the probe for its next message, also where the last one said nothing.
        (Event::Asked { .. }, Knows::Probes { failed: true, .. }) if is_of(request, &[Kind::Renew]) => {
            Knows::Open { since: at, half: false }
        }
        (Event::Answered { .. }, Knows::Probes { .. }) if is_of(request, &[Kind::Renew]) && is_lost(request) => {
            Knows::Open { since: at, half: false }
        }
        // Nothing begins before it is seen to be released, and nothing then where another process has the record.
        (Event::Asked { .. }, _) if is_of(request, &[Kind::Settle]) => Knows::Open { since: at, half: false },
        (Event::Answered { .. } | Event::Unanswered { .. }, _) if is_of(request, &[Kind::Settle]) => {
            if is_lost(request) { knows } else { Knows::Nothing }
        }
        (Event::Changed { after: Some(_), .. }, Knows::Open { half: true, .. }) if claims => {
            Knows::Probes { since: at, failed: false }
        }
        // Whoever reads does not probe any more: it had no answer in time. One that was frozen before it asked to open it knows of
        // it, too (seed 3008305).
        (Event::Answered { good: true, .. }, _) if is_of(request, &[Kind::Read]) => {
            let since = if let Knows::Open { since, .. } | Knows::Probes { since, .. } = knows { since } else { at };
            match read {
                Some(record) if is_closed(record, by_its_clock(timeline, request, at)) => Knows::Nothing,
                Some(record) => Knows::Open { since, half: is_over(record, at) },
                None => Knows::Nothing,
            }
        }
        // An earlier try of the same claim was granted.
        (Event::Refused { seen: Some(seen), .. }, Knows::Open { half: true, .. })
            if claims && is_own(request, seen) =>
        {
            Knows::Probes { since: at, failed: false }
        }
        (Event::Refused { seen: Some(_), .. }, Knows::Open { since, half: true }) if claims => {
            Knows::Open { since, half: false }
        }
        _ => knows,
    }
}

/// Whether its sender was answered that another process has the record.
fn is_lost(request: &Request) -> bool {
    let others = |record: &Record| record.status == "IN_PROGRESS" && !is_own(request, record);
    request.answered.is_some() && request.refused.iter().any(|(_, seen)| seen.as_ref().is_some_and(others))
}

/// Whether a record is its sender's: an earlier try of it has arrived.
fn is_own(request: &Request, record: &Record) -> bool {
    request.calls.iter().any(|call| call.owner == Some(record.owner))
}

/// Whether it may be over: clocks differ by as much as the margin.
fn is_over(record: &Record, at: u64) -> bool {
    record.lease_until <= BEGIN_MS + at
}

/// Whether a process takes it for closed at this time of its own.
fn is_closed(record: &Record, now: u64) -> bool {
    record.status != "IN_PROGRESS" || record.expires_s * 1_000 < now
}

/// What the clock of the process shows whose request this is.
fn by_its_clock(timeline: &Timeline<'_>, request: &Request, at: u64) -> u64 {
    let invocation = request.invocation.and_then(|no| timeline.invocations.get(&no));
    let process_run = invocation.and_then(|invocation| timeline.process_runs.get(&invocation.process_run));
    let clocks = &timeline.scenario.function.clocks_ms;
    let off = process_run.and_then(|run| clocks.get(run.process)).copied().unwrap_or_default();
    (BEGIN_MS + at).saturating_add_signed(off)
}

fn started(timeline: &Timeline<'_>, at: u64, no: RunNo, knows: Knows, found: &mut Found) {
    let Some(run) = timeline.runs.get(&no) else { return };
    let stopped =
        |since| timeline.was_frozen(run.process_run, since, at) || timeline.was_blocked(run.process_run, 0, u64::MAX);
    match knows {
        // What was handed to its thread before begins within the same millisecond.
        Knows::Open { since, .. } if at > since && !stopped(since) => {
            let what =
                format!("run {no} begins in process {}, which knows since {since} ms that it is open", run.process_run);
            found.add("B1", at, what);
        }
        Knows::Probes { since, .. } if !stopped(since) => {
            let beside = |other: &&Run| {
                other.process_run == run.process_run && other.start >= since && other.start <= at && other.over() > at
            };
            if timeline.runs.iter().any(|(other, run)| *other != no && beside(&run)) {
                found.add("B2", at, format!("run {no} begins beside another one in process {}", run.process_run));
            }
        }
        _ => {}
    }
}
