//! Envelopes that are found out.

use std::borrow::Cow;
use std::fmt;

use claimant_core::envelope::{check_count, numbered};
use claimant_core::{Envelope, Message, Rejection};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::s3::Records;
use crate::{CloudEvents, EventBridge, NESTING_MAX, S3, Sns};

/// Opens whatever envelopes a message has, one inside the other, and leaves a message without one as it is: one queue then takes an
/// event directly, through SNS, through EventBridge or from S3.
///
/// An envelope is known by the fields that only it has:
///
/// | envelope | fields |
/// | --- | --- |
/// | [`Sns`] | `TopicArn`, and a `Type` of SNS |
/// | [`EventBridge`] | `detail-type` and `source` |
/// | [`S3`] | `Records`, the first of which has the `eventSource` `aws:s3`; or the `Event` `s3:TestEvent` |
/// | [`CloudEvents`] | `specversion`, `type` and `source` |
///
/// What has these fields and is no such envelope all the same is rejected, and so are an envelope that has one of them twice, and more than
/// [`NESTING_MAX`] envelopes in one another. Where a producer writes bodies with such fields of its own, name the envelopes instead.
///
/// ```
/// # use claimant_core as claimant;
/// # use claimant_events as envelope;
/// # use claimant::{Consumer, Context, HandlerError, memory::MemoryStore};
/// # #[derive(serde::Deserialize)]
/// # struct Order { order_id: String }
/// # async fn confirm(_: Order, _: Context) -> Result<(), HandlerError> { Ok(()) }
/// let consumer = Consumer::new("order-confirmation", MemoryStore::new(), confirm)
///     .envelope(envelope::detect())
///     .key(|order| &order.order_id);
/// ```
#[must_use]
pub const fn detect() -> Detect {
    Detect(())
}

/// Envelopes that are found out: see [`detect`].
#[derive(Debug, Clone, Copy)]
pub struct Detect(());

impl Envelope for Detect {
    fn open(&self, message: Message) -> Result<Vec<Message>, Rejection> {
        open(message, 0)
    }
}

fn open(message: Message, depth: usize) -> Result<Vec<Message>, Rejection> {
    let Some(envelope) = envelope_of(&message)? else { return Ok(vec![message]) };
    if depth == NESTING_MAX {
        return Err(Rejection::new(format!("envelopes are nested deeper than {NESTING_MAX}")));
    }
    let mut opened = Vec::new();
    for event in numbered(&message, envelope.open(message.clone())?) {
        opened.extend(open(event, depth + 1)?);
        check_count(opened.len())?;
    }
    Ok(opened)
}

/// Whether a field has what its envelope has in it.
type IsFit = fn(&RawValue) -> bool;

/// The fields by which envelopes are known.
const MARKS: [(&str, IsFit); 8] = [
    ("TopicArn", is_there),
    ("Type", |kind| is_one_of(kind, &["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"])),
    ("detail-type", is_there),
    ("source", is_there),
    ("Records", is_of_s3),
    ("Event", |event| is_one_of(event, &["s3:TestEvent"])),
    ("specversion", is_there),
    ("type", is_there),
];

/// The envelopes, each with the marks that it has.
const ENVELOPES: [(&dyn Envelope, &[&str]); 5] = [
    (&Sns, &["TopicArn", "Type"]),
    (&EventBridge, &["detail-type", "source"]),
    (&S3, &["Records"]),
    (&S3, &["Event"]),
    (&CloudEvents, &["specversion", "type", "source"]),
];

