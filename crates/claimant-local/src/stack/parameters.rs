//! What a template demands of its parameters' values. `CloudFormation` refuses a deployment for the same.

use regex_lite::Regex;

use super::section::Section;
use super::template::Template;

/// What the values of one parameter must be.
#[derive(Debug, Default)]
struct Demands {
    number: bool,
    /// Whether the value is a list, each item of which must be so.
    list: bool,
    values: Vec<String>,
    pattern: Option<String>,
    length: (Option<f64>, Option<f64>),
    range: (Option<f64>, Option<f64>),
}

/// Checks every value that is given or a default. Faults never quote the value: it may be a secret.
pub(super) fn check(template: &Template<'_>) {
    for (name, given, parameter) in template.parameter_sections() {
        let default = parameter.section("Default");
        let Some(value) = given.map(str::to_owned).or_else(|| default.is_given().then(|| default.text()).flatten())
        else {
            continue; // What needs it says so.
        };
        let demands = demands(&parameter);
        if let Some(why) = broken(&demands, &value) {
            let which = if given.is_some() { "the value given" } else { "its default" };
            let described = parameter.section("ConstraintDescription").text();
            let described = described.map_or_else(String::new, |text| format!(" ({text})"));
            parameter.fault(format!("{which} {why}{described}: give another one with --parameter {name}=…"));
        }
    }
}

fn demands(parameter: &Section<'_>) -> Demands {
    let number = |key: &str| parameter.section(key).text()?.parse().ok();
    let kind = parameter.section("Type").text().unwrap_or_default();
    Demands {
        number: kind == "Number" || kind == "List<Number>",
        list: kind == "CommaDelimitedList" || kind.starts_with("List<"),
        values: parameter.section("AllowedValues").items().iter().filter_map(Section::text).collect(),
        pattern: parameter.section("AllowedPattern").text(),
        length: (number("MinLength"), number("MaxLength")),
        range: (number("MinValue"), number("MaxValue")),
    }
}

/// Why the value is not what is demanded.
fn broken(demands: &Demands, value: &str) -> Option<String> {
    if demands.list {
        return value.split(',').find_map(|item| broken_item(demands, item.trim()));
    }
    broken_item(demands, value)
}

fn broken_item(demands: &Demands, value: &str) -> Option<String> {
    if !demands.values.is_empty() && !demands.values.iter().any(|allowed| allowed == value) {
        return Some(format!("is not one of AllowedValues: {}", demands.values.join(", ")));
    }
    if let Some(pattern) = &demands.pattern {
        match Regex::new(&format!("^(?:{pattern})$")) {
            Ok(whole) if !whole.is_match(value) => return Some(format!("does not match AllowedPattern {pattern}")),
            Ok(_) => {}
            // Such as a look-ahead, which AWS's regular expressions have and these have not.
            Err(_) => tracing::warn!(pattern, "a parameter's AllowedPattern is not checked here: only AWS can read it"),
        }
    }
    let parsed: Option<f64> = value.parse().ok();
    if demands.number && parsed.is_none() {
        return Some("is not a number".to_owned());
    }
    #[allow(clippy::cast_precision_loss, reason = "no text has 2^52 characters")]
    let length = value.chars().count() as f64;
    outside(demands.length, Some(length), ["MinLength", "MaxLength"])
        .or_else(|| outside(demands.range, parsed, ["MinValue", "MaxValue"]))
}

fn outside((min, max): (Option<f64>, Option<f64>), value: Option<f64>, names: [&str; 2]) -> Option<String> {
    let value = value?;
    if let Some(min) = min.filter(|min| value < *min) {
        return Some(format!("is below {} {min}", names[0]));
    }
    max.filter(|max| value > *max).map(|max| format!("is above {} {max}", names[1]))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Stack;

    /// Loads a template with the one parameter `P`, defined so, and this value for it.
    fn load(definition: &str, value: Option<&str>) -> Result<(), String> {
        let yaml = format!("Parameters: {{P: {{{definition}}}}}\nResources: {{Q: {{Type: AWS::SQS::Queue}}}}");
        let given = value.map(|value| ("P".to_owned(), value.to_owned()));
        Stack::parse(&yaml, &BTreeMap::from_iter(given)).map(drop).map_err(|fault| fault.to_string())
    }

    #[test]
    fn values_that_aws_would_refuse_are_refused() {
        let stage = "Type: String, Default: dev, AllowedValues: [dev, prod]";
        let code = r#"Type: String, AllowedPattern: "[A-Z]{2}[0-9]*", ConstraintDescription: two letters"#;
        let number = "Type: Number, MinValue: 1, MaxValue: 10";
        let text = "Type: String, MinLength: 2, MaxLength: 3";
        let list = "Type: CommaDelimitedList, AllowedValues: [a, b]";
        // (definition, value, what the fault says; nothing where it is fine)
        let cases: &[(&str, Option<&str>, &[&str])] = &[
            (stage, None, &[]),
            (stage, Some("prod"), &[]),
            (
                stage,
                Some("s3cret"),
                &["Parameters.P", "the value given is not one of AllowedValues: dev, prod", "--parameter P=…"],
            ),
            ("Type: String, Default: x, AllowedValues: [dev]", None, &["its default is not one of"]),
            ("Type: Number, Default: 5, AllowedValues: [5, 10]", Some("10"), &[]),
            (code, Some("AB12"), &[]),
            (code, Some("xAB12"), &["does not match AllowedPattern [A-Z]{2}[0-9]*", "two letters"]),
            (code, Some("AB12x"), &["does not match"]),
            (r#"Type: String, AllowedPattern: "(?=x)y""#, Some("z"), &[]),
            (number, Some("10"), &[]),
            (number, Some("11"), &["is above MaxValue 10"]),
            (number, Some("0.5"), &["is below MinValue 1"]),
            (number, Some("many"), &["is not a number"]),
            (text, Some("äöü"), &[]),
            (text, Some("a"), &["is below MinLength 2"]),
            (text, Some("abcd"), &["is above MaxLength 3"]),
            (list, Some("a, b"), &[]),
            (list, Some("a,c"), &["is not one of AllowedValues: a, b"]),
            ("Type: String, MinLength: 1", None, &[]),
        ];
        for (definition, value, expected) in cases {
            let loaded = load(definition, *value);
            assert_eq!(loaded.is_ok(), expected.is_empty(), "{definition}, {value:?}: {loaded:?}");
            let fault = loaded.err().unwrap_or_default();
            for part in *expected {
                assert!(fault.contains(part), "{definition}, {value:?}: {part} is not in: {fault}");
            }
            assert!(!fault.contains("s3cret"), "{fault}");
        }
    }
}
