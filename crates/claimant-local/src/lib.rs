//! A local cloud for claimant functions, on loopback only.
//!
//! | module | holds |
//! | --- | --- |
//! | [`stack`] | `template.yaml` read into queues, tables, functions and event source mappings |
//! | [`sqs`] | the SQS endpoint: standard and FIFO queues that the AWS SDKs can use |
//! | [`dynamodb`] | the embedded DynamoDB endpoint |
//! | [`lambda`] | the Lambda runtime API and the processes behind it: deadlines, timeouts, restarts |
//! | [`mapping`] | the event source mapping: receive, invoke, delete what succeeded |
//! | [`scheduler`] | the EventBridge Scheduler endpoint: one-time schedules that send messages, or switch mappings |
//! | [`mailbox`] | an SES v2 endpoint that keeps what was sent |
//! | [`gateway`] | a payment gateway that records charges instead of making them |
//! | [`journal`] | what happened in a cloud, in order, and to which message |
//! | [`faults`] | faults on purpose: processes killed, answers lost, requests refused |
//! | [`control`] | an endpoint that says what a cloud holds, and passes log lines on |
//! | [`cloud`] | all of it together, from one template |
//! | [`s3`] | an S3 endpoint that keeps objects in memory |
//! | [`stage`] | a stage for the tests of one function: its binary, tables and endpoints, without a template |
//! | [`workload`] | a sample workload, and a check of what became of it |
//! | `endpoint` | how every endpoint is served: to this machine only |
//! | `arn`, `clock`, `sync` | the one account and Region; the clock; locks of plain data |
//! | [`error`] | what can go wrong when a local cloud is set up |

mod arn;
mod clock;
pub mod cloud;
pub mod control;
pub mod dynamodb;
mod endpoint;
pub mod error;
pub mod faults;
pub mod gateway;
pub mod journal;
pub mod lambda;
pub mod mailbox;
pub mod mapping;
pub mod s3;
pub mod scheduler;
pub mod sqs;
pub mod stack;
pub mod stage;
mod sync;
pub mod workload;

pub use clock::{time_of_day, time_of_day_at};
pub use error::Error;
