//! A scenario: everything that a run is made of, as data. Drawn from a seed, shrunk, printed, and kept as a file.

use serde::{Deserialize, Serialize};

/// One run: who works, on what, and what goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// The seed that it was drawn from; also that of the delays and of the SDK's jitter.
    pub seed: u64,
    /// Who works.
    pub consumer: ConsumerSpec,
    /// Where messages come from.
    pub queue: QueueSpec,
    /// Where the consumer runs.
    pub function: FunctionSpec,
    /// What the handler does for each key, run by run.
    pub keys: Vec<Vec<Work>>,
    /// What is sent.
    pub messages: Vec<MessageSpec>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// The guarantee that the consumer chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Guarantee {
    /// A lease until the deadline.
    Leased,
    /// A lease of this many milliseconds, renewed.
    Renewed(u64),
    /// At most once.
    AtMostOnce,
    /// Effects in the transaction of the completion, under a claim.
    Transactional,
    /// The same without a claim.
    Optimistic,
}

impl Guarantee {
    /// Whether effects commit together with completions.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        matches!(self, Self::Transactional | Self::Optimistic)
    }
}

/// The consumer's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerSpec {
    /// What it promises.
    pub guarantee: Guarantee,
    /// How often a key may be claimed.
    pub attempts_max: Option<u32>,
    /// Messages at once.
    pub concurrency: usize,
    /// The handler's own time-out.
    pub timeout_ms: Option<u64>,
    /// Whether many records go in one request.
    pub batched: bool,
    /// Whether another payload of the same key is a duplicate.
    pub ignores_conflicts: bool,
    /// The deduplication window, where it is not the default.
    pub window_s: Option<u64>,
}

/// The queue's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueSpec {
    /// Whether it keeps groups in order: keys are spread over this many.
    pub fifo_groups: Option<u32>,
    /// How long a received message is hidden.
    pub visibility_s: u64,
    /// After how many receives a message goes to the dead-letter queue.
    pub max_receives: u32,
    /// The most messages in a batch.
    pub batch_max: usize,
    /// Whether the function copies rejected messages to the dead-letter queue.
    pub letters: bool,
    /// Whether the function changes visibility.
    pub changes_visibility: bool,
}

/// The function's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSpec {
    /// When Lambda ends an invocation.
    pub timeout_ms: u64,
    /// By how much the clock of each process is off; as many processes run at once as there are entries.
    pub clocks_ms: Vec<i64>,
    /// Invocations at once in each process.
    pub per_process: usize,
    /// Whether the event source mapping reports failures, where the function refuses to work without.
    pub mapping_reports: Option<bool>,
}

/// One message as its producer sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSpec {
    /// When.
    pub at_ms: u64,
    /// Which work.
    pub key: usize,
    /// Which payload of that work: two that differ are a conflict.
    pub variant: u32,
    /// What the body looks like.
    pub shape: Shape,
    /// How many of it, all alike: for the rare large batch.
    pub count: usize,
}

/// What a body looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shape {
    /// As the consumer wants it.
    Good,
    /// Not JSON.
    NotJson,
    /// JSON of another shape.
    WrongShape,
    /// Without a key.
    NoKey,
    /// Nested very deeply.
    Deep,
}

/// What one run of the handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Work {
    /// Has its effect after a while, and returns after another while.
    Good {
        /// Before the effect.
        before_ms: u64,
        /// After it.
        after_ms: u64,
    },
    /// Fails after a while.
    Fail(u64),
    /// Fails and asks to be tried again after so many seconds.
    FailFor(u64),
    /// Panics after a while.
    Panic(u64),
    /// Says that no retry can mend it.
    Permanent,
    /// Never returns.
    Hang,
    /// Has its effect, and returns a result that is too large.
    Large,
}

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
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    /// It does not arrive, and the sender is told.
    Lost,
    /// It does not arrive, and nobody says so.
    Silence,
    /// It arrives; its answer is lost, and the sender is told.
    AnswerLost,
    /// It arrives; its answer is lost, and nobody says so.
    AnswerSilence,
    /// It arrives so late, whether its sender still lives or not.
    Late(u64),
    /// Its answer takes so long.
    Slow(u64),
    /// It is refused for want of capacity.
    Throttled,
    /// Of a request for many, these (by the bits) are refused for want of capacity.
    PartlyThrottled(u32),
    /// It is carried out, and answered with an internal error.
    Error,
}

impl Scenario {
    /// By how much clocks may differ, as the consumer is told.
    pub const SKEW_MS: i64 = 1_000;

    /// Whether clocks keep within what the consumer is told.
    #[must_use]
    pub fn clocks_agree(&self) -> bool {
        let range = || self.function.clocks_ms.iter();
        let spread = range().max().zip(range().min()).map_or(0, |(max, min)| max - min);
        spread <= Self::SKEW_MS && !self.faults.iter().any(|fault| matches!(fault, Fault::Jump { .. }))
    }
}