/// Returns the envelope that this is; `None` if it is none. What is not JSON is none, and what reads it says so.
///
/// # Errors
/// When it is an envelope, and one of the marks is there twice: what it is depends on who reads it. Payloads may have such fields twice.
fn envelope_of(message: &Message) -> Result<Option<&'static dyn Envelope>, Rejection> {
    let text = std::str::from_utf8(message.content()).ok().filter(|text| text.trim_start().starts_with('{'));
    let Some(text) = text else { return Ok(None) };
    let (mut seen, mut fits, mut twice) = ([false; MARKS.len()], [false; MARKS.len()], None);
    let read = each_field(text, |name, value| {
        let Some(index) = MARKS.iter().position(|(mark, _)| *mark == name) else { return };
        let (mark, is_fit) = MARKS[index];
        if seen[index] {
            twice = Some(mark);
        }
        seen[index] = true;
        fits[index] |= is_fit(value);
    });
    if read.is_err() {
        return Ok(None);
    }
    let has = |mark: &&str| MARKS.iter().zip(fits).any(|((name, _), fits)| name == mark && fits);
    let envelope = ENVELOPES.iter().find(|(_, marks)| marks.iter().all(has)).map(|(envelope, _)| *envelope);
    match twice {
        Some(mark) if envelope.is_some() => {
            Err(message.rejection(format!("is an envelope, and its field `{mark}` is there twice")))
        }
        _ => Ok(envelope),
    }
}

/// Returns whether there is a value; null is none.
fn is_there(value: &RawValue) -> bool {
    value.get() != "null"
}

fn is_one_of(value: &RawValue, texts: &[&str]) -> bool {
    serde_json::from_str(value.get()).is_ok_and(|text: String| texts.contains(&text.as_str()))
}

/// Returns whether these are records of S3, by the first of them.
fn is_of_s3(records: &RawValue) -> bool {
    let records: Option<Records<'_>> = serde_json::from_str(records.get()).ok();
    let Some(first) = records.as_ref().and_then(|records| records.first.first()) else { return false };
    let mut is = false;
    let read = each_field(first.get(), |name, value| is |= name == "eventSource" && is_one_of(value, &["aws:s3"]));
    read.is_ok() && is
}

