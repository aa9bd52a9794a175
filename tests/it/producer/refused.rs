//! What holds for each message of a request is asked once for it, and is named for what it is.

use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::future::ProvideCredentials as Provided;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{IdentityCache, ProvideCredentials};
use claimant::producer::{Producer, SendError};
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

/// Fails to provide any, in this way.
#[derive(Debug)]
struct NoCredentials(fn(&'static str) -> CredentialsError);

impl ProvideCredentials for NoCredentials {
    fn provide_credentials<'a>(&'a self) -> Provided<'a>
    where
        Self: 'a,
    {
        Provided::ready(Err((self.0)("on purpose")))
    }
}

/// It is certain of each that nothing was sent.
#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_leave_the_process_is_not_said_to_be_in_the_queue() {
    let world = World::start().await;
    let config = || world.client.config().to_builder().identity_cache(IdentityCache::no_cache());
    let without = |why| config().credentials_provider(NoCredentials(why)).build();
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    for (name, config, wanted, requests) in [
        ("no profile", without(CredentialsError::not_loaded), "Failed", 0),
        ("a wrong one", without(CredentialsError::invalid_configuration), "Refused", 0),
        ("not now", without(CredentialsError::provider_error), "Failed", 0),
        ("no connection", config().endpoint_url(format!("http://{closed}")).build(), "Failed", 5),
    ] {
        let result = Producer::new(Client::from_conf(config), world.sqs.queue_url(STANDARD)).send(outgoing("k")).await;
        let made = world.wire.take_requests().len();
        assert_eq!((words(std::slice::from_ref(&result)).as_str(), made), (wanted, requests), "{name}: {result:?}");
        assert!(result.unwrap_err().to_string().contains("no request was sent"), "{name}");
    }
    assert!(world.bodies(STANDARD).is_empty());
}
