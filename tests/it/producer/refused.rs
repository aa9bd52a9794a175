//! What holds for each message of a request is asked once for it, and is named for what it is.

use claimant::producer::SendError;
use claimant_tests::wire::Loss;

use super::{STANDARD, World, outgoing, words};

const DENIED: Loss = Loss::Instead(403, r#"{"__type":"AccessDenied","message":"not authorized to perform"}"#);

const ENDED: Loss = Loss::Instead(403, r#"{"__type":"ExpiredToken","message":"the token in the request is expired"}"#);

const UNKNOWN: Loss = Loss::Instead(403, r#"{"__type":"com.amazon.coral.service#UnrecognizedClientException"}"#);

/// As SQS says in its JSON protocol.
const WRONG: Loss = Loss::Instead(403, r#"{"__type":"com.amazon.coral.service#InvalidSignatureException"}"#);

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_for_each_message_is_asked_once_for_a_request() {
    let world = World::start().await;
    for (queue, loss, wanted) in [
        ("missing", None, "there is no queue with this URL"),
        ("missing.fifo", None, "there is no queue with this URL"),
        (STANDARD, Some(DENIED), "and kms:GenerateDataKey and kms:Decrypt where its key"),
        (STANDARD, Some(ENDED), "the credentials are not accepted"),
        (STANDARD, Some(UNKNOWN), "the credentials are not accepted"),
        (STANDARD, Some(WRONG), "the credentials are not accepted"),
    ] {
        world.wire.all(loss);
        let results = world.producer(queue).send_all((0..20).map(|n| outgoing(&format!("k{n}")))).await;
        let requests = world.wire.take_requests().len();
        assert_eq!((words(&results), requests), (["Refused"; 20].join(" "), 2), "{queue} {loss:?}");
        let says = |error: &SendError| error.to_string().contains(wanted);
        assert!(results.iter().all(|result| result.as_ref().is_err_and(says)), "{queue} {loss:?}");
    }
}
