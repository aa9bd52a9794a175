//! The copy of a dead letter that goes back to a queue. Pure.

use std::collections::BTreeMap;

use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeNameForSends as SystemAttribute, MessageSystemAttributeValue,
    SendMessageBatchRequestEntry as Entry,
};
use claimant_aws::sqs::{ATTRIBUTES_MAX, MESSAGE_MAX_BYTES};
use claimant_core::Error;
use claimant_core::own_attributes::{FIRST_MESSAGE_ID, MESSAGE_ID, REDRIVES, is_own};
use sha2::{Digest as _, Sha256};

use super::field::FieldPath;
use super::letter::{DeadLetter, Origin};
use super::unsent::{Request, is_no_message, is_request};
use crate::text::has_same_lines;

/// What is changed of bodies before they are sent back.
#[derive(Clone, Default)]
pub enum Edit {
    /// Nothing.
    #[default]
    None,
    /// Another body, for one message.
    Body(String),
    /// The same as a browser sends it, which knows one way to end a line: a body that differs from this in its line ends alone was not
    /// edited, and keeps its very bytes.
    Typed(String),
    /// Fields of JSON bodies, each with its new value as JSON; every other value keeps its very bytes.
    Fields(Vec<(FieldPath, String)>),
}

impl Edit {
    /// Returns whether it is for one letter alone.
    pub(super) const fn is_for_one(&self) -> bool {
        matches!(self, Self::Body(_) | Self::Typed(_))
    }

    fn apply(&self, body: &str) -> Result<String, Error> {
        match self {
            Self::None => Ok(body.to_owned()),
            Self::Body(new) => Ok(new.clone()),
            Self::Typed(new) => Ok(if has_same_lines(new, body) { body.to_owned() } else { new.clone() }),
            Self::Fields(fields) => {
                fields.iter().try_fold(body.to_owned(), |body, (path, value)| path.replaced_in(&body, value))
            }
        }
    }
}

/// A copy that is ready to be sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) entry: Entry,
    pub(super) bytes: usize,
    /// Where the destination keeps groups in order.
    pub(super) group: Option<String>,
}

/// Returns the copy of a dead letter for a queue, with this id in its request.
///
/// It has the body, edited; the producer's attributes and trace; its group; and of claimant's attributes those that say where it
/// comes from, as far as they fit. On a FIFO queue its deduplication id is made from its id and its new body, so that
/// a copy that is sent twice arrives once within five minutes.
///
/// # Errors
/// When the body cannot be edited as asked, is empty or is too long; or a FIFO queue needs a group and there is none.
pub(super) fn copy(letter: &DeadLetter, edit: &Edit, id: usize, fifo: bool) -> Result<Outgoing, Error> {
    let body = edit.apply(letter.body())?;
    if body.is_empty() {
        return Err(Error::invalid("SQS takes no empty body"));
    }
    let mut attributes: BTreeMap<&str, MessageAttributeValue> = BTreeMap::new();
    for (name, value) in letter.content.attributes.iter().filter(|(name, _)| !is_own(name)) {
        attributes.insert(name, value.clone());
    }
    let mut bytes = body.len() + attributes.iter().map(|(name, value)| attribute_bytes(name, value)).sum::<usize>();
    for (name, value) in provenance(letter) {
        let added = attribute_bytes(name, &value);
        if attributes.len() < ATTRIBUTES_MAX && bytes + added <= MESSAGE_MAX_BYTES {
            attributes.insert(name, value);
            bytes += added;
        }
    }
    if bytes > MESSAGE_MAX_BYTES {
        return Err(Error::invalid(format!(
            "with its attributes it has {bytes} bytes, and SQS takes {MESSAGE_MAX_BYTES}"
        )));
    }
    let deduplication_id = fifo.then(|| deduplication_id(letter, &body));
    let mut entry = Entry::builder().id(id.to_string()).message_body(body);
    for (name, value) in attributes {
        entry = entry.message_attributes(name, value);
    }
    if let Some(trace) = &letter.content.trace {
        let value = MessageSystemAttributeValue::builder().data_type("String").string_value(trace).build();
        entry = entry.message_system_attributes(SystemAttribute::AwsTraceHeader, value.map_err(unbuilt)?);
    }
    if fifo && letter.group.is_none() {
        return Err(Error::invalid("it has no message group, which a FIFO queue needs: send it to a standard queue"));
    }
    // On a standard queue the group is that of a fair queue.
    entry = entry.set_message_group_id(letter.group.clone()).set_message_deduplication_id(deduplication_id);
    Ok(Outgoing { entry: entry.build().map_err(unbuilt)?, bytes, group: letter.group.clone().filter(|_| fifo) })
}

