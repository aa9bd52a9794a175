//! Filters of an event source mapping, in the syntax that Lambda shares with EventBridge.
//!
//! Of an SQS message only the body can be filtered by. A pattern for fields of the body fits only a body that is a JSON
//! object or list; a pattern for the body as a text fits only one that is not. What fits no filter is deleted.

use std::net::IpAddr;

use serde_json::{Map, Number, Value, json};

/// The longest pattern, in characters.
const PATTERN_LENGTH_MAX: usize = 4_096;

/// One compiled pattern of a mapping's `FilterCriteria`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Body);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Body {
    /// The pattern says nothing of the body.
    Any,
    Text(Vec<Rule>),
    Json(Fields),
}

/// What must hold of an object: every field, and of each choice (`$or`) one alternative.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    fields: Vec<(String, Field)>,
    choices: Vec<Vec<Fields>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Object(Fields),
    /// One of these must hold.
    Rules(Vec<Rule>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Rule {
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
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Filter {
    /// Compiles a pattern from its text, as a mapping has it.
    ///
    /// # Errors
    /// As for [`new`](Self::new); and where the text is no JSON, or too long.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.chars().count() > PATTERN_LENGTH_MAX {
            return Err(format!("has more than {PATTERN_LENGTH_MAX} characters: Lambda refuses it"));
        }
        Self::new(&serde_json::from_str(text).map_err(|e| format!("is not JSON: {e}"))?)
    }

    /// Compiles a pattern, such as `{"body": {"kind": ["order"]}}`.
    ///
    /// # Errors
    /// What is wrong with the pattern, where Lambda would refuse it or it filters by more than the body.
    pub fn new(pattern: &Value) -> Result<Self, String> {
        let Value::Object(fields) = pattern else { return Err("must be an object: {\"body\": …}".to_owned()) };
        if let Some(other) = fields.keys().find(|key| *key != "body") {
            return Err(format!("filters by `{other}`: of an SQS message only `body` can be filtered by"));
        }
        Ok(Self(match fields.get("body") {
            None => Body::Any,
            Some(Value::Array(rules)) => Body::Text(any_of(rules)?),
            Some(Value::Object(fields)) => Body::Json(all_of(fields)?),
            Some(_) => return Err("`body` must be an object, or a list of values".to_owned()),
        }))
    }

    /// Whether a message with this body passes.
    pub fn matches(&self, body: &str) -> bool {
        let json = || serde_json::from_str(body).ok().filter(|value: &Value| value.is_object() || value.is_array());
        match &self.0 {
            Body::Any => true,
            Body::Text(rules) => json().is_none() && rules.iter().any(|rule| rule.holds(&Value::from(body))),
            Body::Json(fields) => json().is_some_and(|value| fields.hold(&value)),
        }
    }
}

