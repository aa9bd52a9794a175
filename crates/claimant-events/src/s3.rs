//! S3: a notification with records of what happened to objects.

use std::fmt;

use claimant_core::decode::{Form, not_the_envelope};
use claimant_core::{Envelope, Event, Fingerprint, Message, Rejection, Timestamp};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::json;
use serde_json::value::RawValue;

use crate::RECORDS_MAX;
use crate::values::{self, Object};

const WORD: &str = "the S3 notification";

/// The notification of S3: each of its records is an event of its own, and the message is done when all are. Its payload is an
/// [`S3Record`], or any other type that decodes from a record.
///
/// The event's id is that of [`S3Record::id`]: the same in each notification of it. Its kind is the `eventName` (`ObjectCreated:Put`),
/// its source the bucket, its subject the object's key, decoded. A consumer without a key rule has that id as its key, so that what is
/// created and later removed under one version is one piece of work, and the second event a conflict. So is a delete marker that is made
/// and later removed. Where a notification has several kinds, or `ObjectRemoved:*` of a bucket with versions, put the kind into the key.
///
/// `s3:TestEvent`, which S3 sends when a notification is set up, holds no event: the message is acknowledged and counted as `empty`.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_events as envelope;
/// use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// use envelope::{S3, S3Record};
///
/// async fn make_thumbnail(object: S3Record, _: Context) -> Result<(), HandlerError> {
///     println!("{} in {}", object.key, object.bucket);
///     Ok(())
/// }
///
/// let consumer = Consumer::new("thumbnails", MemoryStore::new(), make_thumbnail).envelope(S3);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct S3;

/// One record of a notification: what happened to which object.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Object<Record>")]
#[non_exhaustive]
pub struct S3Record {
    /// What happened: `ObjectCreated:Put`. Some kinds come with `s3:` in front.
    pub event_name: String,
    /// When it happened.
    pub time: Option<Timestamp>,
    /// The Region of the bucket.
    pub region: Option<String>,
    /// The bucket's name.
    pub bucket: String,
    /// The object's key, decoded: as other calls of S3 want it.
    pub key: String,
    /// The object's version, in a bucket that keeps versions.
    pub version_id: Option<String>,
    /// What orders the events of one key: padded with zeros to one length, the larger one is later. Only where objects are created or
    /// deleted; others can have one, too, which for replications is that of the creation.
    pub sequencer: Option<String>,
    /// The object's size in bytes, where there is one.
    pub size: Option<u64>,
    /// The object's entity tag.
    pub etag: Option<String>,
    /// The id of the rule by which the object was to be replicated, of an event of replication.
    pub replication_rule: Option<String>,
}

impl S3Record {
    /// Returns `bucket/key@versionId`, or `bucket/key@sequencer` where there is no version. What is neither created nor removed can happen to
    /// one version again and again (it is tagged, restored, not replicated), and has its time, too, in milliseconds, and the rule of a
    /// replication: `bucket/key@versionId@1795348800000@rule`.
    ///
    /// `None` where there is neither version nor sequencer, or no time where that is needed.
    #[must_use]
    pub fn id(&self) -> Option<String> {
        let of = self.version_id.as_ref().or(self.sequencer.as_ref())?;
        let mut id = format!("{}/{}@{of}", self.bucket, self.key);
        if !self.is_once() {
            let rule = self.replication_rule.as_ref().map(|rule| format!("@{rule}"));
            id = format!("{id}@{}{}", self.time?.as_millis(), rule.unwrap_or_default());
        }
        Some(id)
    }

    /// Returns whether its kind happens to one version once. The sequencer does not tell: restores have one, too, and all events of a version's
    /// replication have that of its creation.
    fn is_once(&self) -> bool {
        self.kind().starts_with("ObjectCreated:") || self.kind().starts_with("ObjectRemoved:")
    }

    /// Returns its kind, which has one spelling. In the fingerprint the name stays as it came: records of a store hold it.
    fn kind(&self) -> &str {
        self.event_name.strip_prefix("s3:").unwrap_or(&self.event_name)
    }

    /// Two notifications of one event can differ in what is not compared here, such as the id of a request.
    fn fingerprint(&self) -> Fingerprint {
        let Self { event_name, bucket, key, version_id, sequencer, size, etag, .. } = self;
        let happened = json!([event_name, bucket, key, version_id, sequencer, size, etag]);
        Fingerprint::of_json(&match &self.replication_rule {
            None => happened,
            Some(rule) => json!([happened, rule]),
        })
    }
}

// Keys of objects can be personal data.
impl fmt::Debug for S3Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Record")
            .field("event_name", &self.event_name)
            .field("bucket", &self.bucket)
            .finish_non_exhaustive()
    }
}

