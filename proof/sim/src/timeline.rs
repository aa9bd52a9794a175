//! The history told by its entities: messages, invocations, runs, requests, records, processes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::entities::{Failures, Invocation, ProcessRun, Request, Run};
use crate::history::{Event, History, InvocationNo, Record, RequestNo, RunNo};
use crate::scenario::{Fate, MessageSpec, Scenario};

/// Everything that happened, by entity.
#[derive(Debug)]
pub struct Timeline<'a> {
    /// What was planned.
    pub scenario: &'a Scenario,
    /// What happened, in order.
    pub history: &'a History,
    /// Invocations.
    pub invocations: BTreeMap<InvocationNo, Invocation>,
    /// Runs.
    pub runs: BTreeMap<RunNo, Run>,
    /// Requests to the store.
    pub requests: BTreeMap<RequestNo, Request>,
    /// Processes.
    pub process_runs: BTreeMap<u32, ProcessRun>,
    /// Which message of the scenario each id stands for.
    specs: BTreeMap<String, usize>,
    /// What each record was from when on.
    pub records: BTreeMap<String, Vec<(u64, Option<Record>)>>,
    /// When whole copies of each message were put into the dead-letter queue.
    pub letters: BTreeMap<String, Vec<u64>>,
    /// When schedules of each message were made.
    pub schedules: BTreeMap<String, Vec<u64>>,
    /// Ids that are in the dead-letter queue at the end.
    pub dead: BTreeSet<String>,
}

impl Invocation {
    /// When it was over, if it was: it returned, or its process ended.
    #[must_use]
    pub fn over(&self, timeline: &Timeline<'_>) -> u64 {
        let died = timeline
            .process_runs
            .get(&self.process_run)
            .and_then(|process_run| process_run.died)
            .map_or(u64::MAX, |(at, _)| at);
        self.returned.as_ref().map_or(u64::MAX, |(at, _)| *at).min(died)
    }
}

impl<'a> Timeline<'a> {
    /// The timeline of this history.
    #[must_use]
    pub fn of(scenario: &'a Scenario, history: &'a History) -> Self {
        let mut timeline = Self {
            scenario,
            history,
            invocations: BTreeMap::new(),
            runs: BTreeMap::new(),
            requests: BTreeMap::new(),
            process_runs: BTreeMap::new(),
            specs: BTreeMap::new(),
            records: BTreeMap::new(),
            letters: BTreeMap::new(),
            schedules: BTreeMap::new(),
            dead: BTreeSet::new(),
        };
        for (at, event) in &history.events {
            timeline.add_requests(*at, event);
            timeline.add_invocations(*at, event);
            timeline.add_messages(*at, event);
        }
        timeline
    }

