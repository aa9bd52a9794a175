//! What EventBridge Scheduler could not send: it leaves the request in the dead-letter queue of the schedule, with the message inside. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;

use claimant_core::Error;
use claimant_core::own_attributes::EARLIER_IDS;
use serde::Deserialize;

/// The attribute by which such a letter is known, also where its body is cut short.
pub(super) const SCHEDULE: &str = "SCHEDULE_ARN";

/// The attribute with what SQS called the last error.
pub(super) const CODE: &str = "ERROR_CODE";

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
