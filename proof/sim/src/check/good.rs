//! L4: nothing good is lost to something bad. A good message is dead-lettered only if its receives were used up by faults that
//! the scenario has, or by itself: not by a neighbour in its batch or its process, and not for want of a turn.

use std::collections::BTreeSet;

use super::Found;
use super::ends::outlasts_leases;
use crate::calls::LIMIT;
use crate::entities::{Invocation, Run};
use crate::expected;
use crate::history::{End, Event, InvocationNo};
use crate::scenario::{Fault, Guarantee, MessageSpec, Scenario, Work};
use crate::timeline::Timeline;

/// So many receives may have gone to faults, and the rest would have sufficed.
const FAULTS_MAX: usize = 1;

/// What used up a receive of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spent {
    /// Its own handler failed, as the scenario has it.
    Itself,
    /// Something happened to its process, its requests, its report or its deletion.
    Fate,
    /// Another message aborted the process, or blocked the thread.
    Neighbour,
    /// Its key was busy elsewhere.
    Busy,
    /// The same, with an attempt at its work that failed.
    BusyFailing,
    /// There was no time for it.
    NoTurn,
}

pub(super) fn check(timeline: &Timeline<'_>, found: &mut Found) {
    let scenario = timeline.scenario;
    // In a group, what stands behind a failure waits with it.
    if scenario.queue.fifo_groups.is_some() || !scenario.clocks_agree() || is_undone(scenario) {
        return;
    }
    for (at, event) in &timeline.history.events {
        let Event::Exhausted { id } = event else { continue };
        if timeline.spec(id).is_some_and(|spec| is_to_complete(timeline, *at, id, spec)) {
            exhausted(timeline, *at, id, found);
        }
    }
}

/// Whether nothing is wrong with it, and its consumer had not given it up by then: it was tried less often than it may be.
fn is_to_complete(timeline: &Timeline<'_>, at: u64, id: &str, spec: &MessageSpec) -> bool {
    let scenario = timeline.scenario;
    let tried_enough = |key| {
        let max = scenario.consumer.attempts_max.map_or(u64::MAX, u64::from);
        let record = scenario.record_of(key, id);
        timeline.record_between(&record, 0, at).flatten().any(|record| record.attempts >= max)
    };
    let may_give_up = || scenario.consumer.guarantee == Guarantee::AtMostOnce || spec.works().any(tried_enough);
    expected::completes(scenario, spec) || expected::ends(scenario, spec) && !may_give_up()
}

/// Whether what was done is not deleted, by the scenario's settings.
fn is_undone(scenario: &Scenario) -> bool {
    scenario.function.mapping_reports == Some(false)
        || scenario.queue.visibility_s * 1_000 < scenario.function.timeout_ms
}

/// Whether there are no more messages that abort their process than a batch can bear: three in a queue that gives up after
/// five receives, one where the function cannot delete what is done. Not where deaths leave no trace, or fail several batches.
/// What makes such a message look innocent again (an operator's act), and a receive that was lost to a `busy` key, count as one more; so do
/// all of them where an operator may have moved them back from the dead-letter queue.
/// One that was lost to a fault, or by the message itself, counts as two: an owner more can have left the key in progress, or a message that aborts
/// was no suspect yet, and takes one besides as one that is (seed 3501330).
fn is_bearable(scenario: &Scenario, at: u64, busy: usize, own: usize) -> bool {
    let aborts = |works: &[Work]| works.iter().any(|work| matches!(work, Work::Abort(_)));
    let acts = |fault: &&Fault| matches!(**fault, Fault::Operate { at_ms, key, .. } if at_ms < at && scenario.keys.get(key).is_some_and(|works| aborts(works)));
    let acts = scenario.faults.iter().filter(acts).count();
    let aborts = scenario.keys.iter().filter(|works| aborts(works)).count();
    let redrives =
        scenario.faults.iter().filter(|fault| matches!(fault, Fault::Redrive { at_ms } if *at_ms < at)).count();
    let spent = if aborts > 0 { acts + busy + 2 * own + redrives * aborts } else { 0 };
    let traced = scenario.consumer.guarantee != Guarantee::Optimistic;
    // Those that do not fit one after the other run a few at once.
    let takes = scenario.keys.iter().filter_map(|works| works.last()).map(|work| match work {
        Work::Good { before_ms, after_ms } => before_ms + after_ms,
        Work::Abort(ms) => *ms,
        _ => 0,
    });
    let fits = takes.sum::<u64>() * 2 <= scenario.function.timeout_ms;
    scenario.function.per_process == 1 && traced && fits && aborts + spent <= if scenario.asks_aws() { 3 } else { 1 }
}