    /// What the message of this id is.
    #[must_use]
    pub fn spec(&self, id: &str) -> Option<&'a MessageSpec> {
        self.scenario.messages.get(*self.specs.get(id)?)
    }

    /// What the record was at each moment from `from` to `to`, in order.
    pub fn record_between(&self, id: &str, from: u64, to: u64) -> impl Iterator<Item = Option<&Record>> {
        let states = self.records.get(id).map_or(&[][..], Vec::as_slice);
        let ends = states.iter().skip(1).map(|(at, _)| *at).chain([u64::MAX]);
        let lived = states.iter().zip(ends).filter(move |((start, _), end)| *start <= to && *end >= from);
        lived.map(|((_, record), _)| record.as_ref())
    }

    /// Whether an operator has changed this record, and let parked work run again perhaps.
    #[must_use]
    pub fn is_operated(&self, record: &str) -> bool {
        let changed = |request: &&Request| request.changed.iter().any(|(id, _, _)| id == record);
        self.requests.values().filter(|request| request.of_operator).any(|request| changed(&request))
    }

    /// Whether the process was stopped at some time between these.
    #[must_use]
    pub fn was_frozen(&self, process_run: u32, from: u64, to: u64) -> bool {
        let frozen = self.process_runs.get(&process_run).map_or(&[][..], |process_run| process_run.frozen.as_slice());
        frozen.iter().any(|(start, end)| *start <= to && *end >= from)
    }

    /// Whether a handler blocked a thread of the process at some time between these.
    #[must_use]
    pub fn was_blocked(&self, process_run: u32, from: u64, to: u64) -> bool {
        let blocked = self.process_runs.get(&process_run).map_or(&[][..], |process_run| process_run.blocked.as_slice());
        blocked.iter().any(|(start, end)| *start <= to && *end >= from)
    }

    fn add_requests(&mut self, at: u64, event: &Event) {
        match event {
            Event::Asked { request, invocation, operation, calls, fate, of_operator } => {
                let (operation, calls) = (operation.clone(), calls.clone());
                self.disturb(*invocation, *fate);
                self.requests.insert(
                    *request,
                    Request {
                        invocation: *invocation,
                        asked: at,
                        operation,
                        calls,
                        fate: *fate,
                        of_operator: *of_operator,
                        arrived: None,
                        answered: None,
                        changed: Vec::new(),
                        refused: Vec::new(),
                    },
                );
            }
            Event::QueueAsked { invocation, fate, .. } | Event::FetchAsked { invocation, fate } => {
                self.disturb(*invocation, *fate);
            }
            Event::Changed { request, id, before, after } => {
                let states = self.records.entry(id.clone()).or_default();
                states.push((at, after.clone()));
                if let Some(request) = request.and_then(|request| self.requests.get_mut(&request)) {
                    request.changed.push((id.clone(), before.clone(), after.clone()));
                }
            }
            Event::Arrived { request, abandoned } => {
                self.requests.entry(*request).and_modify(|request| request.arrived = Some((at, *abandoned)));
            }
            Event::Answered { request, good } => {
                self.requests.entry(*request).and_modify(|request| request.answered = Some((at, *good)));
            }
            Event::Refused { request, call, seen } => {
                self.requests.entry(*request).and_modify(|request| request.refused.push((*call, seen.clone())));
            }
            _ => {}
        }
    }

    fn disturb(&mut self, invocation: Option<InvocationNo>, fate: Option<Fate>) {
        if let Some(invocation) = invocation.and_then(|no| self.invocations.get_mut(&no)) {
            invocation.disturbed += usize::from(fate.is_some());
        }
    }

    fn add_invocations(&mut self, at: u64, event: &Event) {
        match event {
            Event::Invoked { invocation, process_run, process, batch, ends_ms } => {
                self.process_runs.entry(*process_run).or_default().process = *process;
                let (process_run, batch) = (*process_run, batch.clone());
                let (runs, returned, timed_out, report_lost, disturbed) = (HashMap::new(), None, false, false, 0);
                let told = Invocation {
                    process_run,
                    batch,
                    began: at,
                    ends: *ends_ms,
                    runs,
                    returned,
                    timed_out,
                    report_lost,
                    disturbed,
                };
                self.invocations.insert(*invocation, told);
            }
            Event::Returned { invocation, failures } => {
                let failures = failures.as_deref().map(Failures::new);
                self.invocations.entry(*invocation).and_modify(|i| i.returned = Some((at, failures)));
            }
            Event::TimedOut { invocation } => {
                self.invocations.entry(*invocation).and_modify(|i| i.timed_out = true);
            }
            Event::ReportLost { invocation } => {
                self.invocations.entry(*invocation).and_modify(|i| i.report_lost = true);
            }
            Event::RunStarted { run, invocation, process_run, key, message_id, fence, work, attempt, .. } => {
                let told = Run {
                    invocation: *invocation,
                    process_run: *process_run,
                    key: *key,
                    message_id: message_id.clone(),
                    fence: *fence,
                    work: *work,
                    attempt: *attempt,
                    start: at,
                    end: None,
                    effects: Vec::new(),
                };
                self.runs.insert(*run, told);
                if let Some(invocation) = self.invocations.get_mut(invocation) {
                    invocation.runs.entry(message_id.clone()).or_insert(*run);
                }
            }
            Event::Effect { run, .. } => {
                self.runs.entry(*run).and_modify(|run| run.effects.push(at));
            }
            Event::RunEnded { run, end } => {
                self.runs.entry(*run).and_modify(|run| run.end = Some((at, *end)));
            }
            Event::Died { process_run, why } => {
                self.process_runs.entry(*process_run).or_default().died = Some((at, why))
            }
            Event::Frozen { process_run, .. } => {
                self.process_runs.entry(*process_run).or_default().frozen.push((at, u64::MAX))
            }
            Event::Thawed { process_run } => {
                if let Some(last) = self.process_runs.entry(*process_run).or_default().frozen.last_mut() {
                    last.1 = at;
                }
            }
            Event::Blocked { process_run } => {
                self.process_runs.entry(*process_run).or_default().blocked.push((at, u64::MAX))
            }
            Event::Unblocked { process_run } => {
                // Which of several it is does not matter: all count.
                let blocked = self.process_runs.entry(*process_run).or_default().blocked.iter_mut();
                blocked.filter(|(_, end)| *end == u64::MAX).take(1).for_each(|(_, end)| *end = at);
            }
            _ => {}
        }
    }

    fn add_messages(&mut self, at: u64, event: &Event) {
        let same = |timeline: &Self, id: &String| timeline.specs.get(id).copied();
        match event {
            Event::Sent { id, spec } => {
                self.specs.insert(id.clone(), *spec);
            }
            Event::Lettered { id, copy, whole } => {
                let spec = same(self, id);
                self.specs.extend(spec.map(|spec| (copy.clone(), spec)));
                if *whole {
                    self.letters.entry(id.clone()).or_default().push(at);
                }
                self.dead.insert(copy.clone());
            }
            Event::Exhausted { id } => {
                self.dead.insert(id.clone());
            }
            Event::Scheduled { id, .. } => self.schedules.entry(id.clone()).or_default().push(at),
            Event::SentAgain { id, again, .. } => {
                let spec = same(self, id);
                self.specs.extend(spec.map(|spec| (again.clone(), spec)));
            }
            Event::Redriven { id, again } => {
                let spec = same(self, id);
                self.specs.extend(spec.map(|spec| (again.clone(), spec)));
                self.dead.remove(id);
            }
            _ => {}
        }
    }
}
