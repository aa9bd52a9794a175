//! One request that sends messages, and what is known of each of them after it.

use std::time::Duration;

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry as Entry;
use aws_sdk_sqs::{Client, Config};
use claimant_aws::sqs::{Fate, fate_of};
use claimant_aws::{is_unsent, said};
use tokio::time::sleep;

use crate::aws::{failed, is_refusal, name_of_arn};

/// How often a request is tried.
const TRIES_MAX: u32 = 3;

/// The wait before the second try; then doubling. Quotas of SQS and KMS are per second.
const PAUSE_MS: u64 = 500;

/// A message that SQS has not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unconfirmed {
    /// Why.
    pub(crate) why: String,
    /// Whether it may have arrived all the same.
    pub(crate) may_have_arrived: bool,
    /// Whether the whole request was refused, and would be again.
    pub(crate) is_refused: bool,
}

/// The id that SQS confirmed a message by, or why it did not.
pub(crate) type Sent = Result<String, Unconfirmed>;

/// Sends messages in one request; returns of each, in their order, the id that SQS confirmed, or why it did not. Another try follows only
/// where the one before certainly sent nothing, or the queue is a FIFO queue, which takes each deduplication id once within five minutes: after
/// a lost answer, others would have second copies. What may have arrived is not said not to have, whatever a later try came to.
///
/// # Errors
/// When the request as a whole was refused, or had no answer: what is known of all of them.
pub(crate) async fn send(client: &Client, url: &str, entries: Vec<Entry>) -> Result<Vec<Sent>, Unconfirmed> {
    let queue = name_of_arn(url);
    let ids: Vec<String> = entries.iter().map(|entry| entry.id().to_owned()).collect();
    let request = client.send_message_batch().queue_url(url).set_entries(Some(entries));
    let takes_once = url.ends_with(".fifo");
    let (mut tried, mut may_have_arrived) = (0, false);
    loop {
        let once = Config::builder().retry_config(RetryConfig::disabled());
        let error = match request.clone().customize().config_override(once).send().await {
            Ok(answer) => {
                let of_entry = |id: &String| of_entry(&answer, id, queue);
                let seen = |none| if may_have_arrived { after_a_lost_answer(none, queue) } else { none };
                return Ok(ids.iter().map(|id| of_entry(id).map_err(seen)).collect());
            }
            Err(error) => error,
        };
        tried += 1;
        let (fate, is_unsent) = (fate_of(&error), is_unsent(&error));
        let is_lost = fate == Fate::Unknown && !is_unsent;
        may_have_arrived |= is_lost;
        if tried < TRIES_MAX && (fate == Fate::Throttled || is_unsent || is_lost && takes_once) {
            sleep(Duration::from_millis(PAUSE_MS << (tried - 1))).await;
            continue;
        }
        let what = if may_have_arrived {
            format!("it is not known whether {queue} took it")
        } else {
            format!("{queue} did not take it")
        };
        let error = failed(&what, "sqs:SendMessage", &error);
        return Err(Unconfirmed { why: error.to_string(), may_have_arrived, is_refused: is_refusal(&error) });
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
            let why = fault.message().map(said).unwrap_or_default();
            let why = format!("{queue} refuses it ({}): {why}", fault.code());
            Unconfirmed { why, may_have_arrived: false, is_refused: false }
        }
        None => {
            let why = format!("{queue} did not confirm it");
            Unconfirmed { why, may_have_arrived: true, is_refused: false }
        }
    })
}

/// Returns what is known of a message after this answer and one before it that was lost.
fn after_a_lost_answer(none: Unconfirmed, queue: &str) -> Unconfirmed {
    if none.may_have_arrived {
        return none;
    }
    let why = format!("it is not known whether {queue} took it: an earlier try had no answer, and now {}", none.why);
    Unconfirmed { why, may_have_arrived: true, ..none }
}