/// Shows each field of an object, also where one is there twice.
fn each_field(object: &str, see: impl FnMut(&str, &RawValue)) -> serde_json::Result<()> {
    #[derive(Deserialize)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

    struct Fields<F>(F);

    impl<'de, F: FnMut(&str, &RawValue)> Visitor<'de> for Fields<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
            while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                (self.0)(&name, value);
            }
            Ok(())
        }
    }

    let mut reader = serde_json::Deserializer::from_str(object);
    reader.deserialize_map(Fields(see))?;
    reader.end()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn sns(message: &Value) -> Value {
        json!({
            "Type": "Notification", "MessageId": "sns-1", "TopicArn": "arn:aws:sns:eu-west-1:123456789012:t",
            "Message": message.to_string(), "Timestamp": "2012-04-25T21:49:25.719Z",
        })
    }

    fn put(detail: Value) -> Value {
        json!({ "version": "0", "id": "eb-1", "detail-type": "k", "source": "s", "time": "2017-12-22T18:43:48Z", "detail": detail })
    }

    fn record(key: &str) -> Value {
        let object = json!({ "key": key, "versionId": "v", "sequencer": "01" });
        json!({ "eventSource": "aws:s3", "eventName": "ObjectCreated:Put", "s3": { "bucket": { "name": "b" }, "object": object } })
    }

    fn cloud_event(data: Value) -> Value {
        json!({ "specversion": "1.0", "id": "ce-1", "source": "s", "type": "t", "data": data })
    }

    fn opened(body: &str) -> Result<Vec<Message>, Rejection> {
        detect().open(Message::new("m", body).unwrap())
    }

    /// The ids and the contents of what is in a body.
    fn events(body: &Value) -> Vec<(Option<String>, Value)> {
        let events = opened(&body.to_string()).unwrap().into_iter();
        let read = |message: &Message| serde_json::from_slice(message.content()).unwrap();
        events.map(|message| (message.event().and_then(|event| event.id.clone()), read(&message))).collect()
    }

    #[test]
    fn every_form_holds_the_same_event() {
        let event = json!({ "order_id": "ord-1", "type": "paid", "total": 7 });
        for (body, id) in [
            (event.clone(), None),
            (sns(&event), Some("sns-1")),
            (put(event.clone()), Some("eb-1")),
            (sns(&put(event.clone())), Some("eb-1")),
            (cloud_event(event.clone()), Some("s ce-1")),
            (put(cloud_event(event.clone())), Some("s ce-1")),
            (sns(&sns(&sns(&sns(&event)))), Some("sns-1")),
        ] {
            assert_eq!(events(&body), [(id.map(str::to_owned), event.clone())], "{body}");
        }
        let notification = json!({ "Records": [record("a+b"), record("c")] });
        for body in [notification.clone(), sns(&notification)] {
            let wanted = [("b/a b@v", record("a+b")), ("b/c@v", record("c"))];
            assert_eq!(events(&body), wanted.map(|(id, record)| (Some(id.to_owned()), record)));
        }
        assert_eq!(events(&sns(&json!({ "Service": "Amazon S3", "Event": "s3:TestEvent" }))), []);
    }

    /// What happened to an object in a bucket without versions.
    fn tagged(key: &str) -> Value {
        let s3 = json!({ "bucket": { "name": "b" }, "object": { "key": key } });
        json!({ "eventSource": "aws:s3", "eventName": "ObjectTagging:Put", "s3": s3 })
    }

    #[test]
    fn events_without_an_id_get_one_each() {
        let notification = json!({ "Records": [tagged("a"), tagged("b")] });
        for (body, around) in [(notification.clone(), "m"), (sns(&notification), "sns-1"), (put(notification), "eb-1")]
        {
            let ids = events(&body).into_iter().map(|(id, _)| id.unwrap());
            assert_eq!(ids.collect::<Vec<_>>(), [1, 2].map(|number| format!("{around}#{number}")));
        }
    }

    #[test]
    fn what_is_said_of_all_events_is_there_once() {
        let mut body = sns(&json!({ "Records": [tagged("a"), tagged("b")] }));
        body["MessageAttributes"] = json!({ "tenant": { "Type": "String", "Value": "acme" } });
        let opened = opened(&body.to_string()).unwrap();
        let tenants = opened.iter().map(|message| message.attribute("tenant").unwrap().as_text().unwrap());
        let [one, other] = tenants.collect::<Vec<_>>()[..] else { panic!("two events") };
        assert!(one == "acme" && std::ptr::eq(one, other), "with a copy for each event, a message is a bomb");
    }

    #[test]
    fn no_more_events_are_opened_than_a_message_may_hold() {
        let of = |records: Vec<Value>| {
            let mut record = record("a");
            record["Records"] = records.into();
            record
        };
        let nested = (0..3).fold(record("a"), |inner, _| of(vec![inner; 20]));
        let rejection = opened(&nested.to_string()).map(|events| events.len()).unwrap_err().to_string();
        assert!(rejection.contains("at most 100 are allowed"), "{rejection}");
        let most = of(vec![of(vec![record("a"); 50]); 2]);
        assert_eq!(opened(&most.to_string()).unwrap().len(), 100);
    }

    #[test]
    fn what_only_resembles_an_envelope_stays_as_it_is() {
        for body in [
            r#"{"Type":"Notification","Message":"a"}"#,
            r#"{"Type":"Order","TopicArn":"a","Message":"b"}"#,
            r#"{"source":"shop","type":"paid","id":"1"}"#,
            r#"{"Records":[{"eventSource":"aws:sqs"}]}"#,
            r#"{"Records":[]}"#,
            r#"{"Records":7,"Event":"paid"}"#,
            r#"{"detail-type":"a"}"#,
            r#"["software.amazon.payloadoffloading.PayloadS3Pointer",{}]"#,
            r#"{"Type":"Notification","TopicArn":"a""#,
            r#"{"source":"a","source":"b""#,
            r#"{"source":"a","source":"b","type":"k"}"#,
            r#"{"type":"OrderPaid","order_id":"7","type":null}"#,
            r#"{"Records":[["aws:s3"]],"Records":7}"#,
            "text",
            "",
        ] {
            let messages = opened(body).unwrap();
            assert_eq!(
                (messages.len(), messages[0].content(), messages[0].event()),
                (1, body.as_bytes(), None),
                "{body}"
            );
        }
    }

    #[test]
    fn what_has_the_fields_and_lies_is_rejected() {
        let five = sns(&sns(&sns(&sns(&sns(&json!({}))))));
        let bomb = (0..12).fold(json!({}), |inner, _| sns(&inner));
        for (body, wanted) in [
            (json!({ "Type": "Notification", "TopicArn": "secret" }), "field `MessageId` is missing"),
            (json!({ "detail-type": "secret", "source": 7, "detail": {} }), "EventBridge envelope"),
            (json!({ "Records": [record("a"), { "secret": 1 }] }), "record 2 of 2"),
            (
                sns(&json!({ "specversion": "secret", "type": "t", "source": "s" })),
                "the CloudEvents envelope in the `Message` of the SNS envelope has a `specversion`",
            ),
            (json!({ "specversion": "secret", "type": "t", "source": "s" }), "not 1.0"),
            (five, "nested deeper than 4"),
            (bomb, "nested deeper than 4"),
        ] {
            let rejection = opened(&body.to_string()).unwrap_err().to_string();
            assert!(rejection.contains(wanted) && !rejection.contains("secret"), "{rejection}");
        }
        for (body, field) in [
            (r#"{"detail-type":"secret","source":"a","source":"b","id":"1","detail":{}}"#, "source"),
            (r#"{"Type":"Notification","Type":"secret","TopicArn":"a","MessageId":"m","Message":"{}"}"#, "Type"),
            (r#"{"specversion":"1.0","type":"secret","type":null,"source":"a","id":"1","data":{}}"#, "type"),
            (r#"{"Records":[{"eventSource":"aws:s3"}],"Records":["secret"]}"#, "Records"),
            (r#"{"Event":"secret","Event":"s3:TestEvent"}"#, "Event"),
            (r#"{"Records":[{"eventSource":"aws:s3","eventSource":"secret","eventName":"e"}]}"#, "eventSource"),
        ] {
            let rejection = opened(body).unwrap_err().to_string();
            let wanted = format!("field `{field}` is there twice");
            assert!(rejection.contains(&wanted) && !rejection.contains("secret"), "{rejection}");
        }
    }

    /// What is looked for where an envelope is not opened is what `detect()` opens.
    #[test]
    fn what_is_no_envelope_of_the_one_that_is_named_is_called_by_its_own() {
        let bodies = [
            (sns(&json!({})), "Sns"),
            (put(json!({})), "EventBridge"),
            (json!({ "Records": [record("a")] }), "S3"),
            (json!({ "Service": "Amazon S3", "Event": "s3:TestEvent" }), "S3"),
            (cloud_event(json!({})), "CloudEvents"),
        ];
        let envelopes: [(&dyn Envelope, _); 4] =
            [(&Sns, "Sns"), (&EventBridge, "EventBridge"), (&S3, "S3"), (&CloudEvents, "CloudEvents")];
        for (body, name) in bodies {
            let message = Message::new("m", body.to_string()).unwrap();
            assert!(detect().open(message.clone()).unwrap().iter().all(|event| event.event().is_some()), "{body}");
            for (envelope, named) in envelopes {
                let opened = envelope.open(message.clone());
                assert_eq!(opened.is_ok(), name == named, "{named}: {body}");
                let Err(rejection) = opened else { continue };
                let fix = format!("`.envelope(envelope::{name})` belongs in the place of this one, or before it");
                assert!(rejection.to_string().ends_with(&fix), "{named}: {rejection}");
            }
        }
        let raw = Sns.open(Message::new("m", r#"{"order_id":"o-1"}"#).unwrap()).unwrap_err().to_string();
        assert!(raw.ends_with("it is no message of SNS: with raw message delivery there is no envelope"), "{raw}");
    }

    /// Each of the records is two bytes: a list of them would have sixteen for each.
    #[test]
    fn what_are_no_records_are_counted_and_not_kept() {
        let many = format!(r#"{{"Records":[{}{}]}}"#, record("a"), ",0".repeat(1_000));
        let rejection = opened(&many).unwrap_err().to_string();
        assert!(rejection.contains("has 1001 records; at most 100 are allowed"), "{rejection}");
        let none = many.replace("aws:s3", "aws:sqs");
        assert_eq!(opened(&none).unwrap()[0].content(), none.as_bytes());
    }
}
