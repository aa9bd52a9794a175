//! What each action does, between the JSON of its request and the JSON of its answer.

mod batches;
mod messages;
mod moves;
mod queues;

use std::ops::RangeInclusive;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fault::{Code, Fault};
use super::http::{Endpoint, from_json, to_json};
use super::receipt::SENDER_ID;
use super::service::Sqs;

/// Performs one action; returns the JSON of its answer. `trace` is the request's own trace header.
pub(super) async fn perform(
    endpoint: &Endpoint,
    action: &str,
    trace: Option<&str>,
    body: &[u8],
) -> Result<Vec<u8>, Fault> {
    let sqs = &endpoint.sqs;
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
        "ReceiveMessage" => Ok(to_json(&messages::receive(endpoint, from_json(body)?).await?)),
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

/// The name in a queue URL, or the name alone. The host is not looked at: a queue may be reached under several.
fn queue_name(url: &str) -> Result<&str, Fault> {
    if url.is_empty() {
        return Err(Fault::missing("QueueUrl"));
    }
    if !url.contains('/') {
        return Ok(url);
    }
    let mut segments = url.trim_end_matches('/').rsplit('/');
    match (segments.next(), segments.next()) {
        (Some(name), Some(SENDER_ID)) if !name.is_empty() => Ok(name),
        _ => Err(Fault::new(
            Code::InvalidAddress,
            format!(
                "The address {url} is not valid for this endpoint: queue URLs end in /{SENDER_ID}/<name>, and a name alone does as well."
            ),
        )),
    }
}

fn bounded(parameter: &str, value: Option<i64>, bounds: RangeInclusive<u64>) -> Result<Option<u64>, Fault> {
    let Some(value) = value else {
        return Ok(None);
    };
    let inside = u64::try_from(value).ok().filter(|value| bounds.contains(value));
    inside.map(Some).ok_or_else(|| {
        let (min, max) = bounds.into_inner();
        Fault::new(
            Code::InvalidParameterValue,
            format!(
                "Value {value} for parameter {parameter} is invalid. Reason: Must be between {min} and {max}, if provided."
            ),
        )
    })
}
