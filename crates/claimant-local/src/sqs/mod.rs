//! SQS on loopback: standard and FIFO queues that the AWS SDKs can use unchanged.
//!
//! | module | holds |
//! | --- | --- |
//! | `message` | what goes in and comes out: [`NewMessage`], [`Sent`], [`Received`], [`StoredMessage`] |
//! | `settings` | [`QueueSettings`], [`Redrive`] and the limits of a queue |
//! | `backlog` | the messages of one queue and who may be handed out next; pure |
//! | `dedup` | the five minutes in which a FIFO queue knows a message again; pure |
//! | `queue` | one queue: send, receive, delete, visibility, redrive; pure, time is an argument |
//! | `receipt` | receipt handles, and messages as handed out |
//! | `attributes` | queue attributes as SQS spells them: parsed, checked, written |
//! | `checks` | what a message must look like to be accepted |
//! | `account` | all queues, and what happens between two of them |
//! | `service` | [`Sqs`]: the shared handle, its clock, long polling |
//! | `http` | the AWS JSON 1.0 protocol; `wire` has its shapes, `actions` what each action does |
//! | `fault` | every error SQS answers with |
//! | `md5` | digests of bodies and message attributes |
//!
//! Not imitated, on purpose: IAM policies, `RedriveAllowPolicy` and encryption (stored, never applied), throttling,
//! the pauses after `DeleteQueue` and `PurgeQueue`, repeated receives by `ReceiveRequestAttemptId`, short polls that
//! miss messages, and the fairness of fair queues. Standard queues deliver in order here; do not rely on it.

mod account;
mod actions;
mod arn;
mod attributes;
mod backlog;
mod checks;
mod dedup;
mod fault;
mod http;
mod md5;
mod message;
mod queue;
mod receipt;
mod service;
mod settings;
mod wire;

pub use message::{AttributeValue, Counters, Depth, MessageAttribute, NewMessage, Received, Sent, StoredMessage};
pub use service::Sqs;
pub use settings::{DeduplicationScope, QueueSettings, Redrive, RedriveAllow, ThroughputLimit};
