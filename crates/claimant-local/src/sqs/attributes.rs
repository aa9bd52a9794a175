//! Queue attributes as SQS spells them: parsed, checked and written.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::checks::MESSAGE_BYTES_MAX;
use super::fault::Fault;
use super::settings::{QueueSettings, Redrive};

const MESSAGE_BYTES_MIN: usize = 1_024;

/// Every queue ARN is this and the queue's name.
pub(super) const ARN_PREFIX: &str = "arn:aws:sqs:us-east-1:000000000000:";

/// Attributes that are kept and shown, and change nothing here, save `DeduplicationScope`.
const KEPT: [&str; 5] =
    ["KmsDataKeyReusePeriodSeconds", "KmsMasterKeyId", "Policy", "RedriveAllowPolicy", "SqsManagedSseEnabled"];
const DEDUPLICATION_SCOPE: &str = "DeduplicationScope";
const THROUGHPUT_LIMIT: &str = "FifoThroughputLimit";

/// What `GetQueueAttributes` can name beside the attributes that can be set.
const READ_ONLY: [&str; 6] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
];
const SETTABLE: [&str; 8] = [
    "ContentBasedDeduplication",
    "DelaySeconds",
    "FifoQueue",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedrivePolicy",
    "VisibilityTimeout",
];

/// The settings of a queue with those attributes that only the SQS API can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) settings: QueueSettings,
    pub(super) max_message_bytes: usize,
    kept: BTreeMap<String, String>,
}

impl Attributes {
    pub(super) fn new(settings: QueueSettings) -> Self {
        Self { settings, max_message_bytes: MESSAGE_BYTES_MAX, kept: BTreeMap::new() }
    }

    /// The attributes of a new queue.
    pub(super) fn create(name: &str, supplied: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let fifo = match supplied.get("FifoQueue").map(String::as_str) {
            None => false,
            Some("true") => true,
            Some(_) => {
                return Err(Fault::unknown_attribute(
                    "FifoQueue",
                    "it can only be true; leave it out for a standard queue",
                ));
            }
        };
        let settings = QueueSettings { fifo, ..QueueSettings::default() };
        Self::new(settings).with(name, supplied)
    }

    /// These attributes with those of `supplied` changed; all limits that need no other queue are checked.
    pub(super) fn with(&self, name: &str, supplied: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let mut changed = self.clone();
        for (attribute, value) in supplied {
            changed.set(attribute, value)?;
        }
        changed.settings.check(name)?;
        Ok(changed)
    }

    /// Whether two messages of different groups may share a deduplication id.
    pub(super) fn deduplicates_per_group(&self) -> bool {
        self.kept.get(DEDUPLICATION_SCOPE).is_some_and(|scope| scope == "messageGroup")
    }

    /// Every attribute that can be set, as it stands.
    pub(super) fn list(&self) -> BTreeMap<String, String> {
        let settings = &self.settings;
        let seconds = |duration: Duration| duration.as_secs().to_string();
        let mut list = self.kept.clone();
        let mut put = |name: &str, value: String| list.insert(name.to_owned(), value);
        put("VisibilityTimeout", seconds(settings.visibility_timeout));
        put("MessageRetentionPeriod", seconds(settings.retention));
        put("DelaySeconds", seconds(settings.delay));
        put("ReceiveMessageWaitTimeSeconds", seconds(settings.receive_wait));
        put("MaximumMessageSize", self.max_message_bytes.to_string());
        if settings.fifo {
            put("FifoQueue", "true".to_owned());
            put("ContentBasedDeduplication", settings.content_based_deduplication.to_string());
        }
        if let Some(redrive) = &settings.redrive {
            let policy = json!({
                "deadLetterTargetArn": format!("{ARN_PREFIX}{}", redrive.dead_letter_queue),
                "maxReceiveCount": redrive.max_receive_count,
            });
            put("RedrivePolicy", policy.to_string());
        }
        list
    }

