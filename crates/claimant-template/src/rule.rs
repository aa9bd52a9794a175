//! What the rules of a filter's pattern mean.

use std::net::IpAddr;

use serde_json::{Map, Number, Value};

/// What must hold of an object: every field, and of each choice (`$or`) one alternative.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) fields: Vec<(String, Field)>,
    pub(crate) choices: Vec<Vec<Fields>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    Object(Fields),
    /// One of these must hold.
    Rules(Vec<Rule>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    Equals(Value),
    EqualsIgnoreCase(String),
    Prefix(String),
    Suffix(String),
    AnythingBut(Vec<Rule>),
    Numeric(Vec<(Comparison, Number)>),
    /// A network, and the bits that its addresses have in common.
    Cidr(IpAddr, u8),
    Exists(bool),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Fields {
    pub(crate) fn hold(&self, value: &Value) -> bool {
        if let Value::Array(items) = value {
            return items.iter().any(|item| self.hold(item));
        }
        self.fields.iter().all(|(name, field)| field.holds(value.get(name)))
            && self.choices.iter().all(|choice| choice.iter().any(|fields| fields.hold(value)))
    }
}

impl Field {
    fn holds(&self, value: Option<&Value>) -> bool {
        match (self, value) {
            (Self::Object(fields), Some(value)) => fields.hold(value),
            // An object that is not there has no fields, which is what `exists: false` asks for.
            (Self::Object(fields), None) => fields.hold(&Value::Object(Map::new())),
            // A list holds what one of its items holds.
            (Self::Rules(rules), Some(Value::Array(items))) if !items.is_empty() => {
                rules.iter().any(|rule| items.iter().any(|item| rule.holds(item)))
            }
            (Self::Rules(rules), Some(value)) => rules.iter().any(|rule| rule.holds(value)),
            (Self::Rules(rules), None) => rules.contains(&Rule::Exists(false)),
        }
    }
}

impl Rule {
    /// Of a value that is there. Only a value that is no object exists for Lambda.
    pub(crate) fn holds(&self, value: &Value) -> bool {
        match self {
            Self::Equals(Value::Number(wanted)) => value.as_f64().is_some_and(|found| wanted.as_f64() == Some(found)),
            Self::Equals(wanted) => value == wanted,
            Self::EqualsIgnoreCase(wanted) => value.as_str().is_some_and(|text| text.to_lowercase() == *wanted),
            Self::Prefix(prefix) => value.as_str().is_some_and(|text| text.starts_with(prefix)),
            Self::Suffix(suffix) => value.as_str().is_some_and(|text| text.ends_with(suffix)),
            Self::AnythingBut(rules) => !value.is_object() && !rules.iter().any(|rule| rule.holds(value)),
            Self::Numeric(comparisons) => value.as_f64().is_some_and(|found| {
                comparisons
                    .iter()
                    .all(|(comparison, bound)| bound.as_f64().is_some_and(|bound| comparison.holds(found, bound)))
            }),
            Self::Cidr(network, bits) => {
                let address = value.as_str().and_then(|text| text.parse().ok());
                address.is_some_and(|address| is_in(address, *network, *bits))
            }
            Self::Exists(wanted) => *wanted != value.is_object(),
        }
    }
}

impl Comparison {
    pub(crate) fn of(sign: &str) -> Option<Self> {
        match sign {
            "=" => Some(Self::Equal),
            "<" => Some(Self::Less),
            "<=" => Some(Self::LessOrEqual),
            ">" => Some(Self::Greater),
            ">=" => Some(Self::GreaterOrEqual),
            _ => None,
        }
    }

    fn holds(self, found: f64, bound: f64) -> bool {
        match self {
            Self::Equal => found.total_cmp(&bound).is_eq(),
            Self::Less => found < bound,
            Self::LessOrEqual => found <= bound,
            Self::Greater => found > bound,
            Self::GreaterOrEqual => found >= bound,
        }
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let shifted = |address: u128, all: u8| address.checked_shr(u32::from(all - bits)).unwrap_or(0);
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => shifted(u32::from(a).into(), 32) == shifted(u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => shifted(a.into(), 128) == shifted(b.into(), 128),
        _ => false,
    }
}
