//! A JSON value for fingerprints: as it is in its text, without a copy of each name and each string.

use std::borrow::Cow;
use std::fmt;
use std::sync::LazyLock;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// The field in which `serde_json` hands over a number, where its Cargo feature `arbitrary_precision` is on.
const NUMBER_FIELD: &str = "$serde_json::private::Number";

/// Whether that feature is on, which any crate of the program decides for all: only then is so large a number one.
static NUMBERS_ARE_TEXTS: LazyLock<bool> = LazyLock::new(|| serde_json::from_str::<Number>("1e400").is_ok());

/// A JSON value. Its strings are those of its text, unless they have escapes.
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the order of their names, each once: of fields of one name the last counts, as for [`Value`].
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> From<&'a Value> for Json<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(items) => Self::Array(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                object(fields.iter().map(|(name, value)| (Cow::Borrowed(name.as_str()), value.into())).collect())
            }
        }
    }
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
            if fields.is_empty() && name == NUMBER_FIELD && *NUMBERS_ARE_TEXTS {
                let number = map.next_value::<String>()?.parse();
                return number.map(Json::Number).map_err(|_| A::Error::custom("a number that is none"));
            }
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
