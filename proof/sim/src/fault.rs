//! What goes wrong in a scenario: faults, and the fates of requests.

use serde::{Deserialize, Serialize};

/// What goes wrong. Requests, invocations and so on are counted from 0 over the whole run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fault {
    /// With one request to the store.
    Store {
        /// Which.
        nth: u32,
        /// What happens to it.
        fate: Fate,
    },
    /// Of one request to the store that reads many records, some keys are left for want of capacity.
    Read {
        /// Which of these.
        nth: u32,
        /// Which keys, by the bits.
        unread: u32,
    },
    /// With one request of the function to the queue.
    Queue {
        /// Which.
        nth: u32,
        /// What happens to it.
        fate: Fate,
    },
    /// With every request to the store for a while.
    Outage {
        /// From when.
        from_ms: u64,
        /// For how long.
        for_ms: u64,
        /// What happens to them.
        fate: Fate,
    },
    /// What the handlers call is away for a while: each run that begins fails.
    Away {
        /// From when.
        from_ms: u64,
        /// For how long.
        for_ms: u64,
    },
    /// With one request to Lambda's API or EventBridge Scheduler about the event source mapping.
    Intake {
        /// Which.
        nth: u32,
        /// What happens to it; throttled, it is refused for want of a permission.
        fate: Fate,
    },
    /// The process is killed when it makes one of these requests, which is under way then.
    KillAtIntake {
        /// Which.
        nth: u32,
    },
    /// The process is stopped when it makes one of these requests, and goes on later.
    FreezeAtIntake {
        /// Which.
        nth: u32,
        /// For how long.
        for_ms: u64,
    },
    /// With one payload that is fetched.
    Fetch {
        /// Which.
        nth: u32,
        /// What happens to the request.
        fate: Fate,
    },
    /// The process of an invocation is killed before its future is polled once more.
    Kill {
        /// Which invocation.
        invocation: u32,
        /// Before which poll.
        poll: u32,
    },
    /// The process of an invocation is killed so long after it began.
    KillAfter {
        /// Which invocation.
        invocation: u32,
        /// How long after.
        after_ms: u64,
    },
    /// The process of an invocation is stopped before a poll, and goes on later. If it outlasts its deadline, Lambda gives
    /// up on the invocation, but the process lives on.
    Freeze {
        /// Which invocation.
        invocation: u32,
        /// Before which poll.
        poll: u32,
        /// For how long.
        for_ms: u64,
    },
    /// The process is stopped when the invocation has returned, until the next one.
    FreezeIdle {
        /// Which invocation.
        invocation: u32,
    },
    /// All threads for handlers are blocked by the handlers of this invocation, for so long after they began.
    Block {
        /// Which invocation.
        invocation: u32,
        /// How long.
        for_ms: u64,
    },
    /// The response does not arrive: nothing is deleted.
    LoseReport {
        /// Which invocation.
        invocation: u32,
    },
    /// One record of the event has no message id.
    Nameless {
        /// Which invocation.
        invocation: u32,
    },
    /// A deletion has no effect.
    LoseDelete {
        /// Which deletion.
        nth: u32,
    },
    /// A message is shown again while it is in flight.
    ShowAgain {
        /// Which delivery.
        nth: u32,
    },
    /// A message is twice in its batch.
    TwiceInBatch {
        /// Which delivery.
        nth: u32,
    },
    /// A process's clock jumps.
    Jump {
        /// When.
        at_ms: u64,
        /// Which process.
        process: usize,
        /// By how much.
        by_ms: i64,
    },
    /// A process is told to end (SIGTERM), and does.
    Terminate {
        /// When.
        at_ms: u64,
        /// Which process.
        process: usize,
    },
    /// DynamoDB deletes the records whose window ended.
    Expire {
        /// When.
        at_ms: u64,
    },
    /// With every request to the store from the moment of an effect on, for a while: those that would complete it among them, outside of
    /// transactions.
    OutageAfterEffect {
        /// Which effect, counted from 0 over the whole run.
        nth: u32,
        /// For how long.
        for_ms: u64,
        /// What happens to them.
        fate: Fate,
    },
    /// An operator acts on a key, by the operators' own library and without force.
    Operate {
        /// When.
        at_ms: u64,
        /// Whose key.
        key: usize,
        /// What is done.
        act: Act,
        /// For how long the operator watches at most, until the key needs one: it is abandoned, parked or rejected.
        watch_ms: u64,
        /// For how long the operator hesitates between reading and writing.
        pause_ms: u64,
        /// Whether the operator's process dies then.
        dies: bool,
    },
    /// An operator moves all dead letters back, whatever else goes on.
    Redrive {
        /// When.
        at_ms: u64,
    },
    /// The function is deployed anew, with another fingerprint rule: its processes get no more invocations.
    Deploy {
        /// When.
        at_ms: u64,
    },
}

/// What an operator does to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// Lets it run again.
    Release,
    /// The same, and its attempts begin anew.
    Reset,
    /// Ends its window.
    Forget,
    /// Says that its work is done.
    Resolve,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It does not arrive, and the sender is told.
    Lost,
    /// It does not arrive, without an error.
    Silence,
    /// It arrives; its answer is lost, and the sender is told.
    AnswerLost,
    /// It arrives; its answer is lost, without an error.
    AnswerSilence,
    /// It arrives so late, whether its sender still lives or not.
    Late(u64),
    /// Its answer takes so long.
    Slow(u64),
    /// It is refused for want of capacity.
    Throttled,
    /// Of a request for many, these (by the bits) are refused for want of capacity; to the queue, too.
    PartlyThrottled(u32),
    /// It is carried out, and answered with an internal error.
    Error,
}
