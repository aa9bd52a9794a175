//! Filters of an event source mapping, in the syntax that Lambda shares with EventBridge.
//!
//! Of an SQS message only the body can be filtered by. A pattern for fields of the body fits only a body that is a JSON
//! object or list; a pattern for the body as a text fits only one that is not. What fits no filter is deleted.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::rule::{Comparison, Field, Fields, Rule};

/// The longest pattern, in characters.
const PATTERN_LENGTH_MAX: usize = 4_096;

/// One compiled pattern of a mapping's `FilterCriteria`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter(Body);

/// Why a pattern is not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Lambda refuses it, or it filters by more than the body.
    Refused(String),
    /// It uses what `EventBridge` has, and Lambda's documentation does not: whether Lambda takes it shows when it is deployed.
    Undocumented(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Body {
    /// The pattern says nothing of the body.
    Any,
    Text(Vec<Rule>),
    Json(Fields),
}

impl Filter {
    /// Compiles a pattern from its text, as a mapping has it.
    ///
    /// # Errors
    /// As for [`new`](Self::new); and where the text is no JSON, or too long.
    pub fn read(text: &str) -> Result<Self, Fault> {
        if text.chars().count() > PATTERN_LENGTH_MAX {
            return Err(Fault::Refused(format!("has more than {PATTERN_LENGTH_MAX} characters: Lambda refuses it")));
        }
        let pattern = serde_json::from_str(text).map_err(|e| Fault::Refused(format!("is not JSON: {e}")))?;
        Self::new(&pattern)
    }

    /// Compiles a pattern, such as `{"body": {"kind": ["order"]}}`.
    ///
    /// # Errors
    /// What is wrong with the pattern, where Lambda would refuse it or may, or it filters by more than the body.
    pub fn new(pattern: &Value) -> Result<Self, Fault> {
        let mut undocumented = Undocumented::new();
        let filter = compiled(pattern, &mut undocumented).map_err(Fault::Refused)?;
        if undocumented.is_empty() {
            return Ok(filter);
        }
        let uses = undocumented.into_iter().collect::<Vec<_>>().join(" and ");
        Err(Fault::Undocumented(format!(
            "uses {uses}, which EventBridge has, and Lambda's documentation does not: AWS may refuse the mapping"
        )))
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

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Refused(why) | Self::Undocumented(why)) = self;
        f.write_str(why)
    }
}

/// What a pattern uses that Lambda's documentation does not have. A filter with any of it is not compiled.
type Undocumented = BTreeSet<String>;

/// Stands for a rule that is not documented.
const NO_RULE: Rule = Rule::Exists(true);

fn compiled(pattern: &Value, undocumented: &mut Undocumented) -> Result<Filter, String> {
    let Value::Object(fields) = pattern else { return Err("must be an object: {\"body\": …}".to_owned()) };
    for (name, value) in fields {
        match name.as_str() {
            "body" => {}
            "$or" => {
                undocumented.insert("`$or` around `body`".to_owned());
                alternatives(value)?.iter().try_for_each(|one| compiled(one, undocumented).map(drop))?;
            }
            other => return Err(format!("filters by `{other}`: of an SQS message only `body` can be filtered by")),
        }
    }
    Ok(Filter(match fields.get("body") {
        None => Body::Any,
        Some(Value::Array(rules)) => Body::Text(any_of(rules, undocumented)?),
        Some(Value::Object(fields)) => Body::Json(all_of(fields, undocumented)?),
        Some(_) => return Err("`body` must be an object, or a list of values".to_owned()),
    }))
}

fn alternatives(value: &Value) -> Result<&[Value], String> {
    let list = value.as_array().filter(|list| list.len() >= 2 && list.iter().all(Value::is_object));
    list.map(Vec::as_slice).ok_or_else(|| "`$or` takes a list of two or more objects".to_owned())
}

fn all_of(object: &Map<String, Value>, undocumented: &mut Undocumented) -> Result<Fields, String> {
    let mut fields = Fields::default();
    for (name, value) in object {
        match value {
            _ if name == "$or" => {
                let each = alternatives(value)?.iter().filter_map(Value::as_object);
                fields.choices.push(each.map(|one| all_of(one, undocumented)).collect::<Result<_, _>>()?);
            }
            Value::Array(rules) => fields.fields.push((name.clone(), Field::Rules(any_of(rules, undocumented)?))),
            Value::Object(object) => fields.fields.push((name.clone(), Field::Object(all_of(object, undocumented)?))),
            _ => return Err(format!("`{name}` must be an object, or a list of values: write [{value}]")),
        }
    }
    if fields == Fields::default() {
        return Err("has an object without fields".to_owned());
    }
    Ok(fields)
}

fn any_of(rules: &[Value], undocumented: &mut Undocumented) -> Result<Vec<Rule>, String> {
    if rules.is_empty() {
        return Err("has an empty list".to_owned());
    }
    rules.iter().map(|one| rule(one, undocumented)).collect()
}

