//! What a template demands of the value of a parameter.

use regex_lite::Regex;

use crate::yaml::Node;

/// What the value of one parameter must be. `CloudFormation` refuses a deployment for the same.
#[derive(Debug)]
pub struct Demands {
    number: bool,
    /// Whether the value is a list, each item of which must be so.
    list: bool,
    values: Vec<String>,
    pattern: Option<String>,
    length: (Option<f64>, Option<f64>),
    range: (Option<f64>, Option<f64>),
    description: Option<String>,
}

impl Demands {
    /// Reads what stands in the definition of a parameter.
    pub fn of(parameter: &Node) -> Self {
        let text = |key: &str| parameter.get(key).and_then(Node::as_text);
        let number = |key: &str| text(key)?.parse().ok();
        let kind = text("Type").unwrap_or_default();
        let values = parameter.get("AllowedValues").map_or(&[][..], |values| match values.items() {
            [] => std::slice::from_ref(values),
            items => items,
        });
        Self {
            number: kind == "Number" || kind == "List<Number>",
            list: kind == "CommaDelimitedList" || kind.starts_with("List<"),
            values: values.iter().filter_map(Node::as_text).map(str::to_owned).collect(),
            pattern: text("AllowedPattern").map(str::to_owned),
            length: (number("MinLength"), number("MaxLength")),
            range: (number("MinValue"), number("MaxValue")),
            description: text("ConstraintDescription").map(str::to_owned),
        }
    }

    /// Returns the values that are allowed; none where the template lists none.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Returns why the value is not what is demanded. Never quotes the value: it may be a secret.
    pub fn broken(&self, value: &str) -> Option<String> {
        let why = match self.list {
            true => value.split(',').find_map(|one| self.broken_item(one.trim())),
            false => self.broken_item(value),
        };
        let described = self.description.as_ref().map_or_else(String::new, |text| format!(" ({text})"));
        why.map(|why| why + &described)
    }

    /// Returns the pattern, if no value is compared with it: AWS's regular expressions have what these have not, such as a look-ahead.
    pub fn unread_pattern(&self) -> Option<&str> {
        self.pattern.as_deref().filter(|pattern| whole(pattern).is_none())
    }

    fn broken_item(&self, value: &str) -> Option<String> {
        if !self.values.is_empty() && !self.values.iter().any(|allowed| is_same(allowed, value)) {
            return Some(format!("is not one of AllowedValues: {}", self.values.join(", ")));
        }
        if let Some(pattern) = &self.pattern
            && whole(pattern).is_some_and(|whole| !whole.is_match(value))
        {
            return Some(format!("does not match AllowedPattern {pattern}"));
        }
        let parsed: Option<f64> = value.parse().ok();
        if self.number && parsed.is_none() {
            return Some("is not a number".to_owned());
        }
        #[allow(clippy::cast_precision_loss, reason = "no text has 2^52 characters")]
        let length = value.chars().count() as f64;
        outside(self.length, Some(length), ["MinLength", "MaxLength"])
            .or_else(|| outside(self.range, parsed, ["MinValue", "MaxValue"]))
    }
}

/// Whether AWS may make the same of both. Numbers are compared by their value: how it writes one that has no quotes is not documented.
fn is_same(one: &str, other: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    one == other || number(one).is_some_and(|one| number(other) == Some(one))
}

fn whole(pattern: &str) -> Option<Regex> {
    Regex::new(&format!("^(?:{pattern})$")).ok()
}

fn outside((min, max): (Option<f64>, Option<f64>), value: Option<f64>, names: [&str; 2]) -> Option<String> {
    let value = value?;
    if let Some(min) = min.filter(|min| value < *min) {
        return Some(format!("is below {} {min}", names[0]));
    }
    max.filter(|max| value > *max).map(|max| format!("is above {} {max}", names[1]))
}
