//! Queue attributes as SQS spells them: parsed, checked and written.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::fault::{Code, Fault};
use super::settings::{
    DeduplicationScope, MESSAGE_BYTES_MAX, MESSAGE_BYTES_MIN, QueueSettings, Redrive, RedriveAllow, SOURCES_MAX,
    ThroughputLimit,
};
use crate::arn;

/// Attributes that are kept and shown, and change nothing here: no one is refused, nothing is encrypted.
const KEPT: [&str; 4] = [KMS_REUSE, KMS_KEY, "Policy", SQS_ENCRYPTION];
const KMS_KEY: &str = "KmsMasterKeyId";
const KMS_REUSE: &str = "KmsDataKeyReusePeriodSeconds";
/// What SQS takes for an absent [`KMS_REUSE`], and does not show.
const KMS_REUSE_DEFAULT: &str = "300";
const KMS_REUSE_S: RangeInclusive<u64> = 60..=86_400;
const SQS_ENCRYPTION: &str = "SqsManagedSseEnabled";

/// What `GetQueueAttributes` can name beside the attributes that can be set.
const READ_ONLY: [&str; 6] = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesDelayed",
    "ApproximateNumberOfMessagesNotVisible",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
];
const SETTABLE: [&str; 11] = [
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "DelaySeconds",
    "FifoQueue",
    "FifoThroughputLimit",
    "MaximumMessageSize",
    "MessageRetentionPeriod",
    "ReceiveMessageWaitTimeSeconds",
    "RedriveAllowPolicy",
    "RedrivePolicy",
    "VisibilityTimeout",
];

/// The settings of a queue with those attributes that only the SQS API can set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) settings: QueueSettings,
    kept: BTreeMap<String, String>,
}

impl Attributes {
    pub(super) fn new(settings: QueueSettings) -> Self {
        Self { settings, kept: BTreeMap::new() }
    }

    /// The attributes of a new queue.
    pub(super) fn create(name: &str, supplied: &BTreeMap<String, String>) -> Result<Self, Fault> {
        let fifo = match supplied.get("FifoQueue").map(|value| boolean("FifoQueue", value)) {
            None => false,
            Some(Ok(true)) => true,
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
        let given = |attribute: &str| supplied.get(attribute).filter(|value| !value.is_empty());
        if given(KMS_KEY).is_some() {
            if given(SQS_ENCRYPTION).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
                return Err(Fault::new(
                    Code::InvalidAttributeName,
                    "You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.",
                ));
            }
            changed.kept.insert(SQS_ENCRYPTION.to_owned(), "false".to_owned());
        }
        changed.settings.check(name)?;
        Ok(changed)
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
        put("MaximumMessageSize", settings.max_message_bytes.to_string());
        if settings.fifo {
            put("FifoQueue", "true".to_owned());
            put("ContentBasedDeduplication", settings.deduplication.content_based.to_string());
            put("DeduplicationScope", settings.deduplication.scope.as_str().to_owned());
            put("FifoThroughputLimit", settings.throughput_limit.as_str().to_owned());
        }
        if let Some(policy) = redrive_allow_text(&settings.redrive_allow) {
            put("RedriveAllowPolicy", policy);
        }
        if let Some(redrive) = &settings.redrive {
            let policy = json!({
                "deadLetterTargetArn": arn::of_queue(&redrive.dead_letter_queue),
                "maxReceiveCount": redrive.max_receive_count,
            });
            put("RedrivePolicy", policy.to_string());
        }
        list.entry(SQS_ENCRYPTION.to_owned()).or_insert_with(|| "true".to_owned());
        list
    }