/// As S3 writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    event_source: String,
    event_name: String,
    #[serde(default)]
    event_time: Option<String>,
    #[serde(default)]
    aws_region: Option<String>,
    s3: Object<Entity>,
    #[serde(default)]
    replication_event_data: Option<Object<Replication>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replication {
    #[serde(default)]
    replication_rule_id: Option<String>,
}

#[derive(Deserialize)]
struct Entity {
    bucket: Object<Bucket>,
    object: Object<Entry>,
}

#[derive(Deserialize)]
struct Bucket {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    key: String,
    #[serde(default)]
    version_id: Option<String>,
    #[serde(default)]
    sequencer: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    e_tag: Option<String>,
}

impl TryFrom<Object<Record>> for S3Record {
    type Error = String;

    fn try_from(Object(record): Object<Record>) -> Result<Self, String> {
        let Record { event_source, event_name, event_time, aws_region, s3, replication_event_data } = record;
        let Object(Entity { bucket: Object(bucket), object: Object(object) }) = s3;
        if event_source != "aws:s3" {
            return Err("has an eventSource that is not aws:s3".to_owned());
        }
        let plus = object.key.replace('+', " ");
        let key = percent_decode_str(&plus).decode_utf8().map_err(|_| "has an object key that is not UTF-8")?;
        if bucket.name.is_empty() || key.is_empty() {
            return Err("names no object".to_owned());
        }
        // A bucket whose versioning is suspended calls every version `null`.
        let version_id = object.version_id.filter(|version| !version.is_empty() && version != "null");
        Ok(Self {
            event_name,
            time: values::time(event_time.as_deref()),
            region: aws_region,
            bucket: bucket.name,
            key: key.into_owned(),
            version_id,
            sequencer: object.sequencer.filter(|sequencer| !sequencer.is_empty()),
            size: object.size,
            etag: object.e_tag,
            replication_rule: replication_event_data.and_then(|Object(of)| of.replication_rule_id),
        })
    }
}

#[derive(Deserialize)]
struct Notification<'a> {
    #[serde(rename = "Records", borrow, default)]
    records: Option<Records<'a>>,
    #[serde(rename = "Event", default)]
    event: Option<String>,
}

/// The records of a notification: as many of them as may be there, and how many there are.
pub(crate) struct Records<'a> {
    pub(crate) first: Vec<&'a RawValue>,
    count: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Records<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RecordsVisitor)
    }
}

struct RecordsVisitor;

impl<'de> Visitor<'de> for RecordsVisitor {
    type Value = Records<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Records<'de>, A::Error> {
        let mut records = Records { first: Vec::new(), count: 0 };
        while let Some(record) = items.next_element()? {
            records.count += 1;
            if records.count <= RECORDS_MAX {
                records.first.push(record);
            }
        }
        Ok(records)
    }
}

impl Envelope for S3 {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        let Object(notification): Object<Notification<'_>> = values::read(&message, WORD, Form::S3)?;
        let records = match (notification.records, notification.event.as_deref()) {
            (None, Some("s3:TestEvent")) => return Ok(Vec::new()),
            (Some(records), None) if records.count > 0 => records,
            _ => {
                let fault = not_the_envelope("has no records, and is no s3:TestEvent", message.content(), Form::S3);
                return Err(message.rejection_as(WORD, fault));
            }
        };
        let Records { first: records, count } = records;
        if count > RECORDS_MAX {
            let fault = format!("has {count} records; at most {RECORDS_MAX} are allowed");
            return Err(message.rejection_as(WORD, fault));
        }
        let opened = records.into_iter().enumerate().map(|(index, record)| {
            let word = format!("record {} of {count} of {WORD}", index + 1);
            let wire: Object<Record> = values::read_part(&message, &word, record)?;
            let read = S3Record::try_from(wire).map_err(|why| message.rejection_as(&word, why))?;
            let event = event_of(&message, &word, read)?;
            Ok(message.clone().opened(record.get(), event).with_part_name(word))
        });
        opened.collect()
    }
}

