//! What the processes of a run share: the store, the queue, the time, the history, and the faults to come.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use claimant_core::Timestamp;
use claimant_simulated::dynamo::{Answer, Dynamo};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::calls::{EFFECTS, LOCKS, Owners};
use crate::history::{Event, History, InvocationNo, RequestNo, RunNo};
use crate::intake_api::Intake;
use crate::mutant::Mutant;
use crate::process::Process;
use crate::reads::Earlier;
use crate::scenario::{Fate, Fault, Scenario};
use crate::sqs::Sqs;
use crate::threads::Threads;

/// The time at which every run begins, in milliseconds since the epoch.
pub(crate) const BEGIN_MS: u64 = 1_800_000_000_000;

/// Everything that the processes of a run share. Cheap to clone.
#[derive(Clone)]
pub struct World {
    /// What is run.
    pub scenario: Arc<Scenario>,
    /// What is wrong with the runtime, to see if the checker sees it.
    pub mutant: Option<Mutant>,
    /// The simulation's runtime, whose time is virtual.
    pub runtime: Handle,
    /// The threads of handlers.
    pub threads: Arc<Threads>,
    begin: Instant,
    state: Arc<Mutex<State>>,
}

/// What the store did, to be done again by another one.
#[derive(Debug)]
pub enum Served {
    /// A request and its answer.
    Request {
        /// The operation.
        operation: String,
        /// The request's body.
        body: Value,
        /// The answer's status.
        status: u16,
        /// The answer's body.
        answer: Value,
    },
    /// It deleted the lock record of this id by itself.
    Expired(String),
}

/// What changes in the course of a run.
pub struct State {
    /// The store.
    pub dynamo: Dynamo,
    earlier: Earlier,
    /// The queue.
    pub sqs: Sqs,
    /// What lets messages in.
    pub intake: Intake,
    /// What happened.
    pub history: History,
    /// Owner tokens.
    pub owners: Owners,
    /// By how much each process's clock is off.
    pub clocks_ms: Vec<i64>,
    /// The process at each place.
    pub processes: Vec<Weak<Process>>,
    /// Everything that the store did, where that is wanted.
    pub served: Option<Vec<Served>>,
    /// Whether faults still happen.
    pub faults: bool,
    /// How often the function was deployed anew.
    pub deployments: u32,
    /// When each effect was; in a transaction, with its completion.
    pub effects: Vec<u64>,
    begin: Instant,
    store_requests: RequestNo,
    queue_requests: RequestNo,
    invocations: InvocationNo,
    runs: RunNo,
    runs_of: BTreeMap<usize, usize>,
    process_runs: u32,
    deliveries: u32,
    deletions: u32,
    fetches: u32,
}

