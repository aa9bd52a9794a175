//! Letters of EventBridge Scheduler: the message in one, which a schedule was to send, and why it was not sent. Pure.
//!
//! By the service's user guide, the body of such a letter is the input of the schedule's target, so the JSON of a `SendMessage`, and its
//! attributes say why that failed.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::MessageAttributeValue;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::attribute::Attribute;

type Attributes = BTreeMap<String, MessageAttributeValue>;

/// The attributes that every such letter has.
const MARKS: [&str; 2] = ["SCHEDULE_ARN", "TARGET_ARN"];

/// What a schedule was to send.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Unsent {
    pub(super) queue_url: String,
    pub(super) message_body: String,
    pub(super) message_group_id: Option<String>,
    pub(super) message_deduplication_id: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    pub(super) message_attributes: Attributes,
    #[serde(default, deserialize_with = "texts")]
    message_system_attributes: Attributes,
}

impl Unsent {
    /// Reads it from a letter of the service; `None` where it was to do something else, or not all of what it was to send is there.
    pub(super) fn read(body: &str, attributes: &Attributes) -> Option<Self> {
        let is_cut =
            text(attributes, "IS_PAYLOAD_TRUNCATED").is_some_and(|is_cut| !is_cut.eq_ignore_ascii_case("false"));
        if is_cut { None } else { serde_json::from_str(body).ok() }
    }

    /// Returns the trace that it was to be sent in.
    pub(super) fn trace(&self) -> Option<String> {
        text(&self.message_system_attributes, "AWSTraceHeader").map(str::to_owned)
    }
}

/// Returns whether a letter with these attributes is one of the service.
pub(super) fn is_letter(attributes: &Attributes) -> bool {
    MARKS.iter().all(|name| attributes.contains_key(*name))
}

/// Returns why the schedule's call failed.
pub(super) fn error(attributes: &Attributes) -> Option<String> {
    match (text(attributes, "ERROR_CODE"), text(attributes, "ERROR_MESSAGE")) {
        (Some(code), Some(message)) => Some(format!("{code}: {message}")),
        (code, message) => code.or(message).map(str::to_owned),
    }
}

fn text<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name)?.string_value()
}

/// Reads attributes that are texts. How others are written in a schedule is not documented.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Attributes, D::Error> {
    let read = |(name, attribute): (String, Attribute)| {
        let value = attribute.value().filter(|value| value.string_value().is_some());
        Ok((name, value.ok_or_else(|| D::Error::custom("an attribute is no text"))?))
    };
    BTreeMap::deserialize(deserializer)?.into_iter().map(read).collect()
}