fn exhausted(timeline: &Timeline<'_>, at: u64, id: &str, found: &mut Found) {
    let mut spent = Vec::new();
    let mut last = None;
    for (no, invocation) in &timeline.invocations {
        let mine: Vec<_> = invocation.batch.iter().filter(|delivered| delivered.id == id).collect();
        if let Some(first) = mine.first() {
            spent.push(spent_on(timeline, *no, invocation, id));
            // More than once in one batch.
            spent.extend(mine.iter().skip(1).map(|_| Spent::Fate));
            last = Some((*no, invocation, first.receives));
        }
    }
    let count = |what: Spent| spent.iter().filter(|spent| **spent == what).count();
    let busy = count(Spent::Busy) + count(Spent::BusyFailing);
    let own = count(Spent::Itself) + count(Spent::Fate);
    let neighbours = count(Spent::Neighbour);
    if own <= FAULTS_MAX && neighbours > 0 && count(Spent::NoTurn) == 0 && is_bearable(timeline.scenario, at, busy, own)
    {
        found.add("L4", at, format!("{id} is dead-lettered because of its neighbours: {spent:?}"));
    }
    // What is called can be away for longer than the receives last: then each copy fails, or waits for one that does (seed 708084).
    let waited = own + neighbours + count(Spent::NoTurn) == 0 && count(Spent::Busy) > 0;
    if waited && outlasts_leases(timeline.scenario) {
        found.add("L5", at, format!("{id} is dead-lettered for having waited: {spent:?}"));
    }
    // What has the fewest receives probes.
    if timeline.scenario.consumer.breaker.is_none()
        && timeline.scenario.consumer.limit.is_none()
        && let (Some((no, invocation, receives)), Some(Spent::NoTurn)) = (last, spent.last())
        && spent.iter().all(|spent| matches!(spent, Spent::NoTurn | Spent::Busy | Spent::BusyFailing))
        && let Some(before) = overtaken_by(timeline, no, invocation, (id, receives))
    {
        found.add("turn", at, format!("{id} is dead-lettered without a run, and {before} had its turn before it"));
    }
}

fn spent_on(timeline: &Timeline<'_>, no: InvocationNo, invocation: &Invocation, id: &str) -> Spent {
    let mut runs = timeline.runs.values().filter(|run| run.invocation == no && run.message_id == id);
    let over = invocation.over(timeline);
    let died = timeline
        .process_runs
        .get(&invocation.process_run)
        .and_then(|process_run| process_run.died)
        .filter(|(at, _)| *at <= over);
    let failed = |run: &Run| {
        let bad = matches!(run.work, Work::Hang | Work::Abort(_) | Work::Block(_));
        bad || run.end.is_some_and(|(_, end)| matches!(end, End::Failed | End::Panicked))
    };
    let Some((returned, failures)) = invocation.returned.as_ref().filter(|_| !invocation.timed_out) else {
        // What had failed before would not have been deleted either.
        let had_failed = |run: &Run| run.end.is_some_and(|(_, end)| matches!(end, End::Failed | End::Panicked));
        let Some((at, "aborted")) = died else { return Spent::Fate };
        let (begun, scenario) = (runs.clone().next().is_some(), timeline.scenario);
        // Of several consumers, one that waits for its breaker is not waited for (seed 2117837).
        let is_waiting = || scenario.consumers() > 1 && scenario.may_hold_back(invocation.began, at);
        // One whose payload does not come in time has no turn, whatever its neighbours do after that (seed 2808360).
        let is_large = || timeline.spec(id).is_some_and(|spec| spec.large);
        let is_unfetched = || invocation.disturbed > 0 && is_large();
        return match begun {
            true if runs.any(had_failed) => Spent::Itself,
            false if is_waiting() || is_unfetched() => Spent::Fate,
            _ => Spent::Neighbour,
        };
    };
    let faulty = invocation.disturbed > 0
        || invocation.report_lost
        || timeline.was_frozen(invocation.process_run, invocation.began, *returned)
        || !failures.as_ref().is_some_and(|failures| failures.contains(id))
        || timeline.scenario.faults.iter().any(|fault| matches!(fault, Fault::ShowAgain { .. }));
    let run = runs.clone().find(|run| failed(run)).or_else(|| runs.next());
    if run.is_some_and(failed) {
        return Spent::Itself;
    }
    if faulty {
        return Spent::Fate;
    }
    // What a breaker held back.
    if timeline.scenario.may_hold_back(invocation.began, *returned) {
        return Spent::Fate;
    }
    if run.is_none() && waited_for_slot(timeline, invocation, *returned) {
        return Spent::NoTurn;
    }
    // Behind a copy of its own that failed, which may have blocked the thread (seed 3905543).
    if run.is_none() && copies_that_ran(timeline, no, id).any(failed) {
        return Spent::BusyFailing;
    }
    if timeline.was_blocked(invocation.process_run, invocation.began, *returned) {
        return Spent::Neighbour;
    }
    let busy = timeline.spec(id).and_then(|spec| {
        spec.works().find_map(|key| {
            let record = timeline.scenario.record_of(key, id);
            let at_the_end = timeline.record_between(&record, *returned, *returned).last().flatten();
            at_the_end.filter(|record| record.is_busy_at(*returned)).map(|record| (key, record))
        })
    });
    match (run, busy) {
        (Some(_), _) => Spent::Itself,
        (None, Some((key, record))) => {
            let is_of_it =
                |run: &&Run| (run.key, run.fence, &run.message_id) == (key, record.fence, &record.message_id);
            if timeline.runs.values().find(is_of_it).is_some_and(failed) { Spent::BusyFailing } else { Spent::Busy }
        }
        // Behind a copy of its own, which the record does not show where claims leave no trace (seed 3511381).
        (None, None) if copies_that_ran(timeline, no, id).next().is_some() => Spent::BusyFailing,
        (None, None) => Spent::NoTurn,
    }
}

