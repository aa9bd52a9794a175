//! SQS on loopback: standard and FIFO queues that the AWS SDKs can use unchanged.
//!
//! | module | holds |
//! | --- | --- |
//! | `message` | what goes in and comes out: [`NewMessage`], [`Sent`], [`Received`], [`StoredMessage`] |
//! | `settings` | [`QueueSettings`], [`Redrive`] and the limits of a queue |
//! | `queued` | a message as a queue keeps it |
//! | `backlog` | the messages of one queue and who may be handed out next; pure |
//! | `dedup` | the five minutes in which a FIFO queue knows a message again; pure |
//! | `queue` | one queue: send, receive, delete, visibility, redrive; pure, time is an argument |
//! | `receipt` | receipt handles, and messages as handed out |
//! | `attributes` | queue attributes as SQS spells them: parsed, checked, written |
//! | `checks` | what a message must look like to be accepted |
//! | `notes` | what a queue writes into the [journal](crate::journal) |
//! | `account` | all queues, and what happens between two of them; `account/moves` carries out the message move tasks (`move_task`) |
//! | `service` | [`Sqs`]: the shared handle, its clock, long polling |
//! | `http` | the AWS JSON 1.0 protocol; `wire` has its shapes, `actions` what each action does |
//! | `fault` | every error SQS answers with |
//! | `md5` | digests of bodies and message attributes |
//!
//! # What is not imitated
//!
//! Refused, with an error that names it (`claimant-local/tests/local/sqs/not_imitated.rs`):
//!
//! | what | the error |
//! | --- | --- |
//! | `AddPermission`, `RemovePermission` | `UnsupportedOperation` |
//! | the query protocol (XML) of SDKs before late 2023, and of the AWS CLI and the SDK for Python before mid 2024 | `AWS.SimpleQueueService.UnsupportedOperation`, in XML |
//! | queues of another account or Region | `QueueDoesNotExist`, `InvalidAddress`, `InvalidParameterValue`, `ResourceNotFoundException` |
//!
//! Accepted, and otherwise than at AWS:
//!
//! | what | here |
//! | --- | --- |
//! | signatures, credentials | not checked |
//! | `Policy` | a JSON object is kept and shown, whatever it grants |
//! | `KmsMasterKeyId`, `KmsDataKeyReusePeriodSeconds`, `SqsManagedSseEnabled` | kept and shown as AWS shows them; nothing is encrypted |
//! | `FifoThroughputLimit`, and every other quota of requests | checked and shown; nothing is throttled |
//! | the fairness of fair queues (`MessageGroupId` on a standard queue) | the group is kept and shown; messages come by age |
//! | `DeleteMessage` on a standard queue with a receipt handle that is not the message's newest | as documented, it succeeds and deletes nothing; AWS says that it may delete |
//! | `ReceiveRequestAttemptId` | checked, without effect: a receive that is repeated returns what is visible then, and what the first one took comes back after the visibility timeout |
//! | order, duplicates and short polls of standard queues | in order, once, and no short poll misses a message; do not rely on it |
//! | `RedriveAllowPolicy` | looked at when a queue names its dead-letter queue, not at each move |
//! | changes of attributes, `PurgeQueue`, `DeleteQueue` | take effect at once; the minute until the next purge, or until the name is free, is kept |
//! | approximate numbers | exact |
//! | `StartMessageMoveTask` without `MaxNumberOfMessagesPerSecond` | moves everything before it answers; a cancellation ends a task at once |
//! | `SenderId` | the account, 000000000000 |
//!
//! What AWS answers is taken from LocalStack's AWS-validated tests and snapshots. Two answers are not seen there: to
//! `ChangeMessageVisibility` with an expired handle of a FIFO queue (here `InvalidParameterValue`, as to `DeleteMessage`), and to
//! `CancelMessageMoveTask` for a task that is over (here `ResourceNotFoundException`).

mod account;
mod actions;
mod attributes;
mod backlog;
mod checks;
mod dedup;
mod fault;
mod http;
mod md5;
mod message;
mod move_task;
mod notes;
mod queue;
mod queued;
mod receipt;
mod service;
pub(crate) mod settings;
mod wire;

pub use message::{
    AttributeValue, Counters, Deletion, Depth, InFlight, MessageAttribute, NewMessage, Received, Sent, StoredMessage,
};
pub use service::Sqs;
pub use settings::{Deduplication, DeduplicationScope, QueueSettings, Redrive, RedriveAllow, ThroughputLimit};