/// Errors call the record by this word.
fn event_of(message: &Message, word: &str, record: S3Record) -> Result<Event, Rejection> {
    let mut event = Event::default();
    event.id = record.id().map_or(Ok(None), |id| values::id(message, word, id))?;
    event.fingerprint = Some(record.fingerprint());
    event.time = record.time;
    event.kind = Some(record.kind().to_owned());
    (event.source, event.subject) = (Some(record.bucket), Some(record.key));
    Ok(event)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// As in S3's documentation.
    fn record(key: &str) -> Value {
        json!({
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": "us-west-2",
            "eventTime": "1970-01-01T00:00:00.000Z",
            "eventName": "ObjectCreated:Put",
            "userIdentity": { "principalId": "AIDAJDPLRKLG7UEXAMPLE" },
            "requestParameters": { "sourceIPAddress": "172.16.0.1" },
            "responseElements": { "x-amz-request-id": "C3D13FE58DE4C810", "x-amz-id-2": "FMyUVURIY8/IgAtTv8xRjskZQpcIZ9KG4V5Wp6S7S" },
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": "testConfigRule",
                "bucket": { "name": "amzn-s3-demo-bucket", "ownerIdentity": { "principalId": "A3NL1KOZZKExample" }, "arn": "arn:aws:s3:::amzn-s3-demo-bucket" },
                "object": { "key": key, "size": 1024, "eTag": "d41d8cd98f00b204e9800998ecf8427e", "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko", "sequencer": "0055AED6DCD90281E5" },
            },
        })
    }

    fn open(body: &Value) -> Result<Vec<Message>, Rejection> {
        S3.open(Message::new("m", body.to_string()).unwrap())
    }

    fn id(record: Value) -> Option<String> {
        open(&json!({ "Records": [record] })).unwrap()[0].event().unwrap().id.clone()
    }

    #[test]
    fn each_record_is_an_event() {
        let opened = open(&json!({ "Records": [record("red+flower%2B%C3%A9.jpg"), record("b")] })).unwrap();
        let event = opened[0].event().unwrap();
        let wanted = "amzn-s3-demo-bucket/red flower+é.jpg@096fKKXTRTtl3on89fVO.nfljtsv6qko";
        assert_eq!((opened.len(), event.id.as_deref()), (2, Some(wanted)));
        assert_eq!(
            (event.kind.as_deref(), event.source.as_deref()),
            (Some("ObjectCreated:Put"), Some("amzn-s3-demo-bucket"))
        );
        assert_eq!(event.subject.as_deref(), Some("red flower+é.jpg"));
        let read: S3Record = serde_json::from_slice(opened[0].content()).unwrap();
        assert_eq!(
            (read.key.as_str(), read.size, read.time),
            ("red flower+é.jpg", Some(1_024), Some(Timestamp::default()))
        );
        assert_eq!(
            format!("{read:?}"),
            r#"S3Record { event_name: "ObjectCreated:Put", bucket: "amzn-s3-demo-bucket", .. }"#
        );
    }

    #[test]
    fn a_kind_has_one_spelling_and_the_fingerprint_that_of_the_record() {
        let mut record = record("a");
        record["eventName"] = json!("s3:ObjectRestore:Completed");
        let opened = open(&json!({ "Records": [record] })).unwrap();
        let event = opened[0].event().unwrap();
        let read: S3Record = serde_json::from_slice(opened[0].content()).unwrap();
        assert_eq!(event.kind.as_deref(), Some("ObjectRestore:Completed"));
        assert_eq!(read.event_name, "s3:ObjectRestore:Completed");
        let S3Record { event_name, bucket, key, version_id, sequencer, size, etag, .. } = read;
        let happened = json!([event_name, bucket, key, version_id, sequencer, size, etag]);
        assert_eq!(event.fingerprint, Some(Fingerprint::of_json(&happened)));
    }

    #[test]
    fn a_second_notification_of_an_event_is_the_same_event() {
        let fingerprint =
            |record: Value| open(&json!({ "Records": [record] })).unwrap()[0].event().unwrap().fingerprint;
        let mut again = record("a");
        again["responseElements"]["x-amz-request-id"] = json!("another");
        assert_eq!(fingerprint(again), fingerprint(record("a")));
        let mut removed = record("a");
        removed["eventName"] = json!("ObjectRemoved:Delete");
        assert_ne!(fingerprint(removed), fingerprint(record("a")));
        let failed = |rule: &str| {
            let mut failed = record("a");
            failed["replicationEventData"] = json!({ "replicationRuleId": rule });
            fingerprint(failed)
        };
        assert_ne!(failed("to the east"), failed("to the west"));
    }

    #[test]
    fn the_id_of_what_can_happen_again_has_its_time_whatever_its_sequencer_says() {
        let at = "1795348800000";
        for (kind, version, sequencer, rule, wanted) in [
            ("ObjectRemoved:DeleteMarkerCreated", json!("v1"), json!("05"), json!(null), Some("v1".to_owned())),
            ("s3:ObjectCreated:Put", json!("v1"), json!(null), json!(null), Some("v1".to_owned())),
            ("ObjectRestore:Completed", json!("v1"), json!("05"), json!(null), Some(format!("v1@{at}"))),
            ("ObjectRestore:Completed", json!(null), json!("05"), json!(null), Some(format!("05@{at}"))),
            (
                "Replication:OperationFailedReplication",
                json!("v1"),
                json!("05"),
                json!("r"),
                Some(format!("v1@{at}@r")),
            ),
            ("s3:LifecycleTransition", json!("v1"), json!(null), json!(null), Some(format!("v1@{at}"))),
            ("ObjectTagging:Put", json!(null), json!(null), json!(null), None),
        ] {
            let mut record = record("a");
            record["eventName"] = json!(kind);
            record["eventTime"] = json!("2026-11-22T12:00:00.000Z");
            record["s3"]["object"]["versionId"] = version;
            record["s3"]["object"]["sequencer"] = sequencer;
            record["replicationEventData"] = json!({ "replicationRuleId": rule, "s3Operation": "OBJECT_PUT" });
            assert_eq!(id(record), wanted.map(|of| format!("amzn-s3-demo-bucket/a@{of}")), "{kind}");
        }
        let mut without_time = record("a");
        (without_time["eventName"], without_time["eventTime"]) = (json!("ObjectTagging:Put"), json!("noon"));
        assert_eq!(id(without_time), None);
    }

    #[test]
    fn the_id_is_of_the_version_or_else_of_the_sequencer() {
        const NOON: &str = "2026-11-22T12:00:00.000Z";
        for (version, sequencer, time, wanted) in [
            (json!("v1"), json!("05"), NOON, Some("amzn-s3-demo-bucket/a@v1")),
            (json!("null"), json!("05"), NOON, Some("amzn-s3-demo-bucket/a@05")),
            (json!(null), json!("05"), NOON, Some("amzn-s3-demo-bucket/a@05")),
            (json!(""), json!(""), NOON, None),
            (json!("v1"), json!("05"), "noon", Some("amzn-s3-demo-bucket/a@v1")),
        ] {
            let mut record = record("a");
            record["eventTime"] = json!(time);
            record["s3"]["object"]["versionId"] = version;
            record["s3"]["object"]["sequencer"] = sequencer;
            assert_eq!(id(record).as_deref(), wanted);
        }
    }

    #[test]
    fn a_test_event_holds_nothing() {
        let test = json!({
            "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2014-10-13T15:57:02.089Z",
            "Bucket": "amzn-s3-demo-bucket", "RequestId": "5582815E1AEA5ADF", "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
        });
        assert_eq!(open(&test).unwrap().len(), 0);
    }

    #[test]
    fn one_that_lies_is_rejected_without_being_quoted() {
        let changed = |path: &str, value: Value| {
            let mut record = record("secret");
            *record.pointer_mut(path).unwrap() = value;
            json!({ "Records": [self::record("secret"), record] })
        };
        for (body, wanted) in [
            (json!({ "Records": [] }), "has no records"),
            (json!({ "Event": "s3:secret" }), "no s3:TestEvent"),
            (json!({ "Event": "s3:TestEvent", "Records": [record("secret")] }), "no s3:TestEvent"),
            (json!({ "Records": "secret" }), "at JSON path Records"),
            (json!({ "Records": vec!["secret"; 5_000] }), "5000 records; at most 100"),
            (changed("/eventSource", json!("aws:sns")), "record 2 of 2 of the S3 notification has an eventSource"),
            (changed("/s3/bucket", json!({})), "at JSON path s3.bucket: field `name` is missing"),
            (changed("/s3/bucket", json!(["secret"])), "at JSON path s3.bucket: the value has the wrong type or form"),
            (changed("/s3/object", json!(["secret", null, null, 5, null])), "at JSON path s3.object: the value has"),
            (changed("/s3", json!([{ "name": "secret" }, { "key": "a" }])), "at JSON path s3: the value has"),
            (
                changed("", json!(["aws:s3", "secret"])),
                "record 2 of 2 of the S3 notification has the wrong shape at JSON path .:",
            ),
            (json!([[record("secret")], null]), "the S3 notification has the wrong shape at JSON path .:"),
            (changed("/s3/object/key", json!("%FFsecret")), "an object key that is not UTF-8"),
            (changed("/s3/object/key", json!("")), "names no object"),
            (changed("/s3/object/size", json!(-1)), "at JSON path s3.object.size"),
            (
                changed("/s3/object/key", json!("secret".repeat(400))),
                "record 2 of 2 of the S3 notification has an id of",
            ),
        ] {
            let rejection = open(&body).unwrap_err().to_string();
            assert!(rejection.contains(wanted) && !rejection.contains("secret"), "{rejection}");
        }
    }
}
