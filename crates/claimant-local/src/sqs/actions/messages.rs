//! Actions on single messages.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use tokio::sync::watch;

use super::super::checks;
use super::super::fault::{Code, Fault};
use super::super::md5;
use super::super::message::{AttributeValue, MessageAttribute, NewMessage, Received, Sent};
use super::super::receipt;
use super::super::service::Sqs;
use super::super::settings::{DELAY_MAX_S, VISIBILITY_MAX_S, WAIT_MAX_S};
use super::super::wire::{
    Attribute, Nothing, ReceiptRequest, ReceiveAnswer, ReceiveRequest, ReceivedMessage, SendAnswer, SendRequest,
};
use super::parameters::{bounded, queue_name};

const RECEIVE_MAX: u64 = 10;

/// The most bytes of bodies and attributes of one look; the last message may go beyond it.
const LOOK_MAX_BYTES: usize = 4 << 20;

/// The system attributes that a receive can ask for.
const SYSTEM_ATTRIBUTES: [&str; 11] = [
    "AWSTraceHeader",
    "All",
    "ApproximateFirstReceiveTimestamp",
    "ApproximateReceiveCount",
    "DeadLetterQueueSourceArn",
    "MessageDeduplicationId",
    "MessageGroupId",
    "SenderId",
    "SentTimestamp",
    "SequenceNumber",
    "SqsManagedSseEnabled",
];

/// Messages that were looked at, and not received. No action of SQS answers so.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(in super::super) struct LookAnswer {
    messages: Vec<LookedAt>,
    /// After which position the next page begins, unless this is the last.
    next: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct LookedAt {
    position: u64,
    /// The bytes of the whole body, of which the message may have the first only.
    body_bytes: usize,
    #[serde(flatten)]
    message: ReceivedMessage,
}

pub(super) fn send(sqs: &Sqs, request: SendRequest, trace: Option<&str>) -> Result<SendAnswer, Fault> {
    let queue = queue_name(&request.queue_url)?.to_owned();
    check_no_lists("SendMessage", &request)?;
    let message = new_message(request, trace)?;
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    Ok(send_answer(String::new(), account.send(now_ms, &queue, message)?))
}

pub(super) fn send_answer(id: String, sent: Sent) -> SendAnswer {
    SendAnswer {
        id,
        message_id: sent.message_id,
        md5_of_message_body: sent.md5_of_body,
        md5_of_message_attributes: sent.md5_of_message_attributes,
        md5_of_message_system_attributes: sent.md5_of_message_system_attributes,
        sequence_number: sent.sequence_number,
    }
}

/// Refuses lists as attributes' values in a request, or an entry of one, of this action: always the request as a whole.
pub(super) fn check_no_lists(action: &str, request: &SendRequest) -> Result<(), Fault> {
    let mut all = request.message_attributes.values().chain(request.message_system_attributes.values());
    if all.any(|attribute| !attribute.string_list_values.is_empty() || !attribute.binary_list_values.is_empty()) {
        return Err(Fault::new(
            Code::UnsupportedOperation,
            format!("Message attribute list values in {action} operation are not supported."),
        ));
    }
    Ok(())
}

/// The message of a request, or of an entry. Its own trace header beats that of the request.
pub(super) fn new_message(request: SendRequest, trace: Option<&str>) -> Result<NewMessage, Fault> {
    let attributes = request.message_attributes.into_iter();
    let attributes = attributes.map(|(name, attribute)| Ok((name.clone(), attribute_in(&name, attribute)?)));
    Ok(NewMessage {
        body: request.message_body,
        delay: bounded("DelaySeconds", request.delay_seconds, 0..=DELAY_MAX_S)?.map(Duration::from_secs),
        group_id: request.message_group_id,
        deduplication_id: request.message_deduplication_id,
        message_attributes: attributes.collect::<Result<_, Fault>>()?,
        trace_header: trace_header(request.message_system_attributes)?.or_else(|| trace.map(str::to_owned)),
    })
}

fn attribute_in(name: &str, attribute: Attribute) -> Result<MessageAttribute, Fault> {
    let invalid = |reason: &str| {
        let message = format!("The message attribute '{name}' is invalid: {reason}.");
        Fault::new(Code::InvalidParameterValue, message)
    };
    let value = match (attribute.string_value, attribute.binary_value) {
        (Some(text), None) => AttributeValue::Text(text),
        (None, Some(base64)) => {
            let bytes = STANDARD.decode(base64).map_err(|_| invalid("its BinaryValue is not base64"))?;
            AttributeValue::Binary(bytes)
        }
        _ => return Err(invalid("it must contain one non-empty StringValue or BinaryValue")),
    };
    Ok(MessageAttribute { data_type: attribute.data_type, value })
}

fn trace_header(attributes: BTreeMap<String, Attribute>) -> Result<Option<String>, Fault> {
    let mut header = None;
    for (name, attribute) in attributes {
        match attribute.string_value {
            Some(value) if name == "AWSTraceHeader" && attribute.data_type == "String" && !value.is_empty() => {
                header = Some(value);
            }
            _ => {
                return Err(Fault::new(
                    Code::InvalidParameterValue,
                    format!(
                        "Message system attribute name '{name}' is invalid: AWSTraceHeader is the only one, and it is \
                         a String."
                    ),
                ));
            }
        }
    }
    Ok(header)
}

