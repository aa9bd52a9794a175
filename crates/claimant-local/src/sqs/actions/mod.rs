//! What each action does, between the JSON of its request and the JSON of its answer.

mod batches;
mod messages;
mod moves;
mod parameters;
mod queues;

pub(super) use messages::look;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::fault::Fault;
use super::service::Sqs;
use super::wire::{from_json, to_json};

impl Sqs {
    /// Sends a message as the JSON of a `SendMessage` asks.
    ///
    /// # Errors
    ///
    /// If it is no such request, the queue does not exist, or SQS would refuse the message: the code and the message of that.
    pub(crate) fn send_as_asked(&self, request: &[u8]) -> Result<(), (&'static str, String)> {
        let sent = from_json(request).and_then(|request| messages::send(self, request, None));
        sent.map(drop).map_err(|fault| (fault.code.query_code(), fault.message))
    }
}

/// A request as it came.
pub(super) struct Call<'a> {
    pub(super) action: &'a str,
    /// The request's own trace header.
    pub(super) trace: Option<&'a str>,
    pub(super) body: &'a [u8],
}

/// Performs one action; returns the JSON of its answer. `closing` turns true, or loses its sender, when the server stops.
pub(super) async fn perform(sqs: &Sqs, closing: watch::Receiver<bool>, call: Call<'_>) -> Result<Vec<u8>, Fault> {
    let Call { action, trace, body } = call;
    match action {
        "CancelMessageMoveTask" => with(sqs, body, moves::cancel),
        "ChangeMessageVisibility" => with(sqs, body, messages::change_visibility),
        "ChangeMessageVisibilityBatch" => with(sqs, body, batches::change_visibility),
        "CreateQueue" => with(sqs, body, queues::create),
        "DeleteMessage" => with(sqs, body, messages::delete),
        "DeleteMessageBatch" => with(sqs, body, batches::delete),
        "DeleteQueue" => with(sqs, body, queues::delete),
        "GetQueueAttributes" => with(sqs, body, queues::get_attributes),
        "GetQueueUrl" => with(sqs, body, queues::get_url),
        "ListDeadLetterSourceQueues" => with(sqs, body, queues::list_sources),
        "ListMessageMoveTasks" => with(sqs, body, moves::list),
        "ListQueueTags" => with(sqs, body, queues::list_tags),
        "ListQueues" => with(sqs, body, queues::list),
        "PurgeQueue" => with(sqs, body, queues::purge),
        "ReceiveMessage" => Ok(to_json(&messages::receive(sqs, closing, from_json(body)?).await?)),
        "SendMessage" => with(sqs, body, |sqs, request| messages::send(sqs, request, trace)),
        "SendMessageBatch" => with(sqs, body, |sqs, request| batches::send(sqs, request, trace)),
        "SetQueueAttributes" => with(sqs, body, queues::set_attributes),
        "StartMessageMoveTask" => with(sqs, body, moves::start),
        "TagQueue" => with(sqs, body, queues::tag),
        "UntagQueue" => with(sqs, body, queues::untag),
        other => Err(Fault::not_imitated(&format!("the action {other}"))),
    }
}

fn with<Q: DeserializeOwned, A: Serialize>(
    sqs: &Sqs,
    body: &[u8],
    action: impl FnOnce(&Sqs, Q) -> Result<A, Fault>,
) -> Result<Vec<u8>, Fault> {
    Ok(to_json(&action(sqs, from_json(body)?)?))
}
