//! What EventBridge Scheduler could not send: it leaves the request in the dead-letter queue of the schedule, with the message inside. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aws_sdk_sqs::types::MessageAttributeValue;
use claimant_core::Error;
use claimant_core::own_attributes::EARLIER_IDS;
use serde::Deserialize;

/// The attribute with the schedule of a letter: of one that sends a message, or that calls something else.
pub(super) const SCHEDULE: &str = "SCHEDULE_ARN";

/// The attribute with what SQS called the last error.
pub(super) const CODE: &str = "ERROR_CODE";

/// The attribute with what the schedule has called, and the end of its value where that is to send a message.
const TARGET: (&str, &str) = ("TARGET_ARN", ":aws-sdk:sqs:sendMessage");

/// The attribute that says whether the body is cut short.
const CUT: &str = "IS_PAYLOAD_TRUNCATED";

/// The longest code that is shown.
const CODE_MAX: usize = 100;

/// A `SendMessage`, as far as it is needed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Request<'a> {
    #[serde(borrow, rename = "QueueUrl")]
    _queue_url: Cow<'a, str>,
    #[serde(borrow, rename = "MessageBody")]
    _message_body: Cow<'a, str>,
    #[serde(borrow, default)]
    message_attributes: BTreeMap<Cow<'a, str>, Attribute<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute<'a> {
    #[serde(borrow, default)]
    string_value: Option<Cow<'a, str>>,
}

impl<'a> Request<'a> {
    /// Reads a body; `None` where it is no such request.
    pub(crate) fn read(body: &'a str) -> Option<Self> {
        body.trim_ascii_start().starts_with('{').then(|| serde_json::from_str(body).ok()).flatten()
    }

    /// Returns the ids that its message had before, the producer's first.
    pub(super) fn earlier_ids(&self) -> Vec<String> {
        let text = |name| Some(self.message_attributes.get(name)?.string_value.as_deref()?.to_owned());
        EARLIER_IDS.into_iter().filter_map(text).collect()
    }
}

type Attributes = BTreeMap<String, MessageAttributeValue>;

/// Returns whether these are the attributes of the request of a schedule that could not send its message: whatever is known of its body.
pub(super) fn is_of_schedule(attributes: &Attributes) -> bool {
    let target = text(attributes, TARGET.0);
    attributes.contains_key(SCHEDULE) && target.is_none_or(|target| target.ends_with(TARGET.1))
}

/// Returns whether a message is such a request, wherever it went from the queue that it was left in. It may be cut short.
pub(crate) fn is_request(attributes: &Attributes, body: &str) -> bool {
    let is_cut = || text(attributes, CUT) == Some("true");
    is_of_schedule(attributes) && (Request::read(body).is_some() || is_cut())
}

fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name)?.string_value()
}

/// Returns why it is not sent to a queue, which would get it as a body.
pub(crate) fn is_no_message() -> Error {
    Error::invalid(
        "it is the SendMessage of a schedule, with its message inside: discard it with --save, and send that by aws sqs send-message \
         --cli-input-json file://FILE",
    )
}

/// Returns why it is a dead letter, by AWS's own word; what AWS says beside that can quote the message.
pub(super) fn error(code: Option<&str>) -> String {
    let code: String = code.unwrap_or_default().chars().filter(char::is_ascii_graphic).take(CODE_MAX).collect();
    let why = if code.is_empty() { "it is not said why" } else { &*code };
    format!("a schedule could not send it: {why}")
}
