//! What a body is wrapped in on its way to the queue. Pure.

use std::fmt;
use std::str::FromStr;

use claimant_core::{Error, Timestamp};
use serde_json::{Value, json};

const REGION: &str = "us-east-1";
const ACCOUNT: &str = "000000000000";
const BUCKET: &str = "samples";

/// What a body is wrapped in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Envelope {
    /// Nothing: the body as it is.
    #[default]
    Plain,
    /// A notification of an SNS topic.
    Sns,
    /// An event of an EventBridge bus.
    EventBridge,
    /// An event of an EventBridge bus whose target is an SNS topic.
    EventBridgeSns,
    /// A CloudEvent in JSON.
    CloudEvents,
    /// What a bucket says of a new object, whose key is the body.
    S3,
    /// The same through an SNS topic.
    S3Sns,
    /// Each copy of a message in another one: as if a producer, a topic and a bus had all sent it.
    Each,
}

/// What an envelope says of the event in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapping {
    /// Where it comes from: the `source` of EventBridge and CloudEvents.
    pub source: String,
    /// What kind it is: the `detail-type` of EventBridge, the `type` of CloudEvents. The body's own `type` where `None`.
    pub kind: Option<String>,
}

impl Default for Wrapping {
    fn default() -> Self {
        Self { source: "claimant.send".to_owned(), kind: None }
    }
}

impl Envelope {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Sns,
        Self::EventBridge,
        Self::EventBridgeSns,
        Self::CloudEvents,
        Self::S3,
        Self::S3Sns,
        Self::Each,
    ];

    /// The ways that the copies of a message of [`Each`](Self::Each) take in turn.
    const TURNS: [Self; 4] = [Self::Plain, Self::Sns, Self::EventBridge, Self::EventBridgeSns];

    /// Returns its name, as options and pages have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Sns => "sns",
            Self::EventBridge => "eventbridge",
            Self::EventBridgeSns => "eventbridge-sns",
            Self::CloudEvents => "cloudevents",
            Self::S3 => "s3",
            Self::S3Sns => "s3-sns",
            Self::Each => "each",
        }
    }

    /// Returns what it is, in a few words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Plain => "as it is",
            Self::Sns => "through SNS",
            Self::EventBridge => "through EventBridge",
            Self::EventBridgeSns => "through EventBridge and SNS",
            Self::CloudEvents => "as a CloudEvent",
            Self::S3 => "S3: an object is new (the body is its key)",
            Self::S3Sns => "S3 through SNS (the body is its key)",
            Self::Each => "each copy another way",
        }
    }

    /// Returns a body in it. `copy` counts the messages of one sending, and tells the ids of their envelopes apart; `event` is the
    /// same in all copies of one message.
    ///
    /// # Errors
    /// When it carries only JSON and the body is none, or the body cannot be the key of an object. Quotes nothing of the body.
    pub fn wrap(
        self,
        body: &str,
        wrapping: &Wrapping,
        at: Timestamp,
        (event, copy): (usize, usize),
    ) -> Result<String, Error> {
        let id = |number: usize| format!("{:012x}-{number:08x}", at.as_millis());
        Ok(match self {
            Self::Plain => body.to_owned(),
            Self::Sns => sns(body, &id(copy), at),
            Self::EventBridge => eventbridge(body, wrapping, &id(copy), at)?,
            Self::EventBridgeSns => sns(&eventbridge(body, wrapping, &id(copy), at)?, &id(copy), at),
            Self::CloudEvents => cloudevent(body, wrapping, &id(event), at),
            Self::S3 => s3(body, &id(event), at)?,
            Self::S3Sns => sns(&s3(body, &id(event), at)?, &id(copy), at),
            Self::Each => return Self::TURNS[copy % Self::TURNS.len()].wrap(body, wrapping, at, (event, copy)),
        })
    }
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Envelope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|envelope| envelope.as_str() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|envelope| envelope.as_str()).collect();
            Error::invalid(format!("there is no such envelope: choose one of {}", names.join(", ")))
        })
    }
}

fn sns(body: &str, id: &str, at: Timestamp) -> String {
    json!({
        "Type": "Notification",
        "MessageId": id,
        "TopicArn": format!("arn:aws:sns:{REGION}:{ACCOUNT}:samples"),
        "Message": body,
        "Timestamp": at.to_utc(),
        "SignatureVersion": "1",
        "Signature": "EXAMPLE",
        "SigningCertURL": format!("https://sns.{REGION}.amazonaws.com/EXAMPLE.pem"),
        "UnsubscribeURL": format!("https://sns.{REGION}.amazonaws.com/?Action=Unsubscribe"),
    })
    .to_string()
}

fn eventbridge(body: &str, wrapping: &Wrapping, id: &str, at: Timestamp) -> Result<String, Error> {
    let detail: Value = serde_json::from_str(body)
        .ok()
        .filter(Value::is_object)
        .ok_or_else(|| Error::invalid("EventBridge carries a JSON object, and the body is none"))?;
    let event = json!({
        "version": "0",
        "id": id,
        "detail-type": kind(wrapping, &detail),
        "source": wrapping.source,
        "account": ACCOUNT,
        "time": at.to_utc(),
        "region": REGION,
        "resources": [],
        "detail": detail,
    });
    Ok(event.to_string())
}

