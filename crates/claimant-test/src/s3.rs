//! Notifications of S3.

use serde_json::{Value, json};

/// The sequencers of what is created and of what is removed, unless set.
const CREATED: &str = "0055AED6DCD90281E5";
const REMOVED: &str = "0055AED6DCD90281E6";

/// One record of a notification of S3: for [`TestMessage::s3`](crate::TestMessage::s3).
#[derive(Debug, Clone)]
pub struct S3Object {
    event: String,
    bucket: String,
    key: String,
    size: u64,
    version: Option<String>,
    sequencer: String,
}

impl S3Object {
    /// Returns the record of an object that was put into a bucket without versions. The key is given as it is, and URL-encoded in
    /// the record, as S3 does.
    ///
    /// Two such events of one key are one event, unless each has a [sequencer](Self::sequencer) or a [version](Self::version) of its own, as
    /// in S3.
    #[must_use]
    pub fn created(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            event: "ObjectCreated:Put".to_owned(),
            bucket: bucket.into(),
            key: key.into(),
            size: 1_024,
            version: None,
            sequencer: CREATED.to_owned(),
        }
    }

    /// Returns the record of an object that was removed, later than [`created`](Self::created).
    #[must_use]
    pub fn removed(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self { event: "ObjectRemoved:Delete".to_owned(), ..Self::created(bucket, key).sequencer(REMOVED) }
    }

    /// Returns the same of a bucket with versions.
    #[must_use]
    pub fn version(self, version: impl Into<String>) -> Self {
        Self { version: Some(version.into()), ..self }
    }

    /// Returns the same with this sequencer, which orders the events of one key: hexadecimal digits.
    #[must_use]
    pub fn sequencer(self, sequencer: impl Into<String>) -> Self {
        Self { sequencer: sequencer.into(), ..self }
    }

    /// Returns the same of an object of this many bytes.
    #[must_use]
    pub fn size(self, bytes: u64) -> Self {
        Self { size: bytes, ..self }
    }

    fn object(&self) -> Value {
        let mut object = json!({ "key": url_encoded(&self.key), "sequencer": self.sequencer });
        if self.event.starts_with("ObjectCreated") {
            object["size"] = json!(self.size);
            object["eTag"] = json!("d41d8cd98f00b204e9800998ecf8427e");
        }
        if let Some(version) = &self.version {
            object["versionId"] = json!(version);
        }
        object
    }

    fn record(&self, time: &str) -> Value {
        json!({
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": "us-east-1",
            "eventTime": time,
            "eventName": self.event,
            "userIdentity": { "principalId": "AWS:AIDAEXAMPLE" },
            "requestParameters": { "sourceIPAddress": "203.0.113.7" },
            "responseElements": { "x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMyUVURIY8" },
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": "to-the-queue",
                "bucket": {
                    "name": self.bucket,
                    "ownerIdentity": { "principalId": "A3NL1KOZZKExample" },
                    "arn": format!("arn:aws:s3:::{}", self.bucket),
                },
                "object": self.object(),
            },
        })
    }
}

/// Returns the body of a notification.
pub(crate) fn notification(records: &[S3Object], time: &str) -> String {
    json!({ "Records": records.iter().map(|record| record.record(time)).collect::<Vec<_>>() }).to_string()
}

/// Returns what S3 sends when a notification is set up.
pub(crate) fn test_event(bucket: &str, time: &str) -> String {
    let event = json!({
        "Service": "Amazon S3",
        "Event": "s3:TestEvent",
        "Time": time,
        "Bucket": bucket,
        "RequestId": "5582815E1AEA5ADF",
        "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
    });
    event.to_string()
}

/// Returns a key as notifications have it: as in a form, with `+` for a space.
fn url_encoded(key: &str) -> String {
    let byte = |byte: u8| match byte {
        b' ' => "+".to_owned(),
        b'-' | b'.' | b'_' | b'*' | b'/' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    key.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_as_in_a_form() {
        assert_eq!(url_encoded("in/a b+c ä.csv"), "in/a+b%2Bc+%C3%A4.csv");
    }
}
