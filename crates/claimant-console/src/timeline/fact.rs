//! What is known to have happened to messages: the input of the timeline.

use claimant_core::Timestamp;

/// One thing that happened to one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// When.
    pub at: Timestamp,
    /// The message's id.
    pub message: String,
    /// The process in which it happened, where it happened in one.
    pub process: Option<Process>,
    /// The request id of the invocation in which it happened, where it happened in one and that is known.
    pub invocation: Option<String>,
    /// What happened.
    pub what: What,
}

/// A process of a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// The function's name.
    pub function: String,
    /// What tells it from the function's other processes, such as its process id, where that is known.
    pub id: Option<String>,
}

/// What happened to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It was sent to a queue.
    Sent {
        /// The queue.
        queue: String,
        /// Its FIFO group, if it has one.
        group: Option<String>,
        /// Until when it is delayed, if it is.
        delayed_until: Option<Timestamp>,
        /// The message that it was made from, if it is not a producer's.
        origin: Option<Origin>,
    },
    /// It was received, and hidden from other receivers.
    Received {
        /// The queue.
        queue: String,
        /// How often it was received, with this time.
        count: u32,
        /// Until when it is hidden.
        hidden_until: Timestamp,
    },
    /// It was handed to a process.
    Delivered {
        /// How many messages the batch has.
        batch: usize,
    },
    /// Its key was claimed for it.
    Claimed(Claim),
    /// Its handler had an effect, or tried to.
    Effect {
        /// What, as a clause about the handler: `sent a mail to …`.
        did: String,
        /// Whether it was refused, or its answer lost.
        refused: bool,
    },
    /// The engine has said what became of it.
    Finished(Finished),
    /// It was hidden from receivers, or shown to them.
    Hidden {
        /// Until when; not after the fact where it was shown at once.
        until: Timestamp,
    },
    /// Its batch ended without a report.
    BatchFailed(BatchEnd),
    /// The event source mapping applied its function's answer.
    Answered(Answer),
    /// A fault killed its process.
    Killed,
    /// A fault met a request to the store about its key.
    Fault {
        /// What it did to what, as a sentence's beginning.
        did: String,
        /// How often, one after the other.
        times: usize,
    },
    /// A fault stopped its process for a while.
    Frozen,
    /// Its process went on.
    Resumed,
    /// It was deleted from its queue.
    Deleted,
    /// SQS moved it to a dead-letter queue.
    Moved {
        /// The dead-letter queue.
        to: String,
    },
    /// The function copied it to a dead-letter queue.
    Copied {
        /// The dead-letter queue.
        to: String,
        /// The copy's message id.
        copy: String,
    },
    /// It was sent back from a dead-letter queue.
    Redriven {
        /// The queue that it went to.
        to: String,
        /// The id that it has there.
        copy: String,
    },
    /// Its queue kept it no longer.
    Expired,
    /// The event source mapping deletes it, since it fits no filter.
    Filtered,
    /// Its queue was emptied.
    Purged,
    /// Its queue was deleted.
    QueueDeleted,
    /// A line of a log.
    Line(Line),
}

/// What a message was made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A function copied that message to the dead-letter queue that this one is in.
    DeadLetterOf(String),
    /// That message was sent back from a dead-letter queue as this one.
    RedriveOf(String),
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// The consumer.
    pub consumer: String,
    /// The first characters of the owner token.
    pub owner: String,
    /// The fencing token.
    pub fence: u64,
    /// Which run of the handler it is for.
    pub attempt: u32,
    /// The end of its lease.
    pub lease_until: Timestamp,
    /// Whether it takes over from an owner that did not settle.
    pub taken_over: bool,
}

/// What became of a message in one receive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Finished {
    /// The outcome's word.
    pub outcome: String,
    /// The number of the receive, where the line has it.
    pub receive: Option<u32>,
    /// How many events the message holds.
    pub events: u32,
    /// Whether a copy was confirmed by the dead-letter queue.
    pub dead_lettered: bool,
    /// Until when another owner holds the key at most, where that is why.
    pub busy_until: Option<Timestamp>,
    /// How long the handler ran, in milliseconds, if it ran.
    pub handle_ms: Option<u64>,
}

impl Finished {
    /// Returns whether the work is done, or there is none to do.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.outcome.as_str(), "completed" | "duplicate" | "empty" | "ignored")
    }

    /// Returns which outcome of its events is that of a message: the lowest, and the first of equals. As in the engine, one that is to be
    /// tried again comes before one that no retry can fix, that before one that it blocks, and that before one that is done. Of several that
    /// are to be tried again the engine takes the one that waits longest, which no line tells.
    pub(crate) fn rank(&self) -> u8 {
        match self.outcome.as_str() {
            "rejected" | "conflict" | "parked" => 1,
            "blocked" => 2,
            "completed" => 3,
            "duplicate" => 4,
            "empty" | "ignored" => 5,
            _ => 0,
        }
    }

    /// Returns whether a schedule sends the message again.
    pub(super) fn is_scheduled(&self) -> bool {
        self.outcome == "scheduled"
    }

    /// Returns whether the engine reports it as done, so that it is deleted.
    pub(super) fn is_success(&self) -> bool {
        self.is_done() || self.is_scheduled() || self.dead_lettered
    }
}

/// How a batch ended without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchEnd {
    /// Its process ended, with this status.
    Died(String),
    /// It was not done at the function's timeout.
    TimedOut,
    /// Something else, in a few words.
    Failed(String),
}

/// What an event source mapping takes a message for, by its function's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is done: the mapping deletes it.
    Done,
    /// It failed: the mapping leaves it in its queue.
    Failed,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The level, in capitals, where the line has one.
    pub level: Option<String>,
    /// What it says.
    pub text: String,
    /// The reason or the error that it gives, if any.
    pub reason: Option<String>,
}