    fn set(&mut self, attribute: &str, value: &str) -> Result<(), Fault> {
        let settings = &mut self.settings;
        match attribute {
            "VisibilityTimeout" => settings.visibility_timeout = seconds(attribute, value)?,
            "MessageRetentionPeriod" => settings.retention = seconds(attribute, value)?,
            "DelaySeconds" => settings.delay = seconds(attribute, value)?,
            "ReceiveMessageWaitTimeSeconds" => settings.receive_wait = seconds(attribute, value)?,
            "MaximumMessageSize" => settings.max_message_bytes = message_bytes(attribute, value)?,
            "RedrivePolicy" => settings.redrive = redrive(value)?,
            "RedriveAllowPolicy" => settings.redrive_allow = redrive_allow(value)?,
            "FifoQueue" if !settings.fifo => {
                return Err(Fault::unknown_attribute(attribute, "the type of a queue cannot change, make a new one"));
            }
            "ContentBasedDeduplication" | "DeduplicationScope" | "FifoThroughputLimit" if !settings.fifo => {
                return Err(Fault::fifo_only(attribute));
            }
            "ContentBasedDeduplication" => settings.deduplication.content_based = boolean(attribute, value)?,
            "FifoQueue" if boolean(attribute, value)? => (),
            "FifoQueue" => {
                return Err(Fault::invalid_attribute(attribute, "Reason: Modifying queue type is not supported."));
            }
            "DeduplicationScope" => {
                settings.deduplication.scope = DeduplicationScope::parse(value)
                    .ok_or_else(|| Fault::invalid_attribute(attribute, "It must be messageGroup or queue."))?;
            }
            "FifoThroughputLimit" => {
                settings.throughput_limit = ThroughputLimit::parse(value)
                    .ok_or_else(|| Fault::invalid_attribute(attribute, "It must be perQueue or perMessageGroupId."))?;
            }
            _ if KEPT.contains(&attribute) => {
                // An empty value takes an attribute away, and so does a default.
                self.kept.remove(attribute);
                if !value.is_empty() && (attribute, value) != (KMS_REUSE, KMS_REUSE_DEFAULT) {
                    self.kept.insert(attribute.to_owned(), kept(attribute, value)?);
                }
            }
            _ => return Err(Fault::unknown_attribute(attribute, "it cannot be set on a queue")),
        }
        Ok(())
    }
}

/// Checks a name that `GetQueueAttributes` was asked for.
pub(super) fn check_readable(name: &str) -> Result<(), Fault> {
    let known = name == "All" || KEPT.contains(&name) || READ_ONLY.contains(&name) || SETTABLE.contains(&name);
    if known { Ok(()) } else { Err(Fault::unknown_attribute(name, "queues have no such attribute")) }
}

/// What is kept of an attribute of [`KEPT`], where SQS would accept it.
fn kept(attribute: &str, value: &str) -> Result<String, Fault> {
    match attribute {
        SQS_ENCRYPTION => return Ok(boolean(attribute, value)?.to_string()),
        KMS_REUSE if !KMS_REUSE_S.contains(&seconds(attribute, value)?.as_secs()) => {
            let (min, max) = KMS_REUSE_S.into_inner();
            return Err(Fault::invalid_attribute(attribute, format!("It must be between {min} and {max} seconds.")));
        }
        // What it grants is not looked at.
        "Policy" if serde_json::from_str::<Map<String, Value>>(value).is_err() => {
            return Err(Fault::invalid_attribute(attribute, "It is not a policy: a JSON object."));
        }
        _ => {}
    }
    Ok(value.to_owned())
}

/// AWS takes `True` as well as `true`.
fn boolean(attribute: &str, value: &str) -> Result<bool, Fault> {
    let value = value.to_ascii_lowercase();
    value.parse().map_err(|_| Fault::invalid_attribute(attribute, "It must be true or false."))
}

fn redrive_allow(value: &str) -> Result<RedriveAllow, Fault> {
    if value.is_empty() {
        return Ok(RedriveAllow::All);
    }
    let invalid = |reason: &str| Fault::invalid_parameter("RedriveAllowPolicy", reason);
    let policy: Value = serde_json::from_str(value).map_err(|_| invalid("It is not a valid JSON map."))?;
    let arns = match &policy["sourceQueueArns"] {
        Value::Null => None,
        Value::Array(arns) => Some(arns.iter().map(|arn| arn.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()),
        _ => Some(None),
    };
    match (policy["redrivePermission"].as_str(), arns) {
        (Some("allowAll"), None) => Ok(RedriveAllow::All),
        (Some("denyAll"), None) => Ok(RedriveAllow::None),
        (Some("byQueue"), Some(Some(arns)))
            if (1..=SOURCES_MAX).contains(&arns.len()) && arns.iter().all(|arn| arn::queue_name(arn).is_some()) =>
        {
            Ok(RedriveAllow::Queues(arns))
        }
        _ => Err(invalid(
            "redrivePermission must be allowAll, denyAll, or byQueue with sourceQueueArns, 1 to 10 ARNs of queues.",
        )),
    }
}

fn redrive_allow_text(allow: &RedriveAllow) -> Option<String> {
    let policy = match allow {
        RedriveAllow::All => return None,
        RedriveAllow::None => json!({ "redrivePermission": "denyAll" }),
        RedriveAllow::Queues(arns) => json!({ "redrivePermission": "byQueue", "sourceQueueArns": arns }),
    };
    Some(policy.to_string())
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
    let target = policy["deadLetterTargetArn"]
        .as_str()
        .ok_or_else(|| invalid("Redrive policy does not contain mandatory attribute: deadLetterTargetArn."))?;
    let here = || {
        format!(
            "deadLetterTargetArn is not the ARN of a queue of this account and Region: {}.",
            arn::of_queue("<name>")
        )
    };
    let name = arn::local_queue_name(target).ok_or_else(|| invalid(&here()))?;
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
