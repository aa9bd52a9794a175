//! The shapes of requests and answers as the AWS JSON 1.0 protocol spells them.
//!
//! Every field may be absent or `null`: what is missing is reported as SQS does it, by the action that needs it.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use super::fault::{Code, Fault};

type Text = BTreeMap<String, String>;

/// Reads a request's JSON. An empty body is an empty request.
pub(super) fn from_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    let body = if body.is_empty() { b"{}" } else { body };
    // The place alone: what serde would quote may be a part of a message.
    let wrong = |line, column, is_json| {
        let what = if is_json { "is not of the type SQS expects there" } else { "is not JSON" };
        let message = format!("What stands before line {line}, column {column} of the request {what}.");
        Fault::new(Code::Serialization, message)
    };
    // Serde would take the items of a list for the fields, by their order. Within a request it does: no SDK writes entries so.
    match body.trim_ascii_start() {
        [b'[', ..] => Err(wrong(1, 1, true)),
        _ => serde_json::from_slice(body).map_err(|e| wrong(e.line(), e.column(), e.is_data())),
    }
}

/// Writes an answer's JSON.
pub(super) fn to_json(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).expect("the answers are structs and maps with text keys")
}

/// Reads a field whose value may be `null`, which is the same as no field.
fn absent_where_null<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(field: D) -> Result<T, D::Error> {
    Option::deserialize(field).map(Option::unwrap_or_default)
}

/// What most actions ask: a queue, and what they need beside it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct QueueRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_url: String,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) attributes: Text,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) attribute_names: Vec<String>,
    pub(super) tags: Option<Text>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) tag_keys: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct NameRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_name: String,
    #[serde(rename = "QueueOwnerAWSAccountId")]
    pub(super) queue_owner_aws_account_id: Option<String>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) attributes: Text,
    #[serde(rename = "tags", deserialize_with = "absent_where_null")]
    pub(super) tags: Text,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ListRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_url: String,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_name_prefix: String,
    pub(super) max_results: Option<i64>,
    pub(super) next_token: Option<String>,
}

/// What the actions on message move tasks ask.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct MoveRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) source_arn: String,
    pub(super) destination_arn: Option<String>,
    pub(super) max_number_of_messages_per_second: Option<i64>,
    pub(super) max_results: Option<i64>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) task_handle: String,
}

/// `SendMessage`, and one entry of `SendMessageBatch`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct SendRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) id: String,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_url: String,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) message_body: String,
    pub(super) delay_seconds: Option<i64>,
    pub(super) message_group_id: Option<String>,
    pub(super) message_deduplication_id: Option<String>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) message_attributes: BTreeMap<String, Attribute>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) message_system_attributes: BTreeMap<String, Attribute>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ReceiveRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_url: String,
    pub(super) max_number_of_messages: Option<i64>,
    pub(super) visibility_timeout: Option<i64>,
    pub(super) wait_time_seconds: Option<i64>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) attribute_names: Vec<String>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) message_system_attribute_names: Vec<String>,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) message_attribute_names: Vec<String>,
    pub(super) receive_request_attempt_id: Option<String>,
}

/// `DeleteMessage`, `ChangeMessageVisibility`, and one entry of their batches.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct ReceiptRequest {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) id: String,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) queue_url: String,
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) receipt_handle: String,
    pub(super) visibility_timeout: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", bound = "T: Deserialize<'de>")]
pub(super) struct BatchRequest<T> {
    #[serde(default, deserialize_with = "absent_where_null")]
    pub(super) queue_url: String,
    #[serde(default, deserialize_with = "absent_where_null")]
    pub(super) entries: Vec<T>,
}

/// A message attribute; binary values are base64.
#[derive(Default, Deserialize, Serialize)]
#[serde(default, rename_all = "PascalCase")]
pub(super) struct Attribute {
    #[serde(deserialize_with = "absent_where_null")]
    pub(super) data_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) string_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) binary_value: Option<String>,
    /// Reserved for later, and refused.
    #[serde(skip_serializing, deserialize_with = "absent_where_null")]
    pub(super) string_list_values: Vec<String>,
    #[serde(skip_serializing, deserialize_with = "absent_where_null")]
    pub(super) binary_list_values: Vec<String>,
}

/// The answer of actions that have none.
#[derive(Serialize)]
pub(super) struct Nothing {}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct UrlAnswer {
    pub(super) queue_url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct UrlsAnswer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) queue_urls: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_token: Option<String>,
}

/// The one answer in which SQS spells the key with a small letter.
#[derive(Serialize)]
pub(super) struct SourcesAnswer {
    #[serde(rename = "queueUrls")]
    pub(super) queue_urls: Vec<String>,
    #[serde(rename = "NextToken", skip_serializing_if = "Option::is_none")]
    pub(super) next_token: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AttributesAnswer {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) attributes: Text,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct TagsAnswer {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tags: Text,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct TaskAnswer {
    pub(super) task_handle: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CancelAnswer {
    pub(super) approximate_number_of_messages_moved: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct TasksAnswer {
    pub(super) results: Vec<ListedTask>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ListedTask {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) task_handle: Option<String>,
    pub(super) status: &'static str,
    pub(super) source_arn: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) destination_arn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_number_of_messages_per_second: Option<u64>,
    pub(super) approximate_number_of_messages_moved: usize,
    pub(super) approximate_number_of_messages_to_move: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure_reason: Option<&'static str>,
    pub(super) started_timestamp: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct SendAnswer {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) id: String,
    pub(super) message_id: String,
    #[serde(rename = "MD5OfMessageBody")]
    pub(super) md5_of_message_body: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    pub(super) md5_of_message_attributes: Option<String>,
    #[serde(rename = "MD5OfMessageSystemAttributes", skip_serializing_if = "Option::is_none")]
    pub(super) md5_of_message_system_attributes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sequence_number: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceiveAnswer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) messages: Vec<ReceivedMessage>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ReceivedMessage {
    pub(super) message_id: String,
    pub(super) receipt_handle: String,
    pub(super) body: String,
    #[serde(rename = "MD5OfBody")]
    pub(super) md5_of_body: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) attributes: Text,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) message_attributes: BTreeMap<String, Attribute>,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    pub(super) md5_of_message_attributes: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BatchAnswer<T> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) successful: Vec<T>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<FailedEntry>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct DoneEntry {
    pub(super) id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct FailedEntry {
    pub(super) id: String,
    pub(super) sender_fault: bool,
    pub(super) code: &'static str,
    pub(super) message: String,
}

#[derive(Serialize)]
pub(super) struct ErrorAnswer<'a> {
    #[serde(rename = "__type")]
    pub(super) shape: &'a str,
    pub(super) message: &'a str,
}
