//! One request that sends messages, and what is known of each of them after it.

use std::time::Duration;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::operation::send_message_batch::{SendMessageBatchError, SendMessageBatchOutput};
use aws_sdk_sqs::types::SendMessageBatchRequestEntry as Entry;
use aws_sdk_sqs::{Client, Config};
use tokio::time::sleep;

use crate::aws::{failed, name_of_arn};

/// How often a request is tried.
const TRIES_MAX: u32 = 3;

/// The wait before the second try; then doubling.
const PAUSE_MS: u64 = 100;

/// A message that SQS has not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unconfirmed {
    /// Why.
    pub(crate) why: String,
    /// Whether it may have arrived all the same.
    pub(crate) may_have_arrived: bool,
}

/// Sends messages in one request; returns of each, in their order, the id that SQS confirmed, or why it did not. A try that had no
/// answer, or was throttled, is followed by another one; what the first may have sent is not said not to have arrived, whatever a later one came to.
///
/// # Errors
/// When the request as a whole was refused, or had no answer: what is known of all of them.
pub(crate) async fn send(
    client: &Client,
    url: &str,
    entries: Vec<Entry>,
) -> Result<Vec<Result<String, Unconfirmed>>, Unconfirmed> {
    let queue = name_of_arn(url);
    let ids: Vec<String> = entries.iter().map(|entry| entry.id().to_owned()).collect();
    let request = client.send_message_batch().queue_url(url).set_entries(Some(entries));
    let (mut tried, mut unknown) = (0, None);
    loop {
        // Of the client's retries, only the last answer would be seen.
        let once = Config::builder().retry_config(RetryConfig::disabled());
        let error = match request.clone().customize().config_override(once).send().await {
            Ok(answer) => {
                let of_entry = |id: &String| of_entry(&answer, id, queue).map_err(|why| unknown.clone().unwrap_or(why));
                return Ok(ids.iter().map(of_entry).collect());
            }
            Err(error) => error,
        };
        tried += 1;
        let again = tried < TRIES_MAX && (is_unknown(&error) || is_throttled(&error));
        let unconfirmed = unconfirmed(&error, queue);
        let known = if unconfirmed.may_have_arrived { unconfirmed } else { unknown.unwrap_or(unconfirmed) };
        if !again {
            return Err(known);
        }
        unknown = known.may_have_arrived.then_some(known);
        sleep(Duration::from_millis(PAUSE_MS << (tried - 1))).await;
    }
}

/// Returns what the error of one try says of its messages.
fn unconfirmed(error: &SdkError<SendMessageBatchError>, queue: &str) -> Unconfirmed {
    let may_have_arrived = is_unknown(error);
    let what = match may_have_arrived {
        true => format!("it is not known whether {queue} took it"),
        false => format!("{queue} did not take it"),
    };
    Unconfirmed { why: failed(&what, "sqs:SendMessage", error).to_string(), may_have_arrived }
}

/// Returns what an answer says of the entry of this id.
fn of_entry(answer: &SendMessageBatchOutput, id: &str, queue: &str) -> Result<String, Unconfirmed> {
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
