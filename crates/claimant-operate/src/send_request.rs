//! One request that sends messages, and what is known of each of them after it.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::SdkError;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry as Entry;

use crate::aws::{failed, name_of_arn};

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

/// Sends messages in one request; returns of each, in their order, the id that SQS confirmed, or why it did not.
///
/// # Errors
/// When the request as a whole was refused, or had no answer: what is known of all of them.
pub(crate) async fn send(client: &Client, url: &str, entries: Vec<Entry>) -> Result<Vec<Sent>, Unconfirmed> {
    let queue = name_of_arn(url);
    let ids: Vec<String> = entries.iter().map(|entry| entry.id().to_owned()).collect();
    match client.send_message_batch().queue_url(url).set_entries(Some(entries)).send().await {
        Ok(answer) => Ok(ids.iter().map(|id| of_entry(&answer, id, queue)).collect()),
        Err(error) => {
            let may_have_arrived = is_unknown(&error);
            let what = if may_have_arrived {
                format!("it is not known whether {queue} took it")
            } else {
                format!("{queue} did not take it")
            };
            Err(Unconfirmed { why: failed(&what, "sqs:SendMessage", &error).to_string(), may_have_arrived })
        }
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
