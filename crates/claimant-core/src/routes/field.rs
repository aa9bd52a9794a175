//! Reads one field of a JSON text, and nothing else of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::decode::{json_place, no_json};
use crate::message::Message;
use crate::rejection::{Fault, Rejection};

/// Why a message has no value by which it can be routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// What is there is none that a route can have.
    NoValue(Rejection),
    /// It is not known which of several it is.
    Ambiguous(Rejection),
}

/// What is found where the path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    Nothing,
    Text(String),
    /// An object, a list, or a number with a fraction.
    NoText,
    /// A field on the way is there more than once: which one counts is not known.
    Twice,
}

/// Returns the text, the whole number or the truth value of the field to which `path` leads through objects; `None` where it is not
/// there, or null.
///
/// # Errors
/// When the content is not JSON, the field is there twice, or it is none of these. The error names the path, and quotes nothing.
pub(crate) fn read(message: &Message, path: &[String]) -> Result<Option<String>, Unreadable> {
    let shown = path.join(".");
    let content = message.content();
    let mut json = serde_json::Deserializer::from_slice(content);
    let found = At(path).deserialize(&mut json).and_then(|found| json.end().map(|()| found));
    match found {
        Ok(Found::Text(text)) => Ok(Some(text)),
        Ok(Found::Nothing) => Ok(None),
        Ok(Found::NoText) => {
            Err(Unreadable::NoValue(Rejection::new(format!("the field `{shown}` is not a text or a whole number"))))
        }
        Ok(Found::Twice) => Err(Unreadable::Ambiguous(Rejection::new(format!("the field `{shown}` is there twice")))),
        Err(error) => Err(Unreadable::NoValue(message.rejection(no_json(content).unwrap_or_else(|| {
            let fault = Fault::new(format!("is not JSON in which a field `{shown}` can be found"));
            json_place(fault, &error)
        })))),
    }
}

struct At<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Found, D::Error> {
        json.deserialize_any(self)
    }
}

impl At<'_> {
    /// Returns what a value is, if the path ends here.
    fn here(&self, value: impl fmt::Display) -> Found {
        if self.0.is_empty() { Found::Text(value.to_string()) } else { Found::Nothing }
    }

    fn no_text(&self) -> Found {
        if self.0.is_empty() { Found::NoText } else { Found::Nothing }
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Found, E> {
        Ok(self.here(text))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Found, E> {
        Ok(self.here(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Found, E> {
        Ok(self.here(number))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Found, E> {
        Ok(self.here(truth))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(self.no_text())
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Found, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.no_text())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Found, A::Error> {
        let mut found = None;
        while let Some(name) = object.next_key::<String>()? {
            match self.0.split_first() {
                Some((first, rest)) if *first == name => {
                    let value = object.next_value_seed(At(rest))?;
                    found = Some(if found.is_none() { value } else { Found::Twice });
                }
                _ => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found.unwrap_or_else(|| self.no_text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_field_is_found_or_it_is_said_why_not() {
        let deep = format!(r#"{{"more":{}{}, "type":"a"}}"#, "[".repeat(5_000), "]".repeat(5_000));
        type Case<'a> = (&'a str, &'a str, Result<Option<&'a str>, &'a str>);
        let cases: &[Case<'_>] = &[
            (r#"{"type":"a"}"#, "type", Ok(Some("a"))),
            (r#"{"x":{"type":"b"},"type":"\u0061","y":[{"type":"c"}]}"#, "type", Ok(Some("a"))),
            (r#"{"detail":{"x":1,"type":"a"},"type":"b"}"#, "detail.type", Ok(Some("a"))),
            (r#"{"type":-7}"#, "type", Ok(Some("-7"))),
            (r#"{"type":18446744073709551615}"#, "type", Ok(Some("18446744073709551615"))),
            (r#"{"type":true}"#, "type", Ok(Some("true"))),
            (&deep, "type", Ok(Some("a"))),
            (r#"{"type":null}"#, "type", Ok(None)),
            (r#"{"Type":"a"}"#, "type", Ok(None)),
            (r#"{"type":"a"}"#, "type.more", Ok(None)),
            (r#"["type"]"#, "type", Ok(None)),
            (r#""type""#, "type", Ok(None)),
            (r#"{"type":{"secret":"a"}}"#, "type", Err("the field `type` is not a text")),
            (r#"{"type":["secret"]}"#, "type", Err("the field `type` is not a text")),
            (r#"{"type":1.5}"#, "type", Err("the field `type` is not a text")),
            (r#"{"type":"secret","type":"a"}"#, "type", Err("the field `type` is there twice")),
            (r#"{"detail":{},"detail":{"type":"secret"}}"#, "detail.type", Err("`detail.type` is there twice")),
            (r#"{"type":"secret""#, "type", Err("not JSON in which a field `type`")),
            (r#"{"type":"secret"} secret"#, "type", Err("not JSON")),
            ("secret", "type", Err("not JSON")),
            ("", "type", Err("is empty")),
        ];
        for (content, path, wanted) in cases {
            let path: Vec<_> = path.split('.').map(str::to_owned).collect();
            match (read(&Message::new("m", *content).unwrap(), &path), wanted) {
                (Ok(found), Ok(wanted)) => assert_eq!(found.as_deref(), *wanted, "{content}"),
                (Err(unreadable), Err(wanted)) => {
                    assert_eq!(matches!(unreadable, Unreadable::Ambiguous(_)), wanted.contains("twice"), "{content}");
                    let (Unreadable::NoValue(rejection) | Unreadable::Ambiguous(rejection)) = unreadable;
                    let text = rejection.to_string();
                    assert!(text.contains(wanted) && !text.contains("secret"), "{content}: {text}");
                }
                (found, _) => panic!("{content}: {found:?}"),
            }
        }
        let message =
            Message::new("m", "").unwrap().unpacked(b"{\"type\":\"\xff\"}").with_content_name("the decoded Base64");
        let Err(Unreadable::NoValue(rejection)) = read(&message, &["type".to_owned()]) else { panic!("not UTF-8") };
        assert!(rejection.to_string().starts_with("the decoded Base64 is not JSON"), "{rejection}");
    }
}