/// Receives messages. `closing` ends the wait for some.
pub(super) async fn receive(
    sqs: &Sqs,
    mut closing: watch::Receiver<bool>,
    request: ReceiveRequest,
) -> Result<ReceiveAnswer, Fault> {
    let queue = queue_name(&request.queue_url)?;
    if let Some(id) = &request.receive_request_attempt_id {
        checks::attempt_id(id, &sqs.account().queue(queue)?.attributes)?;
    }
    let max = bounded("MaxNumberOfMessages", request.max_number_of_messages, 1..=RECEIVE_MAX)?;
    let max = usize::try_from(max.unwrap_or(1)).expect("a receive returns at most 10 messages");
    let visibility = bounded("VisibilityTimeout", request.visibility_timeout, 0..=VISIBILITY_MAX_S)?;
    let wait = bounded("WaitTimeSeconds", request.wait_time_seconds, 0..=WAIT_MAX_S)?;
    let system = request.message_system_attribute_names.iter().chain(&request.attribute_names);
    let system: Vec<&str> = system.map(String::as_str).collect();
    if let Some(unknown) = system.iter().find(|name| !SYSTEM_ATTRIBUTES.contains(name)) {
        return Err(Fault::unknown_attribute(unknown, "messages have no such system attribute"));
    }
    let received = sqs.poll(queue, max, visibility.map(Duration::from_secs), wait.map(Duration::from_secs));
    // The poll comes first: at the shutdown it still returns what is there, it only does not wait.
    let received = tokio::select! {
        biased;
        received = received => received?,
        _ = closing.wait_for(|closing| *closing) => Vec::new(),
    };
    let shown = |received| show(received, &system, &request.message_attribute_names);
    Ok(ReceiveAnswer { messages: received.into_iter().map(shown).collect() })
}

/// Returns messages of a queue that came after this position, hidden ones too, without receiving them: `limit` at most, and 4 MiB;
/// of each body so many bytes, or all.
pub(in super::super) fn look(
    sqs: &Sqs,
    queue: &str,
    after: Option<u64>,
    (limit, body_max): (usize, Option<usize>),
) -> Result<LookAnswer, Fault> {
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    let (mut messages, mut bytes, mut last, mut next) = (Vec::new(), 0, None, None);
    for (key, message) in account.queue(queue)?.look(now_ms, after) {
        if messages.len() == limit || bytes > LOOK_MAX_BYTES {
            next = last;
            break;
        }
        let received = receipt::shown(message, body_max.unwrap_or(usize::MAX));
        bytes += received.body.len() + bytes_of(&received.message_attributes);
        last = Some(key);
        let (body_bytes, message) = (message.content.body.len(), show(received, &["All"], &["All".to_owned()]));
        messages.push(LookedAt { position: key, body_bytes, message });
    }
    Ok(LookAnswer { messages, next })
}

/// Returns how many bytes attributes have in an answer, about: bytes are longer in base64.
fn bytes_of(attributes: &BTreeMap<String, MessageAttribute>) -> usize {
    attributes.iter().map(|(name, attribute)| name.len() + attribute.value.as_bytes().len()).sum()
}

/// A message with those attributes that the request names. The digest is that of the attributes shown.
fn show(received: Received, system: &[&str], wanted: &[String]) -> ReceivedMessage {
    let mut attributes = received.attributes;
    if !system.contains(&"All") {
        attributes.retain(|name, _| system.contains(&name.as_str()));
    }
    let mut message_attributes = received.message_attributes;
    message_attributes.retain(|name, _| wanted.iter().any(|wanted| names(wanted, name)));
    ReceivedMessage {
        message_id: received.message_id,
        receipt_handle: received.receipt_handle,
        body: received.body,
        md5_of_body: received.md5_of_body,
        attributes,
        md5_of_message_attributes: md5::of_attributes(&message_attributes),
        message_attributes: message_attributes.into_iter().map(attribute_out).collect(),
    }
}

/// Whether `wanted` names the attribute: by its name, by `prefix.*`, or with all others by `All`, `*` or `.*`.
fn names(wanted: &str, name: &str) -> bool {
    matches!(wanted, "All" | "*")
        || wanted == name
        || wanted.strip_suffix(".*").is_some_and(|prefix| name.starts_with(prefix))
}

fn attribute_out((name, attribute): (String, MessageAttribute)) -> (String, Attribute) {
    let (string_value, binary_value) = match attribute.value {
        AttributeValue::Text(text) => (Some(text), None),
        AttributeValue::Binary(bytes) => (None, Some(STANDARD.encode(bytes))),
    };
    let attribute = Attribute { data_type: attribute.data_type, string_value, binary_value, ..Attribute::default() };
    (name, attribute)
}

pub(super) fn delete(sqs: &Sqs, request: ReceiptRequest) -> Result<Nothing, Fault> {
    delete_one(sqs, queue_name(&request.queue_url)?, &request)?;
    Ok(Nothing {})
}

pub(super) fn delete_one(sqs: &Sqs, queue: &str, request: &ReceiptRequest) -> Result<(), Fault> {
    if request.receipt_handle.is_empty() {
        return Err(Fault::missing("ReceiptHandle"));
    }
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    account.delete(now_ms, queue, &request.receipt_handle)?;
    Ok(())
}

pub(super) fn change_visibility(sqs: &Sqs, request: ReceiptRequest) -> Result<Nothing, Fault> {
    change_one(sqs, queue_name(&request.queue_url)?, &request)?;
    Ok(Nothing {})
}

pub(super) fn change_one(sqs: &Sqs, queue: &str, request: &ReceiptRequest) -> Result<(), Fault> {
    if request.receipt_handle.is_empty() {
        return Err(Fault::missing("ReceiptHandle"));
    }
    let timeout = bounded("VisibilityTimeout", request.visibility_timeout, 0..=VISIBILITY_MAX_S)?;
    let timeout = timeout.ok_or_else(|| Fault::missing("VisibilityTimeout"))?;
    let (mut account, now_ms) = (sqs.account(), sqs.now_ms());
    account.change_visibility(now_ms, queue, &request.receipt_handle, Duration::from_secs(timeout))
}
