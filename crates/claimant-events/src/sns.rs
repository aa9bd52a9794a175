//! SNS: a notification with the message that was published.

use std::collections::BTreeMap;

use claimant_core::decode::Form;
use claimant_core::{AttributeValue, Envelope, Event, Message, Rejection, trace};
use serde::Deserialize;

use crate::values::{self, Object};

const WORD: &str = "the SNS envelope";

/// The envelope that SNS puts around what was published to a topic. With raw message delivery there is none: then nothing is to be
/// opened, and the topic's message attributes are the message's own.
///
/// The event has the topic's ARN as its source, the subject, the time of publication, the message attributes, and SNS's message id as
/// its id: the same for each delivery to this queue, another one if the producer publishes again. A key that also holds then comes
/// from what is inside. Who published is not checked: only the topic may be allowed to send, by the queue's policy.
///
/// A `SubscriptionConfirmation` is rejected: it is kept in the dead-letter queue, with the address that confirms it.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_events as envelope;
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # #[derive(serde::Deserialize)]
/// # struct Order { order_id: String }
/// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
///     .envelope(envelope::Sns)
///     .key(|order| &order.order_id);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Sns;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Notification {
    r#type: String,
    message_id: String,
    topic_arn: String,
    #[serde(default)]
    subject: Option<String>,
    message: String,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    message_attributes: Option<BTreeMap<String, Object<Attribute>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attribute {
    r#type: String,
    value: String,
}

impl Envelope for Sns {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let Object(notification): Object<Notification> = values::read(&message, WORD, Form::Sns)?;
        match notification.r#type.as_str() {
            "Notification" => {}
            "SubscriptionConfirmation" => {
                return Err(message.rejection_as(
                    WORD,
                    "asks to confirm a subscription: open its SubscribeURL, or subscribe the queue by its owner",
                ));
            }
            "UnsubscribeConfirmation" => {
                return Err(message.rejection_as(WORD, "says that the queue was unsubscribed from its topic"));
            }
            _ => return Err(message.rejection_as(WORD, "has a Type that is none of SNS")),
        }
        let attributes = notification.message_attributes.unwrap_or_default();
        let read = attributes.iter().map(|(name, Object(one))| {
            let wrong = |why| message.rejection_as(&format!("a message attribute of {WORD}"), why);
            (name.as_str(), one.read().map_err(wrong))
        });
        let mut event = Event::default();
        event.attributes = values::attributes(&message, WORD, read)?;
        event.trace = trace::of_attributes(&event.attributes);
        event.id = values::id(&message, WORD, notification.message_id)?;
        event.source = Some(notification.topic_arn);
        event.subject = notification.subject;
        event.time = values::time(notification.timestamp.as_deref());
        let opened = message.opened(notification.message, event);
        Ok(vec![opened.with_content_name("the `Message` of the SNS envelope")])
    }
}

impl Attribute {
    /// Returns its value, or what is wrong with it.
    fn read(&self) -> Result<AttributeValue, &'static str> {
        let (basic, label) = match self.r#type.split_once('.') {
            Some((basic, label)) => (basic, Some(label)),
            None => (self.r#type.as_str(), None),
        };
        let value = match basic {
            "String" => AttributeValue::text(self.value.as_str()),
            "Number" if self.value.parse::<f64>().is_ok_and(f64::is_finite) => {
                AttributeValue::number(self.value.as_str())
            }
            "Number" => return Err("has the type Number, and is none"),
            "Binary" => {
                AttributeValue::bytes(values::base64(&self.value).ok_or("has the type Binary, and is not Base64")?)
            }
            _ => return Err("has a type that is none of String, Number and Binary"),
        };
        Ok(match label {
            Some(label) => value.with_label(label),
            None => value,
        })
    }
}

#[cfg(test)]
mod tests {
    use claimant_core::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    /// As in SNS's documentation.
    fn notification() -> Value {
        json!({
            "Type": "Notification",
            "MessageId": "da41e39f-ea4d-435a-b922-c6aae3915ebe",
            "TopicArn": "arn:aws:sns:us-west-2:123456789012:MyTopic",
            "Subject": "test",
            "Message": "{\"order_id\": \"ord-1\"}",
            "Timestamp": "2012-04-25T21:49:25.719Z",
            "SignatureVersion": "1",
            "Signature": "EXAMPLElDMXvB8r9R83tGoNn0ecwd5UjllzsvSvbItzfaMpN2nk5HVSw7XnOn",
            "SigningCertURL": "https://sns.us-west-2.amazonaws.com/SimpleNotificationService-f3ecfb7224c7233fe7bb5f59f96de52f.pem",
            "UnsubscribeURL": "https://sns.us-west-2.amazonaws.com/?Action=Unsubscribe",
            "MessageAttributes": {
                "tenant": { "Type": "String", "Value": "acme" },
                "priority": { "Type": "Number", "Value": "7" },
                "digest": { "Type": "Binary", "Value": "AQI=" },
                "tags": { "Type": "String.Array", "Value": "[\"a\"]" },
                "traceparent": { "Type": "String", "Value": "00-5759e988bd862e3fe1be46a994272793-53995c3f42cd8ad8-01" },
            },
        })
    }