    fn set(&mut self, attribute: &str, value: &str) -> Result<(), Fault> {
        let settings = &mut self.settings;
        match attribute {
            "VisibilityTimeout" => settings.visibility_timeout = seconds(attribute, value)?,
            "MessageRetentionPeriod" => settings.retention = seconds(attribute, value)?,
            "DelaySeconds" => settings.delay = seconds(attribute, value)?,
            "ReceiveMessageWaitTimeSeconds" => settings.receive_wait = seconds(attribute, value)?,
            "MaximumMessageSize" => self.max_message_bytes = message_bytes(attribute, value)?,
            "RedrivePolicy" => settings.redrive = redrive(value)?,
            "ContentBasedDeduplication" => {
                settings.content_based_deduplication =
                    value.parse().map_err(|_| Fault::invalid_attribute(attribute, "It must be true or false."))?;
            }
            "FifoQueue" if settings.fifo && value == "true" => (),
            "FifoQueue" => {
                return Err(Fault::invalid_attribute(attribute, "The type of a queue cannot change: make a new one."));
            }
            DEDUPLICATION_SCOPE | THROUGHPUT_LIMIT if !settings.fifo => {
                return Err(Fault::unknown_attribute(attribute, "only FIFO queues have it"));
            }
            DEDUPLICATION_SCOPE if !matches!(value, "messageGroup" | "queue") => {
                return Err(Fault::invalid_attribute(attribute, "It must be messageGroup or queue."));
            }
            DEDUPLICATION_SCOPE | THROUGHPUT_LIMIT => {
                self.kept.insert(attribute.to_owned(), value.to_owned());
            }
            _ if KEPT.contains(&attribute) => {
                // An empty value takes an attribute away.
                self.kept.remove(attribute);
                if !value.is_empty() {
                    self.kept.insert(attribute.to_owned(), value.to_owned());
                }
            }
            _ => return Err(Fault::unknown_attribute(attribute, "it cannot be set on a queue")),
        }
        Ok(())
    }
}

/// Checks a name that `GetQueueAttributes` was asked for.
pub(super) fn check_readable(name: &str) -> Result<(), Fault> {
    let known = name == "All"
        || [DEDUPLICATION_SCOPE, THROUGHPUT_LIMIT].contains(&name)
        || KEPT.contains(&name)
        || READ_ONLY.contains(&name)
        || SETTABLE.contains(&name);
    if known { Ok(()) } else { Err(Fault::unknown_attribute(name, "queues have no such attribute")) }
}

/// The name in a queue's ARN.
pub(super) fn name_in_arn(arn: &str) -> Option<&str> {
    let (region_and_on, name) = arn.strip_prefix("arn:aws:sqs:")?.rsplit_once(':')?;
    (region_and_on.split(':').count() == 2 && !name.is_empty()).then_some(name)
}

fn seconds(attribute: &str, value: &str) -> Result<Duration, Fault> {
    let seconds: u32 =
        value.parse().map_err(|_| Fault::invalid_attribute(attribute, "It must be a whole number of seconds."))?;
    Ok(Duration::from_secs(seconds.into()))
}

fn message_bytes(attribute: &str, value: &str) -> Result<usize, Fault> {
    let bytes = value.parse().ok().filter(|bytes| (MESSAGE_BYTES_MIN..=MESSAGE_BYTES_MAX).contains(bytes));
    bytes.ok_or_else(|| {
        Fault::invalid_attribute(
            attribute,
            format!("It must be between {MESSAGE_BYTES_MIN} and {MESSAGE_BYTES_MAX} bytes."),
        )
    })
}

fn redrive(value: &str) -> Result<Option<Redrive>, Fault> {
    if value.is_empty() {
        return Ok(None);
    }
    let invalid = |reason: &str| Fault::invalid_parameter("RedrivePolicy", reason);
    let policy: Value = serde_json::from_str(value).map_err(|_| invalid("Redrive policy is not a valid JSON map."))?;
    let arn = policy["deadLetterTargetArn"]
        .as_str()
        .ok_or_else(|| invalid("Redrive policy does not contain mandatory attribute: deadLetterTargetArn."))?;
    let name = name_in_arn(arn).ok_or_else(|| invalid("deadLetterTargetArn is not the ARN of a queue."))?;
    // SDKs and templates write the count as a number or as text.
    let count = match &policy["maxReceiveCount"] {
        Value::Null => {
            return Err(invalid("Redrive policy does not contain mandatory attribute: maxReceiveCount."));
        }
        Value::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|count| u32::try_from(count).ok()),
    };
    Ok(Some(Redrive {
        dead_letter_queue: name.to_owned(),
        max_receive_count: count.ok_or_else(|| invalid("maxReceiveCount is not a whole number."))?,
    }))
}
