//! What envelopes have in common: JSON, times, traces, attributes.

use std::fmt;
use std::marker::PhantomData;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claimant_core::decode::{Form, read_content_as, read_json};
use claimant_core::key::KEY_MAX_BYTES;
use claimant_core::{AttributeValue, Attributes, Message, Rejection, Timestamp};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::ATTRIBUTES_MAX;

/// Reads the envelope that a message's content is, which errors call by this word.
pub(crate) fn read<'a, T: Deserialize<'a>>(message: &'a Message, word: &str, form: Form) -> Result<T, Rejection> {
    read_content_as(message.content(), Some(form)).map_err(|fault| message.rejection_as(word, fault))
}

/// Reads a part of the envelope, which errors call by this word. Nobody sees it cut out: they give no line of it.
pub(crate) fn read_part<'a, T: Deserialize<'a>>(
    message: &Message,
    word: &str,
    part: &'a RawValue,
) -> Result<T, Rejection> {
    read_json(part.get()).map_err(|fault| message.rejection_as(word, fault.without_place()))
}

/// What is read from an object and from nothing else: serde would also read a struct from an array, in the order of its fields.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// Checks the id of what an envelope carries: each event in it can have a copy of it. An empty one, or a longer one, could be no key.
pub(crate) fn id(message: &Message, word: &str, id: String) -> Result<Option<String>, Rejection> {
    match id.len() {
        0 => Err(message.rejection_as(word, "has an empty id")),
        1..=KEY_MAX_BYTES => Ok(Some(id)),
        bytes => {
            Err(message.rejection_as(word, format!("has an id of {bytes} bytes; at most {KEY_MAX_BYTES} are allowed")))
        }
    }
}

/// Returns the time that this text says (RFC 3339); `None` if it says none, or one before 1970.
pub(crate) fn time(text: Option<&str>) -> Option<Timestamp> {
    let time = OffsetDateTime::parse(text?, &Rfc3339).ok()?;
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok().map(Timestamp::from_millis)
}

/// Returns Base64, decoded; `None` if it is none.
pub(crate) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Collects an envelope's attributes. More than are allowed are counted and not kept.
pub(crate) fn attributes<'a>(
    message: &Message,
    word: &str,
    mut all: impl Iterator<Item = (&'a str, Result<AttributeValue, Rejection>)>,
) -> Result<Attributes, Rejection> {
    let mut attributes = Attributes::default();
    for (name, value) in all.by_ref().take(ATTRIBUTES_MAX) {
        attributes.set(name, value?);
    }
    match all.count() {
        0 => Ok(attributes),
        more => {
            let count = ATTRIBUTES_MAX + more;
            Err(message.rejection_as(word, format!("has {count} attributes; at most {ATTRIBUTES_MAX} are allowed")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_or_left_out() {
        for (text, wanted) in [
            ("1970-01-01T00:00:01Z", Some(1_000)),
            ("2012-04-26T20:45:04.751Z", Some(1_335_473_104_751)),
            ("2012-04-26T22:45:04.751+02:00", Some(1_335_473_104_751)),
            ("1969-12-31T23:59:59Z", None),
            ("yesterday", None),
            ("2012-04-26", None),
        ] {
            assert_eq!(time(Some(text)).map(Timestamp::as_millis), wanted, "{text}");
        }
        assert_eq!(time(None), None);
    }
}
