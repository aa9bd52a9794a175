//! What a sender attaches to a message, with its types.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::key::InvalidValue;

/// The attributes of a message (ten at most) or of an event that its envelopes carry, by their names. Clones share them, as the events of
/// one message do.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Attributes(Vec<Arc<(String, AttributeValue)>>);

impl Attributes {
    /// Sets an attribute, and replaces one of this name.
    pub fn set(&mut self, name: impl Into<String>, value: AttributeValue) {
        self.share(Arc::new((name.into(), value)));
    }

    fn share(&mut self, attribute: Arc<(String, AttributeValue)>) {
        self.0.retain(|other| other.0 != attribute.0);
        self.0.push(attribute);
    }

    /// Returns these and those of what is around them; where both have one of a name, this one counts.
    pub(crate) fn inside(&self, outer: &Self) -> Self {
        let mut attributes = outer.clone();
        self.0.iter().for_each(|attribute| attributes.share(Arc::clone(attribute)));
        attributes
    }

    /// Returns an attribute by its name, which is case-sensitive.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.0.iter().find(|attribute| attribute.0 == name).map(|attribute| &attribute.1)
    }

    /// Returns an attribute that is a text; `None` if there is none, or it is of another type.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(AttributeValue::as_text)
    }

    /// Returns an attribute that is a number, as this type; `None` if there is none, it is of another type, or does not fit.
    #[must_use]
    pub fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.get(name).and_then(AttributeValue::as_number)
    }

    /// Returns an attribute that is binary; `None` if there is none, or it is of another type.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.get(name).and_then(AttributeValue::as_bytes)
    }

    /// Returns an attribute that has to be there and to be a text.
    ///
    /// # Errors
    /// When there is none, or it is of another type. The error names the attribute and the types, and not its value.
    pub fn require_text(&self, name: &str) -> Result<&str, InvalidValue> {
        self.require(name, "a String", AttributeValue::as_text)
    }

    /// Returns an attribute that has to be there and to be a number that fits into `N`.
    ///
    /// # Errors
    /// As for [`require_text`](Self::require_text); and when the number does not fit.
    pub fn require_number<N: FromStr>(&self, name: &str) -> Result<N, InvalidValue> {
        self.require(name, "a Number that fits the type asked for", AttributeValue::as_number)
    }

    fn require<'a, V>(
        &'a self,
        name: &str,
        wanted: &str,
        value_of: impl FnOnce(&'a AttributeValue) -> Option<V>,
    ) -> Result<V, InvalidValue> {
        let value = self.get(name).ok_or_else(|| missing(name))?;
        value_of(value).ok_or_else(|| mistyped(name, value, wanted))
    }

    /// Returns all attributes with their names, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue)> {
        self.0.iter().map(|attribute| (attribute.0.as_str(), &attribute.1))
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(crate) fn missing(name: &str) -> InvalidValue {
    InvalidValue(format!("the attribute `{name}` is missing"))
}

/// Describes an attribute of another type than `wanted`. Labels are the sender's, so they are left out.
pub(crate) fn mistyped(name: &str, value: &AttributeValue, wanted: &str) -> InvalidValue {
    InvalidValue(match value.data {
        Data::Contradictory => {
            format!("the attribute `{name}` has no value of the type that it names, and is to be {wanted}")
        }
        _ => format!("the attribute `{name}` is a {}, and not {wanted}", value.basic_type()),
    })
}

// Attributes are data of users, as bodies are.
impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attributes", self.0.len())
    }
}

/// The value of an attribute, with its type: `String`, `Number` or `Binary`, and a label of the sender's own behind a dot, if
/// it set one.
#[derive(Clone, PartialEq, Eq)]
pub struct AttributeValue {
    data: Data,
    label: Option<String>,
}

#[derive(Clone, PartialEq, Eq)]
enum Data {
    Text(String),
    /// As it was sent, which no number type here holds: from a queue up to 38 digits, from an envelope any number of them.
    Number(String),
    Bytes(Vec<u8>),
    /// It has no value of the type that it names, or names none that there is.
    Contradictory,
}