fn rule(value: &Value, undocumented: &mut Undocumented) -> Result<Rule, String> {
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
        "prefix" | "suffix" if is_text_by_case(operand) => {
            undocumented.insert(format!("`{operator}` with `equals-ignore-case`"));
            Ok(NO_RULE)
        }
        "wildcard" => {
            undocumented.insert("`wildcard`".to_owned());
            text().map(|_| NO_RULE)
        }
        "prefix" => Ok(Rule::Prefix(text()?)),
        "suffix" => Ok(Rule::Suffix(text()?)),
        "equals-ignore-case" => Ok(Rule::EqualsIgnoreCase(text()?.to_lowercase())),
        "exists" => operand.as_bool().map(Rule::Exists).ok_or_else(|| "`exists` takes true or false".to_owned()),
        "numeric" => numeric(operand),
        // Not in Lambda's documentation, but in the samples of AWS.
        "cidr" => cidr(&text()?)
            .ok_or_else(|| "`cidr` takes a network: \"10.0.0.0/24\"; write a single address as a value".to_owned()),
        "anything-but" => anything_but(operand, undocumented).map(Rule::AnythingBut),
        other => Err(format!("uses `{other}`, which is not among the operators of Lambda's filters")),
    }
}

fn cidr(network: &str) -> Option<Rule> {
    let (address, bits) = network.split_once('/')?;
    let (address, bits): (std::net::IpAddr, u8) = (address.parse().ok()?, bits.parse().ok()?);
    // As AWS's `event-ruler`, which takes no network of one address.
    (bits < if address.is_ipv4() { 32 } else { 128 }).then_some(Rule::Cidr(address, bits))
}

/// `{"equals-ignore-case": "text"}`.
fn is_text_by_case(operand: &Value) -> bool {
    operand.as_object().is_some_and(|object| object.len() == 1) && operand["equals-ignore-case"].is_string()
}

/// Whether `anything-but` takes a list of these texts with the operator.
fn is_list_of(operator: &str, texts: &[Value]) -> bool {
    let takes_lists = ["equals-ignore-case", "prefix", "suffix", "wildcard"].contains(&operator);
    takes_lists && !texts.is_empty() && texts.iter().all(Value::is_string)
}

/// What must not hold: of the values and rules, Lambda takes some here only.
fn anything_but(operand: &Value, undocumented: &mut Undocumented) -> Result<Vec<Rule>, String> {
    let wrong = "`anything-but` takes texts, or numbers, or one of `prefix` and `suffix`, which are not empty, and `equals-ignore-case`";
    match operand {
        Value::String(_) | Value::Number(_) => Ok(vec![rule(operand, undocumented)?]),
        Value::Array(values) if values.iter().all(Value::is_string) || values.iter().all(Value::is_number) => {
            any_of(values, undocumented)
        }
        Value::Object(object) => match object.iter().next() {
            Some((operator, Value::Array(texts))) if object.len() == 1 && is_list_of(operator, texts) => {
                if operator != "equals-ignore-case" {
                    undocumented.insert(format!("`anything-but` with a list of `{operator}`"));
                }
                let each = texts.iter().map(|text| anything_but(&json!({ operator: text }), undocumented));
                Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
            }
            _ => match rule(operand, undocumented)? {
                Rule::Prefix(text) | Rule::Suffix(text) if text.is_empty() => Err(wrong.to_owned()),
                allowed @ (Rule::Prefix(_) | Rule::Suffix(_) | Rule::EqualsIgnoreCase(_)) => Ok(vec![allowed]),
                _ if object.contains_key("wildcard") => Ok(vec![NO_RULE]),
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
            assert!(matches!(&error, Fault::Refused(why) if why.contains(expected)), "{pattern}: {error:?}");
        }
    }

    #[test]
    fn what_only_eventbridge_has_is_not_certain_to_be_refused() {
        let table = [
            (r#"{"body": {"a": [{"wildcard": "x*"}]}}"#, "uses `wildcard`,"),
            (r#"{"body": [{"wildcard": "x*"}]}"#, "uses `wildcard`,"),
            (r#"{"$or": [{"body": {"a": [1]}}, {"body": {"b": [1]}}]}"#, "uses `$or` around `body`,"),
            (r#"{"body": {"a": [{"prefix": {"equals-ignore-case": "x"}}]}}"#, "`prefix` with `equals-ignore-case`"),
            (r#"{"body": {"a": [{"anything-but": {"wildcard": "x*"}}]}}"#, "uses `wildcard`,"),
            (
                r#"{"body": {"a": [{"anything-but": {"suffix": ["x", "y"]}}]}}"#,
                "`anything-but` with a list of `suffix`",
            ),
            (
                r#"{"$or": [{"body": {"a": [1]}}, {"body": {"b": [{"wildcard": "*"}]}}]}"#,
                "uses `$or` around `body` and `wildcard`,",
            ),
        ];
        for (pattern, expected) in table {
            let error = Filter::read(pattern).expect_err(pattern);
            assert!(matches!(&error, Fault::Undocumented(why) if why.contains(expected)), "{pattern}: {error:?}");
        }
        // What is certain comes first.
        for pattern in [
            r#"{"body": {"a": [{"wildcard": "x*"}], "b": "x"}}"#,
            r#"{"body": {"a": [{"wildcard": 1}]}}"#,
            r#"{"body": {"a": [{"anything-but": {"prefix": ["x", ""]}}]}}"#,
            r#"{"$or": [{"body": {"a": [1]}}]}"#,
            r#"{"$or": [{"body": {"a": [1]}}, {"attributes": {"b": [1]}}]}"#,
        ] {
            let error = Filter::read(pattern).expect_err(pattern);
            assert!(matches!(error, Fault::Refused(_)), "{pattern}: {error:?}");
        }
    }
}