macro_rules! counted {
    ($($(#[$doc:meta])* $name:ident: $field:ident,)*) => {
        $($(#[$doc])* pub fn $name(&mut self) -> u32 {
            self.$field += 1;
            self.$field - 1
        })*
    };
}

impl State {
    counted! {
        /// The number of the next invocation.
        next_invocation: invocations,
        /// The number of the next run of the handler.
        next_run: runs,
        /// The number of the next process.
        next_process_run: process_runs,
        /// The number of the next request to the store.
        next_store_request: store_requests,
        /// The number of the next request to the queue.
        next_queue_request: queue_requests,
        /// The number of the next delivered message.
        next_delivery: deliveries,
        /// The number of the next deletion.
        next_deletion: deletions,
        /// The number of the next payload that is fetched.
        next_fetch: fetches,
    }

    /// Which run of the handler for this key is the next, from 0.
    pub fn next_run_of(&mut self, key: usize) -> usize {
        let runs = self.runs_of.entry(key).or_default();
        *runs += 1;
        *runs - 1
    }

    /// Notes that something happened now.
    pub fn note(&mut self, event: Event) {
        let at = self.now_ms();
        if let Event::Effect { .. } = event {
            self.effects.push(at);
        }
        self.history.events.push((at, event));
    }

    /// The time since the beginning.
    pub fn now_ms(&self) -> u64 {
        millis(self.begin.elapsed())
    }
}

impl World {
    /// A world in which nothing has happened yet, on the runtime that this is called in.
    #[must_use]
    pub fn new(scenario: Scenario, mutant: Option<Mutant>, threads: Arc<Threads>) -> Self {
        let begin = Instant::now();
        let queue = &scenario.queue;
        let sqs = Sqs::new(queue.fifo_groups.is_some(), queue.visibility_s * 1_000, queue.max_receives);
        let state = State {
            dynamo: Dynamo::default(),
            earlier: Earlier::default(),
            sqs,
            intake: Intake::default(),
            history: History::default(),
            owners: Owners::default(),
            clocks_ms: scenario.function.clocks_ms.clone(),
            processes: scenario.function.clocks_ms.iter().map(|_| Weak::new()).collect(),
            served: None,
            faults: true,
            deployments: 0,
            effects: Vec::new(),
            begin,
            store_requests: 0,
            queue_requests: 0,
            invocations: 0,
            runs: 0,
            runs_of: BTreeMap::new(),
            process_runs: 0,
            deliveries: 0,
            deletions: 0,
            fetches: 0,
        };
        let (scenario, state) = (Arc::new(scenario), Arc::new(Mutex::new(state)));
        Self { scenario, mutant, runtime: Handle::current(), threads, begin, state }
    }

    /// The state, for a moment.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is fine to use: the run has failed then, and its history is only shown.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something happened now.
    pub fn note(&self, event: Event) {
        self.state().note(event);
    }

    /// The time since the beginning.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        millis(self.begin.elapsed())
    }

    /// The time at a process.
    #[must_use]
    pub fn wall(&self, process: usize) -> Timestamp {
        let off = self.state().clocks_ms.get(process).copied().unwrap_or_default();
        Timestamp::from_millis((BEGIN_MS + self.now_ms()).saturating_add_signed(off))
    }

    /// The time that is right, in seconds.
    #[must_use]
    pub fn true_seconds(&self) -> u64 {
        (BEGIN_MS + self.now_ms()) / 1_000
    }

    /// A number that only the seed and these arguments decide.
    #[must_use]
    pub fn random(&self, what: u64, number: u32) -> u64 {
        fastrand::Rng::with_seed(self.scenario.seed ^ (what << 48) ^ u64::from(number)).u64(..)
    }

    /// Whether there is such a fault, and faults have not stopped.
    pub fn fault(&self, is_it: impl Fn(&Fault) -> bool) -> bool {
        self.state().faults && self.scenario.faults.iter().any(is_it)
    }

    /// What a fault says, if there is such a one, and faults have not stopped.
    pub fn fault_of<T>(&self, what: impl Fn(&Fault) -> Option<T>) -> Option<T> {
        self.state().faults.then(|| self.scenario.faults.iter().find_map(what)).flatten()
    }

    /// The process in which an invocation runs, while that lives.
    #[must_use]
    pub fn process_of(&self, invocation: InvocationNo) -> Option<Arc<Process>> {
        let state = self.state();
        let number = state.history.events.iter().rev().find_map(|(_, event)| match event {
            Event::Invoked { invocation: no, process_run, .. } if *no == invocation => Some(*process_run),
            _ => None,
        })?;
        let mut running = state.processes.iter().filter_map(Weak::upgrade);
        running.find(|process| process.process_run == number)
    }

    /// Whether what the handlers call is away.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.state().faults && self.scenario.is_away(self.now_ms())
    }

    /// What is to happen to this request.
    #[must_use]
    pub fn fate(&self, of_store: bool, request: RequestNo) -> Option<Fate> {
        if !self.state().faults {
            return None;
        }
        let now = self.now_ms();
        self.scenario.faults.iter().find_map(|fault| match *fault {
            Fault::Store { nth, fate } if of_store && nth == request => Some(fate),
            Fault::Queue { nth, fate } if !of_store && nth == request => Some(fate),
            Fault::Outage { from_ms, for_ms, fate } if of_store && (from_ms..from_ms + for_ms).contains(&now) => {
                Some(fate)
            }
            Fault::OutageAfterEffect { nth, for_ms, fate } if of_store => {
                let from_ms = self.state().effects.get(nth as usize).copied()?;
                (from_ms..from_ms + for_ms).contains(&now).then_some(fate)
            }
            _ => None,
        })
    }

    /// Carries out a request to the store, and notes what came of it.
    #[must_use]
    pub fn serve(&self, request: RequestNo, operation: &str, body: &Value) -> Answer {
        let mut state = self.state();
        let state = &mut *state;
        let mut answer = state.dynamo.call(operation, body);
        state.earlier.follow(&state.dynamo, operation, body, &mut answer);
        if let Some(served) = &mut state.served {
            let (operation, body, status) = (operation.to_owned(), body.clone(), answer.status);
            served.push(Served::Request { operation, body, status, answer: answer.body.clone() });
        }
        for change in &answer.changes {
            if change.table == EFFECTS {
                let number = |name: &str| change.after.as_ref()?.get(name)?["N"].as_str();
                let run: Option<RunNo> = number("run").and_then(|n| n.parse().ok());
                let key = number("key").and_then(|n| n.parse().ok());
                state.note(Event::Effect { run: run.unwrap_or_default(), key: key.unwrap_or_default() });
            } else {
                let before = change.before.as_ref().map(|item| state.owners.record(item));
                let after = change.after.as_ref().map(|item| state.owners.record(item));
                state.note(Event::Changed { request: Some(request), id: change.id.clone(), before, after });
            }
        }
        let calls = state.owners.calls(operation, body);
        for call in refused(operation, &answer) {
            let id = calls.get(call).map(|call| call.id.clone()).unwrap_or_default();
            let seen = state.dynamo.item(LOCKS, &id).cloned().map(|item| state.owners.record(&item));
            state.note(Event::Refused { request, call, seen });
        }
        answer
    }

    /// Deletes the records whose window is over.
    pub fn expire(&self) {
        let now_s = self.true_seconds();
        let mut state = self.state();
        let changes = state.dynamo.expire(LOCKS, now_s);
        for change in changes {
            let before = change.before.as_ref().map(|item| state.owners.record(item));
            state.served.iter_mut().for_each(|served| served.push(Served::Expired(change.id.clone())));
            state.note(Event::Changed { request: None, id: change.id, before, after: None });
        }
    }
}

/// Which of a request's calls were refused because of what the record shows.
fn refused(operation: &str, answer: &Answer) -> Vec<usize> {
    let is = |value: &Value, code: &str| value.as_str().is_some_and(|text| text.ends_with(code));
    match operation {
        "PutItem" | "UpdateItem" if is(&answer.body["__type"], "ConditionalCheckFailedException") => vec![0],
        "TransactWriteItems" if is(&answer.body["CancellationReasons"][0]["Code"], "ConditionalCheckFailed") => vec![0],
        "BatchExecuteStatement" => {
            let responses = answer.body["Responses"].as_array().map(Vec::as_slice).unwrap_or_default();
            let codes = responses.iter().enumerate().filter(|(_, response)| response.get("Error").is_some());
            codes.map(|(place, _)| place).collect()
        }
        _ => Vec::new(),
    }
}

fn millis(duration: Duration) -> u64 {
    // OK because no run lasts 500 million years.
    duration.as_millis() as u64
}
