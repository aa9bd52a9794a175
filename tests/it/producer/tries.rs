//! Tries are the producer's, so that it sees the answer to each.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use claimant_tests::wire::Loss;

use super::{FIFO, STANDARD, World, outgoing, words};

const TOO_MANY: Loss = Loss::Instead(400, r#"{"__type":"ThrottlingException"}"#);

/// As of a proxy. SQS may have been asked before.
const HTML: Loss = Loss::Instead(200, "<html>");

/// Whatever the code, what says "later" is tried again: the client would have done that, which no longer retries.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_would_have_retried_is_tried_again() {
    for first in [
        Loss::Instead(400, r#"{"__type":"RequestTimeout"}"#),
        Loss::Instead(408, "{}"),
        Loss::Instead(429, "{}"),
        Loss::Instead(400, r#"{"__type":"TooManyRequestsException"}"#),
        Loss::Instead(400, r#"{"__type":"RequestLimitExceeded"}"#),
        Loss::Instead(400, r#"{"__type":"SlowDown"}"#),
        Loss::Instead(302, ""),
        Loss::Instead(200, r#"{"Successful":[{"Id":"0","Mess"#),
        HTML,
    ] {
        let world = World::start().await;
        world.wire.script(&[first]);
        let results = world.producer(STANDARD).send_all([outgoing("a")]).await;
        assert_eq!(
            (words(&results), world.wire.take_requests().len()),
            ("sent".to_owned(), 2),
            "{first:?} {results:?}"
        );
    }
}

/// A client of one's own retries unless told otherwise: of what it asked for, only the last answer would be seen.
#[tokio::test(flavor = "multi_thread")]
async fn what_may_be_in_the_queue_is_unknown_whatever_the_client_retries() {
    for (queue, first, kind, queued) in [
        (STANDARD, Loss::Answer, "Unknown", "a"),
        (FIFO, Loss::Answer, "Unknown", "a"),
        (STANDARD, HTML, "Unknown", ""),
        (FIFO, HTML, "Unknown", ""),
        (STANDARD, TOO_MANY, "Failed", ""),
    ] {
        let mut world = World::start().await;
        let retries = RetryConfig::standard().with_initial_backoff(Duration::from_millis(1));
        world.client = Client::from_conf(world.client.config().to_builder().retry_config(retries).build());
        world.wire.script(&[&[first][..], &[TOO_MANY; 14]].concat());
        let results = world.producer(queue).send_all([outgoing("a")]).await;
        assert_eq!((words(&results), world.wire.take_requests().len()), (kind.to_owned(), 5), "{queue} {results:?}");
        assert_eq!(world.bodies(queue).join(" "), queued, "{queue}");
    }
}
