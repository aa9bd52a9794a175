//! A scenario: everything that a run is made of, as data. Drawn from a seed, shrunk, printed, and kept as a file.

use serde::{Deserialize, Serialize};

pub use crate::fault::{Act, Fate, Fault};
pub use crate::limited::{LimitSpec, OtherLimit};

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
    /// The handler's own timeout.
    pub timeout_ms: Option<u64>,
    /// Whether many records go in one request.
    pub batched: bool,
    /// Whether another payload of the same key is a duplicate.
    pub ignores_conflicts: bool,
    /// The deduplication window, where it is not the default.
    pub window_s: Option<u64>,
    /// Whether it has no key rule: the message id is the key.
    #[serde(default)]
    pub by_message_id: bool,
    /// How many messages a call of its batch handler gets, if it has one. Of several consumers, every other one has.
    #[serde(default)]
    pub items: Option<usize>,
    /// Whether there are several of it, each with the keys of its own kind.
    #[serde(default)]
    pub routes: Option<RoutesSpec>,
    /// For how long it waits for a busy key, if it does.
    #[serde(default)]
    pub busy_wait_ms: Option<u64>,
    /// The breaker of what its handlers call, if it has one.
    #[serde(default)]
    pub breaker: Option<BreakerSpec>,
    /// The limit of what its handlers call, if it has one.
    #[serde(default)]
    pub limit: Option<LimitSpec>,
    /// Of how many tenants its keys are, where it has a rule for that.
    #[serde(default)]
    pub tenants: Option<u32>,
}

/// A breaker's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerSpec {
    /// It opens when so many
    pub failures: u32,
    /// of so many runs have failed.
    pub of: u32,
    /// For how long it is open at first.
    pub open_for_ms: u64,
}

/// Several consumers in one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoutesSpec {
    /// How many.
    pub consumers: usize,
    /// Whether events of another kind are acknowledged, and not rejected.
    pub ignores_unknown: bool,
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
    /// Whether the function has schedules, for what is to wait longer than a queue can hide it.
    #[serde(default)]
    pub schedules: bool,
    /// Whether the function is told after how many receives a message goes to the dead-letter queue.
    #[serde(default)]
    pub tells_receives: bool,
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
    /// Whether handlers run on a real thread, which they can block for real.
    #[serde(default)]
    pub threads: bool,
    /// Whether an open breaker pauses the event source mapping.
    #[serde(default)]
    pub pauses: bool,
}

/// One message as its producer sends it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageSpec {
    /// When.
    pub at_ms: u64,
    /// Which work.
    pub key: usize,
    /// Of which works it has events besides: each with a key of its own, all in one body.
    #[serde(default)]
    pub more: Vec<usize>,
    /// Which payload of that work: two that differ are a conflict.
    pub variant: u32,
    /// What the body looks like.
    pub shape: Shape,
    /// How many of it, all alike: for the rare large batch.
    pub count: usize,
    /// Whether it has an event of a kind besides that no route takes.
    #[serde(default)]
    pub stray: bool,
    /// Whether it only points to its payload.
    #[serde(default)]
    pub large: bool,
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
    /// Of a kind that no route takes.
    Stray,
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
    /// Says that no retry can fix it.
    Permanent,
    /// Never returns.
    Hang,
    /// Has its effect, and returns a result that is too large.
    Large,
    /// Aborts its process after a while: out of memory, a stack that overflows.
    Abort(u64),
    /// Has its effect and blocks its thread for so long: for real, where handlers have one.
    Block(u64),
}

impl MessageSpec {
    /// A good message of one event.
    #[must_use]
    pub const fn good(at_ms: u64, key: usize) -> Self {
        let (variant, shape, count, stray, large) = (0, Shape::Good, 1, false, false);
        Self { at_ms, key, more: Vec::new(), variant, shape, count, stray, large }
    }

    /// The works of all events in it.
    pub fn works(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.key).chain(self.more.iter().copied())
    }
}

impl Scenario {
    /// The record of this message's work.
    #[must_use]
    pub fn record_of(&self, key: usize, message_id: &str) -> String {
        let consumer = self.consumer_name(self.consumer_of(key));
        if self.consumer.by_message_id { format!("{consumer}#{message_id}") } else { format!("{consumer}#k{key}") }
    }

    /// How many consumers there are.
    #[must_use]
    pub fn consumers(&self) -> usize {
        self.consumer.routes.map_or(1, |routes| routes.consumers)
    }

    /// Which consumer has this key. Neighbours share one, so that groups, which neighbours do not share, are for several.
    #[must_use]
    pub fn consumer_of(&self, key: usize) -> usize {
        key / 2 % self.consumers()
    }

    /// The name of this consumer.
    #[must_use]
    pub fn consumer_name(&self, number: usize) -> String {
        if self.consumer.routes.is_some() { format!("sim-{number}") } else { "sim".to_owned() }
    }

    /// Whether an event that no route takes is acknowledged.
    #[must_use]
    pub fn ignores_unknown(&self) -> bool {
        self.consumer.routes.is_some_and(|routes| routes.ignores_unknown)
    }

    /// Whether its function asks AWS for anything, by its settings. One that does not has no client of SQS, and deletes nothing.
    #[must_use]
    pub fn asks_aws(&self) -> bool {
        let asks_sqs = self.queue.changes_visibility || self.queue.letters;
        asks_sqs || self.queue.schedules || self.function.pauses || self.function.mapping_reports.is_some()
    }

    /// Whether there is nothing in this message that must be rejected, whatever else is sent.
    #[must_use]
    pub fn accepts(&self, spec: &MessageSpec) -> bool {
        match spec.shape {
            Shape::Good => !spec.stray || self.ignores_unknown(),
            Shape::Stray => self.ignores_unknown(),
            Shape::NotJson | Shape::WrongShape | Shape::NoKey | Shape::Deep => false,
        }
    }

    /// By how much clocks may differ, as the consumer is told.
    pub const SKEW_MS: i64 = 1_000;
    /// A breaker is probed after this time at most.
    const OPEN_MAX_MS: u64 = 60_000;

    /// Whether a breaker may hold messages back at some time between these: while what handlers call is away, and as long after as it can be open.
    #[must_use]
    pub fn may_hold_back(&self, from: u64, to: u64) -> bool {
        let away = |fault: &Fault| matches!(*fault, Fault::Away { from_ms, for_ms } if from_ms <= to && from <= from_ms + for_ms + Self::OPEN_MAX_MS);
        self.consumer.breaker.is_some() && self.faults.iter().any(away)
    }

    /// Whether what the handlers call is away at this time of a run.
    #[must_use]
    pub fn is_away(&self, at: u64) -> bool {
        let away = |fault: &Fault| matches!(*fault, Fault::Away { from_ms, for_ms } if (from_ms..from_ms + for_ms).contains(&at));
        self.faults.iter().any(away)
    }

    /// Whether clocks keep within what the consumer is told. An operator's is right, and goes by leases too.
    #[must_use]
    pub fn clocks_agree(&self) -> bool {
        let acts = self.faults.iter().any(|fault| matches!(fault, Fault::Operate { .. }));
        let range = || self.function.clocks_ms.iter().copied().chain(acts.then_some(0));
        let spread = range().max().zip(range().min()).map_or(0, |(max, min)| max - min);
        spread <= Self::SKEW_MS && !self.faults.iter().any(|fault| matches!(fault, Fault::Jump { .. }))
    }
}