fn cloudevent(body: &str, wrapping: &Wrapping, id: &str, at: Timestamp) -> String {
    let data = serde_json::from_str::<Value>(body);
    let content_type = if data.is_ok() { "application/json" } else { "text/plain" };
    let data = data.unwrap_or_else(|_| body.into());
    json!({
        "specversion": "1.0",
        "id": id,
        "source": wrapping.source,
        "type": kind(wrapping, &data),
        "time": at.to_utc(),
        "datacontenttype": content_type,
        "data": data,
    })
    .to_string()
}

/// What kind of event it is: as asked for, or as its own `type` says.
fn kind<'a>(wrapping: &'a Wrapping, data: &'a Value) -> &'a str {
    let own = || data["type"].as_str().filter(|kind| !kind.is_empty());
    wrapping.kind.as_deref().or_else(own).unwrap_or("sample")
}

fn s3(key: &str, version: &str, at: Timestamp) -> Result<String, Error> {
    if key.is_empty() || key.len() > 1_024 || key.starts_with(['{', '[']) || key.contains(char::is_control) {
        return Err(Error::invalid(
            "in the envelope of S3 the body is the key of an object, such as invoices/2026-{n}.pdf: 1 to 1,024 bytes",
        ));
    }
    let event = json!({ "Records": [{
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": REGION,
        "eventTime": at.to_utc(),
        "eventName": "ObjectCreated:Put",
        "s3": {
            "s3SchemaVersion": "1.0",
            "bucket": { "name": BUCKET, "arn": format!("arn:aws:s3:::{BUCKET}") },
            "object": {
                "key": encoded(key),
                "size": 1024,
                "eTag": "d41d8cd98f00b204e9800998ecf8427e",
                "versionId": version,
                "sequencer": "0055AED6DCD90281E5",
            },
        },
    }] });
    Ok(event.to_string())
}

/// A key as S3 writes it: as in forms, with `+` for a space.
fn encoded(key: &str) -> String {
    let mut text = String::new();
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' | b'/' => text.push(char::from(byte)),
            b' ' => text.push('+'),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use claimant_core::{Envelope as _, Message};
    use claimant_events::detect;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_795_379_820_123);

    /// The bodies of what the functions' own decoder takes out.
    fn opened(body: &str) -> Vec<String> {
        let message = Message::new("m-1", body).unwrap();
        let inner = detect().open(message).unwrap();
        inner.iter().map(|message| String::from_utf8(message.content().to_vec()).unwrap()).collect()
    }

    #[test]
    fn what_is_wrapped_is_found_again() {
        let body = r#"{"type":"order.paid","order_id":"ord-1"}"#;
        for envelope in Envelope::ALL {
            assert_eq!(envelope.as_str().parse::<Envelope>().unwrap(), envelope);
            for copy in 0..4 {
                let body = if envelope.as_str().starts_with("s3") { "2026/in voice €.pdf" } else { body };
                let wrapped = envelope.wrap(body, &Wrapping::default(), AT, (0, copy)).unwrap();
                let inner = opened(&wrapped);
                assert_eq!(inner.len(), 1, "{envelope}");
                let inner: Value = serde_json::from_str(&inner[0]).unwrap();
                if envelope.as_str().starts_with("s3") {
                    assert_eq!(inner["s3"]["object"]["key"].as_str(), Some("2026/in+voice+%E2%82%AC.pdf"));
                } else {
                    assert_eq!(inner, serde_json::from_str::<Value>(body).unwrap(), "{envelope}");
                }
            }
        }
        assert!("SNS".parse::<Envelope>().unwrap_err().to_string().contains("eventbridge-sns"));
    }

    #[test]
    fn copies_differ_and_an_event_keeps_its_id() {
        let wrapped = |envelope: Envelope, copy| envelope.wrap("{}", &Wrapping::default(), AT, (0, copy)).unwrap();
        for (envelope, same) in [(Envelope::Sns, false), (Envelope::EventBridge, false), (Envelope::CloudEvents, true)]
        {
            assert_eq!(wrapped(envelope, 0) == wrapped(envelope, 1), same, "{envelope}");
        }
        let ways: std::collections::BTreeSet<_> = (0..8).map(|copy| wrapped(Envelope::Each, copy)).collect();
        assert_eq!(ways.len(), 7, "the two that are plain are the same");
        let kind = Wrapping { kind: Some("order.sent".to_owned()), ..Wrapping::default() };
        let event = Envelope::EventBridge.wrap(r#"{"type": "x"}"#, &kind, AT, (0, 0)).unwrap();
        assert!(event.contains(r#""detail-type":"order.sent""#) && event.contains("claimant.send"), "{event}");
    }

    #[test]
    fn what_an_envelope_cannot_carry_is_refused() {
        for (envelope, body) in [
            (Envelope::EventBridge, "secret"),
            (Envelope::EventBridge, "[1]"),
            (Envelope::EventBridgeSns, "{"),
            (Envelope::S3, r#"{"secret": 1}"#),
            (Envelope::S3Sns, ""),
        ] {
            let why = envelope.wrap(body, &Wrapping::default(), AT, (0, 0)).unwrap_err().to_string();
            assert!(!why.contains("secret"), "{why}");
        }
        for envelope in [Envelope::Plain, Envelope::Sns, Envelope::CloudEvents] {
            assert!(envelope.wrap("not JSON", &Wrapping::default(), AT, (0, 0)).is_ok(), "{envelope}");
        }
    }
}