/// The runs of other messages with a key of this one in the invocation.
fn copies_that_ran<'a>(timeline: &'a Timeline<'_>, no: InvocationNo, id: &str) -> impl Iterator<Item = &'a Run> {
    let is_key = move |key| timeline.spec(id).is_some_and(|spec| spec.works().any(|own| own == key));
    timeline.runs.values().filter(move |run| run.invocation == no && run.message_id != id && is_key(run.key))
}

/// Whether its process had no slot of the limit for the first half of the invocation: others had them all, whatever blocked a thread
/// here (seed 305321). All consumers of a process share its slots.
fn waited_for_slot(timeline: &Timeline<'_>, invocation: &Invocation, returned: u64) -> bool {
    if timeline.scenario.consumer.limit.is_none() {
        return false;
    }
    let is_here = |no: InvocationNo| {
        timeline.invocations.get(&no).is_some_and(|other| other.process_run == invocation.process_run)
    };
    let asked_here = timeline.requests.values().filter(|request| request.invocation.is_some_and(is_here));
    let owners: BTreeSet<_> = asked_here
        .flat_map(|request| &request.calls)
        .filter(|call| call.id.starts_with(LIMIT))
        .filter_map(|call| call.owner)
        .collect();
    let middle = invocation.began.midpoint(returned);
    // A slot's key ends with its number.
    let is_slot = |record: &&String| record.starts_with(LIMIT) && record.ends_with(|last: char| last.is_ascii_digit());
    let mut slots = timeline.records.keys().filter(is_slot);
    !slots.any(|slot| {
        let mut states = timeline.record_between(slot, invocation.began, middle).flatten();
        states.any(|state| state.is_busy_at(middle) && owners.contains(&state.owner))
    })
}

/// A message that was received less often, and ran in the invocation though not in its first turns: those may be
/// started by the answers that come first. Nor for over a third of the time: what handlers take is learned, and one that
/// takes much longer than those before it can take the last turn of a suspect (seed 11070610).
fn overtaken_by<'a>(
    timeline: &'a Timeline<'_>,
    no: InvocationNo,
    invocation: &Invocation,
    (id, receives): (&str, u32),
) -> Option<&'a str> {
    // Consumers have slots of their own.
    let consumer = |key| timeline.scenario.consumer_of(key);
    let own = timeline.spec(id).map(|spec| consumer(spec.key));
    let beside = |run: &&Run| run.invocation == no && Some(consumer(run.key)) == own;
    let mut runs: Vec<&Run> = timeline.runs.values().filter(beside).collect();
    runs.sort_by_key(|run| run.start);
    let fewer = |run: &&&Run| {
        let theirs = invocation.batch.iter().find(|delivered| delivered.id == run.message_id);
        let took = run.end.map_or(u64::MAX, |(end, _)| end - run.start);
        theirs.is_some_and(|theirs| theirs.receives < receives) && took <= (invocation.ends - invocation.began) / 3
    };
    runs.iter().skip(timeline.scenario.consumer.concurrency).find(fewer).map(|run| run.message_id.as_str())
}
