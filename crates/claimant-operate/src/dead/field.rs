//! One field of a JSON text, read and replaced; every other value keeps its very bytes. Pure.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The most names of a path.
const NAMES_MAX: usize = 32;

/// The way to a field of a JSON text: names of objects' fields and indexes of lists, with dots between them.
///
/// ```
/// use claimant_operate::dead::FieldPath;
///
/// let path = FieldPath::parse("items.0.sku").unwrap();
/// assert_eq!(path.text_in(r#"{"items": [{"sku": "tea"}]}"#), Some("tea".to_owned()));
/// assert_eq!(path.text_in("not JSON"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// Returns the path that this text names.
    ///
    /// # Errors
    /// When a name is empty, or there are more than 32.
    pub fn parse(text: &str) -> Result<Self, claimant_core::Error> {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        if names.iter().any(String::is_empty) || names.len() > NAMES_MAX {
            return Err(claimant_core::Error::invalid(format!(
                "a field is named as customer.email or items.0.sku, by 1 to {NAMES_MAX} names with dots between them"
            )));
        }
        Ok(Self(names))
    }

    /// Returns the value that the path leads to: of a text the text, of anything else the JSON. `None` where the text is not JSON,
    /// or has no such field.
    #[must_use]
    pub fn text_in(&self, json: &str) -> Option<String> {
        let mut at = serde_json::from_str::<&RawValue>(json).ok()?.get();
        for name in &self.0 {
            at = child(at, name)?;
        }
        Some(serde_json::from_str::<String>(at).unwrap_or_else(|_| at.to_owned()))
    }

    /// Returns the text with another value at the end of the path. The last field of the path may be new; the objects and lists
    /// on the way must be there. Every other value keeps its very bytes.
    ///
    /// # Errors
    /// When the text or the value is not JSON, or the path does not lead through objects and lists that are there. Quotes nothing
    /// of the text.
    pub fn replaced_in(&self, json: &str, value: &str) -> Result<String, claimant_core::Error> {
        let fault = |why: &str| claimant_core::Error::invalid(format!("the field {self} cannot be set: {why}"));
        serde_json::from_str::<&RawValue>(value).map_err(|_| fault("the new value is not JSON"))?;
        serde_json::from_str::<&RawValue>(json).map_err(|_| fault("the body is not JSON"))?;
        replaced(json, &self.0, value).ok_or_else(|| fault("the body has no object or list on the way to it"))
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

/// Returns what an object or a list has at this name or index. Of fields of one name the last counts.
fn child<'j>(json: &'j str, name: &str) -> Option<&'j str> {
    if let Ok(Fields(fields)) = serde_json::from_str::<Fields<'j>>(json) {
        return fields.into_iter().rev().find(|(field, _)| field == name).map(|(_, value)| value.get());
    }
    let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    list.get(name.parse::<usize>().ok()?).map(|value| value.get())
}

fn replaced(json: &str, path: &[String], value: &str) -> Option<String> {
    let Some((name, rest)) = path.split_first() else { return Some(value.to_owned()) };
    if let Ok(Fields(fields)) = serde_json::from_str::<Fields<'_>>(json) {
        let mut texts: Vec<(String, String)> =
            fields.into_iter().map(|(field, value)| (field, value.get().to_owned())).collect();
        match texts.iter_mut().rev().find(|(field, _)| field == name) {
            Some((_, there)) => *there = replaced(there, rest, value)?,
            None if rest.is_empty() => texts.push((name.clone(), value.to_owned())),
            None => return None,
        }
        let texts: Option<Vec<String>> = texts
            .into_iter()
            .map(|(field, value)| Some(format!("{}:{value}", serde_json::to_string(&field).ok()?)))
            .collect();
        return Some(format!("{{{}}}", texts?.join(",")));
    }
    let list: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    let mut texts: Vec<String> = list.into_iter().map(|value| value.get().to_owned()).collect();
    let there = texts.get_mut(name.parse::<usize>().ok()?)?;
    *there = replaced(there, rest, value)?;
    Some(format!("[{}]", texts.join(",")))
}

/// The fields of an object in their order, each with its JSON.
struct Fields<'j>(Vec<(String, &'j RawValue)>);

impl<'de: 'j, 'j> Deserialize<'de> for Fields<'j> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = object.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        json.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).unwrap()
    }

    #[test]
    fn fields_are_found() {
        let body = r#"{"a": {"b": "x", "n": 1.50, "none": null}, "list": [1, {"c": "\u00e9"}], "a.b": 0, "t": true}"#;
        for (way, text) in [
            ("a.b", Some("x")),
            ("a.n", Some("1.50")),
            ("a.none", Some("null")),
            ("list.1.c", Some("é")),
            ("list.0", Some("1")),
            ("list.2", None),
            ("list.x", None),
            ("t", Some("true")),
            ("a.b.c", None),
            ("none", None),
        ] {
            assert_eq!(path(way).text_in(body).as_deref(), text, "{way}");
        }
        for body in ["", "x", "{\"a\":", "{\"a\": 1} x"] {
            assert_eq!(path("a").text_in(body), None, "{body}");
        }
    }

    #[test]
    fn one_field_is_replaced_and_the_others_keep_their_bytes() {
        for (body, way, value, wanted) in [
            (r#"{"z": 1e400, "a": "x"}"#, "a", "\"y\"", Some(r#"{"z":1e400,"a":"y"}"#)),
            (r#"{"a": {"b": [1, 2.00]}}"#, "a.b.1", "null", Some(r#"{"a":{"b":[1,null]}}"#)),
            (
                r#"{"n": 12345678901234567890123}"#,
                "new",
                "{\"x\": 1}",
                Some(r#"{"n":12345678901234567890123,"new":{"x": 1}}"#),
            ),
            (r#"{"a": 1}"#, "b.c", "1", None),
            (r#"{"a": 1}"#, "a.c", "1", None),
            ("[1]", "1", "2", None),
            ("x", "a", "1", None),
            ("{}", "a", "x", None),
            (r#"{"a\n": 1}"#, "b", "1", Some("{\"a\\n\":1,\"b\":1}")),
        ] {
            assert_eq!(path(way).replaced_in(body, value).ok().as_deref(), wanted, "{body} {way}");
        }
    }

    #[test]
    fn paths_have_names() {
        for bad in ["", ".", "a..b", "a."] {
            assert!(FieldPath::parse(bad).is_err(), "{bad}");
        }
        assert!(FieldPath::parse(&vec!["a"; NAMES_MAX + 1].join(".")).is_err());
        assert_eq!(path("a.b").to_string(), "a.b");
    }
}
