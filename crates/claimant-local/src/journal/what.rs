//! What can happen.

use serde::Serialize;

use super::text::{Text, Texts};

/// What happened. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// The queue accepted a message.
    Sent {
        /// From when it can be received: later than the event where it was sent with a delay.
        visible_at_ms: u64,
        /// Its message group.
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<Text>,
        /// The message that it is a copy of: claimant copied that one to the dead-letter queue, or sent it back from there.
        #[serde(skip_serializing_if = "Option::is_none")]
        copy_of: Option<Text>,
        /// Whether it was sent back.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        redriven: bool,
    },
    /// A FIFO queue recognised a repeat within its deduplication interval, and kept the first only.
    Deduplicated,
    /// The message was received.
    Received {
        /// How often it has been received so far, in all queues it was in.
        count: u32,
        /// Until when it stays hidden unless that is changed.
        hidden_until_ms: u64,
    },
    /// Its visibility timeout was changed.
    Hidden {
        /// Until when it stays hidden now; the time of the event where it is visible at once.
        until_ms: u64,
    },
    /// It was deleted.
    Deleted,
    /// SQS moved it here, to the dead-letter queue, since it was received too often.
    DeadLettered {
        /// The queue that it was in.
        from: Text,
        /// How often it had been received there.
        receives: u32,
    },
    /// A message move task sent it on from a dead-letter queue: to SQS that is a new message.
    Redriven {
        /// The dead-letter queue.
        from: Text,
        /// The id that the message had there.
        was: Text,
        /// Its message group.
        #[serde(skip_serializing_if = "Option::is_none")]
        group: Option<Text>,
    },
    /// The queue dropped it: it was older than the retention period.
    Expired,
    /// It was dropped with all messages of the queue, by a purge.
    Purged,
    /// It was dropped with its queue, which was deleted.
    QueueDeleted,
    /// The event source mapping deleted it without an invocation: it fits no filter.
    Filtered,

    /// A process of the function was started.
    ProcessStarted,
    /// It ended.
    ProcessEnded {
        /// Why.
        why: ProcessEnd,
        /// Its exit status or signal, as the system says it.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<Text>,
    },
    /// A fault killed a process.
    ProcessKilled,
    /// A process was stopped where it was, by a fault.
    ProcessFrozen,
    /// It goes on.
    ProcessResumed,
    /// A process took a batch.
    InvocationBegan {
        /// The messages, in their order.
        messages: Texts,
        /// Until when it has time.
        deadline_ms: u64,
    },
    /// The invocation ended.
    InvocationEnded {
        /// The messages that it had.
        messages: Texts,
        /// How.
        how: InvocationEnd,
        /// More of it: the type of the error that the function reported, or the status of its process.
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<Text>,
    },
    /// The event source mapping applied the function's answer.
    Reported {
        /// The messages that it deletes.
        succeeded: Texts,
        /// The messages that it leaves in the queue, to be delivered again.
        failed: Texts,
        /// Why it leaves all of them, where the answer was none or not valid.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<Text>,
    },

    /// The function claimed a message's key: its line `message claimed`.
    Claimed(Box<Claimed>),
    /// The function has done with a message: its line `message done`.
    Done(Box<Done>),
    /// Another line of the function's output.
    Line {
        /// The line's level; lines that name none are `info`.
        level: Level,
        /// The line.
        text: Box<str>,
    },

    /// A fault met a request to the table, about records that the messages asked for.
    TableFault {
        /// What it did: `lose`, `throttle`, `cut`.
        did: &'static str,
        /// What was asked: `claims`, `settlements`.
        of: &'static str,
        /// The messages.
        messages: Texts,
    },
    /// The mailbox answered a request to send.
    Mail {
        /// The idempotency key among the mail's headers.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<Text>,
        /// What came of it: `accepted`, `refused`, `rejected`, `answer_lost`.
        answer: &'static str,
    },
    /// The gateway answered a request to charge.
    Charge {
        /// Its idempotency key.
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<Text>,
        /// What came of it: `charged`, `repeated`, `declined`, `unavailable`, `answer_lost`, `key_reused`, `full`, `refused`.
        answer: &'static str,
    },
    /// An object in S3 was written, read or deleted.
    Object {
        /// The name of the bucket, and of the object.
        object: Text,
        /// The request: `PUT`, `GET`, `DELETE`.
        request: &'static str,
    },
    /// A schedule was created.
    Scheduled {
        /// Its name.
        schedule: Text,
        /// When it is due.
        due_ms: u64,
    },
    /// A schedule sent its message, whose event comes next.
    ScheduleRan {
        /// Its name.
        schedule: Text,
    },

    /// A fault was switched on.
    FaultBegan {
        /// The fault's number.
        fault: u64,
        /// What it does.
        does: Text,
    },
    /// A fault acted.
    FaultActed {
        /// The fault's number.
        fault: u64,
    },
    /// A fault ended.
    FaultEnded {
        /// The fault's number.
        fault: u64,
    },
}

/// What a function's line says of a claim that it got.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claimed {
    /// The consumer.
    pub consumer: Text,
    /// The first bytes of the owner token, in hexadecimal.
    pub owner: Text,
    /// The fencing token.
    pub fence: u64,
    /// Until when the claim is honoured.
    pub lease_until_ms: u64,
    /// Which run of the handler for this key it is for, from 1.
    pub attempt: u32,
    /// Whether an earlier owner had left the key in progress.
    pub taken_over: bool,
}

/// What a function's line says of a message that it is done with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Done {
    /// The consumer.
    pub consumer: Text,
    /// What became of the message: a word of the outcomes.
    pub outcome: Text,
    /// Whether the dead-letter queue has confirmed a copy.
    pub dead_lettered: bool,
    /// How often the message was received, with this time.
    pub receive: Option<u32>,
    /// How many events the message holds.
    pub events: u32,
    /// Until when another owner holds the key at most, where that is why.
    pub busy_until_ms: Option<u64>,
    /// How long the handler ran, in milliseconds.
    pub handle_ms: Option<f64>,
}

/// Why a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessEnd {
    /// It ended by itself, or someone outside of the cloud killed it.
    Died,
    /// The cloud killed it, since it did not answer in time.
    TimedOut,
    /// The cloud killed it, since it was to be replaced, or the cloud stops.
    Stopped,
    /// A fault killed it.
    Killed,
}

/// How an invocation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InvocationEnd {
    /// The function answered.
    Returned,
    /// The function reported an error.
    Failed,
    /// It did not answer in time, and its process was killed.
    TimedOut,
    /// Its process ended.
    Crashed,
}

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// `TRACE` or `DEBUG`.
    Debug,
    /// `INFO`, or none.
    Info,
    /// `WARN`.
    Warn,
    /// `ERROR`.
    Error,
}
