//! The fields of a query, a form or a JSON object, all read alike.

use std::fmt;

use claimant_core::Error;
use percent_encoding::percent_decode_str;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Fields of one request at most: a page has 100 rows, each with a box to tick.
pub(crate) const FIELDS_MAX: usize = 1_000;

/// The most bytes of the name of a field that is none.
const NAME_SHOWN: usize = 32;

/// The field of a body: one value, to its last byte.
pub(crate) const BODY: &str = "body";

/// The field of a form that says which version of the record its page showed: an act means that one.
pub(crate) const VERSION: &str = "version";

/// Names and values in the order in which they came. A name may come several times, and without a value: `null` and `[]` of JSON.
#[derive(Clone, Default, Hash)]
pub(crate) struct Fields(Vec<(String, Option<String>)>);

impl Fields {
    /// Reads a query or the body of a form: `name=value&name=value`.
    pub(crate) fn of_form(text: &str) -> Self {
        let decode = |part: &str| percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(FIELDS_MAX);
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self(pairs.map(|(name, value)| (decode(name), Some(decode(value)))).collect())
    }

    /// Reads a JSON object. An array of texts is these one by one; what is neither text, number, boolean nor null is its JSON. An empty
    /// array and null are no value. A body that is neither text nor null is its JSON as it was written, also an array.
    ///
    /// # Errors
    /// When it is no JSON object, or has more than a thousand fields.
    pub(crate) fn of_json(body: &[u8]) -> Result<Self, Error> {
        let Object(object) = serde_json::from_slice(body).map_err(|e: serde_json::Error| match e.is_data() {
            true => Error::invalid("the body is JSON, but no object: {…}"),
            false => Error::invalid("the body is no JSON").caused_by(e),
        })?;
        let mut fields = Vec::new();
        for (name, written) in object {
            if name == BODY && !written.get().starts_with(['"', 'n']) {
                fields.push((name, Some(Box::<str>::from(written).into_string())));
                continue;
            }
            // It is read by itself: the place in it is no place in what was sent.
            let no_json = |e| Error::invalid(format!("{} is no JSON that can be read", shown(&name))).caused_by(e);
            let values = match serde_json::from_str(written.get()).map_err(no_json)? {
                Value::Array(values) if values.is_empty() => vec![Value::Null],
                Value::Array(values) if values.iter().all(Value::is_string) => values,
                value => vec![value],
            };
            fields.extend(values.into_iter().map(|value| (name.clone(), text(value))));
        }
        if fields.len() > FIELDS_MAX {
            return Err(too_many());
        }
        Ok(Self(fields))
    }

    /// Returns the first value of this name that is not empty, without white space at its ends.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).map(str::trim).find(|value| !value.is_empty())
    }

    /// Returns every value of this name, as it came.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).filter_map(|(_, value)| value.as_deref())
    }

    /// Returns the first value of this name, as [`get`](Self::get) does. Without this name a request means more, or something else.
    ///
    /// # Errors
    /// When the name came with nothing: a program has lost what it meant.
    pub(crate) fn narrowing(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.get(name) {
            None if self.came(name) => {
                Err(Error::invalid(format!("{name} names nothing: fill it in, or leave it out")))
            }
            value => Ok(value),
        }
    }

    /// Returns the names that came.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the names that came without a value.
    pub(crate) fn without_value(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str())
    }

    /// Returns whether this name came, be it with nothing.
    pub(crate) fn came(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Returns the others than those of these names.
    pub(crate) fn without(&self, names: &[&str]) -> Self {
        Self(self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect())
    }

    /// Returns whether a box of this name is ticked; it is not where there is none.
    ///
    /// # Errors
    /// When it is neither true nor false: what else a program means by it, or by nothing, is not guessed.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.narrowing(name)? {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(Error::invalid(format!("{name} is true or false"))),
        }
    }

    /// Returns the value of this name.
    ///
    /// # Errors
    /// When there is none, or it is empty.
    pub(crate) fn required(&self, name: &str) -> Result<&str, Error> {
        self.get(name).ok_or_else(|| Error::invalid(format!("{name} is missing: fill it in")))
    }

    /// Returns the number of this name; `default` where there is none.
    ///
    /// # Errors
    /// When it is no whole number from `range`.
    pub(crate) fn number(&self, name: &str, default: u64, range: std::ops::RangeInclusive<u64>) -> Result<u64, Error> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let (first, last) = (range.start(), range.end());
        number.ok_or_else(|| Error::invalid(format!("{name} is a whole number from {first} to {last}")))
    }
}