    fn open(body: &Value) -> Result<Message, Rejection> {
        let mut opened = Sns.open(Message::new("m", body.to_string()).unwrap())?;
        assert_eq!(opened.len(), 1);
        Ok(opened.remove(0))
    }

    #[test]
    fn a_notification_is_opened() {
        let message = open(&notification()).unwrap();
        let event = message.event().unwrap();
        assert_eq!(message.content(), br#"{"order_id": "ord-1"}"#);
        assert_eq!(event.id.as_deref(), Some("da41e39f-ea4d-435a-b922-c6aae3915ebe"));
        assert_eq!(event.source.as_deref(), Some("arn:aws:sns:us-west-2:123456789012:MyTopic"));
        assert_eq!((event.subject.as_deref(), event.kind.as_deref()), (Some("test"), None));
        assert_eq!(event.time, Some(Timestamp::from_millis(1_335_390_565_719)));
        assert_eq!((event.attributes.text("tenant"), event.attributes.number("priority")), (Some("acme"), Some(7)));
        assert_eq!(event.attributes.bytes("digest"), Some(&[1, 2][..]));
        assert_eq!(event.attributes.get("tags").unwrap().data_type(), "String.Array");
        assert_eq!(message.trace(), Some("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"));
    }

    #[test]
    fn one_that_lies_is_rejected_without_being_quoted() {
        let attribute = |kind: &str, value: &str| json!({ "secret": { "Type": kind, "Value": value } });
        let many: serde_json::Map<_, _> =
            (0..=100).map(|n| (format!("a{n}"), json!({ "Type": "String", "Value": "secret" }))).collect();
        let rows = [
            ("/Message", Value::Null, "at JSON path Message"),
            ("/Message", json!({ "secret": 1 }), "at JSON path Message"),
            ("/Type", json!("secret"), "a Type that is none of SNS"),
            ("/Type", json!("SubscriptionConfirmation"), "SubscribeURL"),
            ("/Type", json!("UnsubscribeConfirmation"), "unsubscribed"),
            ("/TopicArn", json!(7), "at JSON path TopicArn"),
            ("/MessageId", json!(""), "an empty id"),
            ("/MessageId", json!("secret".repeat(342)), "an id of 2052 bytes; at most 2048"),
            ("/MessageAttributes", attribute("Number", "secret"), "the type Number, and is none"),
            ("/MessageAttributes", attribute("Number", "1e999"), "the type Number, and is none"),
            ("/MessageAttributes", attribute("Binary", "secret!"), "the type Binary, and is not Base64"),
            ("/MessageAttributes", attribute("secret", "secret"), "a type that is none of"),
            ("/MessageAttributes", json!({ "secret": "secret" }), "JSON path MessageAttributes.secret"),
            (
                "/MessageAttributes",
                json!({ "a": ["String", "secret"] }),
                "JSON path MessageAttributes.a: the value has",
            ),
            ("/MessageAttributes", Value::Object(many), "101 attributes; at most 100"),
        ];
        for (path, value, wanted) in rows {
            let mut body = notification();
            *body.pointer_mut(path).unwrap() = value;
            let rejection = open(&body).unwrap_err().to_string();
            assert!(rejection.contains(wanted), "{rejection}");
        }
        let mut body = notification();
        body.as_object_mut().unwrap().remove("Message");
        assert!(open(&body).unwrap_err().to_string().contains("field `Message` is missing"));
        let by_index = json!(["Notification", "m", "arn:aws:sns:eu-west-1:123456789012:t", null, "{}", null, null]);
        assert!(
            open(&by_index).unwrap_err().to_string().contains("the SNS envelope has the wrong shape at JSON path .:")
        );
        let pointer = json!(["com.amazon.sqs.javamessaging.MessageS3Pointer", { "s3BucketName": "b", "s3Key": "k" }]);
        assert!(open(&pointer).unwrap_err().to_string().contains("the SNS envelope is a pointer to a payload in S3"));
        assert!(open(&json!({ "order_id": "ord-1" })).unwrap_err().to_string().contains("SNS envelope"));
    }
}