/// Checks that no queue gets the request of a schedule as a body: as the letter has it, or as it is typed of it. Whoever gives a body means it.
///
/// # Errors
/// When it is one.
pub(super) fn check_message(letter: &DeadLetter, edit: &Edit) -> Result<(), Error> {
    let is_sent_as_body = match edit {
        Edit::None | Edit::Fields(_) => true,
        Edit::Typed(body) => has_same_lines(body, letter.body()) || Request::read(body).is_some(),
        Edit::Body(_) => false,
    };
    if is_sent_as_body && is_unsent(letter) { Err(is_no_message()) } else { Ok(()) }
}

/// Returns whether a letter is the request of a schedule: where the queue had no room for its attributes, by its body alone.
fn is_unsent(letter: &DeadLetter) -> bool {
    match letter.origin {
        Origin::Unsent => true,
        Origin::Sent => Request::read(letter.body()).is_some(),
        Origin::Copied | Origin::Moved { .. } => is_request(&letter.content.attributes, letter.body()),
    }
}

fn unbuilt(error: aws_sdk_sqs::error::BuildError) -> Error {
    Error::new("the copy cannot be made").caused_by(error)
}

/// Returns what says where the copy comes from, the most needed first.
fn provenance(letter: &DeadLetter) -> impl Iterator<Item = (&'static str, MessageAttributeValue)> {
    // What a function copied has another id here than in its own queue.
    let own = (letter.origin != Origin::Copied).then_some(&letter.message_id);
    let mut ids = letter.earlier_ids.iter().chain(own);
    let first = ids.next().unwrap_or(&letter.message_id).clone();
    let last = ids.next_back().cloned();
    let (first, last) = match last {
        Some(last) => (Some(first), last),
        None => (None, first),
    };
    let said = [
        (REDRIVES, Some(letter.redrives.saturating_add(1).to_string())),
        (MESSAGE_ID, Some(last)),
        (FIRST_MESSAGE_ID, first),
    ];
    said.into_iter().filter_map(|(name, text)| {
        // A value with its type always builds.
        Some((name, MessageAttributeValue::builder().data_type("String").string_value(text?).build().ok()?))
    })
}

/// Returns what an attribute counts towards the size of its message: its name, type and value.
fn attribute_bytes(name: &str, value: &MessageAttributeValue) -> usize {
    let binary = value.binary_value().map_or(0, |bytes| bytes.as_ref().len());
    name.len() + value.data_type().len() + value.string_value().map_or(0, str::len) + binary
}

