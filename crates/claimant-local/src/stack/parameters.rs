//! What a template demands of its parameters' values. `CloudFormation` refuses a deployment for the same.

use claimant_template::Demands;

use super::template::Template;

/// Checks every value that is given or a default. Faults never quote the value: it may be a secret.
pub(super) fn check(template: &Template<'_>) {
    for (name, given, parameter) in template.parameter_sections() {
        let Some(demands) = template.parameter(name).map(Demands::of) else { continue };
        let default = parameter.section("Default");
        let Some(value) = given.map(str::to_owned).or_else(|| default.is_given().then(|| default.text()).flatten())
        else {
            continue; // What needs it says so.
        };
        if let Some(pattern) = demands.unread_pattern() {
            tracing::warn!(pattern, "a parameter's AllowedPattern is not checked here: only AWS can read it");
        }
        if let Some(why) = demands.broken(&value) {
            let which = if given.is_some() { "the value given" } else { "its default" };
            parameter.fault(format!("{which} {why}: give another one with --parameter {name}=…"));
        }
    }
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
            // Of words and numbers without quotes, AWS makes its own texts.
            (r#"Type: String, Default: True, AllowedValues: ["true", "false"]"#, None, &[]),
            ("Type: String, Default: false, AllowedValues: [True, False]", None, &[]),
            ("Type: String, AllowedValues: [Yes, No]", Some("true"), &[]),
            ("Type: String, AllowedValues: [on, OFF]", Some("on"), &["is not one of AllowedValues: true, false"]),
            (r#"Type: String, AllowedValues: ["on", "off"]"#, Some("on"), &[]),
            ("Type: String, Default: y, AllowedValues: [y, n]", None, &[]),
            ("Type: String, AllowedValues: [Yes, No]", Some("Yes"), &["is not one of AllowedValues: true, false"]),
            ("Type: String, AllowedValues: [Yes]", Some("false"), &["is not one of"]),
            ("Type: String, Default: Yes, AllowedPattern: true|false", None, &[]),
            ("Type: Number, Default: 1, AllowedValues: [0.50, 1.0]", None, &[]),
            ("Type: Number, AllowedValues: [0.50, 1.0]", Some("2"), &["is not one of"]),
            ("Type: CommaDelimitedList, AllowedValues: [True]", Some("true,true"), &[]),
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
