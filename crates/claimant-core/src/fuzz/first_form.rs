//! Fingerprints of form 1 as they were first made, by a tree of the value: those of today have to be the same, since records hold them.
//! Nothing here ever changes.

use std::borrow::Cow;
use std::fmt;

use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};

use claimant_testkit::fuzz::hold;

use crate::Fingerprint;

/// JSON texts, written in any way; some with half a character, which is none.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ab]",
        "\\PC",
        Just("\\u0061".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\\\".to_owned()),
        Just("\\n".to_owned()),
        Just("\\ud83d\\ude00".to_owned()),
        Just("\\ud800".to_owned()),
        Just("ß".to_owned()),
        Just("[{".to_owned()),
        Just("]},:".to_owned()),
    ];
    let string = prop::collection::vec(piece, 0..4).prop_map(|pieces| format!("\"{}\"", pieces.concat())).boxed();
    let number = prop_oneof!["-?(0|[1-9][0-9]{0,2})", "-?(0|[1-9][0-9]{0,22})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",];
    let literal = prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(str::to_owned);
    let leaf = prop_oneof![literal, number, string.clone()];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let space = "[ \t\r\n]{0,2}";
        let item = (space, inner, space).prop_map(|(before, value, behind)| format!("{before}{value}{behind}"));
        let item = item.boxed();
        let field = (space, string.clone(), space, item.clone());
        let field = field.prop_map(|(before, name, behind, value)| format!("{before}{name}{behind}:{value}"));
        prop_oneof![
            (space, prop::collection::vec(item, 1..6))
                .prop_map(|(space, items)| format!("{space}[{}]", items.join(","))),
            (space, prop::collection::vec(field, 1..6))
                .prop_map(|(space, fields)| format!("{space}{{{}}}", fields.join(","))),
            space.prop_map(|space| format!("[{space}]")),
            space.prop_map(|space| format!("{{{space}}}")),
        ]
    })
}

#[test]
fn fingerprints_are_what_they_were() {
    // What is spoilt is most often no JSON, or another one.
    let fault = (any::<prop::sample::Index>(), 0..3_u8, "[\\[\\]{}:,\"\\\\0-9eE.+ntfu -]");
    let inputs = (texts(), prop::collection::vec(fault, 0..3));
    hold("fingerprints as they were", file!(), inputs, |(text, faults)| {
        let mut chars: Vec<char> = text.chars().collect();
        for (at, kind, piece) in faults {
            let at = at.index(chars.len() + 1);
            match kind {
                0 => chars.splice(at..at, piece.chars()),
                1 => chars.splice(at..chars.len().min(at + 1), piece.chars()),
                _ => chars.splice(at..chars.len().min(at + 1), "".chars()),
            };
        }
        let text: String = chars.into_iter().collect();
        let was = first_form(&text);
        assert_eq!(Fingerprint::of_json_text(&text).map(|of| of.to_stored()), was, "{text}");
        let value: Option<Value> = serde_json::from_str(&text).ok();
        assert_eq!(value.map(|value| Fingerprint::of_json(&value).to_stored()), was, "{text}");
    });
}

/// Nested as deep as a text may be, and wide.
#[test]
fn fingerprints_of_large_texts_are_what_they_were() {
    let nested = |depth: usize| {
        ["[|]", "{\"a\":|}"].map(|of| {
            let (open, close) = of.split_once('|').expect("it is there");
            format!("{}0{}", open.repeat(depth), close.repeat(depth))
        })
    };
    let names = |name: fn(u32) -> String| {
        let fields: Vec<_> =
            (0..1_000_u32).map(|n| format!("\"{}\":[{n}]", name(n.wrapping_mul(2_654_435_761) % 700))).collect();
        format!("{{{}}}", fields.join(","))
    };
    let wide = [names(|n| n.to_string()), names(|n| format!("\\n{n}")), format!("[{}0]", "[],".repeat(1_000))];
    for text in nested(127).into_iter().chain(nested(128)).chain(wide) {
        assert_eq!(Fingerprint::of_json_text(&text).map(|of| of.to_stored()), first_form(&text));
    }
}

fn first_form(text: &str) -> Option<Vec<u8>> {
    let value: Json<'_> = serde_json::from_str(text).ok()?;
    let mut hash = Sha256::new();
    hash_json(&value, &mut hash);
    Some(hash.finalize().to_vec())
}

fn hash_json(value: &Json<'_>, hash: &mut Sha256) {
    match value {
        Json::Null => hash.update(b"n"),
        Json::Bool(true) => hash.update(b"t"),
        Json::Bool(false) => hash.update(b"f"),
        Json::Text(text) => hash_text(b"s", text, hash),
        Json::Number(n) => match (n.as_u64(), n.as_i64()) {
            (Some(n), _) => hash_text(b"#", &n.to_string(), hash),
            (None, Some(n)) => hash_text(b"#", &n.to_string(), hash),
            (None, None) => hash_text(b".", &n.as_f64().unwrap_or(f64::NAN).to_bits().to_string(), hash),
        },
        Json::Array(items) => {
            hash.update(b"[");
            hash.update((items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| hash_json(item, hash));
        }
        Json::Object(fields) => {
            hash.update(b"{");
            hash.update((fields.len() as u64).to_be_bytes());
            for (name, value) in fields {
                hash_text(b"s", name, hash);
                hash_json(value, hash);
            }
        }
    }
}

fn hash_text(kind: &[u8], text: &str, hash: &mut Sha256) {
    hash.update(kind);
    hash.update((text.len() as u64).to_be_bytes());
    hash.update(text.as_bytes());
}

/// A JSON value. Its strings are those of its text, unless they have escapes.
enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of their names, each once: of fields of one name the last counts, as for [`serde_json::Value`].
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// Sorts fields here, and not by the order of a map, which a Cargo feature of `serde_json` can change.
fn object<'a>(mut fields: Vec<(Cow<'a, str>, Json<'a>)>) -> Json<'a> {
    // Stable: of fields of one name the last one stays the last.
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            std::mem::swap(later, kept);
        }
        same
    });
    Json::Object(fields)
}

/// Recursion is bounded: `serde_json` refuses text nested deeper than 128.
impl<'de> Deserialize<'de> for Json<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json<'de>, E> {
        // As `Value` has it; JSON has no text for such a number.
        Ok(Number::from_f64(number).map_or(Json::Null, Json::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json<'de>, A::Error> {
        let mut fields = Vec::new();
        while let Some(Name(name)) = map.next_key()? {
            fields.push((name, map.next_value()?));
        }
        Ok(object(fields))
    }
}

/// The name of a field. serde's own `Cow` is always a copy.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}
