//! What a body is wrapped in on its way to the queue.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claimant_core::{AttributeValue, Attributes};
use serde_json::{Map, Value, json};

/// The account and the region of everything here.
pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const REGION: &str = "us-east-1";

/// One envelope.
#[derive(Debug, Clone)]
pub(crate) enum Layer {
    Sns { topic: String, attributes: Attributes },
    EventBridge { source: String, detail_type: String },
    CloudEvent { source: String, kind: String },
}

/// What is different in each copy that a producer sends.
pub(crate) struct Copy {
    /// Of this message and no other, and of this copy.
    pub(crate) id: String,
    /// Of this message, the same in all its copies.
    pub(crate) event_id: String,
    pub(crate) time: String,
}

impl Layer {
    /// Returns what an id is of, beside what is wrapped: who sent it, and as what.
    pub(crate) fn origin(&self) -> String {
        match self {
            Self::Sns { topic, .. } => format!("{topic}\n"),
            Self::EventBridge { source, detail_type: kind } | Self::CloudEvent { source, kind } => {
                format!("{source}\n{kind}\n")
            }
        }
    }

    /// Wraps a text.
    pub(crate) fn wrap(&self, inner: &str, copy: &Copy) -> String {
        let envelope = match self {
            Self::Sns { topic, attributes } => sns(inner, topic, attributes, copy),
            Self::EventBridge { source, detail_type } => json!({
                "version": "0",
                "id": copy.id,
                "detail-type": detail_type,
                "source": source,
                "account": ACCOUNT,
                "time": copy.time,
                "region": REGION,
                "resources": [],
                "detail": serde_json::from_str::<Value>(inner).expect("EventBridge carries JSON, and this body is none"),
            }),
            Self::CloudEvent { source, kind } => {
                let parsed = serde_json::from_str::<Value>(inner);
                let content_type = if parsed.is_ok() { "application/json" } else { "text/plain" };
                json!({
                    "specversion": "1.0",
                    "id": copy.event_id,
                    "source": source,
                    "type": kind,
                    "time": copy.time,
                    "datacontenttype": content_type,
                    "data": parsed.unwrap_or_else(|_| json!(inner)),
                })
            }
        };
        envelope.to_string()
    }
}

fn sns(inner: &str, topic: &str, attributes: &Attributes, copy: &Copy) -> Value {
    let arn = format!("arn:aws:sns:{REGION}:{ACCOUNT}:{topic}");
    let host = format!("https://sns.{REGION}.amazonaws.com");
    let mut envelope = json!({
        "Type": "Notification",
        "MessageId": copy.id,
        "TopicArn": arn,
        "Message": inner,
        "Timestamp": copy.time,
        "SignatureVersion": "1",
        "Signature": "RXhhbXBsZSBzaWduYXR1cmU=",
        "SigningCertURL": format!("{host}/SimpleNotificationService-0123456789abcdef.pem"),
        "UnsubscribeURL": format!("{host}/?Action=Unsubscribe&SubscriptionArn={arn}:0"),
    });
    if !attributes.is_empty() {
        let each = attributes
            .iter()
            .map(|(name, value)| (name.to_owned(), json!({ "Type": value.data_type(), "Value": text_of(value) })));
        envelope["MessageAttributes"] = Value::Object(each.collect::<Map<_, _>>());
    }
    envelope
}

/// Returns a value as text, bytes as Base64.
fn text_of(value: &AttributeValue) -> String {
    let bytes = || value.as_bytes().map(|bytes| STANDARD.encode(bytes));
    value.as_sent().map(str::to_owned).or_else(bytes).unwrap_or_default()
}

/// Returns attributes as the event of a function has them.
pub(crate) fn message_attributes(attributes: &Attributes) -> Value {
    let each = attributes.iter().map(|(name, value)| {
        let field = if value.as_bytes().is_some() { "binaryValue" } else { "stringValue" };
        let mut attribute = json!({ "dataType": value.data_type(), "stringListValues": [], "binaryListValues": [] });
        attribute[field] = json!(text_of(value));
        (name.to_owned(), attribute)
    });
    Value::Object(each.collect())
}

/// Returns an id that looks like a UUID: the same for the same content and number.
pub(crate) fn id_of(content: &str, number: u32) -> String {
    // FNV-1a: ids only have to differ.
    let hash = content
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{number:08x}-{:04x}-4000-8000-{:012x}", hash >> 48, hash & 0xffff_ffff_ffff)
}
