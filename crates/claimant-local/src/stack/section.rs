//! A cursor over the template that records every finding with its place.

use std::ops::RangeInclusive;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::template::{Template, condition_of, type_of};
use super::yaml::{Kind, Node};

/// What follows where only AWS knows a value that can be left out.
const DEFAULT_COUNTS: &str = "its default counts";

/// A place in the template: a value, or the absence of one, with its path for messages.
#[derive(Clone)]
pub(super) struct Section<'t> {
    template: &'t Template<'t>,
    path: String,
    line: usize,
    node: Option<Node>,
}

impl<'a> Template<'a> {
    /// Every parameter, with the value that is given for it.
    pub(super) fn parameter_sections(&self) -> Vec<(&str, Option<&'a str>, Section<'_>)> {
        let all = self.root.get("Parameters").map_or(&[][..], Node::entries).iter();
        all.map(|(name, node)| {
            let section = Section {
                template: self,
                path: format!("Parameters.{name}"),
                line: node.line,
                node: Some(node.clone()),
            };
            (&**name, self.parameters.get(&**name).map(String::as_str), section)
        })
        .collect()
    }

    /// The resources of one of the given types that are not left out by their condition, in the template's order.
    pub(super) fn resources<'t>(
        &'t self,
        types: &'static [&'static str],
    ) -> impl Iterator<Item = (&'t str, Section<'t>)> {
        self.all_resources().filter_map(move |(id, node)| {
            let kind = type_of(node)?;
            let section = Section { template: self, path: id.to_owned(), line: node.line, node: Some(node.clone()) };
            (types.contains(&kind) && section.is_there()).then_some((id, section))
        })
    }

    pub(super) fn function_globals(&self, ignored: &[String]) -> Section<'_> {
        let mut node = self.under("Globals", "Function").cloned();
        if let Some(Node { kind: Kind::Map(entries), .. }) = &mut node {
            let counts = |key: &str| !ignored.iter().any(|one| one == key);
            *entries = entries.iter().filter(|(key, _)| counts(key)).cloned().collect();
        }
        let line = node.as_ref().map_or(1, |node| node.line);
        Section { template: self, path: "Globals.Function".to_owned(), line, node }
    }
}

impl<'t> Section<'t> {
    /// Whether there is a value, other than null and `AWS::NoValue`.
    pub(super) fn is_given(&self) -> bool {
        self.value().is_some()
    }

    /// Whether anything is written here: a value, null, or `AWS::NoValue`.
    pub(super) fn is_written(&self) -> bool {
        self.node.is_some()
    }

