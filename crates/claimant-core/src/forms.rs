//! The envelope that a JSON text is in, where it is read as something else: what its error says of that.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

/// An envelope that messages come in, by the fields that only it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `TopicArn`, and a `Type` of SNS.
    Sns,
    /// `detail-type` and `source`.
    EventBridge,
    /// `Records`, the first of S3; or its test.
    S3,
    /// `specversion`, `type` and `source`.
    CloudEvents,
}

impl Form {
    /// Returns the form of a JSON text; `None` if it has none of them.
    fn of(text: &str) -> Option<Self> {
        let marks: Marks = serde_json::from_str(text).ok()?;
        let is_sns = ["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"];
        let is_test = marks.event.is_some_and(|event| event == "s3:TestEvent");
        if marks.topic_arn.is_some() && marks.of_sns.is_some_and(|of| is_sns.contains(&of.as_str())) {
            Some(Self::Sns)
        } else if marks.detail_type.is_some() && marks.source.is_some() {
            Some(Self::EventBridge)
        } else if is_test
            || marks.records.is_some_and(|First(record)| record.source.is_some_and(|of| of.ends_with(":s3")))
        {
            Some(Self::S3)
        } else {
            let all = [marks.specversion, marks.kind, marks.source];
            all.iter().all(Option::is_some).then_some(Self::CloudEvents)
        }
    }

    /// Returns what it is, and the name of its envelope.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Sns => ("a message of SNS", "Sns"),
            Self::EventBridge => ("an event of EventBridge", "EventBridge"),
            Self::S3 => ("a notification of S3", "S3"),
            Self::CloudEvents => ("an event of CloudEvents", "CloudEvents"),
        }
    }
}

/// Returns what a JSON text is that is neither the payload nor the envelope that it was read as, and how to fix it, if that can be seen.
pub(crate) fn what_it_is(text: &str, wanted: Option<Form>) -> Option<String> {
    match (Form::of(text), wanted) {
        (None, Some(Form::Sns)) => {
            Some("it is no message of SNS: with raw message delivery there is no envelope".into())
        }
        (None, _) => None,
        (found, _) if found == wanted => None,
        (Some(found), _) => {
            let (what, name) = found.words();
            let fix = match (found, wanted) {
                (_, Some(_)) => " belongs in the place of this one, or before it",
                (Form::Sns, None) => " is missing or comes too late, or raw message delivery is off",
                (_, None) => " is missing, or comes too late",
            };
            Some(format!("it is {what}: `.envelope(envelope::{name})`{fix}"))
        }
    }
}

#[derive(Deserialize)]
struct Marks {
    #[serde(rename = "TopicArn")]
    topic_arn: Option<IgnoredAny>,
    #[serde(rename = "Type")]
    of_sns: Option<String>,
    #[serde(rename = "detail-type")]
    detail_type: Option<IgnoredAny>,
    source: Option<IgnoredAny>,
    #[serde(rename = "Records")]
    records: Option<First>,
    #[serde(rename = "Event")]
    event: Option<String>,
    specversion: Option<IgnoredAny>,
    #[serde(rename = "type")]
    kind: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct Record {
    #[serde(rename = "eventSource")]
    source: Option<String>,
}

/// The first of a list, of which no more is kept.
struct First(Record);

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor)
    }
}

struct FirstVisitor;

impl<'de> Visitor<'de> for FirstVisitor {
    type Value = First;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<First, A::Error> {
        let first = items.next_element()?.unwrap_or_default();
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_OPENED: [(&str, &str); 6] = [
        (r#"{"Type":"Notification","TopicArn":"secret","Message":"{}"}"#, "Sns"),
        (r#"{"Type":"SubscriptionConfirmation","TopicArn":"secret"}"#, "Sns"),
        (r#"{"detail-type":"secret","source":"aws.s3","id":"secret","detail":{}}"#, "EventBridge"),
        (r#"{"Records":[{"eventSource":"aws:s3","s3":{}},7]}"#, "S3"),
        (r#"{"Event":"s3:TestEvent","Bucket":"secret"}"#, "S3"),
        (r#"{"specversion":"1.0","type":"secret","source":"secret","data":{}}"#, "CloudEvents"),
    ];

    #[test]
    fn what_comes_in_an_envelope_that_is_not_opened_is_called_by_it() {
        for (text, name) in NOT_OPENED {
            let said = what_it_is(text, None).unwrap();
            let fix = format!("`.envelope(envelope::{name})` is missing");
            assert!(said.contains(&fix) && !said.contains("secret"), "{text}: {said}");
            assert_eq!(said.ends_with("or raw message delivery is off"), name == "Sns", "{said}");
            for wanted in [Form::Sns, Form::EventBridge, Form::S3, Form::CloudEvents] {
                let said = what_it_is(text, Some(wanted));
                assert_eq!(said.is_none(), wanted.words().1 == name, "{text}: {said:?}");
                assert!(said.is_none_or(|said| said.ends_with("in the place of this one, or before it")), "{text}");
            }
        }
    }

    #[test]
    fn of_a_payload_nothing_more_is_said_but_that_it_is_no_message_of_sns() {
        for text in [
            r#"{"order_id":"o-1"}"#,
            r#"{"Type":"Order","TopicArn":"a"}"#,
            r#"{"Type":"Notification","TopicArn":null}"#,
            r#"{"Records":[]}"#,
            r#"{"Records":[{"eventSource":"aws:sqs"}]}"#,
            r#"{"source":"a","type":"b"}"#,
            r#"{"detail-type":"a","source":"b","source":"c"}"#,
            r#"["a","b"]"#,
            "7",
        ] {
            let said = [None, Some(Form::EventBridge), Some(Form::S3)].map(|wanted| what_it_is(text, wanted));
            assert_eq!(said, [None, None, None], "{text}");
            assert!(what_it_is(text, Some(Form::Sns)).unwrap().contains("raw message delivery"), "{text}");
        }
    }
}
