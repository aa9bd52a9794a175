//! One request that sends messages, and what is known of each of them after it.

use std::time::Duration;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry as Entry;
use aws_sdk_sqs::{Client, Config};
use claimant_aws::is_unsent;
use tokio::time::sleep;

use crate::aws::{failed, name_of_arn};

/// How often a request is tried.
const TRIES_MAX: u32 = 3;

/// Half of the wait before the second try; then doubling.
const PAUSE_MS: u64 = 50;

/// A message that SQS has not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unconfirmed {
    /// Why.
    pub(crate) why: String,
    /// Whether it may have arrived all the same.
    pub(crate) may_have_arrived: bool,
}

/// The id that SQS confirmed a message by, or why it did not.
pub(crate) type Sent = Result<String, Unconfirmed>;

/// Sends messages in one request; returns of each, in their order, the id that SQS confirmed, or why it did not. Another try follows only
/// where the one before certainly sent nothing: after a lost answer it would make second copies, and what it came to would hide that.
///
/// # Errors
/// When the request as a whole was refused, or had no answer: what is known of all of them.
pub(crate) async fn send(client: &Client, url: &str, entries: Vec<Entry>) -> Result<Vec<Sent>, Unconfirmed> {
    let queue = name_of_arn(url);
    let ids: Vec<String> = entries.iter().map(|entry| entry.id().to_owned()).collect();
    let request = client.send_message_batch().queue_url(url).set_entries(Some(entries));
    let mut tried = 0;
    loop {
        let once = Config::builder().retry_config(RetryConfig::disabled());
        let error = match request.clone().customize().config_override(once).send().await {
            Ok(answer) => return Ok(ids.iter().map(|id| of_entry(&answer, id, queue)).collect()),
            Err(error) => error,
        };
        tried += 1;
        if tried < TRIES_MAX && (is_throttled(&error) || is_unsent(&error)) {
            sleep(Duration::from_millis(PAUSE_MS << tried)).await;
            continue;
        }
        let may_have_arrived = is_unknown(&error);
        let what = if may_have_arrived {
            format!("it is not known whether {queue} took it")
        } else {
            format!("{queue} did not take it")
        };
        return Err(Unconfirmed { why: failed(&what, "sqs:SendMessage", &error).to_string(), may_have_arrived });
    }
}

/// Returns what an answer says of the entry of this id.
fn of_entry(answer: &SendMessageBatchOutput, id: &str, queue: &str) -> Sent {
    let sent = answer.successful().iter().find(|sent| sent.id() == id && !sent.message_id().is_empty());
    if let Some(sent) = sent {
        return Ok(sent.message_id().to_owned());
    }
    Err(match answer.failed().iter().find(|fault| fault.id() == id) {
        Some(fault) => {
            let why = fault.message().unwrap_or_default();
            Unconfirmed { why: format!("{queue} refuses it ({}): {why}", fault.code()), may_have_arrived: false }
        }
        None => Unconfirmed { why: format!("{queue} did not confirm it"), may_have_arrived: true },
    })
}

/// Returns whether what was asked for may have been done: no answer came, or one of a service that failed on its way.
pub(crate) fn is_unknown<E>(error: &SdkError<E>) -> bool {
    match error {
        SdkError::ConstructionFailure(_) => false,
        SdkError::ServiceError(answer) => answer.raw().status().is_server_error(),
        _ => true,
    }
}

/// Returns whether SQS takes no more for now.
fn is_throttled<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    error.as_service_error().and_then(ProvideErrorMetadata::code).is_some_and(|code| code.contains("Throttl"))
}