impl Fields {
    fn hold(&self, value: &Value) -> bool {
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
    fn holds(&self, value: &Value) -> bool {
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
    fn of(sign: &str) -> Option<Self> {
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

const OR_TAKES: &str = "`$or` takes a list of two or more objects";

fn all_of(object: &Map<String, Value>) -> Result<Fields, String> {
    let mut fields = Fields::default();
    for (name, value) in object {
        match value {
            Value::Array(alternatives) if name == "$or" && alternatives.len() >= 2 => {
                let each = alternatives.iter().map(|alternative| match alternative {
                    Value::Object(object) => all_of(object),
                    _ => Err(OR_TAKES.to_owned()),
                });
                fields.choices.push(each.collect::<Result<_, _>>()?);
            }
            _ if name == "$or" => return Err(OR_TAKES.to_owned()),
            Value::Array(rules) => fields.fields.push((name.clone(), Field::Rules(any_of(rules)?))),
            Value::Object(object) => fields.fields.push((name.clone(), Field::Object(all_of(object)?))),
            _ => return Err(format!("`{name}` must be an object, or a list of values: write [{value}]")),
        }
    }
    if fields == Fields::default() {
        return Err("has an object without fields".to_owned());
    }
    Ok(fields)
}

fn any_of(rules: &[Value]) -> Result<Vec<Rule>, String> {
    if rules.is_empty() {
        return Err("has an empty list".to_owned());
    }
    rules.iter().map(rule).collect()
}

fn rule(value: &Value) -> Result<Rule, String> {
    let object = match value {
        Value::Object(object) => object,
        Value::Array(_) => return Err("has a list within a list".to_owned()),
        plain => return Ok(Rule::Equals(plain.clone())),
    };
    let mut entries = object.iter();
    let (Some((operator, operand)), None) = (entries.next(), entries.next()) else {
        return Err("has a rule that must have one operator, such as {\"prefix\": \"a\"}".to_owned());
    };
    let text = || operand.as_str().map(str::to_owned).ok_or_else(|| format!("`{operator}` takes a text"));
    match operator.as_str() {
        "prefix" => Ok(Rule::Prefix(text()?)),
        "suffix" => Ok(Rule::Suffix(text()?)),
        "equals-ignore-case" => Ok(Rule::EqualsIgnoreCase(text()?.to_lowercase())),
        "exists" => operand.as_bool().map(Rule::Exists).ok_or_else(|| "`exists` takes true or false".to_owned()),
        "numeric" => numeric(operand),
        // Not in Lambda's documentation, but in the samples of AWS.
        "cidr" => cidr(&text()?)
            .ok_or_else(|| "`cidr` takes a network: \"10.0.0.0/24\"; write a single address as a value".to_owned()),
        "anything-but" => anything_but(operand).map(Rule::AnythingBut),
        other => Err(format!("uses `{other}`, which is not among the operators of Lambda's filters")),
    }
}

fn cidr(network: &str) -> Option<Rule> {
    let (address, bits) = network.split_once('/')?;
    let (address, bits): (IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    // As AWS's `event-ruler`, which takes no network of one address.
    (bits < if address.is_ipv4() { 32 } else { 128 }).then_some(Rule::Cidr(address, bits))
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let shifted = |address: u128, all: u8| address.checked_shr(u32::from(all - bits)).unwrap_or(0);
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => shifted(u32::from(a).into(), 32) == shifted(u32::from(b).into(), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => shifted(a.into(), 128) == shifted(b.into(), 128),
        _ => false,
    }
}

/// What must not hold: of the values and rules, Lambda takes some here only.
fn anything_but(operand: &Value) -> Result<Vec<Rule>, String> {
    let wrong = "`anything-but` takes texts, or numbers, or one of `prefix` and `suffix`, which are not empty, and `equals-ignore-case`";
    match operand {
        Value::String(_) | Value::Number(_) => Ok(vec![rule(operand)?]),
        Value::Array(values) if values.iter().all(Value::is_string) || values.iter().all(Value::is_number) => {
            any_of(values)
        }
        Value::Object(object) => match object.get("equals-ignore-case") {
            Some(Value::Array(texts)) if object.len() == 1 => {
                texts.iter().map(|text| rule(&json!({ "equals-ignore-case": text }))).collect()
            }
            _ => match rule(operand)? {
                Rule::Prefix(text) | Rule::Suffix(text) if text.is_empty() => Err(wrong.to_owned()),
                allowed @ (Rule::Prefix(_) | Rule::Suffix(_) | Rule::EqualsIgnoreCase(_)) => Ok(vec![allowed]),
                _ => Err(wrong.to_owned()),
            },
        },
        _ => Err(wrong.to_owned()),
    }
}

fn numeric(operand: &Value) -> Result<Rule, String> {
    let wrong = || "`numeric` takes one comparison, or a range from below: [\">\", 0, \"<=\", 5]".to_owned();
    let parts = operand.as_array().filter(|parts| matches!(parts.len(), 2 | 4)).ok_or_else(wrong)?;
    let comparison = |pair: &[Value]| match pair {
        [Value::String(sign), Value::Number(bound)] => Some((Comparison::of(sign)?, bound.clone())),
        _ => None,
    };
    let comparisons: Option<Vec<_>> = parts.chunks(2).map(comparison).collect();
    let comparisons = comparisons.ok_or_else(wrong)?;
    if let [(from, low), (to, high)] = &comparisons[..] {
        let from_below = matches!(from, Comparison::Greater | Comparison::GreaterOrEqual)
            && matches!(to, Comparison::Less | Comparison::LessOrEqual);
        if !from_below || low.as_f64() >= high.as_f64() {
            return Err(wrong());
        }
    }
    Ok(Rule::Numeric(comparisons))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pattern: &str) -> Filter {
        let pattern = serde_json::from_str(pattern).expect("a pattern is JSON");
        Filter::new(&pattern).expect("a sound pattern")
    }

    #[test]
    fn patterns_fit_as_lambda_has_it() {
        let table: [(&str, &[&str], &[&str]); 22] = [
            (
                r#"{"body": {"kind": ["order", "offer"]}}"#,
                &[r#"{"kind": "order", "x": 1}"#, r#"{"kind": "offer"}"#],
                &[r#"{"kind": "bill"}"#, "{}", "order", r#"{"kind": {"kind": "order"}}"#],
            ),
            (
                r#"{"body": {"a": ["x"], "b": [1]}}"#,
                &[r#"{"a": "x", "b": 1.0}"#],
                &[r#"{"a": "x"}"#, r#"{"a": "x", "b": "1"}"#],
            ),
            (
                r#"{"body": {"a": {"b": ["x"]}}}"#,
                &[r#"{"a": {"b": "x"}}"#, r#"{"a": [{"b": "y"}, {"b": "x"}]}"#],
                &[r#"{"a": "x"}"#, r#"{"b": "x"}"#],
            ),
            (r#"{"body": {"tags": ["x"]}}"#, &[r#"{"tags": ["a", "x"]}"#], &[r#"{"tags": ["a"]}"#, r#"{"tags": []}"#]),
            (r#"{"body": {"a": [null]}}"#, &[r#"{"a": null}"#], &["{}", r#"{"a": ""}"#]),
            (r#"{"body": {"a": [""]}}"#, &[r#"{"a": ""}"#], &[r#"{"a": null}"#]),
            (r#"{"body": {"a": [true]}}"#, &[r#"{"a": true}"#], &[r#"{"a": "true"}"#]),
            (
                r#"{"body": {"a": [{"prefix": "eu-"}]}}"#,
                &[r#"{"a": "eu-west-1"}"#],
                &[r#"{"a": "us"}"#, r#"{"a": 1}"#, "eu-"],
            ),
            (r#"{"body": {"a": [{"suffix": ".png"}]}}"#, &[r#"{"a": "x.png"}"#], &[r#"{"a": "png.x"}"#]),
            (r#"{"body": {"a": [{"equals-ignore-case": "AbÖ"}]}}"#, &[r#"{"a": "aBö"}"#], &[r#"{"a": "ab"}"#]),
            (
                r#"{"body": {"a": [{"anything-but": ["x", "z"]}], "b": [{"anything-but": 1}]}}"#,
                &[r#"{"a": "y", "b": 2}"#],
                &[r#"{"a": "x", "b": 2}"#, r#"{"a": "y", "b": 1}"#, "{}"],
            ),
            (
                r#"{"body": {"a": [{"anything-but": {"equals-ignore-case": ["X", "z"]}}]}}"#,
                &[r#"{"a": "y"}"#],
                &[r#"{"a": "x"}"#, r#"{"a": "Z"}"#],
            ),
            (r#"{"body": {"a": [{"anything-but": {"prefix": "x"}}]}}"#, &[r#"{"a": "y"}"#], &[r#"{"a": "xy"}"#]),
            (r#"{"body": {"a": [{"numeric": ["=", 3.5]}]}}"#, &[r#"{"a": 3.50}"#], &[r#"{"a": "3.5"}"#]),
            (
                r#"{"body": {"a": [{"numeric": [">", 0, "<=", 5]}]}}"#,
                &[r#"{"a": 5}"#, r#"{"a": 0.1}"#],
                &[r#"{"a": 0}"#, r#"{"a": 6}"#],
            ),
            (
                r#"{"body": {"a": [{"exists": true}]}}"#,
                &[r#"{"a": null}"#, r#"{"a": 0}"#],
                &["{}", r#"{"a": {"b": 1}}"#],
            ),
            (
                r#"{"body": {"a": {"b": [{"exists": false}]}}}"#,
                &["{}", r#"{"a": {"c": 1}}"#],
                &[r#"{"a": {"b": 1}}"#, "text"],
            ),
            (
                r#"{"body": {"$or": [{"a": ["x"]}, {"b": [1]}], "c": [2]}}"#,
                &[r#"{"a": "x", "c": 2}"#, r#"{"b": 1, "c": 2}"#],
                &[r#"{"c": 2}"#, r#"{"a": "x"}"#],
            ),
            (
                r#"{"body": [{"prefix": "Result: "}, "ok"]}"#,
                &["Result: 1", "ok"],
                &["result", r#"{"a": "ok"}"#, r#"["ok"]"#],
            ),
            (
                r#"{"body": {"a": [{"cidr": "10.1.0.0/22"}]}}"#,
                &[r#"{"a": "10.1.3.255"}"#],
                &[r#"{"a": "10.1.4.0"}"#, r#"{"a": "::10.1.3.255"}"#, r#"{"a": "x"}"#, r#"{"a": 1}"#],
            ),
            (
                r#"{"body": {"a": [{"cidr": "2001:db8::/33"}, {"cidr": "9.9.9.9/0"}]}}"#,
                &[r#"{"a": "2001:db8:7fff::1"}"#, r#"{"a": "1.2.3.4"}"#],
                &[r#"{"a": "2001:db8:8000::"}"#],
            ),
            ("{}", &["anything", "{}"], &[]),
        ];
        for (pattern, passing, failing) in table {
            for body in passing {
                assert!(filter(pattern).matches(body), "{pattern} must let {body} pass");
            }
            for body in failing {
                assert!(!filter(pattern).matches(body), "{pattern} must keep {body} out");
            }
        }
    }

    #[test]
    fn what_lambda_refuses_is_refused() {
        let table = [
            (r#"["body"]"#, "must be an object"),
            (r#"{"messageAttributes": {"a": ["x"]}}"#, "only `body`"),
            (r#"{"body": "x"}"#, "`body` must be"),
            (r#"{"body": {"a": "x"}}"#, "`a` must be an object, or a list"),
            (r#"{"body": {"a": []}}"#, "empty list"),
            (r#"{"body": {}}"#, "without fields"),
            (r#"{"body": {"a": [{"like": "x"}]}}"#, "uses `like`"),
            (r#"{"body": {"a": [{"prefix": 1}]}}"#, "`prefix` takes a text"),
            (r#"{"body": {"a": [{"numeric": [">"]}]}}"#, "`numeric` takes"),
            (r#"{"body": {"a": [{"numeric": ["~", 1]}]}}"#, "`numeric` takes"),
            (r#"{"body": {"a": [{"numeric": ["<", 1, ">", 5]}]}}"#, "`numeric` takes"),
            (r#"{"body": {"a": [{"numeric": ["=", 1, "=", 1]}]}}"#, "`numeric` takes"),
            (r#"{"body": {"a": [{"numeric": [">=", 5, "<=", 5]}]}}"#, "`numeric` takes"),
            (r#"{"body": {"a": [{"anything-but": [1, "a"]}]}}"#, "`anything-but` takes"),
            (r#"{"body": {"a": [{"anything-but": []}]}}"#, "empty list"),
            (r#"{"body": {"a": [{"anything-but": null}]}}"#, "`anything-but` takes"),
            (r#"{"body": {"a": [{"anything-but": [{"prefix": "a"}]}]}}"#, "`anything-but` takes"),
            (r#"{"body": {"a": [{"anything-but": {"exists": true}}]}}"#, "`anything-but` takes"),
            (r#"{"body": {"a": [{"anything-but": {"suffix": ""}}]}}"#, "`anything-but` takes"),
            (r#"{"body": {"a": [{"anything-but": {"equals-ignore-case": [1]}}]}}"#, "takes a text"),
            (r#"{"body": {"$or": [{"a": [1]}]}}"#, "`$or` takes"),
            (r#"{"body": {"$or": {"a": [1]}}}"#, "`$or` takes"),
            (r#"{"body": {"a": [{"exists": "no"}]}}"#, "`exists` takes"),
            (r#"{"body": {"a": [{"cidr": "10.0.0.1/32"}]}}"#, "`cidr` takes a network"),
            (r#"{"body": {"a": [{"cidr": "2001:db8::1/128"}]}}"#, "`cidr` takes a network"),
        ];
        for (pattern, expected) in table {
            let error = Filter::new(&serde_json::from_str(pattern).expect("JSON")).expect_err(pattern);
            assert!(error.contains(expected), "{pattern}: {error}");
        }
    }
}