impl AttributeValue {
    /// Returns a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { data: Data::Text(text.into()), label: None }
    }

    /// Returns a number.
    #[must_use]
    pub fn number(number: impl fmt::Display) -> Self {
        Self { data: Data::Number(number.to_string()), label: None }
    }

    /// Returns binary data.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { data: Data::Bytes(bytes.into()), label: None }
    }

    /// Returns what a message has whose attribute names one type and carries a value of another, or names no type that there is. It
    /// is a text, a number and bytes for no one; where it is asked for, the error says so instead of calling it missing.
    #[must_use]
    pub fn contradictory() -> Self {
        Self { data: Data::Contradictory, label: None }
    }

    /// Returns the value with this label behind its type: `String.uuid` has the label `uuid`.
    #[must_use]
    pub fn with_label(self, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), ..self }
    }

    /// Returns the text; `None` of another type.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            Data::Number(_) | Data::Bytes(_) | Data::Contradictory => None,
        }
    }

    /// Returns the number; `None` of another type, or if it does not fit into `N`. What is too large for any queue (`1e400`), or no
    /// number at all (`inf`), fits into none.
    #[must_use]
    pub fn as_number<N: FromStr>(&self) -> Option<N> {
        match &self.data {
            // Rust reads those as floats, too.
            Data::Number(number) if number.parse::<f64>().is_ok_and(f64::is_finite) => number.parse().ok(),
            Data::Number(_) | Data::Text(_) | Data::Bytes(_) | Data::Contradictory => None,
        }
    }

    /// Returns the bytes; `None` of another type.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Bytes(bytes) => Some(bytes),
            Data::Text(_) | Data::Number(_) | Data::Contradictory => None,
        }
    }

    /// Returns the text, or the number as it was sent; `None` of binary data. For keys and logs of one's own.
    #[must_use]
    pub fn as_sent(&self) -> Option<&str> {
        match &self.data {
            Data::Text(sent) | Data::Number(sent) => Some(sent),
            Data::Bytes(_) | Data::Contradictory => None,
        }
    }

    fn basic_type(&self) -> &'static str {
        match &self.data {
            Data::Text(_) => "String",
            Data::Number(_) => "Number",
            Data::Bytes(_) => "Binary",
            Data::Contradictory => "contradiction",
        }
    }

    /// Returns the type as a queue's API writes it: `String`, `Number` or `Binary`, with the label behind a dot; `contradiction` for
    /// [`contradictory`](Self::contradictory), which no queue takes.
    #[must_use]
    pub fn data_type(&self) -> String {
        let basic = self.basic_type();
        self.label.as_ref().map_or_else(|| basic.to_owned(), |label| format!("{basic}.{label}"))
    }
}

impl fmt::Debug for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttributeValue").field("data_type", &self.data_type()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_types() {
        let mut attributes = Attributes::default();
        attributes.set("tenant", AttributeValue::text("acme").with_label("id"));
        attributes.set("priority", AttributeValue::number(7));
        attributes.set("priority", AttributeValue::number(8));
        attributes.set("digest", AttributeValue::bytes([1, 2]));
        assert_eq!((attributes.text("tenant"), attributes.text("priority")), (Some("acme"), None));
        assert_eq!((attributes.number("priority"), attributes.number::<u8>("tenant")), (Some(8), None));
        assert_eq!((attributes.bytes("digest"), attributes.bytes("tenant")), (Some(&[1, 2][..]), None));
        assert_eq!(attributes.get("tenant").unwrap().data_type(), "String.id");
        assert_eq!((attributes.iter().count(), attributes.get("Tenant")), (3, None));
        assert_eq!(format!("{attributes:?}"), "3 attributes");
        let largest = "9".repeat(38);
        assert_eq!(AttributeValue::number(&largest).as_number::<u128>(), largest.parse().ok());
        assert!(["1e400", "inf", "NaN"].iter().all(|sent| AttributeValue::number(sent).as_number::<f64>().is_none()));
    }

    #[test]
    fn an_attribute_of_the_wrong_type_is_named_and_its_value_is_not() {
        let mut attributes = Attributes::default();
        attributes.set("tenant", AttributeValue::text("secret").with_label("label"));
        attributes.set("digest", AttributeValue::bytes("secret"));
        attributes.set("priority", AttributeValue::number(700));
        attributes.set("odd", AttributeValue::contradictory());
        assert_eq!(attributes.require_text("tenant"), Ok("secret"));
        assert_eq!(attributes.require_number("priority"), Ok(700));
        let said = |error: InvalidValue| error.to_string();
        let rows = [
            (attributes.require_text("name").map_err(said).err(), "the attribute `name` is missing"),
            (
                attributes.require_text("odd").map_err(said).err(),
                "the attribute `odd` has no value of the type that it names, and is to be a String",
            ),
            (
                attributes.require_text("digest").map_err(said).err(),
                "the attribute `digest` is a Binary, and not a String",
            ),
            (
                attributes.require_number::<u8>("priority").map_err(said).err(),
                "the attribute `priority` is a Number, and not a Number that fits the type asked for",
            ),
        ];
        for (said, wanted) in rows {
            assert_eq!(said.as_deref(), Some(wanted));
        }
    }
}