fn deduplication_id(letter: &DeadLetter, body: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(letter.message_id.as_bytes());
    hash.update([0]);
    hash.update(body.as_bytes());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::{Message, MessageSystemAttributeName as System};
    use claimant_core::own_attributes::SENT_AGAIN_OF;

    use super::*;

    fn text(value: &str) -> MessageAttributeValue {
        MessageAttributeValue::builder().data_type("String").string_value(value).build().unwrap()
    }

    fn letter(group: Option<&str>, body: &str, attributes: &[(&str, &str)]) -> DeadLetter {
        let mut message = Message::builder().message_id("m-1").body(body);
        message = message.attributes(System::AwsTraceHeader, "Root=1");
        if let Some(group) = group {
            message = message.attributes(System::MessageGroupId, group);
        }
        for (name, value) in attributes {
            message = message.message_attributes(*name, text(value));
        }
        DeadLetter::read(message.build()).unwrap()
    }

    fn names(entry: &Entry) -> Vec<&str> {
        let mut names: Vec<_> = entry.message_attributes().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_copy_says_where_it_comes_from_and_no_longer_why_it_was_dead() {
        let ours = [
            ("claimant-error", "no"),
            ("claimant-outcome", "rejected"),
            ("claimant-consumer", "order"),
            (MESSAGE_ID, "own"),
            (FIRST_MESSAGE_ID, "first"),
            (REDRIVES, "1"),
            ("tenant", "t"),
        ];
        let copy = copy(&letter(Some("g"), "{}", &ours), &Edit::None, 3, false).unwrap();
        let entry = &copy.entry;
        assert_eq!(names(entry), [FIRST_MESSAGE_ID, MESSAGE_ID, REDRIVES, "tenant"]);
        let said = |name: &str| entry.message_attributes().unwrap()[name].string_value().unwrap();
        assert_eq!((said(FIRST_MESSAGE_ID), said(MESSAGE_ID), said(REDRIVES)), ("first", "own", "2"));
        assert_eq!((entry.id(), entry.message_group_id(), entry.message_deduplication_id()), ("3", Some("g"), None));
        assert!(entry.message_system_attributes().unwrap().contains_key(&SystemAttribute::AwsTraceHeader));
        let attributes: usize = entry.message_attributes().unwrap().iter().map(|(n, v)| attribute_bytes(n, v)).sum();
        assert_eq!(copy.bytes, 2 + attributes);
    }

    #[test]
    fn ids_go_on() {
        let outcome = ("claimant-outcome", "rejected");
        for (attributes, first, last) in [
            (&[][..], None, "m-1"),
            (&[(MESSAGE_ID, "a")], Some("a"), "m-1"),
            (&[(FIRST_MESSAGE_ID, "a"), (MESSAGE_ID, "b")], Some("a"), "m-1"),
            (&[(MESSAGE_ID, "a"), (SENT_AGAIN_OF, "b")], Some("a"), "m-1"),
            (&[outcome], None, "m-1"),
            (&[outcome, (MESSAGE_ID, "a")], None, "a"),
            (&[outcome, (FIRST_MESSAGE_ID, "a"), (MESSAGE_ID, "b")], Some("a"), "b"),
        ] {
            let copied = copy(&letter(None, "{}", attributes), &Edit::None, 0, false).unwrap();
            let said = copied.entry.message_attributes().unwrap();
            let text = |name: &str| said.get(name).and_then(|value| value.string_value());
            assert_eq!((text(FIRST_MESSAGE_ID), text(MESSAGE_ID)), (first, Some(last)), "{attributes:?}");
        }
    }

    #[test]
    fn the_producers_attributes_come_first() {
        let theirs: Vec<String> = (0..9).map(|n| format!("a{n}")).collect();
        let theirs: Vec<(&str, &str)> = theirs.iter().map(|name| (name.as_str(), "x")).collect();
        let copied = copy(&letter(None, "{}", &theirs), &Edit::None, 0, false).unwrap();
        assert_eq!(names(&copied.entry).len(), ATTRIBUTES_MAX);
        assert!(names(&copied.entry).contains(&REDRIVES));
        let full =
            copy(&letter(None, &"x".repeat(MESSAGE_MAX_BYTES - 30), &theirs[..1]), &Edit::None, 0, false).unwrap();
        assert_eq!(names(&full.entry), ["a0"]);
    }

    #[test]
    fn a_fifo_queue_needs_a_group_and_gets_an_id_of_the_new_body() {
        let letter_of = |group| letter(group, r#"{"a": 1}"#, &[]);
        assert!(copy(&letter_of(None), &Edit::None, 0, true).is_err());
        let id = |edit: &Edit| {
            let copied = copy(&letter_of(Some("g")), edit, 0, true).unwrap();
            assert_eq!(copied.group.as_deref(), Some("g"));
            copied.entry.message_deduplication_id().unwrap().to_owned()
        };
        assert_eq!(id(&Edit::None), id(&Edit::Body(r#"{"a": 1}"#.to_owned())));
        assert_ne!(id(&Edit::None), id(&Edit::Body("{}".to_owned())));
        assert_eq!(id(&Edit::None).len(), 64);
    }

    #[test]
    fn the_request_of_a_schedule_is_no_body() {
        let request = r#" {"QueueUrl":"https://sqs/1/q","MessageBody":"{\"a\":1}","MessageGroupId":"g"}"#;
        let sent = |body: &str, edit: &Edit| check_message(&letter(None, body, &[]), edit);
        let schedule = ("SCHEDULE_ARN", "arn:s");
        let sends = ("TARGET_ARN", "arn:aws:scheduler:::aws-sdk:sqs:sendMessage");
        let (copied, cut) = (("claimant-outcome", "rejected"), &request[..40]);
        let is_cut = ("IS_PAYLOAD_TRUNCATED", "true");
        let typed = |body: &str| Edit::Typed(body.to_owned());
        for (is_sent, moved, attributes, body, edit) in [
            (false, false, &[schedule, sends, is_cut][..], cut, Edit::None),
            (false, false, &[schedule, sends, is_cut], cut, typed(cut)),
            (true, false, &[schedule, sends, is_cut], cut, typed("{}")),
            // Wherever SQS, or a function that got it as a body, has put it.
            (false, true, &[schedule, sends], request, Edit::None),
            (false, true, &[schedule, sends, is_cut], cut, Edit::None),
            (false, true, &[schedule], request, typed(request)),
            (false, false, &[schedule, copied], request, Edit::None),
            // A consumer's own, and what is of another schedule.
            (true, true, &[], request, Edit::None),
            (true, true, &[], request, typed(request)),
            (true, false, &[copied], request, Edit::None),
            (true, true, &[schedule, sends], "{}", Edit::None),
            (true, false, &[schedule, ("TARGET_ARN", "arn:aws:sqs:us-east-1:123456789012:q")], "{}", Edit::None),
        ] {
            let mut letter = letter(None, body, attributes);
            if moved {
                letter.origin = Origin::Moved { source: "arn:aws:sqs:us-east-1:123456789012:unsent".to_owned() };
            }
            assert_eq!(check_message(&letter, &edit).is_ok(), is_sent, "{letter:?} {body}");
        }
        assert!(sent(request, &Edit::None).unwrap_err().to_string().contains("--cli-input-json"));
        assert!(sent(request, &Edit::Typed(request.to_owned())).is_err());
        assert!(sent(request, &Edit::Body(request.to_owned())).is_ok(), "whoever writes a body means it");
        for other in [r#"{"MessageBody":"a"}"#, r#"["https://sqs/1/q","a"]"#, r#"{"QueueUrl":"u","MessageBody":1}"#] {
            assert!(sent(other, &Edit::None).is_ok(), "{other}");
        }
    }

    #[test]
    fn bodies_are_edited() {
        let edit = |edit: &Edit| copy(&letter(None, r#"{"a": 1, "b": 2.50}"#, &[]), edit, 0, false);
        let fields = Edit::Fields(vec![(FieldPath::parse("a").unwrap(), "\"x\"".to_owned())]);
        assert_eq!(edit(&fields).unwrap().entry.message_body(), r#"{"a":"x","b":2.50}"#);
        assert!(edit(&Edit::Body(String::new())).is_err());
        assert!(edit(&Edit::Body("x".repeat(MESSAGE_MAX_BYTES + 1))).is_err());
        assert!(edit(&Edit::Fields(vec![(FieldPath::parse("c.d").unwrap(), "1".to_owned())])).is_err());
        let lines = "a\r\nb\rc\n";
        for (typed, expected) in [("a\nb\nc\n", lines), ("a\r\nb\r\nc\r\n", lines), ("a\nb\nc", "a\nb\nc")] {
            let copied = copy(&letter(None, lines, &[]), &Edit::Typed(typed.to_owned()), 0, false).unwrap();
            assert_eq!(copied.entry.message_body(), expected, "{typed:?}");
        }
    }
}