/// The fields of a JSON object as they were written, also those that came several times.
struct Object(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl<'de> Visitor<'de> for Written {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Object, M::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }

        deserializer.deserialize_map(Written)
    }
}

/// Returns the name of a field that is refused. What is no name may be a body, which is not repeated.
pub(crate) fn shown(name: &str) -> &str {
    let is_name = (1..=NAME_SHOWN).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_name { name } else { "what was sent" }
}

/// Returns that a request has too many fields.
pub(crate) fn too_many() -> Error {
    Error::invalid(format!("the request has more than {FIELDS_MAX} fields: send fewer at a time"))
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_json_say_the_same() {
        let form = Fields::of_form("key=a%2Fb+c&key=%3Cd%3E&dry_run=true&empty=&n=7");
        let json = Fields::of_json(br#"{"key":["a/b c","<d>"],"dry_run":true,"empty":"","n":7,"none":null}"#).unwrap();
        for fields in [form, json] {
            assert_eq!(fields.all("key").collect::<Vec<_>>(), ["a/b c", "<d>"]);
            assert_eq!((fields.get("key"), fields.get("empty"), fields.get("none")), (Some("a/b c"), None, None));
            assert!(fields.flag("dry_run").unwrap() && !fields.flag("yes").unwrap());
            assert_eq!(fields.flag("n").unwrap_err().to_string(), "n is true or false");
            assert!(fields.flag("empty").unwrap_err().to_string().starts_with("empty names nothing"));
            assert!(fields.came("empty") && !fields.came("yes") && !fields.without(&["x", "empty"]).came("empty"));
            assert_eq!(fields.number("n", 1, 1..=9).unwrap(), 7);
            assert_eq!(fields.number("m", 1, 1..=9).unwrap(), 1);
            assert_eq!(fields.number("n", 1, 1..=6).unwrap_err().to_string(), "n is a whole number from 1 to 6");
            assert_eq!(fields.required("empty").unwrap_err().to_string(), "empty is missing: fill it in");
        }
        let nothing = Fields::of_json(br#"{"id": [], "body": null}"#).unwrap();
        assert!(nothing.came("id") && nothing.came("body"));
        assert_eq!(nothing.without_value().collect::<Vec<_>>(), ["id", "body"]);
        assert_eq!(nothing.all("id").chain(nothing.all("body")).next(), None);
        for body in
            [r#"[1, {"a": "b"}]"#, r#"["a", "b"]"#, "[]", "{\"b\": 1.50,\n \"a\": 12345678901234567890123}", "true"]
        {
            let fields = Fields::of_json(format!("{{\"body\": {body}}}").as_bytes()).unwrap();
            assert_eq!(fields.all("body").collect::<Vec<_>>(), [body]);
        }
        let twice = Fields::of_json(br#"{"dry_run": true, "dry_run": false}"#).unwrap();
        assert_eq!(twice.all("dry_run").collect::<Vec<_>>(), ["true", "false"]);
        assert!(Fields::of_json(format!(r#"{{"id": [{}"x"]}}"#, r#""x","#.repeat(FIELDS_MAX)).as_bytes()).is_err());
        for (json, wanted) in
            [("[1]", "but no object"), ("{", "is no JSON"), (r#"{"n": 1e999}"#, "n is no JSON that can be read")]
        {
            assert!(Fields::of_json(json.as_bytes()).err().unwrap().to_string().contains(wanted), "{json}");
        }
    }
}
