//! The local cloud, part by part and whole: in one binary, since each one takes seconds to link.

#![allow(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod cloud;
mod control;
mod dynamodb;
mod faults;
mod gateway;
mod hostile;
mod lambda;
mod mailbox;
mod mapping;
mod s3;
mod sqs;
mod support;
mod templates;

#[test]
#[ignore = "the process that the other tests start as a function"]
fn function_process() {
    support::process::run();
}
