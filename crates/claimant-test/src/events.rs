//! Events of functions: messages as Lambda hands them over.

use std::path::Path;

use serde_json::{Value, json};

use crate::message::TestMessage;

/// Returns the event of a function with these messages, in their order: what a `Stage` of the module `cloud` takes. All of them are from FIFO queues, or none is.
#[must_use]
pub fn event(messages: &[TestMessage]) -> Value {
    json!({ "Records": (1..).zip(messages).map(|(number, message)| message.record(number)).collect::<Vec<_>>() })
}

/// Returns the event in a file.
///
/// # Panics
/// When it cannot be read, or is not JSON.
#[must_use]
pub fn event_from(path: impl AsRef<Path>) -> Value {
    let path = path.as_ref();
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let event = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    event.unwrap_or_else(|why| panic!("the event {} cannot be used: {why}", path.display()))
}

/// Returns the message ids of an event, in its order. Records without one are left out.
#[must_use]
pub fn message_ids(event: &Value) -> Vec<String> {
    let records = event["Records"].as_array().into_iter().flatten();
    records.filter_map(|record| record["messageId"].as_str().map(str::to_owned)).collect()
}