    /// Whether a name is written here, and nothing after it.
    pub(super) fn is_blank(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.kind == Kind::Null)
    }

    /// Whether nothing is left here on AWS: absent, null, or `AWS::NoValue`.
    pub(super) fn is_missing(&self) -> bool {
        let comes_to_null = |node| self.template.evaluate(node, 0).is_ok_and(|value| value.kind == Kind::Null);
        self.node.as_ref().is_none_or(comes_to_null)
    }

    /// Whether SAM counts the global value beside this one: where nothing is written here, or where both are written as mappings. A
    /// function of CloudFormation is none, whatever it comes to.
    pub(super) fn merges(&self, global: &Self) -> bool {
        let is_map = |section: &Self| section.node.as_ref().is_some_and(Node::is_map);
        self.node.is_none() || (is_map(self) && is_map(global))
    }

    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Whether this resource's condition holds; one that cannot be evaluated is a fault.
    fn is_there(&self) -> bool {
        let Some(condition) = self.node.as_ref().and_then(condition_of) else { return true };
        self.template.condition(condition).unwrap_or_else(|why| {
            self.fault(why);
            false
        })
    }

    pub(super) fn fault(&self, what: impl AsRef<str>) {
        self.template.findings.fault(self.line, format!("{}: {}", self.path, what.as_ref()));
    }

    /// Notes that something which stands here is not run, or not known.
    pub(super) fn not_run(&self, kind: &str, why: impl Into<String>) {
        self.template.findings.not_run(self.line, &self.path, kind, why);
    }

    /// The value with functions evaluated, and whether it, or a part of it, is a stand-in.
    fn evaluated(&self) -> Option<(Node, Vec<String>)> {
        let node = self.node.as_ref()?;
        self.template.unknown.take();
        let evaluated = self.template.evaluate(node, 0);
        let unknown = self.template.unknown.take();
        match evaluated {
            Ok(Node { kind: Kind::Null, .. }) => None,
            Ok(node) => Some((node, unknown)),
            Err(why) => {
                self.fault(why);
                None
            }
        }
    }

    /// The value, if there is one that is known.
    fn value(&self) -> Option<Node> {
        let (node, unknown) = self.evaluated()?;
        if unknown.is_empty() {
            return Some(node);
        }
        self.note_unknown(unknown, DEFAULT_COUNTS);
        None
    }

    fn note_unknown(&self, unknown: Vec<String>, instead: &str) {
        for why in unknown {
            self.not_run("value", format!("{why}: {instead}"));
        }
    }

    /// What stands under `key`; absent if `key` or this section is.
    pub(super) fn section(&self, key: &str) -> Section<'t> {
        let node = self.value().and_then(|value| value.get(key).cloned());
        let line = node.as_ref().map_or(self.line, |node| node.line);
        Section { template: self.template, path: format!("{}.{key}", self.path), line, node }
    }

    /// This section with only one of its entries.
    pub(super) fn only(&self, key: &str) -> Self {
        let node = self.value().map(|mut node| {
            node.kind = Kind::Map(node.entries().iter().filter(|(name, _)| &**name == key).cloned().collect());
            node
        });
        Self { node, ..self.clone() }
    }

    /// What a text of JSON holds, at this line and those after it, and anything else as it is. Another text is a fault, and counts as absent.
    pub(super) fn unpacked(self) -> Self {
        let text = self.value().and_then(|value| value.as_text().map(str::to_owned));
        let Some(text) = text else { return self };
        // YAML takes more than JSON.
        if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
            self.fault(format!("is not JSON: {error}"));
            return Self { node: None, ..self };
        }
        let lines_before = "\n".repeat(self.line.saturating_sub(1));
        match super::yaml::parse(&(lines_before + &text)) {
            Ok(node) => Self { node: Some(node), ..self },
            Err(_) => self,
        }
    }

    /// The entries of a mapping; nothing if absent.
    pub(super) fn entries(&self) -> Vec<(String, Section<'t>)> {
        let Some(value) = self.value() else { return Vec::new() };
        if !value.is_map() {
            self.fault("must be a mapping of names to values");
        }
        let entries = value.entries().iter();
        entries.map(|(key, _)| (key.to_string(), self.section(key))).filter(|(_, entry)| entry.node.is_some()).collect()
    }

    /// Notes each entry that is not one of these: it is given, and not read.
    pub(super) fn note_others(&self, read: &[&[&str]]) {
        for (key, entry) in self.entries() {
            if !read.iter().any(|names| names.contains(&key.as_str())) {
                entry.not_run("property", "has no effect");
            }
        }
    }

    /// The items of a list; nothing if absent. One value counts as a list of it, as it does for CloudFormation.
    pub(super) fn items(&self) -> Vec<Section<'t>> {
        let Some(value) = self.value() else { return Vec::new() };
        let item = |(index, node): (usize, &Node)| Section {
            template: self.template,
            path: format!("{}[{index}]", self.path),
            line: node.line,
            node: Some(node.clone()),
        };
        match &value.kind {
            Kind::List(items) => items.iter().enumerate().map(item).filter(Self::is_given).collect(),
            Kind::Text(_) => vec![item((0, &value))],
            _ => {
                self.fault("must be a list");
                Vec::new()
            }
        }
    }

    /// The section's own value as text, with functions evaluated.
    pub(super) fn text(&self) -> Option<String> {
        self.as_text(&self.value()?)
    }

    /// As [`text`](Self::text), where a mapping or a list is no fault.
    pub(super) fn plain_text(&self) -> Option<String> {
        self.value()?.as_text().map(str::to_owned)
    }

    /// As [`text`](Self::text), with a stand-in for each part that only AWS knows; each is noted. With whether the value of a parameter
    /// with `NoEcho` is in it: then the notes do not show it.
    pub(super) fn text_or_stand_in(&self) -> Option<(String, bool)> {
        self.template.secret.set(false);
        let (node, unknown) = self.evaluated()?;
        let is_secret = self.template.secret.get();
        let text = self.as_text(&node)?;
        let instead = match is_secret {
            true => "a text stands in for it, which is not shown: a value with NoEcho is beside it".to_owned(),
            false => format!("`{text}` stands in for it"),
        };
        self.note_unknown(unknown, &instead);
        Some((text, is_secret))
    }

    fn as_text(&self, node: &Node) -> Option<String> {
        let text = node.as_text();
        if text.is_none() {
            self.fault("must be a single value: a text, a number, true or false");
        }
        text.map(str::to_owned)
    }

    /// The value itself, whose scalars are as JSON has them; null if absent. `None` if only AWS knows a part: `without` says what follows.
    pub(super) fn plain_json(&self, without: &str) -> Option<Value> {
        let Some(node) = &self.node else { return Some(Value::Null) };
        self.template.unknown.take();
        let read = self.template.json(node).map_err(|why| self.fault(why)).ok();
        let unknown = self.template.unknown.take();
        let is_known = unknown.is_empty();
        self.note_unknown(unknown, without);
        read.filter(|_| is_known)
    }

    /// As [`text`](Self::text); absence is a fault.
    pub(super) fn required_text(&self, fix: &str) -> Option<String> {
        self.required_text_or(fix, DEFAULT_COUNTS)
    }

    /// As [`required_text`](Self::required_text); `without` says what follows where only AWS knows the value.
    pub(super) fn required_text_or(&self, fix: &str, without: &str) -> Option<String> {
        let text = self.text_or(without);
        if text.is_none() && self.is_missing() {
            self.fault(format!("is missing: {fix}"));
        }
        text
    }

    /// As [`text`](Self::text); `without` says what follows where only AWS knows the value.
    pub(super) fn text_or(&self, without: &str) -> Option<String> {
        let (node, unknown) = self.evaluated()?;
        if unknown.is_empty() {
            return self.as_text(&node);
        }
        self.note_unknown(unknown, without);
        None
    }

    pub(super) fn integer(&self, range: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text()?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        if number.is_none() {
            self.fault(format!("must be a whole number from {} to {}, not `{text}`", range.start(), range.end()));
        }
        number
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        let text = self.text()?;
        match text.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.fault(format!("must be true or false, not `{text}`"));
                None
            }
        }
    }
}

/// The resource's name; one that is wrong is a fault of the resource, and the logical id stands in for one that only AWS
/// knows.
pub(super) fn physical_name(
    template: &Template<'_>,
    id: &str,
    resource: &Section<'_>,
    property: &str,
) -> Option<String> {
    // What is wrong with it is said here.
    resource.section("Properties").section(property).text();
    template.physical_name(id).ok()
}
