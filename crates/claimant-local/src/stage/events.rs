//! Events as Lambda makes them of an SQS queue's messages.

use std::path::Path;

use serde_json::{Value, json};

use crate::Error;
use crate::arn::{self, ACCOUNT_ID, REGION};

/// The queue that deliveries are from: standard, and FIFO.
const QUEUES: [&str; 2] = ["stage", "stage.fifo"];

/// One delivery of a message.
#[derive(Debug, Clone)]
pub struct Delivery<'a> {
    /// The message's id.
    pub message_id: &'a str,
    /// The body: text as it is, anything else as JSON.
    pub body: &'a Value,
    /// How often the message has been received, this time included.
    pub receive_count: u32,
    /// The group, on a FIFO queue.
    pub group: Option<&'a str>,
}

impl<'a> Delivery<'a> {
    /// The first delivery of a message from a standard queue.
    pub fn new(message_id: &'a str, body: &'a Value) -> Self {
        Self { message_id, body, receive_count: 1, group: None }
    }

    /// The same from a FIFO queue.
    #[must_use]
    pub fn in_group(self, group: &'a str) -> Self {
        Self { group: Some(group), ..self }
    }

    /// The same, received this often.
    #[must_use]
    pub fn received(self, receive_count: u32) -> Self {
        Self { receive_count, ..self }
    }

    fn record(&self) -> Value {
        let body = self.body.as_str().map_or_else(|| self.body.to_string(), str::to_owned);
        let mut attributes = json!({
            "ApproximateReceiveCount": self.receive_count.to_string(),
            "SentTimestamp": "1790000000000",
            "SenderId": ACCOUNT_ID,
            "ApproximateFirstReceiveTimestamp": "1790000000012",
        });
        if let Some(group) = self.group {
            attributes["MessageGroupId"] = json!(group);
        }
        let queue = QUEUES[usize::from(self.group.is_some())];
        json!({
            "messageId": self.message_id,
            "receiptHandle": "AQEBstage",
            "body": body,
            "attributes": attributes,
            "messageAttributes": {},
            "eventSource": "aws:sqs",
            "eventSourceARN": arn::of_queue(queue),
            "awsRegion": REGION,
        })
    }
}

/// The event of these deliveries, in their order. All of them are from a FIFO queue, or none is.
pub fn event(deliveries: &[Delivery<'_>]) -> Value {
    json!({ "Records": deliveries.iter().map(Delivery::record).collect::<Vec<_>>() })
}

/// The event in a file.
///
/// # Errors
/// When it cannot be read, or is not JSON.
pub fn event_from(path: &Path) -> Result<Value, Error> {
    let unusable = |what: &str| Error::new(format!("the event {} {what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|e| unusable("cannot be read").caused_by(e))?;
    serde_json::from_str(&text).map_err(|e| unusable("is not JSON").caused_by(e))
}

/// The message ids of an event, in its order. Records without one are left out.
pub fn ids(event: &Value) -> Vec<String> {
    let records = event["Records"].as_array().into_iter().flatten();
    records.filter_map(|record| record["messageId"].as_str().map(str::to_owned)).collect()
}
