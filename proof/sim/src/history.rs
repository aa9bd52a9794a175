//! What happened in a run, in order: what the checker looks at, and the trace that is printed.

use std::fmt;

use crate::scenario::{Act, Fate, Scenario, Work};
use crate::world::BEGIN_MS;

/// One invocation of the function, counted from 0.
pub type InvocationNo = u32;
/// One request of the function, counted from 0: those to the store and those to the queue apart.
pub type RequestNo = u32;
/// One run of the handler, counted from 0.
pub type RunNo = u32;

/// A lock record, as far as it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// `IN_PROGRESS` and so on.
    pub status: String,
    /// The owner's token, as the place at which it was first seen: tokens themselves differ from run to run.
    pub owner: u32,
    /// Claims so far.
    pub fence: u64,
    /// Attempts at its work so far, which begin anew with a window, and where another message claims rejected work.
    pub attempts: u64,
    /// End of the lease.
    pub lease_until: u64,
    /// Whose message claimed it.
    pub message_id: String,
    /// End of the window, in seconds.
    pub expires_s: u64,
}

impl Record {
    /// Whether its key is busy at this time of a run. A dead owner's is not, once its lease is over.
    #[must_use]
    pub fn is_busy_at(&self, at_ms: u64) -> bool {
        // OK because the margin is a small positive number.
        self.status == "IN_PROGRESS" && self.lease_until + Scenario::SKEW_MS as u64 >= BEGIN_MS + at_ms
    }
}

/// What a request wants of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The blind claim, single or as a statement.
    Claim,
    /// A record decided on by the protocol, in place of the one that was seen.
    Replace,
    /// A longer lease.
    Renew,
    /// An ending.
    Settle,
    /// A look.
    Read,
}

/// One part of a request to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What it wants.
    pub kind: Kind,
    /// Of which record.
    pub id: String,
    /// In whose name.
    pub owner: Option<u32>,
    /// The status that it writes, where it ends a claim.
    pub status: Option<String>,
    /// The end of the lease that it writes.
    pub lease_until: Option<u64>,
    /// The sender's time.
    pub now: Option<u64>,
}

/// How a handler's run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It returned `Ok`.
    Good,
    /// It returned an error.
    Failed,
    /// It panicked.
    Panicked,
    /// Its future was dropped.
    Dropped,
}

/// What a batch held at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The message's id.
    pub id: String,
    /// Which receive this is.
    pub receives: u32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the fields are what they are called")]
pub enum Event {
    /// The producer sent the message at this place of the scenario.
    Sent { id: String, spec: usize },
    /// A batch was handed to a process.
    Invoked { invocation: InvocationNo, process_run: u32, process: usize, batch: Vec<Delivered>, ends_ms: u64 },
    /// The function asks the store.
    Asked {
        request: RequestNo,
        invocation: Option<InvocationNo>,
        operation: String,
        calls: Vec<Call>,
        fate: Option<Fate>,
        of_operator: bool,
    },
    /// The request arrived at the store.
    Arrived { request: RequestNo, abandoned: bool },
    /// A lock record was changed; without a request, by DynamoDB itself.
    Changed { request: Option<RequestNo>, id: String, before: Option<Record>, after: Option<Record> },
    /// A condition did not hold.
    Refused { request: RequestNo, call: usize, seen: Option<Record> },
    /// The sender got an answer; `good` is whether it says that all was done.
    Answered { request: RequestNo, good: bool },
    /// The sender got an error instead, or gave up.
    Unanswered { request: RequestNo },
    /// The function asks the queue.
    QueueAsked { request: RequestNo, invocation: Option<InvocationNo>, operation: String, fate: Option<Fate> },
    /// The function fetches a payload.
    FetchAsked { invocation: Option<InvocationNo>, fate: Option<Fate> },
    /// An operator has acted on a key, or has tried to.
    Operated { id: String, act: Act, came: &'static str },
    /// The function asks Lambda's API or EventBridge Scheduler about its event source mapping.
    IntakeAsked { invocation: Option<InvocationNo>, number: u32, what: &'static str, fate: Option<Fate> },
    /// What became of the mapping: whether it is off, and how many schedules are to switch it on.
    Intake { what: &'static str, off: bool, returns: usize },
    /// A message was hidden, or not.
    Hidden { invocation: Option<InvocationNo>, id: String, for_s: u64, done: bool },
    /// A handler began.
    RunStarted {
        run: RunNo,
        invocation: InvocationNo,
        process_run: u32,
        key: usize,
        message_id: String,
        attempt: u32,
        fence: u64,
        work: Work,
        blocked: bool,
    },
    /// They are those of one call.
    Called { runs: Vec<RunNo> },
    /// It had its effect; by itself, or in a transaction that was carried out.
    Effect { run: RunNo, key: usize },
    /// It ended.
    RunEnded { run: RunNo, end: End },
    /// A handler blocks its thread.
    Blocked { process_run: u32 },
    /// It blocks it no more.
    Unblocked { process_run: u32 },
    /// A process ended.
    Died { process_run: u32, why: &'static str },
    /// A process was stopped.
    Frozen { process_run: u32, idle: bool },
    /// It goes on.
    Thawed { process_run: u32 },
    /// An invocation returned; with an error, where there is no list.
    Returned { invocation: InvocationNo, failures: Option<Vec<String>> },
    /// Lambda gave up on an invocation; its process may live on.
    TimedOut { invocation: InvocationNo },
    /// The response was lost.
    ReportLost { invocation: InvocationNo },
    /// The mapping deletes a message that was reported done, or the function one that is, before it runs a suspect.
    Deleted { invocation: InvocationNo, id: String, done: bool },
    /// A message was received too often.
    Exhausted { id: String },
    /// The function put a copy of a message into the dead-letter queue; `whole` is whether that has its body and its group.
    Lettered { id: String, copy: String, whole: bool },
    /// The function made a schedule that sends a message again at this time.
    Scheduled { invocation: Option<InvocationNo>, id: String, name: String, at_ms: u64 },
    /// There was one of its name.
    ScheduledAlready { id: String },
    /// The function asked for one without a time, or without the role or the dead-letter queue of its settings.
    ScheduledWrongly { id: String },
    /// The schedule has sent it.
    SentAgain { id: String, name: String, again: String },
    /// An operator moved a dead letter back.
    Redriven { id: String, again: String },
    /// The queue shows a message again that is in flight.
    ShownAgain { id: String },
    /// A clock jumped.
    Jumped { process: usize, by_ms: i64 },
    /// The function was deployed anew.
    Deployed,
    /// Faults stop here.
    FaultsStopped,
    /// Everything is over; what is still in the queue.
    Drained { left: Vec<String> },
}

/// Everything that happened, with its time in milliseconds since the beginning.
#[derive(Debug, Default)]
pub struct History {
    /// In order.
    pub events: Vec<(u64, Event)>,
}

impl History {
    /// A number that two runs of the same course share.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        for (at, event) in &self.events {
            // OK because hashing cannot fail.
            let _ = fmt::write(&mut hash, format_args!("{at} {event:?}"));
        }
        hash.0
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, event) in &self.events {
            let (s, ms) = (at / 1_000, at % 1_000);
            writeln!(f, "{s:>6}.{ms:03} s  {event:?}")?;
        }
        Ok(())
    }
}

/// FNV-1a: no input here is hostile.
struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}
